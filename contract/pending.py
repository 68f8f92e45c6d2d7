"""Which tables wait for a block: AUX, and decisions of operators, that a generation has not absorbed yet.

Readers route rows, not writers: a table waits for every block in whose interval of keys it may have rows, whatever N
was when it was written. Each block absorbs each entry exactly once.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from contract import names
from contract.aux_rows import mask_of, may_hold
from contract.blocks import interval
from contract.log import KINDS, Entry, Kind, State
from contract.tables import AUX, RECONSIDERED
from storage.publish import is_published, read_manifest

SCHEMAS = {names.AUX: AUX, names.RECONSIDERED: RECONSIDERED}  # by the file name, which is `Kind.table`


class Absorber(NamedTuple):
    """What decides which tables wait for a generation of a block."""

    low: int  # its keys are [low, high)
    high: int
    seen: int = 0  # it has absorbed all entries before this position

    def lacks(self, position: int, summary: dict[str, Any] | None) -> bool:
        """Whether the table of the entry at this position may have rows for it that it has not absorbed."""
        return position >= self.seen and may_hold(summary, self.low, self.high)


def absorber(block: int, blocks: int, seen: int = 0) -> Absorber:
    return Absorber(*interval(block, blocks), seen)


def live_absorber(log: State, block: int) -> Absorber:
    """The block as it is at the end of the log."""
    return absorber(block, log.blocks, log.seen.get(block, 0))


def has_table(kind: Kind) -> bool:
    return bool(kind.table)


def entries_with_table(
    log: State, begin: int, end: int | None = None, wanted: Callable[[Kind], bool] = has_table
) -> Iterator[tuple[int, Entry]]:
    """Position and entry of the entries in force at positions [begin, end) that have a table of a wanted kind.

    A state from a summary has forgotten those that no live generation lacks. `replay` has them all.
    """
    for position, entry in log.tables_in(begin, end):
        if wanted(KINDS[entry.kind]):
            yield position, entry


def find_pending(
    log: State,
    absorber: Absorber,
    read_summary: Callable[[Entry], dict[str, Any] | None],
    end: int | None = None,
    wanted: Callable[[Kind], bool] = has_table,
) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """The entries before position `end` whose table waits for the absorber, each with the summary of its table.

    `read_summary` gives what the manifest of an entry's cycle has under `aux`; none where the cycle has no such table.
    """
    for position, entry in entries_with_table(log, absorber.seen, end, wanted):
        summary = read_summary(entry)
        if summary is not None and absorber.lacks(position, summary):
            yield entry, summary


def find_lacking(tables: Sequence[tuple[int, int]], absorbers: Sequence[Absorber]) -> list[bool]:
    """For each absorber, whether it lacks one of the tables, each given by its position, rising, and `bits_of` it.

    Linear in both numbers: an absorber is compared with the union of all tables from the position on that it has seen.
    """
    positions = [position for position, _ in tables]
    from_here = [0] * (len(tables) + 1)
    for index in range(len(tables) - 1, -1, -1):
        from_here[index] = from_here[index + 1] | tables[index][1]
    return [bool(from_here[bisect_left(positions, one.seen)] & cached_mask(one.low, one.high)) for one in absorbers]


def find_lacked(tables: Sequence[tuple[int, int]], absorbers: Sequence[Absorber]) -> set[int]:
    """The positions of those tables that an absorber lacks; the other view of find_lacking(), and as quick."""
    rising, lacked = sorted(absorbers, key=lambda one: one.seen), set()
    union = index = 0
    for position, bits in tables:
        while index < len(rising) and rising[index].seen <= position:
            union |= cached_mask(rising[index].low, rising[index].high)
            index += 1
        if bits & union:
            lacked.add(position)
    return lacked


cached_mask = lru_cache(1 << 14)(mask_of)


def find_pending_aux(crawl: Path, log: State, block: int) -> Iterator[tuple[Entry, Path]]:
    """The AUX that wait for a block at the end of the log, whether or not the table is still there."""

    def read_summary(entry: Entry) -> dict[str, Any] | None:
        folder = crawl / names.cycle(entry.cycle) / names.VERIFIER
        return read_manifest(folder).get("aux") if is_published(folder) else None

    for entry, _ in find_pending(log, live_absorber(log, block), read_summary, wanted=lambda kind: kind.has_aux):
        yield entry, crawl / names.cycle(entry.cycle) / names.VERIFIER / entry.rows_file
