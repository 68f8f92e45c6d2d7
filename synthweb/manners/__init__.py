"""The bad manners of a hostile server, one function or one line each, by subject.

Register.py holds the list and the tools.
"""

from synthweb.manners import bodies, connections, encodings, handshakes, heads, redirects, refusals, robots
from synthweb.manners.register import ACCEPT, HANDSHAKE, MANNERS, PATH, ROBOTS, Manner

__all__ = [
    "ACCEPT",
    "HANDSHAKE",
    "MANNERS",
    "PATH",
    "ROBOTS",
    "Manner",
    "bodies",
    "connections",
    "encodings",
    "handshakes",
    "heads",
    "redirects",
    "refusals",
    "robots",
]
