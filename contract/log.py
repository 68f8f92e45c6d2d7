"""The log: one small file per commit, the only truth about which generation of a block is live.

An entry is void if its cycle has an entry already, or if a parent generation that it names is not live at its
position. Readers skip a void entry and its AUX.

`State` is what the log says up to a position, in bounded form: it does not grow with the number of commits.
`contract/log_summary.py` reads it without replaying the whole log. `History` has all entries too; `replay` makes it,
for tools that need the past.
"""

import errno
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from contract import names
from contract.closed_cycles import ClosedCycles
from contract.totals import Totals
from contract.units import count
from storage.errors import Damaged
from storage.publish import FORMAT, encode_json, put_if_absent, read_json, sync_folder

# Names of files of inbox/ that were taken in. Each was deleted, durably, before the next one was taken in: an older
# name that appears again is a new file.
INBOX_NAMES_MAX = 1_000
# A gap is looked for at these distances behind the end of the log.
AHEAD = (*range(1, 9), *(1 << bit for bit in range(4, 17)))
CRAWL, ABSORB, SEED, GROW, ABANDON, RECONSIDER = "crawl", "absorb", "seed", "grow", "abandon", "reconsider"
FORGET = "forget"


@dataclass(frozen=True)
class Kind:
    """The properties of a kind of log entry, and of the plan and the cycle that it commits."""

    stages: tuple[str, ...] = ()  # that its cycle runs, in order
    table: str = ""  # file below the verifier's folder with rows that blocks absorb
    from_inbox: bool = False  # its cycle takes in a file of inbox/, which an operator left there
    merges: bool = False  # the verifier merges tables into the block: one new generation, and a table of refused URLs
    splits: bool = False  # the verifier splits the block: two new generations, and N grows by one
    forgets: bool = False  # the verifier removes rows of the block: one new generation, and a table of what it removed
    is_turn: bool = False  # the block has had its turn, even if nothing came of it

    @property
    def fetches(self) -> bool:
        """Whether its cycle has a list of URLs, pages and the extractor's tables."""
        return names.FETCHER in self.stages

    @property
    def has_aux(self) -> bool:
        return self.table == names.AUX


# The one table of kinds: the word on disk, and its properties. A new kind touches at most two files: this one, for its
# word and its line, and the module that does its work, such as contract/inbox.py (READERS) for one that takes in a file
# of inbox/. All other code asks for a property, as in KINDS[entry.kind].fetches. docs/formats.md lists the words.
KINDS = {
    CRAWL: Kind(stages=names.STAGES, table=names.AUX, merges=True, is_turn=True),
    ABSORB: Kind(stages=(names.VERIFIER,), merges=True),
    SEED: Kind(table=names.AUX, from_inbox=True),
    GROW: Kind(stages=(names.VERIFIER,), splits=True),
    FORGET: Kind(stages=(names.VERIFIER,), forgets=True),
    ABANDON: Kind(is_turn=True),
    RECONSIDER: Kind(table=names.RECONSIDERED, from_inbox=True),
}


@dataclass(frozen=True)
class Entry:
    kind: str  # a key of KINDS
    cycle: int
    blocks: int  # N once this entry is in force
    parents: dict[int, int | None] = field(default_factory=dict)  # block -> generation that must be live
    generations: dict[int, int | None] = field(default_factory=dict)  # block -> generation that becomes live
    seen: int = 0  # the new generations have absorbed all entries before this position
    inbox: str = ""  # of a seed or reconsider entry: the file that it took in
    reason: str = ""  # of an abandon entry

    @property
    def rows_file(self) -> str:
        """The table of its cycle that blocks absorb, below the verifier's folder; empty where it has none."""
        return KINDS[self.kind].table

    @property
    def fetches(self) -> bool:
        return KINDS[self.kind].fetches


class Split(NamedTuple):
    """A generation that a `grow` entry split."""

    block: int
    generation: int
    upper: int  # the block that has its upper half
    cycle: int  # of the entry


@dataclass
class State:
    """What the log says, up to a position.

    Four fields remember only what may still matter, and the supervisor drops what does not: `generations` and `splits`
    (until deletion has removed the generation), `tables` (until every block has absorbed the table and deletion has
    removed it) and `unsettled` (until the folder of the cycle was looked through).
    """

    blocks: int
    length: int = 0
    live: dict[int, int | None] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    last_turn: dict[int, int] = field(default_factory=dict)  # block -> position of its last turn of the ring
    gave_up: set[int] = field(default_factory=set)  # blocks whose last turn was abandoned
    closed: ClosedCycles = field(default_factory=ClosedCycles)  # cycles that have an entry in force
    kinds: Counter[str] = field(default_factory=Counter)  # entries in force per kind
    inbox: dict[str, None] = field(default_factory=dict)  # the newest names that were taken in, oldest first
    generations: dict[int, list[int]] = field(default_factory=dict)  # block -> those committed, oldest first
    splits: list[Split] = field(default_factory=list)
    tables: list[tuple[int, Entry]] = field(default_factory=list)  # position and entry of those with a table
    unsettled: dict[int, bool] = field(default_factory=dict)  # closed cycle -> whether it was abandoned
    summed: Totals = field(default_factory=Totals)  # over the entries before those of `recent`
    recent: list[tuple[int, Entry]] = field(default_factory=list)  # entries in force that no summary has

    def generation(self, block: int) -> int | None:
        return self.live.get(block)

    def is_closed(self, cycle: int) -> bool:
        """Whether the cycle has an entry in force: it was committed or abandoned."""
        return cycle in self.closed

    def is_abandoned(self, cycle: int) -> bool:
        """Whether the cycle was abandoned; false for one that was settled since."""
        return self.unsettled.get(cycle, False)

    def tables_in(self, begin: int, end: int | None = None) -> Iterator[tuple[int, Entry]]:
        """Position and entry of the remembered entries at positions [begin, end) that have a table."""
        for position, entry in self.tables[bisect_left(self.tables, begin, key=lambda table: table[0]) :]:
            if end is not None and position >= end:
                return
            yield position, entry

    def apply(self, entry: Entry) -> bool:
        """Takes the next entry; false where it is void."""
        kind, position = KINDS[entry.kind], self.length
        self.length += 1
        stale = any(self.live.get(block) != parent for block, parent in entry.parents.items())
        if entry.cycle in self.closed or stale:
            return False
        self.closed.add(entry.cycle)
        self.kinds[entry.kind] += 1
        self.unsettled[entry.cycle] = entry.kind == ABANDON
        self.recent.append((position, entry))
        self.blocks = entry.blocks if kind.splits else self.blocks
        for block, generation in entry.generations.items():
            self.live[block] = generation
            self.seen[block] = entry.seen
            if generation is not None:
                self.generations.setdefault(block, []).append(generation)
        if kind.splits:
            parents = [(block, parent) for block, parent in entry.parents.items() if parent is not None]
            self.splits += [Split(block, parent, entry.blocks - 1, entry.cycle) for block, parent in parents]
        if kind.is_turn:
            self.last_turn.update(dict.fromkeys(entry.parents, position))
            if entry.kind == ABANDON:
                self.gave_up.update(entry.parents)
            else:
                self.gave_up.difference_update(entry.parents)
        if kind.table:
            self.tables.append((position, entry))
        if entry.inbox:
            self.inbox.pop(entry.inbox, None)
            self.inbox[entry.inbox] = None
            if len(self.inbox) > INBOX_NAMES_MAX:
                del self.inbox[next(iter(self.inbox))]
        return True


@dataclass
class History(State):
    """What the log says up to a position, with all its entries."""

    cycles: dict[int, int] = field(default_factory=dict)  # cycle -> position of the entry in force
    entries: list[Entry | None] = field(default_factory=list)  # None where void

    def is_abandoned(self, cycle: int) -> bool:
        position = self.cycles.get(cycle)
        entry = self.entries[position] if position is not None else None
        return entry is not None and entry.kind == ABANDON

    def apply(self, entry: Entry) -> bool:
        in_force = super().apply(entry)
        self.entries.append(entry if in_force else None)
        if in_force:
            self.cycles[entry.cycle] = self.length - 1
        return in_force


def replay(crawl: Path, blocks_first: int, length: int | None = None) -> History:
    """The whole log: the state after the first `length` entries (default: all). Takes 50 us per entry, and lists log/.

    `contract.log_summary.read_log` has the state alone, at once.
    """
    history = History(blocks_first)
    for position in positions(crawl)[:length]:
        history.apply(read_entry(crawl, position))
    return history


def positions(crawl: Path) -> list[int]:
    """The positions of all entries, by listing the log; Damaged where it has a gap."""
    found = names.numbered(crawl / names.LOG, ".json")
    for expected, position in enumerate(found):
        if position != expected:
            raise gap(crawl, expected, position)
    return found


def gap(crawl: Path, expected: int, position: int) -> Damaged:
    return Damaged(crawl / names.LOG / names.log_entry(expected), f"expected an entry, found a gap up to {position}")


def find_end(crawl: Path, known: int = 0) -> int:
    """The length of the log, found by probing, without listing it; it is known to have this length at least.

    Damaged where an entry follows a gap at one of the distances AHEAD. A gap below `known` is not seen here.
    """
    folder = str(crawl / names.LOG)

    def has(position: int) -> bool:
        return os.path.lexists(f"{folder}/{names.log_entry(position)}")

    while True:
        end, step = known, 1
        while has(end + step - 1):  # ever larger steps, then halves
            end, step = end + step, 2 * step
        while step > 1:
            step //= 2
            if has(end + step - 1):
                end += step
        ahead = next((end + distance for distance in AHEAD if has(end + distance)), None)
        if ahead is None:
            return end
        if not has(end):  # else it was added while we looked
            raise gap(crawl, end, ahead)
        known = end


def read_entry(crawl: Path, position: int) -> Entry:
    path = crawl / names.LOG / names.log_entry(position)
    value = read_json(path)
    try:
        return decode_entry(value)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise Damaged(path, f"expected an entry of the log, found {error!r}") from None


def decode_entry(value: dict[str, Any]) -> Entry:
    """An entry from the fields of its file; KeyError, ValueError, TypeError or AttributeError where it is none."""
    entry = Entry(
        kind=read_kind(value["kind"]),
        cycle=int(value["cycle"]),
        blocks=int(value["blocks"]),
        parents=by_block(value["parents"]),
        generations=by_block(value["generations"]),
        seen=int(value["seen"]),
        inbox=str(value["inbox"]),
        reason=str(value["reason"]),
    )
    numbers = [
        entry.cycle,
        entry.seen,
        entry.blocks - 1,
        *entry.parents,
        *entry.generations,
        *entry.parents.values(),
        *entry.generations.values(),
    ]
    if any(number is not None and not 0 <= number < names.NUMBER_END for number in numbers):
        raise ValueError("a number out of range")
    return entry


def describe_commits(commits: int, kinds: Mapping[str, int]) -> str:
    """`34 commits (25 crawl, 6 absorb, 1 seed, 2 grow)`: the same words wherever commits are counted."""
    by_kind = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds.get(kind))
    return count(commits, "commit") + (f" ({by_kind})" if by_kind else "")


def read_kind(word: object) -> str:
    """The word itself; ValueError where it is the word of no kind."""
    if not isinstance(word, str) or word not in KINDS:
        raise ValueError(f"{word!r} as the kind of an entry")
    return word


def commit(crawl: Path, entry: Entry, known: int = 0) -> int:
    """Adds the entry at the end of the log, durably; returns its position. `known`: a length that the log has."""
    folder = crawl / names.LOG
    content = encode_json({"format": FORMAT, **vars(entry)})
    position = known
    while True:
        position = find_end(crawl, position)
        sync_folder(folder)  # after looking: all entries before this one must be durable before it is
        if put_entry(crawl, folder / names.log_entry(position), content):
            return position


def put_entry(crawl: Path, path: Path, content: bytes) -> bool:
    """As put_if_absent. Written aside in the crawl folder, where start-up finds leftovers without listing log/."""
    try:
        return put_if_absent(path, content, crawl)
    except OSError as error:
        if error.errno != errno.EXDEV:  # log/ may be a link to another disk
            raise
        return put_if_absent(path, content)


def by_block(table: dict[str, Any]) -> dict[int, int | None]:
    return {int(block): None if generation is None else int(generation) for block, generation in table.items()}
