"""Compressed members that stand alone, one after another in a file: zstd frames or gzip members.

The only module that imports zstandard. Each member carries its own checksum and can be read without the others. A file
of zstd frames may begin with a dictionary, which all of its frames then need. A skippable frame holds it, as in the
IIPC's "Zstandard Compression for WARC Files 1.0".
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

import zstandard

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
DICTIONARY_MAGIC = b"\x37\xa4\x30\xec"  # RFC 8878 5: how a dictionary itself begins
SKIPPABLE_MAGIC = 0x184D2A50  # RFC 8878 3.1.2: decoders pass over such frames; there are 16 of them
DICTIONARY_FRAME_MAGIC = 0x184D2A5D  # the one of them that holds a file's dictionary
_ZSTD_NUMBER = int.from_bytes(ZSTD_MAGIC, "little")
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 31  # zlib's number for 'gzip wrapper, 32 KiB window'
DICTIONARY_MAX_BYTES = 8 << 20  # the most that the IIPC's format asks readers to accept
DICTIONARY_LEVEL = 19  # compressed once for each file, so it may take its time
COMPRESS_THREADS = 2  # of zstd's own, for many contents at once: with one alone, callers in a loop waited
AT_ONCE_BYTES = 1 << 20  # content up to this is joined and compressed in one call, which is fastest
_FIRST_PIECE, _LAST_PIECE = 1 << 15, 1 << 20
_SKIPPABLE_HEAD_BYTES = 8
_FRAME_HEAD_BYTES = 18  # at most: magic, descriptor, window, dictionary id, size
_RUN_BLOCK = 1  # one byte, repeated; its size says how often
WINDOW_MAX_BYTES = 8 << 20  # RFC 9659: what a reader of zstd from the web must have, and a writer may ask for
_STEP = 1 << 16

Bytes = bytes | bytearray | memoryview  # zstandard takes lists of exactly this type


class Torn(Exception):
    """The data ends inside a member."""


class Broken(Exception):
    """The bytes are no whole member: wrong magic, bad data or a failed checksum."""


class TooLong(Exception):
    """A member holds more than the reader allows."""


class Zstd:
    suffix = ".zst"

    def __init__(self, level: int = 3, dictionary: bytes | None = None):
        loaded = None
        if dictionary is not None:
            loaded = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_FULLDICT)
            loaded.precompute_compress(level=level)
        self._compressor = zstandard.ZstdCompressor(
            level=level, dict_data=loaded, write_checksum=True, write_content_size=True
        )
        # What a file of these frames begins with.
        self.opening = b"" if dictionary is None else dictionary_frame(dictionary)

    def compress(self, *pieces: Bytes) -> bytes:
        """One frame of the pieces (any buffers) behind each other; large content is never joined."""
        size = sum(map(len, pieces))
        if size <= AT_ONCE_BYTES:
            return self._compressor.compress(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        stream = self._compressor.compressobj(size=size)
        return b"".join([*map(stream.compress, cut_pieces(pieces)), stream.flush()])

    def compress_each(self, contents: list[Bytes]) -> list[bytes]:
        """A frame for each, the same as compress() gives, in one call that leaves the interpreter to other threads."""
        if not contents:
            return []
        frames = self._compressor.multi_compress_to_buffer(contents, threads=COMPRESS_THREADS)
        return [frames[number].tobytes() for number in range(len(frames))]


class Gzip:
    suffix = ".gz"
    opening = b""

    def __init__(self, level: int = 6):
        self._level = level

    def compress(self, *pieces: Bytes) -> bytes:
        stream = zlib.compressobj(self._level, zlib.DEFLATED, GZIP_WINDOW)
        return b"".join([*map(stream.compress, cut_pieces(pieces)), stream.flush()])

    def compress_each(self, contents: list[Bytes]) -> list[bytes]:
        return [self.compress(content) for content in contents]


def cut_pieces(pieces: Iterable[Bytes]) -> Iterator[memoryview]:
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), AT_ONCE_BYTES):
            yield view[start : start + AT_ONCE_BYTES]


class Decoder(Protocol):
    """What zstandard's and zlib's decoders of one member have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: memoryview, /) -> bytes: ...


class Members:
    """The members of a file's bytes, read with one decoder that knows the file's dictionary.

    Torn or Broken where the dictionary that the data begins with is not whole.
    """

    def __init__(self, data: memoryview):
        self._data = data
        dictionary, self.first = read_dictionary_frame(data)  # where the first member begins
        self._zstd = make_decoder(dictionary)

    def read(self, start: int, longest: int) -> tuple[bytes, int]:
        """The content of the member at `start` and where the next one begins.

        Torn where the data ends first, Broken where it is no member, TooLong past `longest` bytes of content.
        """
        start = self.pass_extensions(start)
        magic = bytes(self._data[start : start + 4])
        if magic == ZSTD_MAGIC and (whole := self._read_at_once(start, longest)) is not None:
            return whole
        if magic == ZSTD_MAGIC:
            decoder: Decoder = self._zstd.decompressobj()
            errors: type[Exception] = zstandard.ZstdError
        elif magic[:2] == GZIP_MAGIC:
            decoder = zlib.decompressobj(GZIP_WINDOW)
            errors = zlib.error
        elif ZSTD_MAGIC.startswith(magic) or GZIP_MAGIC.startswith(magic):
            raise Torn
        else:
            raise Broken(f"expected a compressed member, found bytes {magic.hex()}")
        pieces: list[bytes] = []
        length, position, step = 0, start, _FIRST_PIECE
        while not decoder.eof:
            piece = self._data[position : position + step]
            if not len(piece):
                raise Torn
            position += len(piece)
            step = min(2 * step, _LAST_PIECE)  # most members are small, and what follows them is copied by the decoder
            try:
                content = decoder.decompress(piece)
            except errors as error:
                raise Broken(f"expected a whole member, found {error}") from None
            length += len(content)
            if length > longest:
                raise TooLong(f"expected at most {longest} bytes in a member, found more")
            pieces.append(content)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), position - len(decoder.unused_data)

    def _read_at_once(self, start: int, longest: int) -> tuple[bytes, int] | None:
        """A frame whose head has its size, if that is not too large, in one call, which takes half the time.

        None for any other frame, and where it is not whole.
        """
        try:
            size = zstandard.frame_content_size(self._data[start : start + _FRAME_HEAD_BYTES])
            if not 0 < size <= min(longest, AT_ONCE_BYTES):
                return None
            end = frame_end(self._data, start)
            content = self._zstd.decompress(self._data[start:end])
            return (content, end) if len(content) == size else None
        except (zstandard.ZstdError, Torn):
            return None

    def pass_member(self, start: int, longest: int) -> int:
        """Where the member at `start` ends. Raises as read() does.

        The heads of zstd's blocks have their sizes; whether the content is whole shows when it is read. The end of a
        gzip member shows only in its content, which is not kept.
        """
        start = self.pass_extensions(start)
        magic = bytes(self._data[start : start + 4])
        if magic == ZSTD_MAGIC:
            return frame_end(self._data, start)
        return gzip_end(self._data, start, longest) if magic[:2] == GZIP_MAGIC else self.read(start, longest)[1]

    def read_start(self, start: int, most_bytes: int) -> bytes:
        """About the first `most_bytes` of the content of the member at `start`, never more; Broken where it is none."""
        try:
            if bytes(self._data[start : start + 4]) == ZSTD_MAGIC:
                return self._zstd.stream_reader(self._data[start:]).read(most_bytes)
            return zlib.decompressobj(GZIP_WINDOW).decompress(self._data[start : start + most_bytes], most_bytes)
        except (zstandard.ZstdError, zlib.error) as error:
            raise Broken(f"expected a member, found {error}") from None

    def pass_extensions(self, start: int) -> int:
        """Where the skippable frames at `start` end: other writers may put them between members."""
        while start + _SKIPPABLE_HEAD_BYTES <= len(self._data) and is_extension(number := magic_at(self._data, start)):
            if number == DICTIONARY_FRAME_MAGIC:
                raise Broken("expected a member, found a second dictionary")
            start += _SKIPPABLE_HEAD_BYTES + magic_at(self._data, start + 4)
            if start > len(self._data):
                raise Torn
        return start


def frame_end(data: memoryview, start: int) -> int:
    """Where a zstd frame ends, by the sizes of its header, its blocks and its checksum (RFC 8878 3.1.1).

    Torn where the data ends first.
    """
    descriptor = data[start + 4] if start + 4 < len(data) else 0
    is_single, has_checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
    size_bytes = (is_single, 2, 4, 8)[descriptor >> 6]
    position = start + 5 + (1 - is_single) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
    is_last = 0
    while not is_last:
        head = int.from_bytes(data[position : position + 3], "little")
        if position + 3 > len(data):
            raise Torn
        is_last, kind = head & 1, head >> 1 & 3
        position += 3 + (1 if kind == _RUN_BLOCK else head >> 3)
    position += 4 * has_checksum
    if position > len(data):
        raise Torn
    return position


def gzip_end(data: memoryview, start: int, longest: int) -> int:
    """Where a gzip member ends; raises as Members.read() does."""
    decoder = zlib.decompressobj(GZIP_WINDOW)
    position, length = start, 0
    while not decoder.eof:
        piece: Bytes = decoder.unconsumed_tail
        if not piece:
            piece = data[position : position + _FIRST_PIECE]
            position += len(piece)
        try:
            content = decoder.decompress(piece, _LAST_PIECE)
        except zlib.error as error:
            raise Broken(f"expected a whole member, found {error}") from None
        if not len(piece) and not content and not decoder.eof:
            raise Torn
        length += len(content)
        if length > longest:
            raise TooLong(f"expected at most {longest} bytes in a member, found more")
    return position - len(decoder.unused_data)


def magic_at(data: memoryview, start: int) -> int:
    return int.from_bytes(data[start : start + 4], "little")


def is_extension(magic: int) -> bool:
    return magic & ~0xF == SKIPPABLE_MAGIC


def make_decoder(dictionary: bytes | None) -> zstandard.ZstdDecompressor:
    if dictionary is None:
        return zstandard.ZstdDecompressor()
    try:
        loaded = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_FULLDICT)
        decoder = zstandard.ZstdDecompressor(dict_data=loaded)
        decoder.decompress(zstandard.ZstdCompressor().compress(b""))  # it is loaded, and so checked, at first use
        return decoder
    except zstandard.ZstdError as error:
        raise Broken(f"expected a dictionary, found one that {error}") from None


def read_dictionary_frame(data: memoryview) -> tuple[bytes | None, int]:
    """The dictionary that the data begins with, none where it has none, and where the first member begins."""
    magic = DICTIONARY_FRAME_MAGIC.to_bytes(4, "little")
    if not len(data) or bytes(data[:4]) != magic[: len(data)]:
        return None, 0
    size = magic_at(data, 4)
    end = _SKIPPABLE_HEAD_BYTES + size
    if len(data) < _SKIPPABLE_HEAD_BYTES:
        raise Torn
    if size > DICTIONARY_MAX_BYTES:
        raise Broken(f"expected a dictionary of at most {DICTIONARY_MAX_BYTES} bytes, found {size}")
    if end > len(data):
        raise Torn
    payload = data[_SKIPPABLE_HEAD_BYTES:end]
    if bytes(payload[:4]) == ZSTD_MAGIC:
        try:
            content, used = Members(payload).read(0, DICTIONARY_MAX_BYTES)
        except (Torn, TooLong) as error:
            raise Broken(f"expected a dictionary, found {error or 'a part of one'}") from None
    else:
        content, used = bytes(payload), size
    if content[:4] != DICTIONARY_MAGIC or used != size:
        raise Broken(f"expected a dictionary, found bytes {content[:4].hex()}")
    return content, end


def read_frames(data: bytes, most_bytes: int) -> tuple[bytes, bool]:
    """The first `most_bytes` of zstd frames that follow each other, up to where they end or break; whether that is all.

    A frame that needs a dictionary, or a larger window than WINDOW_MAX_BYTES, is broken. What follows and is no frame
    is left out.
    """
    content, is_broken = bytearray(), False
    try:
        read_stream(open_stream(data), content, most_bytes, _STEP)
    except zstandard.ZstdError:
        # What a call decodes before it fails is lost: once more by the same steps, and on byte by byte.
        is_broken = True
        stream = open_stream(data)
        try:
            read_stream(stream, bytearray(), len(content), _STEP)
            read_stream(stream, content, most_bytes, 1)
        except zstandard.ZstdError:
            pass
    if len(content) >= most_bytes:
        return bytes(content), False
    end, is_torn = pass_frames(data)
    if is_broken and 0 < end < len(data):
        return read_frames(data[:end], most_bytes)  # it may have failed on what follows
    return bytes(content), end > 0 and not is_broken and not is_torn


def pass_frames(data: bytes) -> tuple[int, bool]:
    """Where the frames end that the data begins with, by their sizes alone, and whether the last of them is torn."""
    view, position = memoryview(data), 0
    while position < len(view):
        magic = magic_at(view, position)
        if is_extension(magic):
            position += _SKIPPABLE_HEAD_BYTES + magic_at(view, position + 4)
        elif magic == _ZSTD_NUMBER:
            try:
                position = frame_end(view, position)
            except Torn:
                return len(view), True
        else:
            return position, False
    return len(view), position > len(view)


def open_stream(data: bytes) -> zstandard.ZstdDecompressionReader:
    return zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX_BYTES).stream_reader(data, read_across_frames=True)


def read_stream(stream: zstandard.ZstdDecompressionReader, content: bytearray, most_bytes: int, step: int) -> None:
    while len(content) < most_bytes and (piece := stream.read(min(step, most_bytes - len(content)))):
        content += piece


def dictionary_frame(dictionary: bytes) -> bytes:
    """The frame that a file begins with whose members need the dictionary."""
    packed = Zstd(DICTIONARY_LEVEL).compress(dictionary)
    return skippable(min(packed, dictionary, key=len), DICTIONARY_FRAME_MAGIC)


def skippable(payload: bytes, magic: int = SKIPPABLE_MAGIC) -> bytes:
    """A frame of bytes of our own that every zstd reader passes over."""
    return magic.to_bytes(4, "little") + len(payload).to_bytes(4, "little") + payload


def train_dictionary(samples: list[Bytes], size_bytes: int) -> bytes | None:
    """A dictionary for content like the samples; none where there is nothing to learn from them."""
    try:
        return zstandard.train_dictionary(size_bytes, samples, level=3).as_bytes()
    except zstandard.ZstdError:
        return None


def dictionary_id(dictionary: bytes) -> int:
    return zstandard.ZstdCompressionDict(dictionary).dict_id()
