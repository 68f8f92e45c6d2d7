"""Columns as .npy files, opened by mmap, and the set operations on sorted unique u64 keys."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import sortednp

from storage.compiled import compiled
from storage.errors import Damaged

_WORD_BYTES = 8


def open_array(path: Path, dtype: str) -> np.ndarray:
    """The column, read-only, by mmap; Damaged where it is no one-dimensional .npy file of that dtype."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:
        array = read_small_array(path)
    except (OSError, EOFError) as error:
        raise Damaged(path, f"expected an .npy file, found {error}") from None
    if array.dtype != np.dtype(dtype) or array.ndim != 1:
        raise Damaged(path, f"expected a column of {dtype}, found {array.ndim} dimensions of {array.dtype}")
    return array


def read_small_array(path: Path) -> np.ndarray:
    """mmap refuses a column of no rows; so does a file cut off, which then fails here too."""
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise Damaged(path, f"expected an .npy file, found {error}") from None


def find_in_sorted(keys: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices (into `keys`, into `among`) of the common keys; both u64, sorted, unique."""
    if not len(keys) or not len(among):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    _, (left, right) = sortednp.intersect(np.ascontiguousarray(keys), np.ascontiguousarray(among), indices=True)
    return left.astype(np.int64), right.astype(np.int64)


def merge_sorted(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The merged keys and where each of `left` and of `right` went; both u64, sorted, unique, without common keys."""
    if not len(left) or not len(right):
        merged = np.array(left if len(left) else right)
        return merged, np.arange(len(left)), np.arange(len(right))
    merged, (left_places, right_places) = sortednp.merge(
        np.ascontiguousarray(left), np.ascontiguousarray(right), indices=True
    )
    return merged, left_places.astype(np.int64), right_places.astype(np.int64)


def interleave(left: np.ndarray, right: np.ndarray, left_places: np.ndarray, right_places: np.ndarray) -> np.ndarray:
    """The column that goes with the keys of merge_sorted."""
    column = np.empty(len(left) + len(right), left.dtype)
    column[left_places] = left
    column[right_places] = right
    return column


def starts_of_runs(values: np.ndarray) -> np.ndarray:
    """Index of the first of each run of equal values in a sorted array."""
    if not len(values):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def rank_in_run(values: np.ndarray) -> np.ndarray:
    """For each place of a sorted array, how many equal values stand before it."""
    starts = starts_of_runs(values)
    lengths = np.diff(np.append(starts, len(values)))
    return np.arange(len(values)) - np.repeat(starts, lengths)


class Weave:
    """Old rows with new ones among them, each of which comes before the old row of a number (i64, rising)."""

    def __init__(self, old_rows: int, before: np.ndarray):
        if len(before) and not (0 <= before[0] and before[-1] <= old_rows and (before[1:] >= before[:-1]).all()):
            raise ValueError(f"expected rising numbers of {old_rows} rows, found others")  # the loop writes as it is told
        self._new_rows = len(before)
        self._source = np.empty(old_rows + len(before), np.int32)  # of each row, its place in the old ones with the new ones behind
        find_sources(before, self._source)
        self._scratch = np.empty(0, np.uint64)

    def __len__(self) -> int:
        return len(self._source)

    def join(self, old: np.ndarray, new: np.ndarray | int) -> np.ndarray:
        """A column of both, of the old rows' type."""
        if not self._new_rows:
            return old
        both, behind = np.empty(len(self), old.dtype), self._borrow(old.dtype)
        behind[:len(old)], behind[len(old):] = old, new
        if old.itemsize > _WORD_BYTES:
            take_wide(behind.view(np.uint64).reshape(len(self), -1), self._source, both.view(np.uint64).reshape(len(self), -1))
        else:
            take_words(behind.view(f"u{old.itemsize}"), self._source, both.view(f"u{old.itemsize}"))
        return both

    def _borrow(self, dtype: np.dtype) -> np.ndarray:
        """Memory for a column, the same each time: to use memory for the first time takes longer than to fill it."""
        if self._scratch.nbytes < len(self) * dtype.itemsize:
            self._scratch = np.empty(len(self) * -(-dtype.itemsize // _WORD_BYTES), np.uint64)
        return self._scratch.view(dtype)[:len(self)]


@compiled("i8[] i4[]")
def find_sources(before, source):
    done, place, old_rows = 0, 0, len(source) - len(before)
    for number in range(len(before)):
        for row in range(done, before[number]):
            source[place] = row
            place += 1
        done = before[number]
        source[place] = old_rows + number
        place += 1
    for row in range(done, old_rows):
        source[place] = row
        place += 1
    return 0


@compiled("T[] i4[] T[]", of=("u1", "u2", "u4", "u8"))
def take_words(values, source, taken):
    for place in range(len(source)):
        taken[place] = values[source[place]]
    return 0


@compiled("u8[,] i4[] u8[,]")
def take_wide(values, source, taken):
    for place in range(len(source)):
        for word in range(values.shape[1]):
            taken[place, word] = values[source[place], word]
    return 0


@compiled("u1[] i8[]")
def count_bytes(values, counts):
    """Adds to `counts` how often each value is there."""
    for value in values:
        counts[value] += 1
    return 0


def encode(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct values, in the order of their first rows; the place of each value among them, i32): by hashing, a fifth of the time of sorting."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()
