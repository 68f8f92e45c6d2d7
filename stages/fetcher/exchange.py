"""One exchange with a server: the bytes of its request, what arrives of the answer, and the outcome that follows.

Nothing here raises on what a server sends. An exchange that got a whole head has an answer, which is stored even
where the outcome is failed; without one there is only an outcome and its reason.
"""

import re

from contract.tables import ANSWERED, FAILED
from contract.url import host_of, port_of, server_of

HTTP_5XX, HTTP_429 = "http_5xx", "http_429"
DNS, CONNECT, TLS, TIMEOUT, DISCONNECT = "dns", "connect", "tls", "timeout", "disconnect"
EMPTY, BAD_HTTP, TOO_LONG_HEADERS = "empty", "bad_http", "too_long_headers"
FORBIDDEN_ADDRESS = "forbidden_address"
REJECT_DOMAINS = "reject_domains"

LENGTH, TIME, UNSPECIFIED = "length", "time", "unspecified"  # WARC-Truncated, WARC 1.1 section 5.13

_STATUS_LINE = re.compile(rb"HTTP/(\d)(?:\.\d)? +(\d{3})(?: |$)")
_TRANSFER_ENCODING = re.compile(rb"transfer-encoding(?=[ \t]*:)", re.IGNORECASE)


class Exchange:
    def __init__(self, url: str, address: str, agent: str, header_max_bytes: int, body_max_bytes: int, *,
                 is_robots: bool = False):
        self.url = url
        self.server = server_of(url)
        self.address = address
        self.is_robots = is_robots
        self.target = url[len(self.server):]
        self.headers = [
            f"Host: {self.server.partition('//')[2]}", f"User-Agent: {agent}", "Accept: */*",
            "Accept-Encoding: gzip, deflate", "Connection: close",
        ]
        self.started_at_ms = 0
        self.times_ms: dict[str, int] = {}
        self.is_http2 = False
        self.status = 0
        self.outcome = self.reason = self.truncated = ""
        self._header_max_bytes = header_max_bytes
        self._body_max_bytes = body_max_bytes
        self._lines: list[bytes] = []
        self._header_bytes = 0
        self._has_head = False
        self._pieces: list[bytes] = []
        self._body_bytes = 0

    @property
    def host(self) -> str:
        return host_of(self.server)

    @property
    def port(self) -> int:
        return port_of(self.server)

    @property
    def has_answer(self) -> bool:
        return self._has_head and self.status > 0

    @property
    def what(self) -> str:
        """The status, or the reason why there is no whole answer: one word for people."""
        return str(self.status) if self.has_answer and self.truncated in ("", LENGTH) else self.reason

    def request_block(self) -> bytes:
        """The bytes of the request, as libcurl sends them over HTTP/1.1; HTTP/2 has no Connection header."""
        lines = [line for line in self.headers if not (self.is_http2 and line.startswith("Connection:"))]
        return "\r\n".join([f"GET {self.target} HTTP/1.1", *lines, "", ""]).encode("ascii")

    def body(self) -> bytes:
        return b"".join(self._pieces)

    def response_block(self) -> bytes:
        """Head and body of the answer, or nothing where there is none."""
        return self._response_head() + self.body() if self.has_answer else b""

    def _response_head(self) -> bytes:
        """Status line and headers as they came, line ends made CRLF, the header that no longer holds renamed."""
        first, *lines = self._lines
        if self.is_http2:
            first = b"HTTP/1.1 %03d " % self.status
        renamed = (_TRANSFER_ENCODING.sub(b"X-Crawler-Transfer-Encoding", line, 1) if line[:1] in b"tT" else line
                   for line in lines)
        return b"\r\n".join([first, *renamed, b"", b""])

    def take_header(self, line: bytes) -> bool:
        """Takes a header line as it arrives; false where the header section is longer than allowed."""
        if self._has_head:
            return True  # a trailer: not part of the head any more, and nobody reads it
        self._header_bytes += len(line)
        if self._header_bytes > self._header_max_bytes:
            return False
        if line in (b"\r\n", b"\n"):
            self._end_head()
        elif stripped := line.rstrip(b"\r\n"):
            self._lines.append(stripped)
        return True

    def _end_head(self) -> None:
        found = _STATUS_LINE.match(self._lines[0]) if self._lines else None
        self.status = int(found[2]) if found and int(found[2]) >= 100 else 0
        if 100 <= self.status < 200:
            self._lines = []  # an interim answer; the real one follows
            self.status = 0
            return
        self.is_http2 = bool(found) and found[1] == b"2" and self.url.startswith("https:")  # in the clear it is a lie
        self._has_head = True

    def take_body(self, piece: bytes) -> bool:
        """Takes a piece of the body as it arrives; false where the body is longer than allowed."""
        room = self._body_max_bytes - self._body_bytes
        self._pieces.append(piece[:room])
        self._body_bytes += min(len(piece), room)
        if len(piece) > room:
            self.truncated = LENGTH
        return len(piece) <= room

    def end(self, trouble: str) -> None:
        """Decides the outcome; `trouble` is the reason why the transfer broke off, or nothing."""
        if self._header_bytes > self._header_max_bytes:
            trouble = TOO_LONG_HEADERS
        elif self.truncated == LENGTH:
            trouble = ""  # we broke it off ourselves, and what is kept is an answer
        elif not trouble and not self._has_head:
            trouble = DISCONNECT if self._header_bytes else EMPTY
        if self._has_head and not self.status:
            trouble = BAD_HTTP
        if trouble and self.has_answer:
            self.truncated = {TIMEOUT: TIME, DISCONNECT: DISCONNECT}.get(trouble, UNSPECIFIED)
        self.outcome, self.reason = judge(self.status, trouble)


def judge(status: int, trouble: str = "") -> tuple[str, str]:
    """Outcome and reason of an exchange."""
    if trouble:
        return FAILED, trouble
    if status == 429:
        return FAILED, HTTP_429
    if 500 <= status < 600:
        return FAILED, HTTP_5XX
    return ANSWERED, ""
