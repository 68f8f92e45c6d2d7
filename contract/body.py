"""The body of an answer without its transfer and content encodings, never longer than asked for."""

import re
import zlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import brotlicffi  # not `brotli`: brotlipy, which other packages bring, has taken that name

from contract.trouble import BROKEN, TOO_LONG, UNDECODED
from contract.warc import HttpMessage
from storage.frames import read_frames

ENCODINGS_MAX = 2  # some servers compress twice by mistake; more is malice
MEMBERS_MAX = 64  # of gzip, in one body; each costs a copy of what follows it
_EITHER, _NONE = 47, -15  # zlib's numbers for 'gzip or zlib wrapper' and for none
_GZIP_MAGIC = b"\x1f\x8b"
_SLACK_BYTES = 1 << 18
_INPUT_STEP, _OUTPUT_STEP = 1 << 12, 1 << 16
_CHUNK = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


class Unpacked(NamedTuple):
    """What a decoder gives, and whether that is all: False where the data breaks off or is damaged."""

    content: bytes
    is_whole: bool


class Decoded(NamedTuple):
    content: bytes
    trouble: str  # UNDECODED, BROKEN, TOO_LONG, or nothing where it is whole


def decode_body(message: HttpMessage, most_bytes: int) -> Decoded:
    """The first `most_bytes` of the decoded body.

    What a broken stream gives before the break counts. A body in an unknown encoding is returned as it is.
    """
    body, is_whole = message.body, True
    # Our fetcher stores bodies without chunks and renames the header; other writers of WARC keep both.
    if "chunked" in all_values(message, "transfer-encoding"):
        body, is_whole = join_chunks(body, most_bytes + 1)
    encodings = [name for name in all_values(message, "content-encoding") if name not in ("", "identity")]
    if body and (len(encodings) > ENCODINGS_MAX or not all(name in _DECODERS for name in encodings)):
        return Decoded(body[:most_bytes], UNDECODED)
    is_cut = False
    for left, name in reversed(list(enumerate(encodings))):
        # Data that is still compressed may be longer than its content, by its headers. zstd needs its last block whole.
        room = most_bytes + 1 + (most_bytes // 64 + _SLACK_BYTES) * bool(left)
        unpacked = _DECODERS[name](body, room) if body else Unpacked(b"", True)
        if unpacked is None:
            return Decoded(body[:most_bytes], UNDECODED)
        body = unpacked.content
        is_cut = is_cut or len(body) >= room
        is_whole = is_whole and unpacked.is_whole
    trouble = TOO_LONG if is_cut or len(body) > most_bytes else "" if is_whole else BROKEN
    return Decoded(body[:most_bytes], trouble)


def all_values(message: HttpMessage, name: str) -> list[str]:
    """The items of a list that may stand in several headers, in lower case."""
    return [item.strip().lower() for value in message.values(name) for item in value.split(",")]


def decompress(wrappers: tuple[int, ...], data: bytes, most_bytes: int) -> Unpacked | None:
    """The content by the first wrapper that fits; none where no wrapper does."""
    for wrapper in wrappers:
        unpacked = decompress_members(data, wrapper, most_bytes)
        if unpacked is not None:
            return unpacked
    return None


def decompress_members(data: bytes, wrapper: int, most_bytes: int) -> Unpacked | None:
    """Joins gzip members that follow each other (RFC 1952 2.2); what follows the last member is left out."""
    pieces: list[bytes] = []
    room, is_whole = most_bytes, True
    while data and room > 0 and is_whole:
        if pieces and not data.startswith(_GZIP_MAGIC):
            break
        decoder = zlib.decompressobj(wrapper)
        try:
            piece = decoder.decompress(data, room)
        except zlib.error:
            piece, is_whole = decompress_until_broken(data, wrapper, room), False
            if not piece and not pieces:
                return None
        else:
            data, is_whole = decoder.unused_data, decoder.eof
        pieces.append(piece)
        room -= len(piece)
        if len(pieces) == MEMBERS_MAX and data.startswith(_GZIP_MAGIC):
            is_whole = False
    return Unpacked(b"".join(pieces), is_whole)


def decompress_until_broken(data: bytes, wrapper: int, room: int) -> bytes:
    """What was decoded before the error. zlib drops what a failing call decoded, so the last step goes byte by byte."""
    decoder = zlib.decompressobj(wrapper)
    pieces, done, step = [], 0, _INPUT_STEP
    while done < len(data) and room > 0 and not decoder.eof:
        before = decoder.copy()
        try:
            piece = decoder.decompress(data[done : done + step], room)
        except zlib.error:
            if step == 1:
                break
            decoder, step = before, 1
            continue
        pieces.append(piece)
        room -= len(piece)
        done += step
    return b"".join(pieces)


def decompress_brotli(data: bytes, most_bytes: int) -> Unpacked | None:
    """The content up to its end or break; none where nothing was decoded, because the format has no magic number."""
    pieces: list[bytes] = []
    done, is_whole = 0, False
    decoder = brotlicffi.Decompressor()
    while done < len(data) and most_bytes > 0 and not is_whole:
        try:
            found = feed_brotli(decoder, data[done : done + _INPUT_STEP], most_bytes)
        except brotlicffi.error:
            # A failing call drops what it decoded, even if only trash follows the end: decode that step byte by byte.
            last, is_whole = decompress_brotli_step(data, done, most_bytes)
            content = b"".join(pieces) + last
            return Unpacked(content, is_whole) if content else None
        pieces.append(found)
        most_bytes -= len(found)
        done += _INPUT_STEP
        is_whole = decoder.is_finished()
    return Unpacked(b"".join(pieces), is_whole) if is_whole or any(pieces) else None


def feed_brotli(decoder: brotlicffi.Decompressor, data: bytes, most_bytes: int) -> bytes:
    """What these bytes decode to, at most `most_bytes` of it."""
    pieces = [decoder.decompress(data, min(_OUTPUT_STEP, most_bytes))]
    room = most_bytes - len(pieces[0])
    while room > 0 and not decoder.can_accept_more_data():
        pieces.append(decoder.decompress(b"", min(_OUTPUT_STEP, room)))
        room -= len(pieces[-1])
    return b"".join(pieces)


def decompress_brotli_step(data: bytes, start: int, most_bytes: int) -> Unpacked:
    """What the step at `start` decodes to, in which the stream breaks or ends."""
    decoder = brotlicffi.Decompressor()
    for at in range(0, start, _INPUT_STEP):
        feed_brotli(decoder, data[at : at + _INPUT_STEP], 1 << 62)  # the caller has decoded it before, within its bound
    pieces = []
    for at in range(start, len(data)):
        try:
            pieces.append(feed_brotli(decoder, data[at : at + 1], most_bytes))
        except brotlicffi.error:
            break
        most_bytes -= len(pieces[-1])
        if most_bytes <= 0 or decoder.is_finished():
            break
    return Unpacked(b"".join(pieces), decoder.is_finished())


def decompress_zstd(data: bytes, most_bytes: int) -> Unpacked | None:
    content, is_whole = read_frames(data, most_bytes)
    return Unpacked(content, is_whole) if content or is_whole else None


_DECODERS: dict[str, Callable[[bytes, int], Unpacked | None]] = {
    "gzip": partial(decompress, (_EITHER,)),
    "x-gzip": partial(decompress, (_EITHER,)),
    "deflate": partial(decompress, (_EITHER, _NONE)),  # servers send it with and without a wrapper
    "br": decompress_brotli,
    "zstd": decompress_zstd,
}


def join_chunks(data: bytes, most_bytes: int) -> Unpacked:
    """The content of a chunked body (RFC 9112 7.1) as far as its chunks go; the data itself if it has no chunks."""
    if not _CHUNK.match(data):
        return Unpacked(data, True)
    pieces, start, length, is_ended = [], 0, 0, False
    while length < most_bytes and not is_ended and (head := _CHUNK.match(data, start)):
        size = int(head[1], 16)
        is_ended = not size
        piece = data[head.end() : head.end() + size]
        pieces.append(piece)
        length += len(piece)
        start = head.end() + size
        start += 2 if data.startswith(b"\r\n", start) else data.startswith(b"\n", start)
    return Unpacked(b"".join(pieces), is_ended)
