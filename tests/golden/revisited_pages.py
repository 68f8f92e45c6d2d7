"""A server of three pages that are asked again: one answers 304, one the same body, one a new body each time."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

ADDRESS = "127.99.0.1"  # no server of synthweb has it
VALIDATOR = '"one"'


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: Counter = Counter()

    def do_GET(self) -> None:
        Pages.asked[self.path] += 1
        if self.path == "/":
            self.answer(200, b"<a href=/same>1</a> <a href=/body>2</a> <a href=/changed>3</a>")
        elif self.path == "/same" and self.headers.get("If-None-Match") == VALIDATOR:
            self.answer(304, b"", VALIDATOR)
        elif self.path == "/same":
            self.answer(200, b"<title>the same</title><a href=/>0</a>", VALIDATOR)
        elif self.path == "/body":
            self.answer(200, b"<title>the same body</title>")
        elif self.path == "/changed":
            self.answer(200, b"<title>visit %d</title><a href=/body>2</a>" % Pages.asked[self.path])
        else:
            self.answer(404, b"nothing here")

    def answer(self, status: int, body: bytes, validator: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if validator:
            self.send_header("ETag", validator)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def served() -> Iterator[int]:
    """The pages, at a free port."""
    server = ThreadingHTTPServer((ADDRESS, 0), Pages)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
