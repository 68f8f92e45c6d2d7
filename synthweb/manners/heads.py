"""Heads that come slowly, never end, or are not HTTP; answers that want the next request to carry something."""

from synthweb.line import Line, Request
from synthweb.manners.register import STAYS, head, manner, page, say

INTERIMS = 5_000


@manner("drip-head", "a byte of the head a second")
def drip_head(line: Line, request: Request) -> None:
    line.drip(head("Content-Length: 5", *(f"X-Header-{number}: more" for number in range(60))) + b"hello")


@manner("stall-head", "half a head, then nothing")
def stall_head(line: Line, request: Request) -> None:
    line.send(b"HTTP/1.1 200 OK\r\nContent-Le")
    line.stall()


@manner("endless-header-line", "a header line that does not end")
def endless_header_line(line: Line, request: Request) -> None:
    line.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    line.send_endlessly(b"x" * 65_536)


@manner("endless-header-lines", "header lines without end")
def endless_header_lines(line: Line, request: Request) -> None:
    line.send(b"HTTP/1.1 200 OK\r\n")
    line.send_endlessly(b"X-Header: more of it\r\n" * 1_000)


@manner("endless-status-line", "a status line that does not end")
def endless_status_line(line: Line, request: Request) -> None:
    line.send(b"HTTP/1.1 200 ")
    line.send_endlessly(b"O" * 65_536)


@manner("endless-interims", "answers 100 Continue without end")
def endless_interims(line: Line, request: Request) -> None:
    line.send_endlessly(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)


def headers(*lines: bytes, body: bytes = b"hello") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *lines, b"", b""]) + body


WARC_HEAD = b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://victim.test/\r\nContent-Length: 0\r\n\r\n"

say(
    "header-like-warc",
    "header lines and a body that look like WARC records",
    headers(
        b"WARC-Type: response",
        b"WARC-Target-URI: http://victim.test/",
        b"WARC-Truncated: length",
        b"X-Fetcher-Final: yes",
        body=b"\r\n\r\n" + WARC_HEAD * 2,
    ),
)
say("header-nul", "NUL bytes in a name and a value", headers(b"X-N\0ame: va\0lue"))
say("header-bare-cr", "a bare CR that hides a header", headers(b"X-One: a\rSet-Cookie: b=c\rContent-Length: 1"))
say("header-folded", "a value on two lines (obs-fold)", headers(b"X-One: a", b" Content-Length: 1", b"\tmore"))
say("header-8-bit", "bytes above 127 in a value", headers(b"X-One: " + bytes(range(128, 256))))
say(
    "header-control", "control characters and an escape sequence in a value", headers(b"X-One: \x1b[2J\x07\x08\x7f\x01")
)
say("header-no-colon", "a header line without a colon", headers(b"this is no header"))
say("header-no-name", "a header line without a name", headers(b": value"))
say("header-blank-name", "blanks before the colon", headers(b"X-One : value"))
say("header-type-long", "a Content-Type of 30 KB", headers(b"Content-Type: text/html; charset=" + b"x" * 30_000))
say("header-type-strange", "a Content-Type of rubbish", headers(b'Content-Type: \x00\xff;;;="\\'))
say("lf-only", "lines that end in LF alone", b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello")
say("status-rubbish", "a first line of rubbish", b"\x00\x01\x02 what is this\r\n\r\n")
say("status-short", "a status of two digits", b"HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello")
say("status-long", "a status of four digits", b"HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello")
say("status-negative", "a status of -200", b"HTTP/1.1 -200 OK\r\nContent-Length: 5\r\n\r\nhello")
say("status-0", "a status of 000", b"HTTP/1.1 000 No\r\nContent-Length: 5\r\n\r\nhello")
say("status-999", "a status of 999", b"HTTP/1.1 999 Go Away\r\nContent-Length: 5\r\n\r\nhello")
say("status-600", "a status of 600", b"HTTP/1.1 600 No\r\nContent-Length: 5\r\n\r\nhello")
say("status-no-reason", "a status line of version and status alone", b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello")
say("status-204-body", "204 with a body", page(b"hello", status="204 No Content"))
say("status-304-body", "304 with a body, to a request that had no condition", page(b"hello", status="304 Not Modified"))
say("version-0.9", "a page without a head (HTTP/0.9)", b"<p>hello</p>\n")
say("version-1.0", "HTTP/1.0, ended by the close", b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\nhello")
say("version-2", "HTTP/2 said in the clear of HTTP/1.1", b"HTTP/2 200\r\nContent-Length: 5\r\n\r\nhello")
say("version-9", "HTTP/9.9", b"HTTP/9.9 200 OK\r\nContent-Length: 5\r\n\r\nhello")
say(
    "version-h2-preface",
    "frames of HTTP/2 to a request of HTTP/1.1",
    b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
)
say("interim-100", "5,000 answers 100 Continue, then a page", b"HTTP/1.1 100 Continue\r\n\r\n" * INTERIMS + page())
say(
    "interim-103",
    "5,000 answers 103 Early Hints, then a page",
    b"HTTP/1.1 103 Early Hints\r\nLink: </x.css>\r\n\r\n" * INTERIMS + page(),
)
say("interim-100-once", "one answer 100 Continue, then a page", b"HTTP/1.1 100 Continue\r\n\r\n" + page())
say("interim-only", "100 Continue, then closed", b"HTTP/1.1 100 Continue\r\n\r\n")
say(
    "switching-101",
    "101 Switching Protocols that nobody asked for, then other bytes",
    head("Upgrade: websocket", "Connection: Upgrade", status="101 Switching Protocols") + b"\x81\x05hello",
)


@manner("set-cookie", "sets cookies of every kind; no later request may carry one")
def set_cookie(line: Line, request: Request) -> bool:
    line.end(
        page(b"hello", "Set-Cookie: session=1; Path=/", "Set-Cookie: all=1; Domain=test; Path=/", "Set-Cookie2: old=1")
    )
    return STAYS


@manner("basic-401", "asks for a password; none may come, ever")
def basic_401(line: Line, request: Request) -> bool:
    line.end(
        page(
            b"no",
            'WWW-Authenticate: Basic realm="hostile"',
            "WWW-Authenticate: Negotiate",
            "WWW-Authenticate: NTLM",
            status="401 Unauthorized",
        )
    )
    return STAYS


@manner("proxy-407", "asks for a proxy's password")
def proxy_407(line: Line, request: Request) -> bool:
    line.end(page(b"no", 'Proxy-Authenticate: Basic realm="hostile"', status="407 Proxy Authentication Required"))
    return STAYS
