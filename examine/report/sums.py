"""Sums of bounded size over any number of rows: per interval of time, per bin, per word."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

# Widths of the buckets of a timeline. Each divides the next one, so buckets join without loss.
STEPS_S = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 43_200, 86_400, 604_800)
BUCKETS_MAX = 120  # more points than this are no longer a picture
WORDS_MAX = 5_000  # distinct words that a tally keeps: a hostile web has a new one on each page
OTHERS = "\N{HORIZONTAL ELLIPSIS}"  # the word for all words that were dropped


class Timeline:
    """Sums of some columns per bucket of time. All buckets are equally wide, and get wider when there are too many."""

    def __init__(self, *columns: str):
        self.columns = columns
        self.step_s = STEPS_S[0]
        self._sums: dict[int, np.ndarray] = {}  # begin of the bucket / step -> sums

    def add(self, at_ms: np.ndarray, *values: np.ndarray) -> None:
        """Adds rows: their times (i8), and one array of numbers per column."""
        if not len(at_ms):
            return
        seconds = at_ms // 1000
        self._fit(int(seconds.min()), int(seconds.max()))
        buckets, which = np.unique(seconds // self.step_s, return_inverse=True)
        sums = np.stack([np.bincount(which, column, len(buckets)) for column in values], axis=1)
        self._join(zip(buckets.tolist(), sums))

    def _fit(self, first_s: int, last_s: int) -> None:
        """Widens the buckets until those of these moments and of all earlier rows are few enough."""
        known = [bucket * self.step_s for bucket in self._sums]
        first_s, last_s = min([first_s, *known]), max([last_s, *known])
        step_s = self.step_s
        while last_s // step_s - first_s // step_s >= BUCKETS_MAX:
            step_s = next((wider for wider in STEPS_S if wider > step_s), 2 * step_s)
        if step_s != self.step_s:
            ratio, sums = step_s // self.step_s, self._sums
            self.step_s, self._sums = step_s, {}
            self._join((bucket // ratio, row) for bucket, row in sums.items())

    def _join(self, rows) -> None:
        for bucket, row in rows:
            self._sums[bucket] = self._sums[bucket] + row if bucket in self._sums else row

    def rows(self) -> list[dict]:
        """One row per bucket from the first to the last, also of those in which nothing happened."""
        if not self._sums:
            return []
        empty = np.zeros(len(self.columns))
        return [
            {"at_ms": bucket * self.step_s * 1000} | dict(zip(self.columns, self._sums.get(bucket, empty).tolist()))
            for bucket in range(min(self._sums), max(self._sums) + 1)
        ]


class Bins:
    """Counts of numbers by bin: [edge, next edge), the last one without end; with their sum."""

    def __init__(self, edges: Sequence[float], show: Callable[[float], str] | None = None):
        """Numbers that are counts have no `show`: their bins have labels such as `3 - 4`, for [3, 5)."""
        self.edges, self.show, self.is_whole = tuple(edges), show or "{:,g}".format, show is None
        self.counts = np.zeros(len(edges), np.int64)
        self.total = 0.0

    def add(self, values: np.ndarray) -> None:
        self.counts += np.histogram(values, [*self.edges, np.inf])[0]
        self.total += float(values.sum(dtype=np.float64))

    @property
    def mean(self) -> float | None:
        count = int(self.counts.sum())
        return self.total / count if count else None

    def rows(self) -> list[tuple[str, int]]:
        """Label and count of each bin up to the last one that has any."""
        used = int(np.flatnonzero(self.counts)[-1]) + 1 if self.counts.any() else 0
        ends = [*self.edges[1:], None]
        return [(self._label(*pair), count) for pair, count in zip(zip(self.edges, ends), self.counts[:used].tolist())]

    def _label(self, begin: float, end: float | None) -> str:
        if end is None:
            return f"\N{GREATER-THAN OR EQUAL TO} {self.show(begin)}"
        last = end - 1 if self.is_whole else end
        return self.show(begin) if end == begin + 1 else f"{self.show(begin)} \N{EN DASH} {self.show(last)}"


class Tally:
    """How often each word occurs. Of very many words the rarest are counted together, under OTHERS."""

    def __init__(self):
        self._counts: Counter[str] = Counter()
        self._others = 0

    def add(self, words: pa.Array | pa.ChunkedArray) -> None:
        for pair in words.value_counts():
            self.count(pair["values"].as_py(), pair["counts"].as_py())

    def count(self, word: str, times: int) -> None:
        self._counts[word] += times
        if len(self._counts) > 2 * WORDS_MAX:
            kept = dict(self._counts.most_common(WORDS_MAX))
            self._others += self._counts.total() - sum(kept.values())
            self._counts = Counter(kept)

    def most_common(self, limit: int) -> list[tuple[str, int]]:
        """The most frequent words, ties by word; the rest as one row."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], str(item[0])))
        rest = self._others + sum(times for _, times in ordered[limit:])
        return ordered[:limit] + ([(OTHERS, rest)] if rest else [])

    def total(self) -> int:
        return self._counts.total() + self._others
