"""Compressed members that stand alone, one after another in a file: zstd frames or gzip members.

The one place that imports zstandard. Each member carries its own checksum and can be read without the others.
"""

import zlib

import zstandard

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE_MAGIC = 0x184D2A50  # RFC 8878 3.1.2: decoders pass over such frames
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 31  # zlib's number for 'gzip wrapper, 32 KiB window'
_PIECE = 1 << 18


class Torn(Exception):
    """The data ends inside a member."""


class Broken(Exception):
    """The bytes are no whole member: wrong magic, bad data or a failed checksum."""


class TooLong(Exception):
    """A member holds more than the reader allows."""


class Zstd:
    suffix = ".zst"

    def __init__(self, level: int = 3):
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)

    def compress(self, data: bytes) -> bytes:
        return self._compressor.compress(data)


class Gzip:
    suffix = ".gz"

    def __init__(self, level: int = 6):
        self._level = level

    def compress(self, data: bytes) -> bytes:
        compressor = zlib.compressobj(self._level, zlib.DEFLATED, GZIP_WINDOW)
        return compressor.compress(data) + compressor.flush()


def read_member(data: memoryview, start: int, longest: int) -> tuple[bytes, int]:
    """The content of the member at `start` and where the next one begins.

    Torn where the data ends first, Broken where it is no member, TooLong past `longest` bytes of content.
    """
    magic = bytes(data[start:start + 4])
    if magic == ZSTD_MAGIC:
        decoder = zstandard.ZstdDecompressor().decompressobj()
        errors: type[Exception] | tuple = zstandard.ZstdError
    elif magic[:2] == GZIP_MAGIC:
        decoder = zlib.decompressobj(GZIP_WINDOW)
        errors = zlib.error
    elif ZSTD_MAGIC.startswith(magic) or GZIP_MAGIC.startswith(magic):
        raise Torn
    else:
        raise Broken(f"expected a compressed member, found bytes {magic.hex()}")
    pieces, length, position = [], 0, start
    while not decoder.eof:
        piece = data[position:position + _PIECE]
        if not len(piece):
            raise Torn
        position += len(piece)
        try:
            content = decoder.decompress(piece)
        except errors as error:
            raise Broken(f"expected a whole member, found {error}") from None
        length += len(content)
        if length > longest:
            raise TooLong(f"expected at most {longest} bytes in a member, found more")
        pieces.append(content)
    return b"".join(pieces), position - len(decoder.unused_data)


def skippable(payload: bytes) -> bytes:
    """A frame of bytes of our own that every zstd reader passes over."""
    return SKIPPABLE_MAGIC.to_bytes(4, "little") + len(payload).to_bytes(4, "little") + payload
