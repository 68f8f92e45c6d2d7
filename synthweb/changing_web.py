"""The changing web as its users see it: seeds, names, the truth, and the answer to a request at the clock's moment.

The clock is a file of the state folder, `clock`, that a test replaces: virtual milliseconds since 1970. It is read for
each request, so all that is asked between two settings happens at one moment.

With `sitemaps`, each server has a /sitemap.xml of the pages that exist, which its robots.txt names. Honest servers give
the second of each page's last change. Others lie: they say that each page changed a minute ago. In all of them the home
has a date a year ahead.
"""

import copy
import hashlib
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from html import escape
from pathlib import Path
from random import Random

from synthweb.answer import Answer, refuse
from synthweb.changing import DAY_MS, DEAF, DRIFTING, SECOND_MS, SIDE_LINKS, START_MS, ChangingPage, Truth, grow_pages
from synthweb.plan import address_of
from synthweb.rules import Rules
from synthweb.server import Server
from synthweb.wire import Request
from synthweb.words import tongue_of

CLOCK = "clock"
SERVERS_MAX = 200
HTML = ("Content-Type", "text/html; charset=utf-8")
XML, PLAIN = ("Content-Type", "application/xml"), ("Content-Type", "text/plain")
NOTHING = b"<!doctype html><title>nothing here</title><p>nothing here</p>\n"

ROBOTS, SITEMAP = "/robots.txt", "/sitemap.xml"
LIAR_EVERY = 3  # one server in so many has a sitemap that lies, the third one first
LIE_MS, AHEAD_MS = 60 * SECOND_MS, 365 * DAY_MS


def set_clock(state: Path, moment_ms: int) -> None:
    aside = state / f"{CLOCK}.new"
    aside.write_text(f"{moment_ms}\n", "ascii")
    aside.replace(state / CLOCK)


class ChangingWeb:
    """A web of so many servers with so many pages each, and some that come later."""

    def __init__(
        self,
        seed: int,
        servers: int = 6,
        pages: int = 20,
        port: int = 8080,
        state: Path | None = None,
        sitemaps: bool = False,
    ):
        if not 1 <= servers <= SERVERS_MAX or pages < 1:
            raise ValueError(f"servers: expected 1 to {SERVERS_MAX}, and a page each, found {servers}, {pages}")
        self.seed, self.port, self._state, self._sitemaps = seed, port, state, sitemaps
        self._pages = grow_pages(seed, servers, pages)
        self._by_place = {(page.url.host, page.url.target()): page for own in self._pages for page in own}
        tongue = tongue_of(Random(f"changing/{seed}/tongue"))
        self.servers = {
            own[0].url.host: Server(own[0].url.host, address_of(seed, number), "changing", tongue, pages, 0)
            for number, own in enumerate(self._pages)
        }
        self._numbers = {host: number for number, host in enumerate(self.servers)}
        self._texts = Random(f"changing/{seed}/words").choices(tongue.native, k=200)

    def at_port(self, port: int) -> "ChangingWeb":
        """The same web on another port."""
        moved = copy.copy(self)
        moved.port = port
        return moved

    def seeds(self) -> list[str]:
        return [own[0].url.text(self.port) for own in self._pages]

    def hosts(self) -> dict[str, str]:
        return {server.host: server.address for server in self.servers.values() if server.address}

    def addresses(self) -> list[str]:
        return sorted(self.hosts().values())

    def truth(self, rules: Rules = Rules()) -> Truth:
        return Truth(self._by_place.values(), self.port)

    def wall_ms(self) -> float:
        """The moment that the clock shows."""
        if self._state is None or not (self._state / CLOCK).exists():
            return START_MS
        return int((self._state / CLOCK).read_text("ascii"))

    def respond(self, request: Request, attempt: int) -> Answer:
        return self.answer(
            request.host, request.target, self.wall_ms(), request.if_none_match, request.if_modified_since, attempt
        )

    def answer(
        self,
        host: str,
        target: str,
        moment_ms: float,
        if_none_match: str = "",
        if_modified_since: str = "",
        attempt: int = 1,
    ) -> Answer:
        """What is answered at a moment. `attempt` drives the ETag that changes though its body does not."""
        if host not in self.servers:
            return refuse(421)
        if self._sitemaps and target == ROBOTS:
            return Answer(200, (PLAIN,), f"Sitemap: http://{host}:{self.port}{SITEMAP}\n".encode())
        if self._sitemaps and target == SITEMAP:
            return Answer(200, (XML,), self.sitemap(host, moment_ms))
        page = self._by_place.get((host, target))
        if page is None or not page.exists(moment_ms):
            return Answer(page.gone_status if page is not None else 404, (HTML,), NOTHING)
        number = self._numbers[host]
        etag, modified = self._validators(page, moment_ms, attempt if number == DRIFTING else 0)
        headers = (*([("ETag", etag)] if etag else []), *([("Last-Modified", modified)] if modified else []))
        if number != DEAF and is_unchanged(etag, modified, if_none_match, if_modified_since):
            return Answer(304, headers, framing="none")
        return Answer(200, (HTML, *headers), self.body(page, page.version(moment_ms)))

    def lies(self, host: str) -> bool:
        """Whether the sitemap of a server lies about its pages."""
        return self._numbers[host] % LIAR_EVERY == LIAR_EVERY - 1

    def sitemap(self, host: str, moment_ms: float) -> bytes:
        lines = ['<?xml version="1.0"?>', '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">']
        for page in self._pages[self._numbers[host]]:
            if not page.exists(moment_ms):
                continue
            changed_ms = moment_ms - LIE_MS if self.lies(host) else page.changed_at_ms(page.version(moment_ms))
            if page.url.path == "/":
                changed_ms = moment_ms + AHEAD_MS
            date = datetime.fromtimestamp(changed_ms // SECOND_MS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            lines.append(f"<url><loc>{escape(page.url.text(self.port))}</loc><lastmod>{date}</lastmod></url>")
        return "\n".join([*lines, "</urlset>", ""]).encode()

    def body(self, page: ChangingPage, version: int) -> bytes:
        """The bytes of a version of a page."""
        place = page.url.host + page.url.target()
        rng = Random(f"changing/{self.seed}/{place}/{version}")
        neighbours = [other for other in self._pages[self._numbers[page.url.host]] if other.born_ms < START_MS]
        targets = [*page.children, *(late for change, late in page.late if version >= change)]
        targets += rng.choices(neighbours, k=SIDE_LINKS)
        if page.url.path == "/":  # a change of one server leads to others
            targets.append(rng.choice(self._pages)[0])
        links = "\n".join(f'<li><a href="{escape(other.url.text(self.port))}">mais</a>' for other in targets)
        words = " ".join(rng.choices(self._texts, k=60))
        title = f"{escape(place)}, version {version}"
        return f"<!doctype html>\n<title>{title}</title>\n<p>{words}</p>\n<ul>\n{links}\n</ul>\n".encode()

    def _validators(self, page: ChangingPage, moment_ms: float, drift: int) -> tuple[str, str]:
        version = page.version(moment_ms)
        text = f"{self.seed}/{page.url.host}{page.url.target()}/{version}/{drift}"
        etag = f'"{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"'
        if page.validators == "etag":
            etag = f"W/{etag}"
        modified = formatdate(page.changed_at_ms(version) // 1000, usegmt=True)
        return etag if page.validators in ("both", "etag") else "", modified if page.validators in (
            "both",
            "modified",
        ) else ""


def is_unchanged(etag: str, modified: str, if_none_match: str, if_modified_since: str) -> bool:
    """RFC 9110: If-None-Match, compared weakly, goes before If-Modified-Since; a date that is none is ignored."""
    if if_none_match:
        tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
        return bool(etag) and ("*" in tags or etag.removeprefix("W/") in tags)
    if not if_modified_since or not modified:
        return False
    try:
        return parsedate_to_datetime(modified) <= parsedate_to_datetime(if_modified_since)
    except (ValueError, TypeError):
        return False
