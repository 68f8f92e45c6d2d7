"""A web whose pages change at known rates: what each page is at any moment, and how fresh a set of copies was.

A page has a rate; its changes are a Poisson process whose moments follow from the seed alone. So contents and links are
a function of (seed, page, number of changes up to the moment), and the truth about any moment can be computed at any
time. The moment is virtual: milliseconds since 1970, from START_MS on. Nothing here reads a clock.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from random import Random

from synthweb.url import Url

START_MS = 1_893_456_000_000  # 2030-01-01: a web is as it was made until then
SECOND_MS, DAY_MS = 1_000, 86_400_000
# Changes per day of the fixed kinds. `gone` answers 404 or 410 after some days.
PER_DAY = {"second": 86_400.0, "daily": 1.0, "monthly": 1 / 30, "never": 0.0, "gone": 1 / 10}
FIXED_EVERY = 2  # every so many pages are of a fixed kind, in turn; the rates of the others are lognormal
MEDIAN_PER_DAY, SIGMA, MOST_PER_DAY = 1 / 10, 1.5, 24.0
GONE_DAYS = (2.0, 6.0)  # when a page of the kind `gone` goes
LATE_EVERY = 10  # so many pages of a server have one more that comes later
LATE_CHANGE_MAX = 3  # with which change of its parent it comes, at the latest
SIDE_LINKS = 2  # links of a page that other versions of it do not have

# Which validators the answers of a page carry. Servers beyond the first two have pages of all these.
VALIDATORS = ("both", "etag", "modified", "none")
DEAF, DRIFTING = 0, 1  # servers: one ignores conditions; the ETag of the other changes though the body does not


@dataclass
class ChangingPage:
    url: Url
    kind: str  # of PER_DAY, or "lognormal"
    per_day: float
    validators: str
    children: list["ChangingPage"] = field(default_factory=list)  # linked from every version
    born_ms: float = -inf
    gone_ms: float = inf
    gone_status: int = 404
    late: list[tuple[int, "ChangingPage"]] = field(default_factory=list)  # (change from which it is linked, page)
    _changes_ms: list[float] = field(default_factory=lambda: [float(START_MS)], repr=False)  # the first is no change
    _random: Random = field(default_factory=Random, repr=False)

    def version(self, moment_ms: float) -> int:
        """How often it has changed by then."""
        if self.kind == "second":
            return max(0, int(moment_ms - START_MS) // SECOND_MS)
        while self.per_day and self._changes_ms[-1] <= moment_ms:
            self._grow()
        return max(0, bisect_right(self._changes_ms, moment_ms) - 1)

    def changed_at_ms(self, version: int) -> float:
        """The moment of a change; START_MS for version 0, infinite where it never comes."""
        if self.kind == "second":
            return START_MS + version * SECOND_MS
        if not self.per_day:
            return START_MS if version == 0 else inf
        while len(self._changes_ms) <= version:
            self._grow()
        return self._changes_ms[version]

    def exists(self, moment_ms: float) -> bool:
        return self.born_ms <= moment_ms < self.gone_ms

    def fresh_until_ms(self, seen_ms: float) -> float:
        """Until when a copy that was taken then is as the page."""
        return min(self.changed_at_ms(self.version(seen_ms) + 1), self.gone_ms)

    def _grow(self) -> None:
        gap_ms = self._random.expovariate(self.per_day) * DAY_MS
        self._changes_ms.append(self._changes_ms[-1] + max(gap_ms, SECOND_MS))  # Last-Modified has whole seconds


def grow_pages(seed: int, servers: int, pages: int) -> list[list[ChangingPage]]:
    """The pages of each server, its home first: a tree of `pages`, and some more that come later."""
    rng = Random(f"changing/{seed}")
    return [_grow_server(seed, number, pages, rng) for number in range(servers)]


def _grow_server(seed: int, number: int, pages: int, rng: Random) -> list[ChangingPage]:
    host = f"changing-{number}.test"
    made: list[ChangingPage] = []

    def make(path: str, kind: str) -> ChangingPage:
        drawn = rng.lognormvariate(0.0, SIGMA) * MEDIAN_PER_DAY
        per_day = PER_DAY[kind] if kind in PER_DAY else min(drawn, MOST_PER_DAY)
        page = ChangingPage(Url(host, path), kind, per_day, rng.choice(VALIDATORS))
        page._random = Random(f"changing/{seed}/{host}{path}")
        if kind == "gone":
            page.gone_ms = START_MS + rng.uniform(*GONE_DAYS) * DAY_MS
            page.gone_status = rng.choice((404, 410))
        made.append(page)
        return page

    make("/", "lognormal")
    kinds = list(PER_DAY)
    for place in range(1, pages):
        count = number * (pages - 1) + place - 1
        kind = "lognormal" if count % FIXED_EVERY else kinds[count // FIXED_EVERY % len(kinds)]
        page = make(f"/{kind}/{place}.html", kind)
        rng.choice([parent for parent in made[:-1] if parent.kind != "gone"]).children.append(page)
    parents = [page for page in made if page.kind in ("lognormal", "daily")]
    for place in range(pages // LATE_EVERY):
        parent, change = rng.choice(parents), rng.randint(1, LATE_CHANGE_MAX)
        page = make(f"/late/{place}.html", "lognormal")
        page.born_ms = parent.changed_at_ms(change)
        parent.late.append((change, page))
    return made


class Truth:
    """The pages by their URLs, at any moment."""

    def __init__(self, pages: Iterable[ChangingPage], port: int):
        self.pages = {page.url.text(port): page for page in pages}

    def at(self, url: str, moment_ms: float) -> int | None:
        """The version of a page at a moment; none where it does not exist then."""
        page = self.pages.get(url)
        return page.version(moment_ms) if page is not None and page.exists(moment_ms) else None

    def existing(self, moment_ms: float) -> set[str]:
        return {url for url, page in self.pages.items() if page.exists(moment_ms)}

    def freshness(self, copies: Iterable[tuple[str, int, float]], moment_ms: float) -> float:
        """The share of the existing pages of which a copy (URL, version, when it was taken) is up to date."""
        fresh = {url for url, version, seen_ms in copies if seen_ms <= moment_ms and version == self.at(url, moment_ms)}
        return len(fresh) / max(1, len(self.existing(moment_ms)))

    def mean_freshness(self, visits: Iterable[tuple[str, float]], begin_ms: float, end_ms: float) -> float:
        """Freshness over all pages and all moments of [begin, end), where each visit (URL, moment) gave a copy.

        The integral is exact: a copy is fresh from its visit to the next change.
        """
        fresh_ms = dict.fromkeys(self.pages, 0.0)
        counted_ms = dict.fromkeys(self.pages, -inf)  # until where a page's time is counted already
        for url, seen_ms in sorted(visits, key=lambda visit: visit[1]):
            page = self.pages.get(url)
            if page is None or not page.exists(seen_ms):
                continue
            since_ms = max(seen_ms, counted_ms[url], begin_ms)
            until_ms = min(page.fresh_until_ms(seen_ms), end_ms)
            fresh_ms[url] += max(0.0, until_ms - since_ms)
            counted_ms[url] = max(counted_ms[url], until_ms)
        lived_ms = sum(
            max(0.0, min(page.gone_ms, end_ms) - max(page.born_ms, begin_ms)) for page in self.pages.values()
        )
        return sum(fresh_ms.values()) / max(1.0, lived_ms)
