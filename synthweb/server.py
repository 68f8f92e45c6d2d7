"""One server of the web: its name, address and character, and every page that it can be asked for."""

from dataclasses import dataclass, field
from random import Random

from synthweb.page import Page
from synthweb.robots import ABSENT, Robots
from synthweb.spelling import choose_extra, choose_form
from synthweb.traps import Trap
from synthweb.url import Url
from synthweb.words import Tongue

# Roles of servers that give nothing: connection refused, no address, accepted and closed without a word.
DEAD_ROLES = frozenset({"refused", "nameless", "silent"})


@dataclass
class Server:
    host: str
    address: str | None  # None: the name does not resolve
    role: str
    tongue: Tongue
    size: int  # how many ordinary pages it was planned with
    level_wished: int
    robots: Robots = ABSENT
    delay_s: float = 0.0  # every answer waits so long
    pages: dict[str, Page] = field(default_factory=dict)  # by request target
    traps: list[Trap] = field(default_factory=list)

    def is_dead(self) -> bool:
        return self.role in DEAD_ROLES

    def listens(self) -> bool:
        return self.role not in ("refused", "nameless")

    def home(self) -> Page:
        return self.pages["/"]

    def page(self, target: str) -> Page:
        """The page at a request target: a written one, one of an endless trap, or a 404."""
        page = self.pages.get(target)
        if page is not None:
            return page
        path, _, query = target.partition("?")
        for trap in self.traps:
            if trap.holds(path):
                page = trap.page(Url(self.host, path, query))
                finish(page, self.tongue.charset)
                return page
        return Page(Url(self.host, path, query), feature="404", status=404, shape="message", charset="us-ascii")


def finish(page: Page, charset: str) -> None:
    """Settle how a page is written and sent; decided by its URL alone, so that order never matters."""
    place = f"{page.url.host}{page.url.target()}"
    page.key = page.key or place
    if page.shape in ("page", "frameset"):
        page.charset = charset
        # By the key, not the place: copies of one body must declare it alike.
        ways = ("header", "meta", "http-equiv", "bom" if charset == "utf-8" else "header")
        page.declared = Random(f"declare/{page.key}").choice(ways)
    rng = Random(f"finish/{place}")
    page.framing = rng.choices(("length", "chunked", "close"), weights=(6, 3, 1))[0]
    page.closes = page.framing == "close" or rng.random() < 0.1
    page.gzipped = page.status == 200 and page.shape != "empty" and rng.random() < 0.25
    for link in page.links:
        if link.target is not None and not link.form:
            link.form = choose_form(link.target, page.base_url(), page.portable, rng)
            link.extra = choose_extra(link.form, link.target, rng)
