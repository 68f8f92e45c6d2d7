"""Bodies that unpack to far more than they are, and lies about how a body is packed."""

import gzip
import zlib
from functools import cache

from synthweb.manners.register import manner, page, say

BOMB_BYTES = 256 << 20  # what each bomb unpacks to
HELLO = b"<p>hello</p>"
ENCODING = "Content-Encoding: "

# Zeros by the MiB, packed with brotli 1.0 at quality 9: a beginning, what comes again for every 64 of them, an end.
BROTLI_BEGIN = bytes.fromhex("cbffff3f002400e2b14072")
BROTLI_END = bytes.fromhex(
    "effff8ffff078004401c1680eefd1fffffff00900088c302d0bdffe3ffff1f001200715800baf77ffcffff034002200e0b40f7fe8fffff7f004800"
    "c46101e8defff1ffff0f000980382c00ddfb3ffeffff012001108705a07bff37"
)
BROTLI_AGAIN = BROTLI_END[:-1] + bytes.fromhex("c7ffff3f002400e2b00074")


@cache
def bomb(encoding: str) -> bytes:
    if encoding == "br":
        return BROTLI_BEGIN + BROTLI_AGAIN * 3 + BROTLI_END
    if encoding == "zstd":
        return pack_zstd_zeros(BOMB_BYTES)
    if encoding == "gzip, gzip":
        return gzip.compress(bomb("gzip"), mtime=0)
    zeros = bytes(1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    # After a full flush nothing refers back, so that the same bytes may follow again and again; 03 00 is an empty last
    # block.
    raw = (packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)) * (BOMB_BYTES >> 20) + b"\x03\x00"
    if encoding == "deflate-raw":
        return raw
    if encoding == "deflate":
        return b"\x78\xda" + raw + (BOMB_BYTES % 65_521 << 16 | 1).to_bytes(4, "big")  # Adler-32 of zeros (RFC 1950)
    checksum = 0
    for _ in range(BOMB_BYTES >> 20):
        checksum = zlib.crc32(zeros, checksum)
    return gzip.compress(b"", mtime=0)[:10] + raw + checksum.to_bytes(4, "little") + BOMB_BYTES.to_bytes(4, "little")


def pack_zstd_zeros(size_bytes: int) -> bytes:
    """Zeros as run-length blocks of 128 KiB, the longest there are: four bytes each (RFC 8878, section 3.1.1.2)."""
    block = 128 << 10
    header = (1 << 1 | block << 3).to_bytes(3, "little")
    last = (1 | 1 << 1 | block << 3).to_bytes(3, "little")
    frame = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([7 << 3])  # no checksum, no length; a window of 2^17 bytes
    return frame + (header + b"\0") * (size_bytes // block - 1) + last + b"\0"


def drop(name: str, does: str, encoding: str, told: str) -> None:
    """A bomb is made when it is first asked for."""
    manner(name, does)(lambda line, request: line.end(page(bomb(encoding), ENCODING + told)))


drop("bomb-gzip", "256 MB in 260 KB of gzip", "gzip", "gzip")
drop("bomb-deflate", "256 MB in 260 KB of deflate", "deflate", "deflate")
drop("bomb-deflate-raw", "the same without its zlib head", "deflate-raw", "deflate")
drop("bomb-br", "256 MB in 400 bytes of brotli", "br", "br")
drop("bomb-zstd", "256 MB in 8 KB of zstd", "zstd", "zstd")
drop("bomb-gzip-twice", "256 MB in gzip in gzip", "gzip, gzip", "gzip, gzip")

PACKED = gzip.compress(HELLO, mtime=0)
say("encoding-not-gzip", "says gzip, is plain", page(HELLO, ENCODING + "gzip"))
say("encoding-not-br", "says br, is plain", page(HELLO, ENCODING + "br"))
say("encoding-not-zstd", "says zstd, is plain", page(HELLO, ENCODING + "zstd"))
say("encoding-not-deflate", "says deflate, is plain", page(HELLO, ENCODING + "deflate"))
say("encoding-untold", "is gzip, and does not say so", page(PACKED))
say(
    "encoding-cut",
    "a gzip body cut in half, whole by its Content-Length",
    page(PACKED[: len(PACKED) // 2], ENCODING + "gzip"),
)
say("encoding-checksum", "a gzip body with a wrong checksum", page(PACKED[:-8] + bytes(8), ENCODING + "gzip"))
say("encoding-rubbish-after", "a gzip body and then rubbish", page(PACKED + b"rubbish" * 100, ENCODING + "gzip"))
say("encoding-unknown", "an encoding that nobody knows", page(HELLO, ENCODING + "rot13"))
say("encoding-many", "gzip said a thousand times", page(PACKED, ENCODING + ", ".join(["gzip"] * 1_000)))
say("encoding-empty", "a gzip body of no bytes", page(b"", ENCODING + "gzip"))
