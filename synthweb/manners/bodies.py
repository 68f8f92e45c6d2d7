"""Bodies that come slowly, never end, or are not as long as they say (RFC 9112, sections 6 and 7)."""

from synthweb.line import Line, Request
from synthweb.manners.register import STAYS, head, manner, page, say

HTML = "Content-Type: text/html"
CHUNKED = head(HTML, "Transfer-Encoding: chunked")
PIECE = b"<p>more</p>\n" * 1_000


@manner("drip-body", "1,000 bytes promised, one per second sent")
def drip_body(line: Line, request: Request) -> None:
    line.send(head(HTML, "Content-Length: 1000"))
    line.drip(b"x" * 1_000)


@manner("drip-chunks", "a chunk of one byte a second")
def drip_chunks(line: Line, request: Request) -> None:
    line.send(CHUNKED)
    while True:
        line.send(b"1\r\nx\r\n")
        line.pause(1.0)


@manner("stall-body", "1,000 bytes promised, ten sent, then nothing")
def stall_body(line: Line, request: Request) -> None:
    line.send(head(HTML, "Content-Length: 1000") + b"0123456789")
    line.stall()


@manner("endless-body", "no length, and the body does not end")
def endless_body(line: Line, request: Request) -> None:
    line.send(head(HTML))
    line.send_endlessly(PIECE)


@manner("endless-chunks", "chunks without end")
def endless_chunks(line: Line, request: Request) -> None:
    line.send(CHUNKED)
    line.send_endlessly(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))


@manner("endless-small-chunks", "chunks of one byte without end")
def endless_small_chunks(line: Line, request: Request) -> None:
    line.send(CHUNKED)
    line.send_endlessly(b"1\r\nx\r\n" * 1_000)


@manner("endless-trailers", "a chunked body whose trailer section does not end")
def endless_trailers(line: Line, request: Request) -> None:
    line.send(CHUNKED + b"5\r\nhello\r\n0\r\n")
    line.send_endlessly(b"X-Trailer: more\r\n" * 1_000)


@manner("chunk-extension-long", "a chunk extension of 4 MB")
def chunk_extension_long(line: Line, request: Request) -> None:
    line.send(CHUNKED + b"5;name=")
    for _ in range(64):
        line.send(b"x" * 65_536)
    line.end(b"\r\nhello\r\n0\r\n\r\n")


say("chunk-negative", "a chunk of -5 bytes", CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n")
say(
    "chunk-overflow",
    "a chunk size of 17 hex digits, 5 modulo 2^64",
    CHUNKED + b"10000000000000005\r\nhello\r\n0\r\n\r\n",
)
say("chunk-garbage", "a chunk size that is no number", CHUNKED + b"xyz\r\nhello\r\n0\r\n\r\n")
say("chunk-no-crlf", "a chunk without the line end after it", CHUNKED + b"5\r\nhello0\r\n\r\n")
say("chunk-giant", "a chunk of 2 GB announced, five bytes sent", CHUNKED + b"7fffffff\r\nhello")
say("chunk-cut", "the last chunk does not come", CHUNKED + b"5\r\nhello\r\n")
say(
    "chunk-trailers",
    "a chunked body with trailers that look like a head",
    CHUNKED + b"5\r\nhello\r\n0\r\nContent-Length: 99\r\nHTTP/1.1 500 No\r\n\r\n",
)


def lengths(*values: str, body: bytes = b"hello") -> bytes:
    return head(HTML, *(f"Content-Length: {value}" for value in values)) + body


say("length-twice", "two Content-Lengths that differ", lengths("5", "7", body=b"hello, you"))
say("length-twice-same", "two Content-Lengths that agree", lengths("5", "5"))
say("length-list", "a Content-Length of '5, 5'", lengths("5, 5"))
say("length-larger", "1,000 bytes promised, five sent, closed", lengths("1000"))
say("length-smaller", "five bytes promised, more sent", lengths("5", body=b"hello and more than that"))
say("length-plus", "a Content-Length of '+5'", lengths("+5"))
say("length-minus", "a Content-Length of '-5'", lengths("-5"))
say("length-garbage", "a Content-Length that is no number", lengths("five"))
say("length-empty", "a Content-Length of nothing", lengths(""))
say("length-overflow", "a Content-Length of 2^64 + 5", lengths(str(2**64 + 5)))
say("length-giant", "a Content-Length of 1 TB, five bytes sent, closed", lengths(str(10**12)))
say(
    "length-and-chunked",
    "a Content-Length of 3 beside Transfer-Encoding: chunked",
    head(HTML, "Content-Length: 3", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n",
)
say("transfer-unknown", "a Transfer-Encoding that nobody knows", head(HTML, "Transfer-Encoding: rubbish") + b"hello")
say(
    "transfer-chunked-twice",
    "Transfer-Encoding: chunked, chunked",
    head(HTML, "Transfer-Encoding: chunked, chunked") + b"5\r\nhello\r\n0\r\n\r\n",
)
say(
    "transfer-identity",
    "Transfer-Encoding: identity, long out of use",
    head(HTML, "Transfer-Encoding: identity", "Content-Length: 5") + b"hello",
)
say("empty-body", "a Content-Length of 0", page(b""))
say("plain", "no fault at all", page(), stays=STAYS)
