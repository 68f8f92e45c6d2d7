"""The body of an answer without its transfer and content encodings, never longer than asked for."""

import re
import zlib
from functools import partial

import brotlicffi  # not `brotli`: brotlipy, which other packages bring, has taken that name

from contract.warc import HttpMessage
from storage.frames import read_frames

ENCODINGS_MAX = 2  # twice compressed happens by mistake, more often only by malice
MEMBERS_MAX = 64  # of gzip, in one body; each costs a copy of what follows it
_EITHER, _NONE = 47, -15  # zlib's numbers for 'gzip or zlib wrapper' and for none
_SLACK_BYTES = 1 << 18
_INPUT_STEP, _OUTPUT_STEP = 1 << 12, 1 << 16
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
    if len(encodings) > ENCODINGS_MAX or not all(name in _DECODERS for name in encodings):
        return body[:most_bytes], False
    for left, name in reversed(list(enumerate(encodings))):
        # What is still packed may be longer than its content by its headers, and the last block of zstd counts only when whole.
        decoded = _DECODERS[name](body, most_bytes + (most_bytes // 64 + _SLACK_BYTES) * bool(left)) if body else b""
        if decoded is None:
            return body[:most_bytes], False
        body = decoded
    return body[:most_bytes], True


def all_values(message: HttpMessage, name: str) -> list[str]:
    """The items of a list that may stand in several headers, in lower case."""
    return [item.strip().lower() for value in message.values(name) for item in value.split(",")]


def decompress(wrappers: tuple[int, ...], data: bytes, most_bytes: int) -> bytes | None:
    """The content by the first wrapper that fits; none where no wrapper does."""
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


def decompress_brotli(data: bytes, most_bytes: int) -> bytes | None:
    """The content up to where it ends or breaks; none where nothing came: the format has no mark to know it by."""
    pieces, done, is_whole = [], 0, False
    decoder = brotlicffi.Decompressor()
    while done < len(data) and most_bytes > 0 and not is_whole:
        try:
            found = feed_brotli(decoder, data[done:done + _INPUT_STEP], most_bytes)
        except brotlicffi.error:
            # What a call decodes before it fails is lost, also where only trash follows the end: once more, byte by byte.
            return b"".join(pieces) + decompress_brotli_step(data, done, most_bytes) or None
        pieces.append(found)
        most_bytes -= len(found)
        done += _INPUT_STEP
        is_whole = decoder.is_finished()
    return b"".join(pieces) if is_whole or any(pieces) else None


def feed_brotli(decoder: brotlicffi.Decompressor, data: bytes, most_bytes: int) -> bytes:
    """What these bytes give, at most so much of it."""
    pieces = [decoder.decompress(data, min(_OUTPUT_STEP, most_bytes))]
    room = most_bytes - len(pieces[0])
    while room > 0 and not decoder.can_accept_more_data():
        pieces.append(decoder.decompress(b"", min(_OUTPUT_STEP, room)))
        room -= len(pieces[-1])
    return b"".join(pieces)


def decompress_brotli_step(data: bytes, start: int, most_bytes: int) -> bytes:
    """What comes out of the step at `start`, in which the stream breaks or ends."""
    decoder = brotlicffi.Decompressor()
    for at in range(0, start, _INPUT_STEP):
        feed_brotli(decoder, data[at:at + _INPUT_STEP], 1 << 62)  # a first reading has found how little it is
    pieces = []
    for at in range(start, len(data)):
        try:
            pieces.append(feed_brotli(decoder, data[at:at + 1], most_bytes))
        except brotlicffi.error:
            break
        most_bytes -= len(pieces[-1])
        if most_bytes <= 0 or decoder.is_finished():
            break
    return b"".join(pieces)


_DECODERS = {
    "gzip": partial(decompress, (_EITHER,)), "x-gzip": partial(decompress, (_EITHER,)),
    "deflate": partial(decompress, (_EITHER, _NONE)),  # servers send it with and without a wrapper
    "br": decompress_brotli, "zstd": read_frames,
}


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
