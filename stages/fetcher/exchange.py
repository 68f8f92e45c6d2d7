"""One exchange with a server: the bytes of its request, what arrives of the answer, and the outcome that follows.

No bytes of a server make it raise. An exchange that got a whole head has an answer, which is stored even if the
outcome is failed. Without one there is only an outcome and its reason.
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address

from contract.config import Fetcher
from contract.retry_after import read_wait_s
from contract.tables import ANSWERED, FAILED, REFUSED
from contract.url import port_of
from contract.warc import clean_message
from stages.fetcher.addresses import explain_forbidden
from stages.fetcher.bodies import Bodies, Body
from stages.fetcher.reasons import (
    BAD_HTTP,
    DISCONNECT,
    EMPTY,
    EXCLUDED_TYPE,
    FORBIDDEN_ADDRESS,
    HTTP_5XX,
    HTTP_304,
    HTTP_429,
    REFUSALS,
    TIMEOUT_TOTAL,
    TOO_BIG,
    TOO_LONG_HEADERS,
    TOO_SLOW,
    WORDS,
)

LENGTH, TIME, UNSPECIFIED = "length", "time", "unspecified"  # WARC-Truncated, WARC 1.1 section 5.13

NOT_MODIFIED_STATUS = 304

STOP = -1  # returned to libcurl where nothing more is wanted; None means that all was taken

KEEPING = ("Accept-Encoding: gzip, deflate, br, zstd",)
CLOSING = (*KEEPING, "Connection: close")

_STATUS_LINE = re.compile(rb"HTTP/(\d)(?:\.\d)? +(\d{3})(?![^ \r\n])")
_TRANSFER_ENCODING = re.compile(rb"(?<=\r\n)transfer-encoding(?=[ \t]*:)", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class Limits:
    """How much of an answer is taken."""

    header_max_bytes: int
    body_max_bytes: int
    length_max_bytes: int = 0  # 0: no limit
    accept_types: tuple[str, ...] = ()  # none: every type


def limits_of(config: Fetcher) -> tuple[Limits, Limits]:
    """The limits for pages, and those for robots.txt, whose headers do not matter."""
    types = tuple(text.lower() for text in config.accept_types)
    return (
        Limits(config.header_max_bytes, config.body_max_bytes, config.length_max_bytes, types),
        Limits(config.header_max_bytes, config.robots_max_bytes),
    )


class Origin:
    """A server at an address: what all requests to it share, made once."""

    def __init__(self, server: str, address: str, agent: str):
        self.server = server
        self.address = address
        self.is_tls = server.startswith("https:")
        self.url = server + "/"
        self.connect_to = [f"::[{address}]:{port_of(server)}" if ":" in address else f"::{address}:{port_of(server)}"]
        self.agent = agent
        # What libcurl writes by itself: from the URL, the User-Agent, and its default.
        self.request_begin = f" HTTP/1.1\r\nHost: {server.partition('//')[2]}\r\nUser-Agent: {agent}\r\nAccept: */*\r\n"


class Exchange:
    __slots__ = (
        "url",
        "origin",
        "robots_for",
        "keeps",
        "is_conditional",
        "target",
        "headers",
        "started_at_ms",
        "times_ms",
        "is_http2",
        "is_sent",
        "was_cut_off",
        "has_no_route",
        "status",
        "outcome",
        "reason",
        "message",
        "truncated",
        "body",
        "header_bytes",
        "_limits",
        "_header_max",
        "_lines",
        "_head",
        "_has_head",
        "_refusal",
    )

    def __init__(
        self,
        origin: Origin,
        url: str,
        limits: Limits,
        bodies: Bodies,
        *,
        robots_for: str = "",
        keeps: bool = False,
        conditions: tuple[str, ...] = (),
    ):
        self.url = url
        self.origin = origin
        self.robots_for = robots_for  # the server whose robots.txt is asked for, or nothing
        self.keeps = keeps  # the connection, for the next request to this server
        self.target = url[len(origin.server) :]
        self.is_conditional = bool(conditions)
        self.headers = KEEPING if keeps else CLOSING  # those that libcurl does not write by itself
        if conditions:
            self.headers = (*self.headers, *conditions)
        self.started_at_ms = 0
        self.times_ms: dict[str, int] = {}
        self.is_http2 = False
        self.is_sent = False
        self.was_cut_off = False  # a kept connection turned out dead; the request must be repeated after a pause
        self.has_no_route = False  # this machine has no route to the address
        self.status = 0
        self.outcome = self.reason = self.message = self.truncated = ""
        self.body = Body(bodies)
        self._limits = limits
        self._header_max = limits.header_max_bytes
        self._lines: list[bytes] = []
        self._head = b""
        self.header_bytes = 0
        self._has_head = False
        self._refusal = ""

    @property
    def address(self) -> str:
        return self.origin.address

    @property
    def is_robots(self) -> bool:
        return bool(self.robots_for)

    @property
    def has_answer(self) -> bool:
        return self._has_head and self.status > 0

    @property
    def received_bytes(self) -> int:
        return self.header_bytes + self.body.size_bytes

    @property
    def what(self) -> str:
        """For people, one word: the status, or the reason why there is no whole answer."""
        return str(self.status) if self.has_answer and self.truncated in ("", LENGTH) else self.reason

    def request_block(self) -> bytes:
        """The bytes of the request, as libcurl sends them over HTTP/1.1; HTTP/2 has no Connection header."""
        lines = [line for line in self.headers if not (self.is_http2 and line.startswith("Connection:"))]
        return "\r\n".join([f"GET {self.target}{self.origin.request_begin}{lines[0]}", *lines[1:], "", ""]).encode(
            "ascii"
        )

    def response_head(self) -> bytes:
        """Status line and headers as they came, with CRLF line ends. Transfer-Encoding is undone, so it is renamed."""
        if not self._head:
            if self.is_http2:
                self._lines[0] = b"HTTP/1.1 %03d \r\n" % self.status
            head = b"".join(self._lines)
            if head.count(b"\r\n") != len(self._lines) or b"\r\r" in head:
                head = b"".join([bare + b"\r\n" for line in self._lines if (bare := line.rstrip(b"\r\n"))])
            self._head = head + b"\r\n"
            if b"\r\ntransfer-encoding" in self._head.lower():
                self._head = _TRANSFER_ENCODING.sub(b"X-Crawler-Transfer-Encoding", self._head)
        return self._head

    def header(self, name: bytes) -> str:
        """The value of the first header of that name in lower case, or nothing."""
        for line in self._lines:
            if line[: len(name)].lower() == name and line[len(name) :].lstrip(b" \t")[:1] == b":":
                return line.partition(b":")[2].strip().decode("latin-1")
        return ""

    def take_header(self, line: bytes) -> int | None:
        """Takes a header line as it arrives; STOP where nothing more of the answer is wanted."""
        if self._has_head:
            return None  # a trailer: not part of the head, and never read
        self.header_bytes += len(line)
        if self.header_bytes > self._header_max:
            return STOP
        if len(line) > 2:
            self._lines.append(line)
        elif line in (b"\r\n", b"\n"):
            self._end_head()
        return STOP if self._refusal else None

    def _end_head(self) -> None:
        found = _STATUS_LINE.match(self._lines[0]) if self._lines else None
        self.status = int(found[2]) if found and int(found[2]) >= 100 else 0
        if 100 <= self.status < 200:
            self._lines = []  # an interim answer; the real one follows
            self.status = 0
            return
        self.is_http2 = bool(found) and found[1] == b"2" and self.origin.is_tls  # without TLS it is not true
        self._has_head = True
        if 200 <= self.status < 300 and (self._limits.accept_types or self._limits.length_max_bytes):
            self._refusal = self._choose()

    def _choose(self) -> str:
        """Why the body is not wanted, or nothing."""
        kind, accepted = self._kind(), self._limits.accept_types
        if (
            accepted
            and kind
            and not any(kind == wanted or (wanted.endswith("/") and kind.startswith(wanted)) for wanted in accepted)
        ):
            return EXCLUDED_TYPE
        length = self.header(b"content-length")
        if self._limits.length_max_bytes and _DIGITS.fullmatch(length) and int(length) > self._limits.length_max_bytes:
            return TOO_BIG
        return ""

    def _kind(self) -> str:
        return self.header(b"content-type").partition(";")[0].strip().lower()

    def take_body(self, piece: bytes) -> int | None:
        """Takes a piece of the body as it arrives; STOP where the body is longer than allowed."""
        body = self.body
        room = self._limits.body_max_bytes - body.size_bytes
        if len(piece) <= room:
            body.append(piece)
            return None
        body.append(piece[:room])
        self.truncated = LENGTH
        return STOP

    def end(self, trouble: str, message: str = "") -> None:
        """Decides the outcome. `trouble` is why the transfer was interrupted, if it was; `message` says it in words."""
        if self.header_bytes > self._limits.header_max_bytes:
            trouble = TOO_LONG_HEADERS
        elif self._refusal:
            trouble, self.truncated = self._refusal, UNSPECIFIED
        elif self.truncated == LENGTH:
            trouble = ""  # we ended it ourselves, and what is kept is an answer
        elif not trouble and not self._has_head:
            trouble = DISCONNECT if self.header_bytes else EMPTY
        if self._has_head and not self.status:
            trouble = BAD_HTTP
        if not trouble and self.status == NOT_MODIFIED_STATUS and not self.is_conditional and not self.robots_for:
            trouble = HTTP_304
        elif trouble and self.has_answer and not self.truncated:
            self.truncated = {TIMEOUT_TOTAL: TIME, TOO_SLOW: TIME, DISCONNECT: DISCONNECT}.get(trouble, UNSPECIFIED)
        self.outcome, self.reason = judge(self.status, trouble)
        self.message = clean_message(self._explain() or message or WORDS.get(self.reason, "")) if self.reason else ""

    def _explain(self) -> str:
        """Why there is no answer, in words; nothing where only libcurl knows."""
        limits = self._limits
        if self.header_bytes > limits.header_max_bytes:
            return f"the head is longer than fetcher.header_max_bytes = {limits.header_max_bytes}"
        if self.reason in (HTTP_5XX, HTTP_429):
            return describe_status(self._lines[0], self.status)
        if self.reason == EXCLUDED_TYPE:
            return f"fetcher.accept_types does not name {self._kind()}"
        if self.reason == TOO_BIG:
            length = self.header(b"content-length")
            return f"Content-Length {length} is more than fetcher.length_max_bytes = {limits.length_max_bytes}"
        if self.reason == FORBIDDEN_ADDRESS:
            return explain_forbidden(ip_address(self.address))
        if self._has_head and not self.status:
            return f"expected a status line of HTTP, found {b''.join(self._lines[:1])[:100]!r}"
        return ""

    def retry_after_s(self, now_ms: int) -> int:
        """How long the server asks to be left alone; 0 where it does not."""
        return read_wait_s(self.status, self.header(b"retry-after"), now_ms)


def describe_status(line: bytes, status: int) -> str:
    """The status and its phrase as they came; HTTP/2 sends no phrase, so the standard's is used."""
    sent = line.decode("latin-1").partition(" ")[2].strip()
    try:
        return sent if sent != str(status) else f"{status} {HTTPStatus(status).phrase}"
    except ValueError:  # a number that no standard has
        return sent


def judge(status: int, trouble: str = "") -> tuple[str, str]:
    """Outcome and reason of an exchange."""
    if trouble:
        return (REFUSED if trouble in REFUSALS else FAILED), trouble
    if status == 429:
        return FAILED, HTTP_429
    if 500 <= status < 600:
        return FAILED, HTTP_5XX
    return ANSWERED, ""
