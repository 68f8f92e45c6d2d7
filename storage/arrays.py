"""Columns as .npy files, opened by mmap, and set operations on columns of u64 keys.

sortednp works on columns that are sorted already, where numpy would sort again (figures: decision 9).
"""

import os
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import sortednp

from storage.errors import Damaged, naming

Array = npt.NDArray[Any]
Keys = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
MAPPED_LEAST_BYTES = 1 << 20
NO_HEAD = (SyntaxError, TokenError)  # numpy reads the head of a file as Python
SORTED_AT_ONCE = 1 << 20  # keys whose order is found together: they and their order fit into a processor's cache


def open_array(path: Path, dtype: str | np.dtype[Any]) -> Array:
    """The column, read-only, by mmap; Damaged where it is no one-dimensional .npy file of that dtype."""
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, *NO_HEAD):
        array = read_small_array(path)
    except (OSError, EOFError) as error:
        raise Damaged(path, f"expected an .npy file, found {error}") from None
    if array.dtype != np.dtype(dtype) or array.ndim != 1:
        raise Damaged(path, f"expected a column of {dtype}, found {array.ndim} dimensions of {array.dtype}")
    return array


def read_small_array(path: Path) -> Array:
    """The column, read whole. mmap refuses a column of no rows, and a truncated file, which fails here too."""
    try:
        array: Array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError, *NO_HEAD) as error:
        raise Damaged(path, f"expected an .npy file, found {error}") from None
    return array


def make_mapped(path: Path, dtype: str, rows: int) -> Array:
    """A new file of zeros, to write by mmap. Its blocks are allocated now: else a full disk is a bus error later."""
    array_bytes = max(rows, 1) * np.dtype(dtype).itemsize  # mmap refuses a file without a byte
    with naming(path), open(path, "xb") as file:
        os.posix_fallocate(file.fileno(), 0, array_bytes)
    return np.memmap(path, dtype, "r+")


def open_bytes(path: Path) -> memoryview:
    """The bytes of a file, read-only: of a large one by mmap, which takes no memory for what is not in use."""
    return (
        memoryview(path.read_bytes()) if path.stat().st_size < MAPPED_LEAST_BYTES else np.memmap(path, "u1", "r").data
    )


def find_in_sorted(keys: Keys, among: Keys) -> tuple[Rows, Rows]:
    """Row numbers (in `keys`, in `among`) of the common keys; both u64, sorted, unique."""
    if not len(keys) or not len(among):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    _, (left, right) = sortednp.intersect(np.ascontiguousarray(keys), np.ascontiguousarray(among), indices=True)
    return left.astype(np.int64), right.astype(np.int64)


def is_in_sorted(keys: Keys, among: Keys) -> npt.NDArray[np.bool_]:
    """Whether each key is in `among`; keys u64 in any order, also repeated; `among` u64, sorted, unique."""
    found = np.zeros(len(keys), bool)
    if len(among):
        among = np.ascontiguousarray(among)
        for start in range(0, len(keys), SORTED_AT_ONCE):
            part = keys[start : start + SORTED_AT_ONCE]
            order = np.argsort(part)
            _, (rows, _) = sortednp.intersect(
                part[order], among, duplicates=sortednp.IntersectDuplicates.KEEP_MAX_N, indices=True
            )
            found[start + order[rows.astype(np.int64)]] = True
    return found


def find_repeated(keys: Keys) -> Rows:
    """Row numbers, rising, of the keys that occur more than once; keys u64, in any order."""
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(is_in_sorted(keys, repeated[starts_of_runs(repeated)]))


def unite_sorted(left: Keys, right: Keys) -> Keys:
    """All keys of both; both u64, sorted, unique, and so is the result."""
    if not len(left) or not len(right):
        return left if len(left) else right
    united: Keys = sortednp.merge(
        np.ascontiguousarray(left), np.ascontiguousarray(right), duplicates=sortednp.MergeDuplicates.DROP
    )
    return united


def differ_sorted(left: Keys, right: Keys) -> tuple[Keys, Keys]:
    """The keys that only `left` has and those that only `right` has; all u64, sorted, unique."""
    in_left, in_right = find_in_sorted(left, right)
    return np.delete(left, in_left), np.delete(right, in_right)


def merge_sorted(left: Keys, right: Keys) -> tuple[Keys, Rows, Rows]:
    """The merged keys, and the row of each key of `left` and `right` among them; u64, sorted, unique, disjoint."""
    if not len(left) or not len(right):
        merged = np.array(left if len(left) else right)
        return merged, np.arange(len(left)), np.arange(len(right))
    merged, (left_rows, right_rows) = sortednp.merge(
        np.ascontiguousarray(left), np.ascontiguousarray(right), indices=True
    )
    return merged, left_rows.astype(np.int64), right_rows.astype(np.int64)


def interleave(left: Array, right: Array, left_rows: Rows, right_rows: Rows) -> Array:
    """The column that belongs to the keys of merge_sorted."""
    column = np.empty(len(left) + len(right), left.dtype)
    column[left_rows] = left
    column[right_rows] = right
    return column


def starts_of_runs(values: Array) -> Rows:
    """Index of the first value of each run of equal values in a sorted array."""
    if not len(values):
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def rank_in_run(values: Array) -> Rows:
    """For each value of a sorted array, how many equal values stand before it."""
    starts = starts_of_runs(values)
    lengths = np.diff(np.append(starts, len(values)))
    return np.arange(len(values)) - np.repeat(starts, lengths)


def encode(values: Array) -> tuple[Array, npt.NDArray[np.int32]]:
    """(distinct values in the order of their first rows, index of each value among them, i32).

    Hashing takes a fifth of the time of sorting.
    """
    encoded = pa.array(values).dictionary_encode()
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()


def bound(values: Keys, dtype: str) -> Array:
    """u64 values, at most the largest of a type, in that type."""
    return np.minimum(values, np.uint64(np.iinfo(dtype).max)).astype(dtype)


def rank_values(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
    """The rank of each value among all, scaled to (0, 1]: the share of values that are not larger. Equal ones share it.

    Sorting values together with their indexes, as numbers of 64 bits, takes half the time of finding an order.
    """
    pairs = join_halves(values, np.arange(len(values), dtype=np.uint32))
    pairs.sort()
    index, rising = pairs.view("<u4").reshape(-1, 2).T
    ends = np.append(np.flatnonzero(rising[1:] != rising[:-1]) + 1, len(rising)) if len(rising) else np.empty(0, int)
    ranks = np.empty(len(values), np.float32)
    ranks[index] = np.repeat((ends / max(len(values), 1)).astype(np.float32), np.diff(ends, prepend=0))
    return ranks


def join_halves(high: Array, low: Array) -> npt.NDArray[np.uint64]:
    """Numbers of 64 bits from two of 32."""
    joined = np.empty(len(high), "<u8")
    halves = joined.view("<u4")
    halves[0::2], halves[1::2] = low, high
    return joined
