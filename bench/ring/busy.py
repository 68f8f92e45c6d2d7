"""The share of time with a fetcher at work, from a journal; pure.

A crawl ends with a tail: the last lists are short, and the ring has nothing to put beside them. So the share counts
only until fewer URLs are left than one list holds. Left is what fetchers have yet to ask for in this run; one list
holds the mean of the lists of this run, because the configured maximum may be more than the whole crawl.

Where each list takes all that is known, fetchers must rest while pages are read. `idle_share` counts only the time in
which no fetcher works although URLs wait that no open list has.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import mean

from bench.ring.journal import Attempt
from contract import names
from examine.rates import Interval, union


def length_within(intervals: Iterable[Interval], window: Interval) -> int:
    """Milliseconds of the window that some of the intervals cover."""
    begin, end = window
    cut = [(max(begin, first), min(end, last)) for first, last in intervals if first < end and last > begin]
    return sum(last - first for first, last in union(cut))


def fetches_of(attempts: Iterable[Attempt]) -> list[Attempt]:
    return [attempt for attempt in attempts if attempt.stage == names.FETCHER]


def window_of(fetches: Sequence[Attempt]) -> Interval:
    """From the first fetcher's begin until fewer pages are left than one list holds."""
    left, one_list = sum(fetch.pages for fetch in fetches), mean(fetch.pages for fetch in fetches)
    begin = min(fetch.begin_ms for fetch in fetches)
    for fetch in sorted(fetches, key=lambda fetch: fetch.end_ms):
        left -= fetch.pages
        if left < one_list:
            return begin, fetch.end_ms
    return begin, max(fetch.end_ms for fetch in fetches)


def busy_share(attempts: Sequence[Attempt], window: Interval | None = None) -> float | None:
    """The share of the window with a fetcher at work; nothing where no fetcher ran."""
    if not (fetches := fetches_of(attempts)):
        return None
    begin, end = window or window_of(fetches)
    return length_within([(fetch.begin_ms, fetch.end_ms) for fetch in fetches], (begin, end)) / max(1, end - begin)


def waiting_times(attempts: Sequence[Attempt], waiting_after: dict[int, int]) -> list[Interval]:
    """When some URL waited that no open list had. `waiting_after`: cycle -> URLs that wait in its block at its end."""
    listed = {fetch.cycle: fetch.pages for fetch in fetches_of(attempts)}
    in_block: dict[int, int] = defaultdict(int)
    times: list[Interval] = []
    since_ms = None
    for attempt in sorted(attempts, key=lambda attempt: attempt.end_ms):
        if attempt.stage == names.VERIFIER and attempt.cycle in waiting_after:
            in_block[attempt.block] = waiting_after[attempt.cycle]
        elif attempt.stage == names.SCHEDULER:
            in_block[attempt.block] -= listed.get(attempt.cycle, 0)
        waits = any(count > 0 for count in in_block.values())
        if waits and since_ms is None:
            since_ms = attempt.end_ms
        elif not waits and since_ms is not None:
            times.append((since_ms, attempt.end_ms))
            since_ms = None
    return times


def idle_share(
    attempts: Sequence[Attempt], waiting_after: dict[int, int], window: Interval | None = None
) -> float | None:
    """The share of the window in which URLs waited and no fetcher worked."""
    if not (fetches := fetches_of(attempts)):
        return None
    begin, end = window or window_of(fetches)
    waiting = [(max(begin, first), min(end, last)) for first, last in waiting_times(attempts, waiting_after)]
    at_work = [(fetch.begin_ms, fetch.end_ms) for fetch in fetches]
    idle_ms = sum(last - first - length_within(at_work, (first, last)) for first, last in waiting if first < last)
    return idle_ms / max(1, end - begin)
