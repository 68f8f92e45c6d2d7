"""Columns as .npy files, opened by mmap, and the set operations on sorted unique u64 keys."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import sortednp

from storage.errors import Damaged


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
    """Reads what mmap refuses: a column of no rows. A file that is cut off fails here too."""
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
    """(merged keys, new row of each of `left`, of each of `right`); both u64, sorted, unique, without common keys."""
    if not len(left) or not len(right):
        merged = np.array(left if len(left) else right)
        return merged, np.arange(len(left)), np.arange(len(right))
    merged, (left_rows, right_rows) = sortednp.merge(
        np.ascontiguousarray(left), np.ascontiguousarray(right), indices=True
    )
    return merged, left_rows.astype(np.int64), right_rows.astype(np.int64)


def interleave(left: np.ndarray, right: np.ndarray, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
    """The column that goes with the keys of merge_sorted."""
    column = np.empty(len(left) + len(right), left.dtype)
    column[left_rows] = left
    column[right_rows] = right
    return column


def starts_of_runs(values: np.ndarray) -> np.ndarray:
    """Index of the first of each run of equal values in a sorted array."""
    if not len(values):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def rank_in_run(values: np.ndarray) -> np.ndarray:
    """For each value of a sorted array, how many equal ones come before it."""
    starts = starts_of_runs(values)
    lengths = np.diff(np.append(starts, len(values)))
    return np.arange(len(values)) - np.repeat(starts, lengths)


def encode(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct values, in the order of their first rows; index of each value among them, i32).

    By hashing, which takes a fifth of the time of sorting.
    """
    encoded = pa.array(values).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()


def bound(values: np.ndarray, dtype: str) -> np.ndarray:
    """u64 values, at most the largest of a type, in that type."""
    return np.minimum(values, np.uint64(np.iinfo(dtype).max)).astype(dtype)
