"""The register of manners and what all of them are written with.

To add one, write a function below `@manner(name, what it does)`. It is given the line and the request, sends what
it likes, and returns true where the connection may stay for another request. Where it is but a string of bytes:
`say(name, what, bytes)`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from synthweb.line import Line, Request

# When a manner acts: asked for its path; asked for robots.txt of its host; before a byte is read; instead of a
# handshake.
PATH, ROBOTS, ACCEPT, HANDSHAKE = "path", "robots", "accept", "handshake"
STAYS = True


@dataclass(frozen=True)
class Manner:
    name: str
    does: str
    act: Callable[[Line, Request], bool | None]
    moment: str


MANNERS: dict[str, Manner] = {}


def manner(name: str, does: str, moment: str = PATH):
    def register(act):
        assert name not in MANNERS, name
        MANNERS[name] = Manner(name, does, act, moment)
        return act

    return register


def say(name: str, does: str, data: bytes, moment: str = PATH, stays: bool = False) -> None:
    """A manner that sends some bytes and closes."""

    def act(line: Line, request: Request) -> bool:
        line.end(data)
        return stays

    manner(name, does, moment)(act)


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1")


def page(body: bytes = b"<p>hello</p>", *lines: str, status: str = "200 OK") -> bytes:
    """An answer without fault, its length told."""
    return head("Content-Type: text/html", f"Content-Length: {len(body)}", *lines, status=status) + body
