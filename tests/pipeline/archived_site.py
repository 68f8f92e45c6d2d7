"""A site to archive: documentation with its images on another host, and a page with requisites of every kind."""

import io
import mimetypes
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zlib import crc32

from PIL import Image

DOCS, STATIC, ELSEWHERE, REJECTED = "docs.test", "static.test", "elsewhere.test", "rejected.test"
HOSTS = (DOCS, STATIC, ELSEWHERE, REJECTED)
EXHIBIT = "/exhibit.html"
FONT = Path(sysconfig.get_path("purelib")) / "pywb/static/fonts/font-awesome/fa-solid-900.woff2"
CELL = (400, 300)  # three in a row, five rows in a window of 1280 x 1600: 5.9 % of it, so that none may be missing
CRAWLER = "Coletor"

# Each cell is a picture, or has one as background, that the page finds in another way.
PAGE = """<!doctype html><html lang=en><title>Exhibit</title>
<link rel=stylesheet href="http://static.test/sheet.css"><link rel=stylesheet href="http://static.test/moved.css">
<style>@import "http://static.test/imported_by_page.css";
.in_page {background: url('http://static.test/in_page.png')}</style>
<script src="http://static.test/script.js"></script>
<body>
<div><img src="http://static.test/plain.png"></div>
<div><img srcset="http://static.test/set.png 1x"></div>
<div><picture><source srcset="http://static.test/picture.png"><img alt=""></picture></div>
<div class=in_sheet></div>
<div class=in_imported></div>
<div class=in_page></div>
<div style='background: url("http://static.test/in_attribute.png")'></div>
<div class=in_moved></div>
<div class=in_sheet_of_page></div>
<div><svg width=400 height=300><image width=400 height=300 href="http://static.test/in_svg.png" /></svg></div>
<div><object data="http://static.test/drawing.svg" type="image/svg+xml"></object></div>
<div><iframe src="http://elsewhere.test/frame.html"></iframe></div>
<div><img src="http://static.test/moved.png"></div>
<div><video poster="http://static.test/poster.png" width=400 height=300></video></div>
<div class=font>&#xf0c8;</div>
<img src="http://static.test/closed.png" width=1 height=1><img src="http://rejected.test/banner.png" width=1 height=1>
<a href="http://static.test/page.html"></a>"""
SHEET = """@import url(deeper/imported.css);
@font-face {font-family: squares; src: url("http://elsewhere.test/squares.woff2"); font-display: block}
body {margin: 0} div {float: left; width: 400px; height: 300px; overflow: hidden}
iframe {border: 0; width: 400px; height: 300px}
.font {font: 400px/300px squares} .in_sheet {background: url(in_sheet.png)}"""
DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="400" height="300">
<image width="400" height="300" href="in_drawing.png"/></svg>"""
TEXTS = {
    (DOCS, EXHIBIT): PAGE,
    (STATIC, "/sheet.css"): SHEET,
    (STATIC, "/deeper/imported.css"): ".in_imported {background: url(../in_imported.png)}",
    (STATIC, "/imported_by_page.css"): ".in_sheet_of_page {background: url(in_sheet_of_page.png)}",
    (ELSEWHERE, "/moved.css"): ".in_moved {background: url(in_moved.png)}",
    (STATIC, "/script.js"): "document.title = 'scripts are on'",
    (STATIC, "/drawing.svg"): DRAWING,
    (ELSEWHERE, "/frame.html"): '<body style="margin: 0"><img src="in_frame.png"><a href="page.html"></a>',
    (STATIC, "/robots.txt"): "User-agent: *\nDisallow: /closed.png\n",
}
MOVED = {(STATIC, "/moved.css"): ELSEWHERE, (STATIC, "/moved.png"): ELSEWHERE}


class Site(ThreadingHTTPServer):
    """All hosts at one port of loopback; `root` holds the documentation; `asked`, agent and URL of each request."""

    daemon_threads = True

    def __init__(self, root: Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.port = self.server_address[1]
        self.asked: list[tuple[str, str]] = []

    def handle_error(self, *_):
        """A browser that ends breaks its connections off."""

    def url(self, host: str, path: str) -> str:
        return f"http://{host}:{self.port}{path}"

    def find(self, host: str, path: str) -> bytes | None:
        if (host, path) in TEXTS:
            return self._with_port(TEXTS[host, path].encode())
        if path == "/squares.woff2":
            return FONT.read_bytes()
        file = self.root / path.lstrip("/")
        if host in (DOCS, STATIC) and file.is_file() and file.resolve().is_relative_to(self.root):
            content = file.read_bytes()
            return self._with_port(move_assets(content)) if file.suffix == ".html" else content
        return paint(path) if path.endswith(".png") else None

    def _with_port(self, content: bytes) -> bytes:
        return content.replace(b".test/", b".test:%d/" % self.port)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        host = self.headers.get("Host", "").partition(":")[0]
        self.server.asked.append((self.headers.get("User-Agent", ""), self.server.url(host, self.path)))
        body = self.server.find(host, self.path)
        if target := MOVED.get((host, self.path)):
            self.send_response(302)
            self.send_header("Location", self.server.url(target, self.path))
            body = b""
        elif body is None:
            self.send_response(404)
            body = b"nothing here"
        else:
            self.send_response(200)
            self.send_header("Content-Type", mimetypes.guess_type(self.path)[0] or "text/plain")
        self.send_header("Access-Control-Allow-Origin", "*")  # or a browser takes no font of another host
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def move_assets(page: bytes) -> bytes:
    """A page of the documentation with its images and its style on the other host."""
    page = page.replace(b'src="images/', b'src="http://static.test/images/')
    return page.replace(b'href="sqlite.css"', b'href="http://static.test/sqlite.css"')


def paint(path: str) -> bytes:
    """A picture of one colour, which its path decides."""
    colour = tuple(crc32(path.encode()).to_bytes(4)[:3])
    stream = io.BytesIO()
    Image.new("RGB", CELL, colour).save(stream, "PNG")
    return stream.getvalue()


@contextmanager
def serving(root: Path) -> Iterator[Site]:
    with Site(root) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()
