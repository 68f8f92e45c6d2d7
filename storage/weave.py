"""Rows of two tables in one: columns of old rows with new ones among them."""

from typing import Any

import numpy as np

from storage.arrays import Array, Rows
from storage.compiled import compiled

_WORD_BYTES = 8


class Weave:
    """Old rows with new ones among them, each of which comes before the old row of a number (i64, rising)."""

    def __init__(self, old_rows: int, before: Rows):
        if len(before) and not (before[0] >= 0 and before[-1] <= old_rows and (before[1:] >= before[:-1]).all()):
            # The compiled loop does not check where it writes.
            raise ValueError(f"expected rising numbers of {old_rows} rows, found others")
        self._new_rows = len(before)
        # Of each row, its index in the old rows with the new ones behind them.
        self._source = np.empty(old_rows + len(before), np.int32)
        find_sources(before, self._source)
        self._scratch = np.empty(0, np.uint64)

    def __len__(self) -> int:
        return len(self._source)

    def join(self, old: Array, new: Array | int) -> Array:
        """A column of both, of the old rows' type."""
        if not self._new_rows:
            return old
        both, behind = np.empty(len(self), old.dtype), self._borrow(old.dtype)
        behind[: len(old)], behind[len(old) :] = old, new
        if old.itemsize > _WORD_BYTES:
            take_wide(
                behind.view(np.uint64).reshape(len(self), -1), self._source, both.view(np.uint64).reshape(len(self), -1)
            )
        else:
            take_words(behind.view(f"u{old.itemsize}"), self._source, both.view(f"u{old.itemsize}"))
        return both

    def _borrow(self, dtype: np.dtype[Any]) -> Array:
        """Memory for a column, the same each time: the first use of memory takes longer than filling it."""
        if self._scratch.nbytes < len(self) * dtype.itemsize:
            self._scratch = np.empty(len(self) * -(-dtype.itemsize // _WORD_BYTES), np.uint64)
        return self._scratch.view(dtype)[: len(self)]


@compiled("i8[] i4[]")
def find_sources(before: Array, source: Array) -> int:
    done, at, old_rows = 0, 0, len(source) - len(before)
    for number in range(len(before)):
        for row in range(done, before[number]):
            source[at] = row
            at += 1
        done = before[number]
        source[at] = old_rows + number
        at += 1
    for row in range(done, old_rows):
        source[at] = row
        at += 1
    return 0


@compiled("T[] i4[] T[]", of=("u1", "u2", "u4", "u8"))
def take_words(values: Array, source: Array, taken: Array) -> int:
    for at in range(len(source)):
        taken[at] = values[source[at]]
    return 0


@compiled("u8[,] i4[] u8[,]")
def take_wide(values: Array, source: Array, taken: Array) -> int:
    for at in range(len(source)):
        for word in range(values.shape[1]):
            taken[at, word] = values[source[at], word]
    return 0
