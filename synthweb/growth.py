"""Grows the pages and links of a planned web, so that a page's level is its depth from the seeds.

The invariant: every link that a crawler follows leads at most one level down, and every page that it must
collect has a parent exactly one level up. The depth of the whole web is then known, LEVEL_MAX, by construction.
"""

from itertools import count
from random import Random

from synthweb.oddities import ODDITIES, Graft, Oddity
from synthweb.page import FOREVER, Link, Page
from synthweb.plan import plan_servers
from synthweb.server import Server, finish
from synthweb.url import Url
from synthweb.words import SECTIONS

# A crawler of this project needs a turn of its ring a level: more would make every demo and test longer.
LEVEL_MAX = 7
CHILD_OF_HOME_SHARE = 0.2
NATIVE_PATH_SHARE = 0.1
ODDITIES_PER_SERVER = (0, 1, 1, 2)

# Failures of one URL of a server: (status, requests that fail). A crawler asks three times.
FAILURES = {
    "recovers-once": (503, 1),
    "recovers-twice": (500, 2),
    "too-many-requests": (429, 1),
    "fails-forever": (502, FOREVER),
}


def grow_web(seed: int, servers_count: int) -> list[Server]:
    """The whole web, in the order in which its servers were placed; those at level 0 come first."""
    growth = Growth(seed)
    servers = sorted(plan_servers(seed, servers_count), key=lambda server: server.level_wished)
    for server in servers:
        growth.place(server)
    growth.add_ladder(servers[0])
    growth.graft_oddities([server for server in servers if server.role == "ordinary"])
    growth.cross_link()
    for server in servers:
        for page in list(server.pages.values()):
            finish(page, server.tongue.charset)
    return servers


class Growth:
    def __init__(self, seed: int) -> None:
        self.rng = Random(f"synthweb/{seed}/growth")
        self.numbers = count(1)
        # Ordinary pages of ordinary servers by level: the only ones that others build on.
        self.plain: list[list[Page]] = [[] for _ in range(LEVEL_MAX + 1)]

    def place(self, server: Server) -> None:
        """Give a server its home page, a link to it one level up, and its own pages."""
        home = Page(Url(server.host), level=0, feature="home")
        if server.level_wished:
            parent = self._page_above(server.level_wished)
            home.level = parent.level + 1
            parent.links.append(Link(home.url))
            if server.is_dead():
                parent.links.append(Link(Url(server.host, "/alguem-ai")))
        server.pages["/"] = home
        if server.is_dead():
            return
        ordinary = server.role == "ordinary"
        pages = self._add_pages(server, home, LEVEL_MAX if ordinary else home.level + 1)
        if ordinary:
            for page in pages:
                self.plain[page.level].append(page)
        if server.role in FAILURES:
            self._add_failing_page(server, home)
        self._add_probes(server, home)

    def add_ladder(self, server: Server) -> None:
        """One page a level down to the deepest, each the only way to the next: every web has its full depth."""
        page = server.home()
        for step in range(1, LEVEL_MAX + 1):
            page = _add(server, page, Url(server.host, "/escada", f"degrau={step}"), "ladder")

    def graft_oddities(self, servers: list[Server]) -> None:
        """Each oddity once, as far as there are levels for it, then more at random."""
        chosen: list[tuple[Server, Oddity]] = []
        for number, oddity in enumerate(ODDITIES):
            able = [server for server in servers if server.home().level + oddity.hops <= LEVEL_MAX]
            chosen.append((able[number % len(able)], oddity))
        for server in servers:
            chosen += [(server, oddity) for oddity in self.rng.sample(ODDITIES, self.rng.choice(ODDITIES_PER_SERVER))]
        for server, oddity in chosen:
            deep_enough = [
                page
                for page in server.pages.values()
                if page.feature in ("home", "plain") and page.level + oddity.hops <= LEVEL_MAX
            ]
            if deep_enough:
                anchor = self.rng.choice(deep_enough)
                graft = Graft(server, anchor, oddity.name, next(self.numbers), self.rng, self._page_for(anchor))
                oddity.grow(graft)

    def cross_link(self) -> None:
        """Links between ordinary pages, in a server and across; never down by more than one level."""
        for page in [page for level in self.plain for page in level]:
            for _ in range(self.rng.randint(0, 3)):
                rel = self.rng.choice(("", "", "", "noopener", "nofollow"))
                page.links.append(Link(self._page_for(page).url, rel=rel))
            if page.feature != "home":
                page.links.append(Link(Url(page.url.host)))
            self.rng.shuffle(page.links)

    def _page_above(self, level: int) -> Page:
        """An ordinary page one level above, or as near to that as there is one."""
        above = next(pages for pages in reversed(self.plain[:level]) if pages)
        return self.rng.choice(above)

    def _page_for(self, page: Page) -> Page:
        """An ordinary page, near or far, that `page` may link to; seeds are always there."""
        level = self.rng.randint(0, min(page.level + 1, LEVEL_MAX))
        return self.rng.choice(self.plain[level] or self.plain[0])

    def _add_pages(self, server: Server, home: Page, level_max: int) -> list[Page]:
        pages = [home]
        parents = [home] if home.level < level_max else []
        for number in range(1, server.size if parents else 1):
            parent = home if self.rng.random() < CHILD_OF_HOME_SHARE else self.rng.choice(parents)
            page = _add(server, parent, self._ordinary_url(server, number), "plain")
            pages.append(page)
            if page.level < level_max:
                parents.append(page)
        return pages

    def _ordinary_url(self, server: Server, number: int) -> Url:
        rng = self.rng
        section = rng.choice(SECTIONS)
        if rng.random() < NATIVE_PATH_SHARE:
            return Url(server.host, f"/{rng.choice(server.tongue.native)}/{number}-{rng.choice(server.tongue.native)}")
        shape = rng.randrange(5)
        if shape == 0:
            return Url(server.host, f"/{section}/ver", f"id={number}")
        if shape == 1:
            return Url(server.host, f"/{section}/lista.php", f"pg={number}&tema={rng.choice(SECTIONS)}")
        if shape == 2:
            return Url(server.host, f"/{section}/{number}/")
        if shape == 3:
            return Url(server.host, f"/{section}/{rng.choice(SECTIONS)}/{rng.randint(1990, 2026)}/{number}.html")
        return Url(server.host, f"/{section}-{number}.html")

    def _add_failing_page(self, server: Server, home: Page) -> None:
        """The only URL of its server that fails: three failures in a row elsewhere might end a correct crawl of it."""
        status, failures = FAILURES[server.role]
        page = _add(server, home, Url(server.host, "/instavel"), server.role)
        page.failure_status, page.failures = status, failures
        _add(server, page, Url(server.host, "/depois-da-falha"), server.role)

    def _add_probes(self, server: Server, home: Page) -> None:
        """What tests a robots.txt, and behind each probe a page that nothing else names."""
        if home.level + 2 > LEVEL_MAX:
            return
        for number, (path, query) in enumerate(server.robots.probes):
            probe = _add(server, home, Url(server.host, path, query), "robots-probe")
            _add(server, probe, Url(server.host, f"/atras-dos-robos/{number}"), "behind-robots-probe")


def _add(server: Server, parent: Page, url: Url, feature: str) -> Page:
    page = Page(url, parent.level + 1, feature)
    parent.links.append(Link(url))
    server.pages[url.target()] = page
    return page
