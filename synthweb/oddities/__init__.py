"""What is odd on ordinary servers, one function an oddity; graft.py holds the register and the tools."""

from synthweb.oddities import bodies, bounds, links, redirects
from synthweb.oddities.graft import ODDITIES, Graft, Oddity

__all__ = ["ODDITIES", "Graft", "Oddity", "bodies", "bounds", "links", "redirects"]
