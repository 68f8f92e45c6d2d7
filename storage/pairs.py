"""Two u64 columns, sorted and searched by pairs of keys; as a number, a pair is first * 2^64 + second."""

import numpy as np
import numpy.typing as npt

from storage.arrays import Array, Keys, Rows, starts_of_runs
from storage.compiled import compiled

KEY_END = 1 << 64
PAIR_END = 1 << 128
RUN_LEAST = 16  # rows; shorter runs are made this long by insertion
PLAIN_SORTED, PLAIN_SEARCHED = 1 << 20, 1 << 21  # rows that numpy sorts or searches in the time of importing numba


class Runs:
    """Rows in runs of one first key.

    Given are the first keys (u64, rising, each once), the row that each run starts at, with the end as one value more,
    and the second keys, which rise within each run.
    """

    def __init__(self, firsts: Keys, starts: Rows, second: Keys):
        self._columns = (
            np.ascontiguousarray(firsts),
            np.ascontiguousarray(starts, np.int64),
            np.ascontiguousarray(second),
        )

    def search(self, first: Keys, second: Keys) -> tuple[Rows, npt.NDArray[np.bool_]]:
        """For each pair (u64, any order) the first row that is not below it, i64, and whether that row is the pair.

        Quickest where pairs are sorted.
        """
        if not search_runs.pays(len(first)):
            return halve_runs(*self._columns, first, second)
        row, there = np.empty(len(first), np.int64), np.empty(len(first), np.uint8)
        search_runs(*self._columns, np.ascontiguousarray(first), np.ascontiguousarray(second), row, there)
        return row, there.view(bool)


def sort_pairs(first: Keys, second: Keys) -> tuple[npt.NDArray[np.int32], Keys, Keys]:
    """The order of rows (i32) by two u64 columns, stable, and both columns in that order. Overwrites the columns.

    Quickest where the rows are a few sorted runs, one behind the other.
    """
    if not merge_runs.pays(len(first)):
        order = np.lexsort((second, first)).astype(np.int32)
        return order, first[order], second[order]
    order = np.arange(len(first), dtype=np.int32)
    columns, spare = (first, second, order), (np.empty_like(first), np.empty_like(second), np.empty_like(order))
    ends = np.empty(len(first) // RUN_LEAST + 1, np.int64)
    runs = find_runs(*columns, ends)
    while runs > 1:
        runs = merge_runs(*columns, runs, *spare, ends)
        columns, spare = spare, columns
    majors, minors, order = columns
    return order, majors, minors


def find_pair(first: Keys, second: Keys, pair: int) -> int:
    """How many rows of two columns (u64, sorted by both) lie before a pair."""
    if pair >= PAIR_END:
        return len(first)
    major, minor = divmod(pair, KEY_END)
    low, high = np.searchsorted(first, np.uint64(major), "left"), np.searchsorted(first, np.uint64(major), "right")
    return int(low + np.searchsorted(second[low:high], np.uint64(minor)))


def find_pairs(first: Keys, second: Keys, in_first: Keys, in_second: Keys) -> Rows:
    """Row of each pair (first, second) in two columns (u64, sorted by both, each pair once); -1 where there is none."""
    starts = starts_of_runs(in_first)
    row, there = Runs(in_first[starts], np.append(starts, len(in_first)), in_second).search(first, second)
    return np.where(there, row, -1)


def starts_of_pairs(first: Keys, second: Keys) -> Rows:
    """The row that each group of equal pairs begins at; columns sorted by both."""
    begins = np.ones(len(first), bool)
    begins[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return np.flatnonzero(begins)


def halve_runs(
    firsts: Keys, starts: Rows, among: Keys, wanted_first: Keys, wanted_second: Keys
) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """What search_runs finds, by halving the bounds of all pairs at once."""
    run = np.searchsorted(firsts, wanted_first)
    is_run = run < len(firsts)
    is_run[is_run] = firsts[run[is_run]] == wanted_first[is_run]
    low, end = starts[run], starts[run + is_run]
    high = end.copy()
    while (searched := np.flatnonzero(low < high)).size:
        middle = low[searched] + high[searched] >> 1
        is_below = among[middle] < wanted_second[searched]
        low[searched[is_below]] = middle[is_below] + 1
        high[searched[~is_below]] = middle[~is_below]
    there = low < end
    there[there] = among[low[there]] == wanted_second[there]
    return low, there


@compiled("-> u8[] u8[] i4[] i8[]")
def find_runs(first: Array, second: Array, row: Array, ends: Array) -> int:
    """Sets where runs of rising rows end; runs shorter than RUN_LEAST are made that long. Returns their number."""
    rows, runs, start = len(first), 0, 0
    while start < rows:
        stop = start + 1
        while stop < rows and (
            first[stop] > first[stop - 1] or (first[stop] == first[stop - 1] and second[stop] >= second[stop - 1])
        ):
            stop += 1
        while stop < rows and stop - start < RUN_LEAST:
            major, minor, number, at = first[stop], second[stop], row[stop], stop
            while at > start and (first[at - 1] > major or (first[at - 1] == major and second[at - 1] > minor)):
                first[at], second[at], row[at] = first[at - 1], second[at - 1], row[at - 1]
                at -= 1
            first[at], second[at], row[at] = major, minor, number
            stop += 1
        ends[runs] = stop
        runs += 1
        start = stop
    return runs


@compiled("u8[] u8[] i4[] i8 -> u8[] u8[] i4[] i8[]", PLAIN_SORTED)
def merge_runs(
    first: Array, second: Array, row: Array, runs: int, to_first: Array, to_second: Array, to_row: Array, ends: Array
) -> int:
    """Merges runs two by two into other columns, and sets where they end there. Returns how many are left."""
    start = 0
    for run in range(0, runs, 2):
        middle = ends[run]
        stop = ends[run + 1] if run + 1 < runs else middle
        left, right, at = start, middle, start
        while left < middle and right < stop:  # without a branch that depends on keys, which no processor foresees
            is_right = (first[right] < first[left]) | ((first[right] == first[left]) & (second[right] < second[left]))
            source = right if is_right else left
            to_first[at], to_second[at], to_row[at] = first[source], second[source], row[source]
            right += is_right
            left += not is_right
            at += 1
        rest = left if left < middle else right
        for source in range(rest, rest + stop - at):
            to_first[at], to_second[at], to_row[at] = first[source], second[source], row[source]
            at += 1
        ends[run >> 1] = stop
        start = stop
    return runs + 1 >> 1


@compiled("u8[] i8[] u8[] u8[] u8[] -> i8[] u1[]", PLAIN_SEARCHED)
def search_runs(
    firsts: Array, starts: Array, among: Array, wanted_first: Array, wanted_second: Array, found: Array, there: Array
) -> int:
    """Searches from where the pair before was found, by steps that double, while pairs rise; else anew."""
    run, low, high = 0, 0, 0
    for number in range(len(wanted_first)):
        first, second = wanted_first[number], wanted_second[number]
        is_same = number > 0 and first == wanted_first[number - 1]
        if not is_same:
            if number > 0 and first < wanted_first[number - 1]:
                run = 0
            run = gallop(firsts, run, len(firsts), first)
            low = high = starts[run]
            if run < len(firsts) and firsts[run] == first:
                high = starts[run + 1]
        begin = found[number - 1] if is_same and second >= wanted_second[number - 1] else low
        found[number] = at = gallop(among, begin, high, second)
        there[number] = at < high and among[at] == second
    return 0


@compiled()
def gallop(values: Array, low: int, high: int, wanted: np.uint64) -> int:
    """The first index of values[low:high], which rise, whose value is not below `wanted`; `high` if there is none."""
    step = 1
    while low + step <= high and values[low + step - 1] < wanted:
        low += step
        step *= 2
    high = min(high, low + step - 1)
    while low < high:
        middle = low + high >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
