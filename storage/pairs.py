"""Two u64 columns sorted by both, searched by pairs of keys; a pair as one number is the first key times 2^64 plus the second.

Numpy searches numbers of 64 bits only. But rows with the same first key are a run, and the number of its run with the top bits of
the second key behind it is such a number: in the same order, and telling nearly all pairs apart. One search finds those; the few
that begin alike are searched for again, by halving what is left of their runs.
"""

import numpy as np

from storage.arrays import search_runs, starts_of_runs

KEY_END = 1 << 64
PAIR_END = 1 << 128
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)


class Runs:
    """Rows in runs: `firsts` (u64, rising, each once), where each run starts (and, one place more, where the last ends), and second keys, rising in each run."""

    def __init__(self, firsts: np.ndarray, starts: np.ndarray, second: np.ndarray):
        self._firsts, self._starts, self._second = firsts, starts.astype(np.int64), second
        self._run_bits = max(len(firsts).bit_length(), 1)  # one number more than there are runs
        self._heads = self._join(second, np.arange(len(firsts)), np.diff(self._starts))

    def _join(self, second: np.ndarray, runs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        heads = second >> np.uint64(self._run_bits)
        heads |= np.repeat(runs.astype(np.uint64) << np.uint64(64 - self._run_bits), lengths)
        return heads

    def search(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each pair (u64, any order) the first row that is not below it, i64, and whether that row is the pair; quickest where pairs are sorted."""
        starts = starts_of_runs(first)
        lengths = np.diff(np.append(starts, len(first)))
        distinct = first[starts]
        run = np.searchsorted(self._firsts, distinct)
        heads = self._join(second, run, lengths)
        place = np.searchsorted(self._heads, heads)
        is_run = run < len(self._firsts)
        is_run[is_run] = self._firsts[run[is_run]] == distinct[is_run]
        if not is_run.all():
            lacking = np.flatnonzero(np.repeat(~is_run, lengths))
            place[lacking] = np.repeat(self._starts[run[~is_run]], lengths[~is_run])
        if not len(self._second):
            return place, np.zeros(len(place), bool)
        inside = np.minimum(place, len(self._second) - 1)
        there = self._second[inside] == second
        begins_alike = self._heads[inside] == heads
        if not is_run.all():
            begins_alike[lacking] = False
        doubtful = np.flatnonzero(begins_alike & ~there)
        there &= begins_alike
        if len(doubtful):
            owner = run[np.searchsorted(starts, doubtful, "right") - 1]
            end = self._starts[owner + 1]
            place[doubtful] = found = search_runs(second[doubtful], place[doubtful], end, self._second)
            there[doubtful] = (found < end) & (self._second[np.minimum(found, len(self._second) - 1)] == second[doubtful])
        return place, there


def sort_pairs(first: np.ndarray, second: np.ndarray, shared_bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The order of rows by two u64 columns, and both in that order; the top `shared_bits` of the first are the same in all rows.

    Rows come as some sorted runs behind each other. The halves of both keys in one number nearly give the order, and runs are cheap to
    merge by it; where they do not, because two keys begin alike, the rows of that half of a first key are put right.
    """
    halves = (first << np.uint64(shared_bits)) & ~_LOW_HALF | second >> _HALF
    order = np.argsort(halves, kind="stable")
    majors, minors = first[order], second[order]
    is_wrong = (majors[1:] < majors[:-1]) | ((majors[1:] == majors[:-1]) & (minors[1:] < minors[:-1]))
    if is_wrong.any():
        starts = halves[order] >> _HALF
        for start in np.unique(starts[np.flatnonzero(is_wrong)]):
            low, high = np.searchsorted(starts, start, "left"), np.searchsorted(starts, start, "right")
            rows = order[low:high]
            order[low:high] = rows = rows[np.lexsort((second[rows], first[rows]))]
            majors[low:high], minors[low:high] = first[rows], second[rows]
    return order, majors, minors


def find_pair(first: np.ndarray, second: np.ndarray, pair: int) -> int:
    """How many rows of two columns (u64, sorted by both) lie before a pair."""
    if pair >= PAIR_END:
        return len(first)
    major, minor = divmod(pair, KEY_END)
    low, high = np.searchsorted(first, np.uint64(major), "left"), np.searchsorted(first, np.uint64(major), "right")
    return int(low + np.searchsorted(second[low:high], np.uint64(minor)))


def find_pairs(first: np.ndarray, second: np.ndarray, in_first: np.ndarray, in_second: np.ndarray) -> np.ndarray:
    """Place of each pair (first, second) in two columns (u64, sorted by both, each pair once); -1 where it is not there."""
    starts = starts_of_runs(in_first)
    place, there = Runs(in_first[starts], np.append(starts, len(in_first)), in_second).search(first, second)
    return np.where(there, place, -1)
