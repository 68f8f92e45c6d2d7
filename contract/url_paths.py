"""Paths of many URLs at once: their offsets in the bytes of an Arrow array, their depth, and hashes of their parts.

A segment is the text between slashes. Empty ones do not count, as for path_depth_max, and a slash at the end adds none.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from storage.arrays import Array
from storage.compiled import compiled
from storage.text_segments import data_of

LEVELS_MAX = 255
_SLASH, _QUESTION, _NEWLINE = b"/?\n"
_HEAD_SLASHES = 2  # of 'http://', before the one that begins the path
_WORD_BYTES = 8
PLAIN_LOCATED, PLAIN_HASHED = 1 << 14, 1 << 12  # URLs that Python handles in the time of importing numba
# Odd numbers without pattern: the fraction of the golden ratio, and splitmix64's second constant (Steele et al. 2014).
GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)
_STIRRING = np.uint64(0x94D0_49BB_1331_11EB)


@dataclass
class Paths:
    """Offsets in `data`, i64: each path is [start, end); its first two segments end before first_end and second_end."""

    data: Array  # u8, the bytes of all URLs
    start: Array
    end: Array
    first_end: Array  # where levels >= 2: the slash before the second segment
    second_end: Array  # where levels >= 3: the slash before the third one
    levels: Array  # i64, number of segments
    with_query: Array  # bool


def path_levels(urls: pa.Array | pa.ChunkedArray) -> Array:
    """Number of path segments of each canonical URL, u8, in the order of `urls`; 255 stands for as many or more."""
    return np.minimum(locate_paths(urls, np.arange(len(urls))).levels, LEVELS_MAX).astype(np.uint8)


def locate_paths(urls: pa.Array | pa.ChunkedArray, which: Array) -> Paths:
    """The paths of these (i64) of some canonical URLs, in the order of `which`, without a newline at the end."""
    data, offsets = view_bytes(urls)
    positions, with_query = [np.empty(len(which), np.int64) for _ in range(5)], np.empty(len(which), np.uint8)
    locate(data, offsets, which, *positions, with_query)
    start, end, first_end, second_end, levels = positions
    return Paths(data, start, end, first_end, second_end, levels, with_query.view(bool))


def view_bytes(urls: pa.Array | pa.ChunkedArray) -> tuple[Array, Array]:
    """The bytes of an Arrow array of texts, u8, and n + 1 offsets of the texts, i64; one chunk is not copied."""
    if isinstance(urls, pa.ChunkedArray):
        urls = (
            urls.chunk(0)
            if urls.num_chunks == 1
            else pa.concat_arrays(urls.cast(pa.large_string()).chunks or [pa.array([], pa.large_string())])
        )
    starts, data = data_of(urls)
    return data, starts.astype(np.int64, copy=False)


def hash_texts(data: Array, start: Array, end: Array, seed: int) -> Array:
    """A u64 for the bytes [start, end) of each row, the same for the same bytes and seed wherever they lie.

    Who knows the seed could make collisions. Here they would only add up the counts of two prefixes of one server.
    """
    hashes = np.full(len(start), seed % (1 << 64), np.uint64)
    hash_each(data, start, end, hashes)
    return hashes


@compiled("u1[] i8[] i8[] -> i8[] i8[] i8[] i8[] i8[] u1[]", PLAIN_LOCATED)
def locate(  # type: ignore[no-untyped-def]
    data, offsets, which, starts, ends, first_ends, second_ends, levels, with_query
):
    for number in range(len(which)):
        begin, stop = offsets[which[number]], offsets[which[number] + 1]
        stop -= stop > begin and data[stop - 1] == _NEWLINE
        end = find_byte(data, begin, stop, _QUESTION)
        start = begin
        for _ in range(_HEAD_SLASHES):
            start = min(find_byte(data, start, end, _SLASH) + 1, end)
        start = slash = find_byte(data, start, end, _SLASH)
        marks, first_end, second_end = 0, end, end
        while slash + 1 < end:
            if data[slash + 1] != _SLASH:  # a segment begins
                marks += 1
                if marks == 2:
                    first_end = slash
                elif marks == 3:
                    second_end = slash
            slash = find_byte(data, slash + 1, end, _SLASH)
        starts[number], ends[number], levels[number] = start, end, marks
        first_ends[number], second_ends[number] = first_end, second_end
        with_query[number] = end < stop
    return 0


@compiled("u1[] i8[] i8[] -> u8[]", PLAIN_HASHED)
def hash_each(data, start, end, hashes):  # type: ignore[no-untyped-def]
    """Replaces seeds by hashes; eight bytes per step."""
    for row in range(len(hashes)):
        state = stir(np.uint64(end[row] - start[row]) * GOLDEN + np.uint64(hashes[row]))
        for at in range(start[row], end[row], _WORD_BYTES):
            length = end[row] - at
            state = stir(state ^ read_word(data, at, _WORD_BYTES if length >= _WORD_BYTES else length))
        hashes[row] = state
    return 0


@compiled()
def find_byte(data: Any, at: Any, stop: Any, wanted: Any) -> Any:
    """The first offset from `at` on that holds a byte, `stop` where none does."""
    while at < stop and data[at] != wanted:
        at += 1
    return at


@compiled()
def read_word(data: Any, at: Any, length: Any) -> Any:
    """Up to eight bytes as a number, the first one lowest; eight are one instruction."""
    word = np.uint64(0)
    for byte in range(length):
        word |= np.uint64(data[np.uint64(at + byte)]) << np.uint64(8 * byte)
    return word


@compiled()
def stir(value: Any) -> Any:
    value = (value ^ (value >> np.uint64(30))) * _STIRRING
    return value ^ (value >> np.uint64(31))
