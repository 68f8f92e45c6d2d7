"""The register of oddities, and the tools with which one is grafted onto a page of a server."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from synthweb.page import Link, Page
from synthweb.server import Server
from synthweb.url import Url


@dataclass(frozen=True)
class Oddity:
    """`hops` is how far below its anchor the deepest page lies that a crawler must collect."""

    name: str
    hops: int
    grow: Callable[["Graft"], None]


ODDITIES: list[Oddity] = []


def oddity(name: str, hops: int):
    def register(grow: Callable[["Graft"], None]) -> Callable[["Graft"], None]:
        ODDITIES.append(Oddity(name, hops, grow))
        return grow

    return register


@dataclass
class Graft:
    """One oddity on its way into one server. `number` makes its paths unique there.

    `elsewhere` is an ordinary page, as a rule of another server, that any page of the graft may link to.
    """

    server: Server
    anchor: Page
    name: str
    number: int
    rng: Random
    elsewhere: Page

    def url(self, path: str, query: str = "") -> Url:
        """A URL of this graft alone: nothing else links to it."""
        directory, _, last = path.rpartition("/")
        unique = f"{directory}/{self.number}-{last}" if last else f"{directory}-{self.number}/"
        return Url(self.server.host, unique, query)

    def add(self, parent: Page, path: str, query: str = "", kind: str = "a", rel: str = "", **page) -> Page:
        """A new page under `parent`, with a link to it."""
        new = self.lay(parent, path, query, **page)
        parent.links.append(Link(new.url, kind, rel=rel))
        return new

    def lay(self, parent: Page, path: str, query: str = "", **page) -> Page:
        """A new page one level under `parent`, without a link to it."""
        new = Page(self.url(path, query), parent.level + 1, self.name, **page)
        self.server.pages[new.url.target()] = new
        return new

    def native(self) -> str:
        return self.rng.choice(self.server.tongue.native)
