"""The body of an answer without its transfer and content encodings, never longer than asked for."""

import re
import zlib

from contract.warc import HttpMessage

ENCODINGS_MAX = 2  # twice compressed happens by mistake, more often only by malice
MEMBERS_MAX = 64  # of gzip, in one body; each costs a copy of what follows it
_EITHER, _NONE = 47, -15  # zlib's numbers for 'gzip or zlib wrapper' and for none
_WRAPPERS = {"gzip": (_EITHER,), "x-gzip": (_EITHER,), "deflate": (_EITHER, _NONE)}  # servers send deflate with and without
_CHUNK = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


def decode_body(message: HttpMessage, most_bytes: int) -> tuple[bytes, bool]:
    """The first `most_bytes` of the decoded body and whether its encodings are known.

    What a broken stream gave before the break counts; a body in an encoding that we do not know is given as it is.
    """
    body = message.body
    # Our fetcher stores bodies without chunks and renames the header; other writers of WARC keep both.
    if "chunked" in all_values(message, "transfer-encoding"):
        body = join_chunks(body, most_bytes)
    encodings = [name for name in all_values(message, "content-encoding") if name not in ("", "identity")]
    if len(encodings) > ENCODINGS_MAX or not all(name in _WRAPPERS for name in encodings):
        return body[:most_bytes], False
    for name in reversed(encodings):
        decoded = decompress(body, _WRAPPERS[name], most_bytes)
        if decoded is None:
            return body[:most_bytes], False
        body = decoded
    return body[:most_bytes], True


def all_values(message: HttpMessage, name: str) -> list[str]:
    """The items of a list that may stand in several headers, in lower case."""
    values = (value for found, value in message.headers if found.lower() == name)
    return [item.strip().lower() for value in values for item in value.split(",")]


def decompress(data: bytes, wrappers: tuple[int, ...], most_bytes: int) -> bytes | None:
    """The content by the first wrapper that fits; none where no wrapper does."""
    if not data:
        return b""
    for wrapper in wrappers:
        content = decompress_members(data, wrapper, most_bytes)
        if content is not None:
            return content
    return None


def decompress_members(data: bytes, wrapper: int, most_bytes: int) -> bytes | None:
    """Joins gzip members that follow each other (RFC 1952 2.2); what follows them and is none is left out."""
    pieces, room = [], most_bytes
    while data and room > 0 and len(pieces) < MEMBERS_MAX:
        decoder = zlib.decompressobj(wrapper)
        try:
            piece = decoder.decompress(data, room)
        except zlib.error:
            piece = decompress_until_broken(data, wrapper, room)
            if not piece and not pieces:
                return None
            data = b""
        else:
            data = decoder.unused_data
        pieces.append(piece)
        room -= len(piece)
    return b"".join(pieces)


def decompress_until_broken(data: bytes, wrapper: int, room: int) -> bytes:
    """What comes out before the error: zlib keeps it back when it raises, so the data is given in small steps."""
    decoder = zlib.decompressobj(wrapper)
    pieces = []
    step = 256
    for start in range(0, len(data), step):
        try:
            piece = decoder.decompress(decoder.unconsumed_tail + data[start:start + step], room)
        except zlib.error:
            break
        pieces.append(piece)
        room -= len(piece)
        if room <= 0 or decoder.eof:
            break
    return b"".join(pieces)


def join_chunks(data: bytes, most_bytes: int) -> bytes:
    """The content of a chunked body (RFC 9112 7.1) as far as its chunks go; the data itself where it has none."""
    if not _CHUNK.match(data):
        return data
    pieces, start, length = [], 0, 0
    while length < most_bytes and (head := _CHUNK.match(data, start)):
        size = int(head[1], 16)
        if not size:
            break
        piece = data[head.end():head.end() + size]
        pieces.append(piece)
        length += len(piece)
        start = head.end() + size
        start += 2 if data.startswith(b"\r\n", start) else data.startswith(b"\n", start)
    return b"".join(pieces)
