"""The little of HTTP/1.1 that the web speaks: reads a request head, writes an answer; no sockets (RFC 9112)."""

from dataclasses import dataclass
from http.client import responses

from synthweb.answer import Answer

HEAD_MAX_BYTES = 16_384
CHUNK_BYTES = 1_000  # small, so that ordinary pages come in several chunks


class BadRequest(Exception):
    """`status` is what the sender is told."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    host: str  # lower case, without port and trailing dot
    user_agent: str
    accepts_gzip: bool
    keeps_alive: bool
    takes_chunks: bool  # HTTP/1.1; older ones know no chunked coding
    if_none_match: str = ""
    if_modified_since: str = ""


def parse_request(head: bytes) -> Request:
    """A request from its head, without the empty line at the end."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise BadRequest(400)
    method, target, version = words
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip() or not name:
            raise BadRequest(400)
        headers[name.lower()] = value.strip()
    host, target = _split_target(target, headers.get("host", ""))
    if not host:
        raise BadRequest(400)
    if method != "GET":
        raise BadRequest(405)
    # A body would have to be skipped before the next request: it is not, the connection ends.
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    wishes = headers.get("connection", "").lower()
    return Request(
        method=method,
        target=target,
        host=host.partition(":")[0].lower().removesuffix("."),
        user_agent=headers.get("user-agent", ""),
        accepts_gzip="gzip" in headers.get("accept-encoding", "").lower(),
        keeps_alive=not has_body and (wishes != "close" if version == "HTTP/1.1" else wishes == "keep-alive"),
        takes_chunks=version == "HTTP/1.1",
        if_none_match=headers.get("if-none-match", ""),
        if_modified_since=headers.get("if-modified-since", ""),
    )


def _split_target(target: str, host: str) -> tuple[str, str]:
    """Host and origin form of a target; one in absolute form brings its own host."""
    if target.startswith("/"):
        return host, target
    if target.lower().startswith("http://"):
        host, slash, rest = target[len("http://") :].partition("/")
        return host, slash + rest or "/"
    raise BadRequest(400)


def write_answer(answer: Answer, request: Request | None) -> tuple[bytes, bool]:
    """The bytes of an answer, and whether the connection stays open after them."""
    stays = request is not None and request.keeps_alive and not answer.closes
    framing = answer.framing
    if framing == "chunked" and not (request and request.takes_chunks):
        framing = "length"
    head = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Unknown')}", "Server: synthweb"]
    head += [f"{name}: {value}" for name, value in answer.headers]
    if framing == "length":
        head.append(f"Content-Length: {len(answer.body)}")
    elif framing == "chunked":
        head.append("Transfer-Encoding: chunked")
    head.append(f"Connection: {'keep-alive' if stays else 'close'}")
    body = _chunked(answer.body) if framing == "chunked" else answer.body
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body, stays


def _chunked(body: bytes) -> bytes:
    pieces = [body[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
