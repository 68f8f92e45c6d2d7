"""Paths of many URLs at once: where they lie in the bytes of an Arrow array, how deep they are, and hashes of their parts.

A segment is what stands between slashes; empty ones do not count, as for path_depth_max, and a slash at the end adds none.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

LEVELS_MAX = 255
CHUNK_BYTES = 1 << 18  # of text looked at in one go: its positions stay in the cache, and memory does not follow the batch
_SLASH, _QUESTION = b"/?"
_HEAD_SLASHES = 2  # of 'http://', before the one that begins the path
_WORD_BYTES = 8
_WORD_MASKS = np.array([(1 << 8 * length) - 1 for length in range(_WORD_BYTES + 1)], np.uint64)
# Odd numbers without pattern: the fraction of the golden ratio, and the second constant of splitmix64 (Steele et al. 2014).
GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)
_STIRRING = np.uint64(0x94D0_49BB_1331_11EB)


@dataclass
class Paths:
    """Of each URL, positions in `data`, i64: the path is [start, end), and its first segments end before first_end and second_end."""

    data: np.ndarray  # u8, the bytes of all URLs
    start: np.ndarray
    end: np.ndarray
    first_end: np.ndarray  # defined where levels >= 2: where the slash before the second segment is
    second_end: np.ndarray  # defined where levels >= 3: the same of the third
    levels: np.ndarray  # i64, number of segments
    with_query: np.ndarray  # bool


def path_levels(urls: pa.Array) -> np.ndarray:
    """Number of path segments of each canonical URL, u8, in the order of `urls`; 255 stands for as many or more."""
    data, offsets = view_bytes(urls)
    levels = np.empty(len(offsets) - 1, np.int64)
    queries = [np.empty(0, np.int64)]
    for low, high in _chunks(offsets):
        text = data[offsets[low]:offsets[high]]
        is_slash = text == _SLASH
        is_counted = np.zeros(len(text) + 1, np.uint8)
        np.greater(is_slash[:-1], is_slash[1:], out=is_counted[:max(len(text) - 1, 0)].view(bool))  # what follows is no slash
        is_counted[offsets[low + 1:high + 1] - offsets[low] - 1] = 0  # nor is it the end
        levels[low:high] = np.add.reduceat(is_counted, offsets[low:high] - offsets[low], dtype=np.int32) - 1  # but for the one before the host
        asked = np.flatnonzero(text == _QUESTION) + offsets[low]
        queries.append(np.unique(np.searchsorted(offsets, asked, "right") - 1))
    rows = np.concatenate(queries)
    if len(rows):  # slashes of their queries were counted too
        levels[rows] = locate_paths(urls.take(pa.array(rows))).levels
    return np.clip(levels, 0, LEVELS_MAX).astype(np.uint8)


def locate_paths(urls: pa.Array | pa.ChunkedArray) -> Paths:
    """Where the paths of canonical URLs are; rows in the order of `urls`, which may be string or large_string, in any order."""
    data, offsets = view_bytes(urls)
    count = len(offsets) - 1
    found = Paths(data, *(np.empty(count, np.int64) for _ in range(5)), np.zeros(count, bool))
    for low, high in _chunks(offsets):
        _locate_chunk(found, offsets, low, high)
    return found


def _chunks(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Runs of texts of about CHUNK_BYTES."""
    low = 0
    while low < len(offsets) - 1:
        high = max(low + 1, int(np.searchsorted(offsets, offsets[low] + CHUNK_BYTES, "right")) - 1)
        yield low, high
        low = high


def take_paths(paths: Paths, rows: np.ndarray) -> Paths:
    """The paths of some rows, in their order."""
    return Paths(paths.data, *(getattr(paths, field.name)[rows] for field in fields(paths)[1:]))


def view_bytes(urls: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of an Arrow array of texts, u8, and where each text begins and the last ends, i64; no copy of the bytes of one chunk."""
    if isinstance(urls, pa.ChunkedArray):
        urls = urls.chunk(0) if urls.num_chunks == 1 else pa.concat_arrays(urls.cast(pa.large_string()).chunks or [pa.array([], pa.large_string())])
    _, offsets, data = urls.buffers()
    width = np.int64 if pa.types.is_large_string(urls.type) or pa.types.is_large_binary(urls.type) else np.int32
    if not len(urls):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    places = np.frombuffer(offsets, width)[urls.offset:urls.offset + len(urls) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8), places


def _locate_chunk(found: Paths, offsets: np.ndarray, low: int, high: int) -> None:
    """Fills the rows [low, high) of `found`."""
    begin, stop = offsets[low:high], offsets[low + 1:high + 1]
    text = found.data[offsets[low]:offsets[high]]
    slashes = np.flatnonzero(text == _SLASH) + offsets[low]
    questions = np.flatnonzero(text == _QUESTION) + offsets[low]

    end = stop.copy()
    owners = np.searchsorted(stop, questions, "right")
    end[owners[::-1]] = questions[::-1]  # the last one written, so the first of each URL, stays
    with_query = end < stop

    # A slash with a segment behind it is a mark; marks_before[i] counts those among the first i slashes.
    followed = found.data[np.minimum(slashes + 1, len(found.data) - 1)] != _SLASH
    marks = np.append(slashes[followed], [offsets[high]] * 3)
    marks_before = np.concatenate(([0], np.cumsum(followed)))

    # Of each URL the slashes [first, last) are not in its query; the third of them begins the path.
    first = np.searchsorted(slashes, begin)
    last = np.append(first[1:], len(slashes))
    last[with_query] = np.searchsorted(slashes, end[with_query])
    slashes = np.append(slashes, [offsets[high]] * (_HEAD_SLASHES + 1))
    path_slash = first + _HEAD_SLASHES
    start = np.minimum(slashes[path_slash], end)
    last -= (end > start) & (found.data[end - 1] == _SLASH) if len(found.data) else 0
    mark = marks_before[np.minimum(path_slash, len(marks_before) - 1)]

    found.start[low:high], found.end[low:high] = start, end
    found.levels[low:high] = np.maximum(marks_before[last] - mark, 0)
    found.first_end[low:high], found.second_end[low:high] = (marks[np.minimum(mark + k, len(marks) - 1)] for k in (1, 2))
    found.with_query[low:high] = with_query


def hash_texts(data: np.ndarray, start: np.ndarray, end: np.ndarray, seed: int) -> np.ndarray:
    """A u64 for the bytes [start, end) of each row, the same for the same bytes and seed wherever they lie.

    Eight bytes a step for all rows that have so many. Who knows the seed could make collisions; here they would only add up
    the counts of two prefixes of his own server.
    """
    if len(data) < _WORD_BYTES:
        data = np.concatenate([data, np.zeros(_WORD_BYTES, np.uint8)])
    words = np.ndarray(len(data) - _WORD_BYTES + 1, "<u8", data, strides=(1,))  # one that begins at each byte
    hashes = np.empty(len(start), np.uint64)
    rows, at, left = np.arange(len(start)), start, end - start
    state = _stir(left.astype(np.uint64) * GOLDEN + np.uint64(seed % (1 << 64)))
    while len(rows):
        done = left <= 0
        if done.any():
            hashes[rows[done]] = state[done]
            more = ~done
            rows, at, left, state = rows[more], at[more], left[more], state[more]
        word = read_words(words, at)
        state = _stir(state ^ (word & _WORD_MASKS[np.minimum(left, _WORD_BYTES)]))
        at, left = at + _WORD_BYTES, left - _WORD_BYTES
    return hashes


def read_words(words: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The eight bytes from each place on, the first lowest; fewer at the end of the data."""
    if not len(at) or at.max() < len(words):
        return words[at]
    inside = np.minimum(at, len(words) - 1)  # the last bytes are the high ones of the last word
    return words[inside] >> ((at - inside) * 8).astype(np.uint64)


def _stir(values: np.ndarray) -> np.ndarray:
    values = (values ^ (values >> np.uint64(30))) * _STIRRING
    return values ^ (values >> np.uint64(31))
