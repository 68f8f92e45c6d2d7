"""Bodies in br and zstd: alone, one in the other, broken, torn, and far larger than they look."""

import gzip
import random
import time
import zlib
from functools import partial

import brotlicffi
import pytest
import zstandard

from contract.body import decode_body
from contract.trouble import BROKEN, TOO_LONG, UNDECODED
from contract.warc import HttpMessage
from storage.frames import ZSTD_MAGIC, skippable

pack = partial(gzip.compress, mtime=0)  # the same bytes every time, which name the tests

TEXT = bytes(random.Random(1).choices(b"abcdefgh <>\n", k=300_000))
PACK = {"br": brotlicffi.compress, "zstd": zstandard.compress, "gzip": gzip.compress, "deflate": zlib.compress}
BLOCK_BYTES = 1 << 17  # the largest block of zstd


def decode(body: bytes, encoding: str, most: int = 1 << 20) -> tuple[bytes, str]:
    return decode_body(HttpMessage(200, [("Content-Encoding", encoding)], body), most)


def zeros(blocks: int, window: int = 0x38) -> bytes:
    """A zstd frame of so many blocks of zeros, four bytes each.

    0x38 asks for a window of 128 KiB (RFC 8878 3.1.1.1).
    """
    block = (BLOCK_BYTES << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return ZSTD_MAGIC + bytes((0, window)) + block * (blocks - 1) + (block[0] | 1).to_bytes(1, "little") + block[1:]


@pytest.mark.parametrize("outer", PACK)
@pytest.mark.parametrize("inner", PACK)
@pytest.mark.sampled(5)
def test_two_layers(inner, outer):
    assert decode(PACK[outer](PACK[inner](TEXT)), f"{inner}, {outer}") == (TEXT, "")
    assert decode(PACK[outer](PACK[inner](TEXT)), f"{inner.upper()} ,identity,{outer}", 777) == (TEXT[:777], TOO_LONG)


@pytest.mark.parametrize("encoding", ["br", "BR", " Br ", "br, identity"])
@pytest.mark.sampled(2)
def test_brotli(encoding):
    for text in (b"", b"x", TEXT):
        assert decode(brotlicffi.compress(text), encoding) == (text, "")


@pytest.mark.parametrize("encoding", ["zstd", "ZSTD", "zstd,"])
def test_zstd(encoding):
    for text in (b"", b"x", TEXT):
        assert decode(zstandard.compress(text), encoding) == (text, "")


def test_frames_follow_each_other():
    frames = [zstandard.compress(b"a"), skippable(b"ours"), zstandard.compress(b""), zstandard.compress(b"b" * 100_000)]
    assert decode(b"".join(frames), "zstd") == (b"a" + b"b" * 100_000, "")
    assert decode(b"".join(frames) + b"trash", "zstd") == (b"a" + b"b" * 100_000, "")


@pytest.mark.parametrize(
    "body, encoding",
    [
        (b"<html>hello</html>", "br"),
        (b"\xff" * 5000, "br"),
        (b"hello", "zstd"),
        (ZSTD_MAGIC + b"\xff" * 50, "zstd"),
        (TEXT, "br"),
        (TEXT, "zstd"),
        (brotlicffi.compress(TEXT), "zstd"),
        (zstandard.compress(TEXT), "br"),
        (zstandard.compress(TEXT), "br, zstd"),
        (pack(TEXT), "zstd, gzip"),
        (zstandard.compress(TEXT), "x-zstd"),
        (brotlicffi.compress(TEXT), "brotli"),
        (brotlicffi.compress(TEXT), "br, br, br"),
        (zeros(1, 0xA8), "zstd"),
    ],
)
def test_what_cannot_be_decoded_is_given_as_it_is(body, encoding):
    content, trouble = decode(body, encoding)
    assert trouble == UNDECODED and content in (body, TEXT), (
        "two layers of which the outer one is as said give the inner one"
    )


def test_a_window_of_more_than_eight_mebibytes_is_refused():
    assert decode(zeros(1, 13 << 3), "zstd", 10) == (bytes(10), TOO_LONG)  # 2 ** (10 + 13) bytes
    assert decode(zeros(1, 14 << 3), "zstd", 10)[1] == UNDECODED


def test_a_frame_that_needs_a_dictionary_is_refused():
    samples = [b"sample %d of a text that comes again and again" % n for n in range(2000)]
    dictionary = zstandard.train_dictionary(1000, samples)
    packed = zstandard.ZstdCompressor(dict_data=dictionary).compress(samples[0])
    assert decode(packed, "zstd") == (packed, UNDECODED)
    assert decode(zstandard.compress(b"before") + packed, "zstd") == (b"before", BROKEN)


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_a_torn_stream_counts_up_to_its_end(encoding):
    packed = PACK[encoding](TEXT)
    for length in (len(packed) * 9 // 10, len(packed) - 1):
        content, trouble = decode(packed[:length], encoding)
        assert trouble == BROKEN and TEXT.startswith(content) and len(content) > len(TEXT) // 2


def test_a_broken_stream_counts_up_to_the_break():
    packed = brotlicffi.compress(TEXT)
    content, trouble = decode(packed[:100_000] + b"\xff" * 20_000, "br")
    assert trouble == BROKEN and len(content) > 200_000 and content[:200_000] == TEXT[:200_000]
    frame = zeros(4)
    content, trouble = decode(frame[:-4] + b"\x07\0\0", "zstd")  # a block of the kind that is reserved
    assert trouble == BROKEN and content in (bytes(3 * BLOCK_BYTES), bytes(3 * BLOCK_BYTES - 1)), (
        "the library looks ahead while it gives the last byte"
    )
    two_steps = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT[: 1 << 17])
    assert decode(two_steps[:-1] + bytes((two_steps[-1] ^ 1,)), "zstd")[0] in (TEXT[: 1 << 17], TEXT[: (1 << 17) - 1])
    packer = zstandard.ZstdCompressor(write_checksum=True)
    content, trouble = decode(packer.compress(TEXT)[:-1] + b"\0", "zstd")
    assert trouble == BROKEN and content == TEXT[: len(content)] and len(content) > 200_000


def test_trash_behind_a_brotli_stream_is_left_out():
    for text in (b"x", TEXT):
        assert decode(brotlicffi.compress(text) + b"trash", "br") == (text, "")


@pytest.mark.parametrize("encoding", PACK)
def test_a_body_that_is_as_long_as_it_may_be_is_whole(encoding):
    packed = PACK[encoding](TEXT)
    assert decode(packed, encoding, len(TEXT)) == (TEXT, "")
    assert decode(packed, encoding, len(TEXT) - 1) == (TEXT[:-1], TOO_LONG)
    assert decode(TEXT, "", len(TEXT)) == (TEXT, "") and decode(TEXT, "", 5) == (TEXT[:5], TOO_LONG)


@pytest.mark.parametrize("encoding", PACK)
def test_every_cut_of_a_body_is_told(encoding):
    packed = PACK[encoding](TEXT[:3000])
    for length in range(1, len(packed)):
        content, trouble = decode(packed[:length], encoding)
        assert trouble == UNDECODED or trouble == BROKEN and TEXT.startswith(content), length


def test_members_beyond_the_bound_are_told():
    for behind in (b"", b"trash"):
        assert decode(pack(b"x") * 64 + behind, "gzip") == (b"x" * 64, "")
    assert decode(pack(b"x") * 65, "gzip") == (b"x" * 64, BROKEN)


def test_any_cut_and_any_flip_gives_an_outcome():
    rng = random.Random(2)
    for encoding in ("br", "zstd"):
        packed = PACK[encoding](TEXT[:5000])
        for _ in range(200):
            body = bytearray(packed[: rng.randrange(1, len(packed) + 1)])
            body[rng.randrange(len(body))] ^= rng.randrange(1, 256)
            content, _ = decode(bytes(body), encoding, 10_000)
            assert len(content) <= 10_000


@pytest.mark.parametrize(
    "body, encoding",
    [
        (zeros(100_000), "zstd"),
        (zstandard.compress(zeros(100_000)), "zstd, zstd"),
        (pack(zeros(100_000)), "zstd, gzip"),
        (brotlicffi.compress(zeros(100_000), quality=5), "zstd, br"),
        (zstandard.compress(b"") * 200_000, "zstd"),
        (skippable(b"") * 200_000, "zstd"),
    ],
    ids=["13 GB", "13 GB in zstd", "13 GB in gzip", "13 GB in br", "empty frames", "skippable frames"],
)
def test_bombs_of_zstd_are_cut(body, encoding):
    begun = time.process_time()
    assert decode(body, encoding, 10_000_000) in ((bytes(10_000_000), TOO_LONG), (b"", ""))
    assert time.process_time() - begun < 2, "measured: at most 0.1 s"
