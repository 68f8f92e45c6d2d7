"""Endless parts of the web, made on the fly: a crawler must cut them by the look of the URL alone.

Each hop adds so much that the default rules cut after at most three hops from the entry, which keeps the
whole web within its largest depth.
"""

import hashlib
from dataclasses import dataclass

from synthweb.page import Link, Page
from synthweb.url import Url


@dataclass(frozen=True)
class Trap:
    """`entry` is the path that the server links to; everything at or under it belongs to the trap."""

    name: str
    entry: str

    def holds(self, path: str) -> bool:
        return path == self.entry or path.startswith(self.entry.rstrip("/") + "/")

    def page(self, url: Url) -> Page:
        links = [Link(onward) for onward in NEXT[self.name](url)]
        return Page(url, feature=f"trap-{self.name}", links=links)


def calendar_next(url: Url) -> list[Url]:
    """Two ways on, each two segments deeper: 3, 5, 7 segments pass, 9 do not."""
    return [Url(url.host, f"{url.path}{_token(url.path, way, 4)}/dia-{way}-{len(url.path)}/") for way in "ab"]


def mirror_next(url: Url) -> list[Url]:
    """The same two segments again: the third time is one too many."""
    return [Url(url.host, f"{url.path}a/b/")]


def session_next(url: Url) -> list[Url]:
    """The same page with 50 more characters of session id: at 200 characters three hops pass."""
    session = url.query or "sid="
    return [Url(url.host, url.path, session + _token(session, "sid", 50))]


NEXT = {"calendar": calendar_next, "mirror": mirror_next, "session": session_next}

ENTRIES = {"calendar": "/agenda/2026/11/", "mirror": "/espelho/a/b/", "session": "/sessao"}

# Hops from the page that links to the entry to the deepest page that the default rules let pass.
HOPS = {"calendar": 3, "mirror": 2, "session": 4}


def _token(text: str, salt: str, characters: int) -> str:
    return hashlib.sha256(f"{salt}/{text}".encode()).hexdigest()[:characters]
