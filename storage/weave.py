"""Rows of two tables in one: columns of old rows with new ones among them."""

from typing import Any

import numpy as np

from storage.arrays import Array, Rows

_WORD_BYTES = 8


class Weave:
    """Old rows with new ones among them, each of which comes before the old row of a number (i64, rising)."""

    def __init__(self, old_rows: int, before: Rows):
        if len(before) and not (before[0] >= 0 and before[-1] <= old_rows and (before[1:] >= before[:-1]).all()):
            raise ValueError(f"expected rising numbers of {old_rows} rows, found others")
        self._new_rows = len(before)
        new_at = before + np.arange(len(before))
        # Of each row, its index in the old rows with the new ones behind them.
        self._source = np.ones(old_rows + len(before), np.int64)
        self._source[new_at] = 0
        np.cumsum(self._source, out=self._source)
        self._source -= 1
        self._source[new_at] = np.arange(old_rows, len(self._source))
        self._scratch = np.empty(0, np.uint64)

    def __len__(self) -> int:
        return len(self._source)

    def join(self, old: Array, new: Array | int) -> Array:
        """A column of both, of the old rows' type."""
        if not self._new_rows:
            return old
        behind = self._borrow(old.dtype)
        behind[: len(old)], behind[len(old) :] = old, new
        both: Array = np.take(behind, self._source, mode="clip")  # several times as fast as a mask, or as a check
        return both

    def _borrow(self, dtype: np.dtype[Any]) -> Array:
        """Memory for a column, the same each time: the first use of memory takes longer than filling it."""
        if self._scratch.nbytes < len(self) * dtype.itemsize:
            self._scratch = np.empty(len(self) * -(-dtype.itemsize // _WORD_BYTES), np.uint64)
        return self._scratch.view(dtype)[: len(self)]
