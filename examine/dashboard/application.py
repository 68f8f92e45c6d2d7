"""The dashboard as a WSGI application: a few pages, all read-only, under a strict policy for their content.

Theory. Three kinds of people could misuse it. A page of the crawl may hold anything: all its text is escaped, and the
Content-Security-Policy forbids scripts, styles and addresses that are not the dashboard's own. A page elsewhere in the
same browser could make requests to it: names other than those of this machine are refused on loopback, so that no
foreign name can be pointed here, and no answer may be read or framed by another origin. Other machines need the token.

What no HTTP request is, or a too long one, waitress answers by itself (400, 413, 431), without these headers: plain
text that holds nothing of the crawl, nor of the request.
"""

import hmac
import time
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs

from contract.terminal import make_plain
from examine.dashboard.fragments import make_page, show_now, show_pictures
from examine.dashboard.url_page import show_url
from examine.dashboard.watch import TROUBLE, Watch
from examine.report.figures import read_limit

HERE = Path(__file__).resolve().parent
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = [
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
]
HTML, TEXT, SVG = "text/html; charset=utf-8", "text/plain; charset=utf-8", "image/svg+xml"
COOKIE = "coletor-token"


class Answer(Exception):
    """Ends a request early."""

    def __init__(self, status: str, text: str, headers: tuple = ()):
        self.status, self.text, self.headers = status, text, list(headers)


class Dashboard:
    def __init__(self, watch: Watch, token: str):
        """`token`: what a browser must know; empty where only this machine can ask."""
        self._watch, self._token = watch, token
        self._routes = {
            "/": self._front,
            "/now": self._now,
            "/pictures": self._pictures,
            "/url": self._url,
            "/style.css": lambda _: ("text/css", (HERE / "style.css").read_bytes(), []),
            "/script.js": lambda _: ("text/javascript", (HERE / "script.js").read_bytes(), []),
        }

    def __call__(self, environ: dict, start_response) -> list[bytes]:
        try:
            self._admit(environ)
            kind, body, headers = self._route(environ)
            status = "200 OK"
        except Answer as answer:
            status, kind, body, headers = answer.status, TEXT, answer.text.encode(), answer.headers
        except TROUBLE as error:
            status, kind, headers = "503 Service Unavailable", TEXT, []
            body = make_plain(str(error)).encode()
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body))), *HEADERS, *headers])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _admit(self, environ: dict) -> None:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            raise Answer("405 Method Not Allowed", "Only GET and HEAD.\n", [("Allow", "GET, HEAD")])
        if not self._token:
            host = environ.get("HTTP_HOST", "")
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if not is_local(name):
                raise Answer("403 Forbidden", "Use the address that bin/dashboard has printed.\n")
            return
        given = parse_qs(environ.get("QUERY_STRING", "")).get("token", [""])[0]
        if given and self._is_token(given):
            cookie = f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
            raise Answer("303 See Other", "", [("Location", "/"), ("Set-Cookie", cookie)])
        if not self._is_token(read_cookie(environ)):
            raise Answer("403 Forbidden", "Use the address with the token that bin/dashboard has printed.\n")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _route(self, environ: dict) -> tuple[str, bytes, list]:
        path = environ.get("PATH_INFO", "")
        if path in self._routes:
            return self._routes[path](environ)
        name = path.removeprefix("/picture/").removesuffix(".svg")
        if path == f"/picture/{name}.svg" and name in self._watch.pictures.svg:
            return SVG, self._watch.pictures.svg[name], []
        raise Answer("404 Not Found", "There is no such page.\n")

    def _title(self) -> str:
        return f"Crawl {self._watch.crawl.path}"

    def _front(self, _: dict) -> tuple[str, bytes, list]:
        main = (
            '<p id="lost" hidden>The dashboard does not answer: what stands below is old.</p>'
            f'<div id="now">{self._show_now()}</div><div id="pictures">{show_pictures(self._watch.pictures)}</div>'
            '<script src="/script.js" defer></script>'
        )
        return HTML, make_page(self._title(), main).encode(), []

    def _show_now(self) -> str:
        status = self._watch.status()
        return show_now(status, read_limit(self._watch.crawl, status))

    def _now(self, _: dict) -> tuple[str, bytes, list]:
        return HTML, self._show_now().encode(), [("X-Pictures", str(self._watch.pictures.version))]

    def _pictures(self, _: dict) -> tuple[str, bytes, list]:
        return HTML, show_pictures(self._watch.pictures).encode(), []

    def _url(self, environ: dict) -> tuple[str, bytes, list]:
        asked = parse_qs(environ.get("QUERY_STRING", "")).get("u", [""])[0].strip()
        main = show_url(self._watch.crawl, asked, time.time_ns() // 1_000_000) if asked else "<p>Give a URL.</p>"
        return HTML, make_page(self._title(), main, asked).encode(), []


def is_local(name: str) -> bool:
    """Whether a host in a request is this machine by itself, not by a name that somebody else controls."""
    try:
        return name.lower() == "localhost" or ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def read_cookie(environ: dict) -> str:
    """The token of the browser; cookies of other programs on this host come along, in whatever form."""
    pairs = (text.strip().partition("=") for text in environ.get("HTTP_COOKIE", "").split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")
