"""Decides what a server answers to a request; no clock, no socket: status, headers, body and how long to wait."""

import gzip
from dataclasses import dataclass

from synthweb.markup import href, write_body
from synthweb.page import Page
from synthweb.server import Server

RETRY_AFTER_S = 1


@dataclass(frozen=True)
class Answer:
    """`framing` tells how the end of the body is marked (none: there is no body, as with 304).

    `silent` means to hang up without a word.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    delay_s: float = 0.0
    framing: str = "length"
    closes: bool = False
    silent: bool = False


SILENCE = Answer(status=0, closes=True, silent=True)


def answer_request(server: Server, target: str, attempt: int, accepts_gzip: bool, port: int, seed: int) -> Answer:
    """The answer to request number `attempt` (the first is 1) for `target` since the web is served."""
    if server.role == "silent":
        return SILENCE
    if target == "/robots.txt":
        return _answer_robots(server, attempt)
    page = server.page(target)
    if attempt <= page.failures:
        return _answer_failure(page.failure_status, server.delay_s)
    body = write_body(page, port, seed)
    headers = [("Content-Type", _content_type(page))]
    if page.links and page.links[0].kind == "redirect":
        headers.append(("Location", _location(page, port)))
    if page.gzipped:
        headers.append(("Vary", "Accept-Encoding"))
        if accepts_gzip:
            headers.append(("Content-Encoding", "gzip"))
            body = gzip.compress(body, mtime=0)
    return Answer(page.status, tuple(headers), body, server.delay_s, page.framing, page.closes)


def refuse(status: int) -> Answer:
    """An answer to a request that no crawler should send: malformed, too long, to the wrong host."""
    return Answer(status, (("Content-Type", "text/plain"),), closes=True)


def _answer_robots(server: Server, attempt: int) -> Answer:
    robots = server.robots
    if attempt <= robots.failures:
        return _answer_failure(503, server.delay_s)
    if robots.groups is None:
        return Answer(404, (("Content-Type", "text/html"),), b"<p>Not Found</p>\n", server.delay_s)
    return Answer(200, (("Content-Type", "text/plain"),), robots.text().encode("ascii"), server.delay_s)


def _answer_failure(status: int, delay_s: float) -> Answer:
    headers = [("Content-Type", "text/plain")]
    if status == 429:
        headers.append(("Retry-After", str(RETRY_AFTER_S)))
    return Answer(status, tuple(headers), b"later\n", delay_s)


def _content_type(page: Page) -> str:
    if page.shape in ("page", "frameset", "broken") and page.declared == "header" and page.content_type == "text/html":
        return f"text/html; charset={page.charset}"
    return page.content_type


def _location(page: Page, port: int) -> str:
    # A header has no charset: only ASCII, the canonical escapes, may stand in it.
    text = href(page.links[0], page, port)
    target = page.links[0].target
    return text if text.isascii() or target is None else target.text(port)
