"""What the supervisor knows about a crawl: the state of its log, and the manifests that decide about turns.

It takes as long and as much memory in an old crawl as in a new one. The state comes from log_summary.json. Only the
manifests of live generations, and of tables that may wait for a block, are read, each once.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from contract import names
from contract.aux_rows import bits_of
from contract.crawl_folder import CrawlFolder, set_aside
from contract.generation import read_generation_manifest
from contract.log import KINDS, Entry, State, find_end, read_entry
from contract.log_summary import read_summary, write_summary
from contract.pending import Absorber, find_lacked, find_lacking, live_absorber
from contract.plan import is_lost, open_cycles, unclosed_folders
from contract.totals import read_totals
from storage.errors import Damaged, UnknownFormat
from storage.publish import read_manifest
from supervise.turns import BlockView

SUMMARY_EVERY = 50  # commits: a reader replays fewer, in less than 3 ms
TABLES_MAX = 20_000  # a summary with more would cost its readers more than it saves; the next deletion has fewer
RECENT_MAX = 1_000  # entries in memory whose counts are not added up, while a long log is replayed
FIGURES = (
    *("known", "waiting", "earliest_due_ms", "revisit_due_ms", "servers"),
    *("forget_due_ms", "forget_until_ms"),
    *("largest_domain_known", "largest_domain_servers"),
)


class Kept(NamedTuple):
    """A generation that deletion keeps, and what it needs."""

    number: int
    blocks: int  # N when it was made
    seen: int
    texts: frozenset[str]  # names of segments


@dataclass(frozen=True)
class Deleted:
    """What one deletion found and removed (`supervise/deletion.py`)."""

    length: int  # of the log, at its snapshot
    generations: dict[int, tuple[int, ...]]  # block -> generations that were looked at
    kept: dict[int, tuple[Kept, ...]]  # block -> those of them that are kept
    tables: frozenset[int]  # positions of entries whose AUX is gone
    settled: frozenset[int]  # cycles whose folder was looked through


class CrawlState:
    """A crawl as this run sees it; refresh() after each commit. Used by one thread only, that of the ring."""

    def __init__(self, crawl: CrawlFolder):
        self.crawl = crawl
        self.wanted: dict | None = None  # what blocks are to be prepared for (contract.policies); none: anything
        self.tried: set[int] = set()  # blocks that this run has given a turn to prepare them
        self.stopped: set[int] = set()  # blocks that this run leaves alone: a damaged file or a dying stage
        self.damage: list[str] = []  # messages about damaged files that this run found
        self.kept: dict[int, tuple[Kept, ...]] = {}  # by block, as the last deletion left them
        self._figures: dict[int, tuple[int, dict]] = {}  # block -> live generation and its manifest
        self._bits: dict[int, int] = {}  # position of a table -> key prefixes of its rows
        self._views: dict[int, tuple[tuple, BlockView]] = {}
        self._pending: tuple[int, list[bool]] = (-1, [])  # log length, and whether tables wait for each block then
        found = read_summary(crawl)
        self.log: State = found or State(crawl.blocks_first)
        self._summary_at = self.log.length if found else -1
        self.changed: dict[int, int] = {}  # block -> log length at the last change of its generations
        self._is_trimmed = False  # a deletion has let the state forget something that the summary still has
        self._follow()
        # There was no summary: start-up looks through the whole crawl folder.
        self.is_rebuilt = found is None and self.log.length > 0
        self.changed = dict.fromkeys(range(self.log.blocks), self.log.length)  # all, for the first deletion
        folders = unclosed_folders(self.path, self.log, whole=self.is_rebuilt)
        self._cycle_end = max([self.log.closed.end, *(cycle + 1 for cycle in folders)])

    @property
    def path(self) -> Path:
        return self.crawl.path

    def refresh(self) -> None:
        """Takes in what was committed since, by any process. Every SUMMARY_EVERY commits it writes the summary."""
        self._follow()
        is_long = self.is_rebuilt and not self.kept  # before its first deletion, a summary would have all tables
        if self.log.length - max(self._summary_at, 0) >= SUMMARY_EVERY and not is_long:
            self.write_summary()

    def _follow(self) -> None:
        for position in range(self.log.length, find_end(self.path, self.log.length)):
            entry = read_entry(self.path, position)
            if self.log.apply(entry):
                self.changed.update(dict.fromkeys((*entry.parents, *entry.generations), self.log.length))
            if len(self.log.recent) >= RECENT_MAX:
                self._sum_up()

    def write_summary(self) -> None:
        """Writes log_summary.json if it is behind the state; to be called at the end of a run, too."""
        if (self._summary_at == self.log.length and not self._is_trimmed) or len(self.log.tables) > TABLES_MAX:
            return
        self._forget_absorbed()
        self._sum_up()
        write_summary(self.crawl, self.log)
        self._summary_at, self._is_trimmed = self.log.length, False

    def _sum_up(self) -> None:
        self.log.summed = read_totals(self.path, self.log)
        self.log.recent = []

    def _forget_absorbed(self) -> None:
        """Forgets tables of seeds and decisions that no block lacks. Those of other cycles go with their AUX."""
        try:
            lacked = find_lacked(self._waiting(), self._absorbers())
        except (Damaged, UnknownFormat):
            return  # views() will report it
        self._forget_tables(
            position for position, entry in self.log.tables if KINDS[entry.kind].from_inbox and position not in lacked
        )

    def _forget_tables(self, positions: Iterable[int]) -> None:
        gone = frozenset(positions)
        self.log.tables = [table for table in self.log.tables if table[0] not in gone]
        remembered = {position for position, _ in self.log.tables}
        self._bits = {position: bits for position, bits in self._bits.items() if position in remembered}

    def note_deleted(self, deleted: Deleted) -> None:
        """Takes in what a deletion found; entries that were committed since its snapshot stay as they are."""
        self._is_trimmed = True
        self.kept.update(deleted.kept)
        self.kept = {block: kept for block, kept in self.kept.items() if block < self.log.blocks}
        for block, looked_at in deleted.generations.items():
            gone = set(looked_at).difference(one.number for one in deleted.kept[block])
            self.log.generations[block] = [one for one in self.log.generations.get(block, ()) if one not in gone]
            if self.changed.get(block, 0) <= deleted.length:
                self.changed.pop(block, None)
        left = self.log.generations
        self.log.splits = [split for split in self.log.splits if split.generation in left.get(split.block, ())]
        self._forget_tables(deleted.tables)
        for cycle in deleted.settled:
            self.log.unsettled.pop(cycle, None)

    def settle(self) -> None:
        """Forgets which cycles are to be looked through: start-up has done so."""
        self.log.unsettled = {
            cycle: True for cycle, was in self.log.unsettled.items() if was and is_lost(self.path, cycle)
        }

    def open_cycles(self) -> list[int]:
        return open_cycles(self.path, self.log)

    def next_cycle(self) -> int:
        """The id for the next plan. No id is used twice: every plan leaves a folder or an entry in the log."""
        folders = unclosed_folders(self.path, self.log)
        self._cycle_end = max([self._cycle_end, self.log.closed.end, *(cycle + 1 for cycle in folders)])
        return self._cycle_end

    def figures(self, block: int) -> dict:
        """The manifest of the block's live generation; empty where it has none."""
        generation = self.log.generation(block)
        if generation is None:
            return {}
        known = self._figures.get(block)
        if known is None or known[0] != generation:
            folder = self.path / names.generation(block, generation)
            try:
                known = self._figures[block] = generation, read_generation_manifest(folder)
            except FileNotFoundError:
                raise Damaged(
                    folder / names.MANIFEST, "expected the manifest of a live generation, found none"
                ) from None
        return known[1]

    def bits(self, position: int, entry: Entry) -> int:
        """The key prefixes of the table that an entry's cycle has for blocks."""
        if position not in self._bits:
            self._bits[position] = bits_of(read_aux(self.path, entry))
        return self._bits[position]

    def known_bits(self, position: int) -> int | None:
        """The same, where its manifest was read already."""
        return self._bits.get(position)

    def _absorbers(self) -> list[Absorber]:
        return [live_absorber(self.log, block) for block in range(self.log.blocks)]

    def _waiting(self) -> list[tuple[int, int]]:
        """Position and key prefixes of the tables that a block has not seen."""
        least = min(self.log.seen.get(block, 0) for block in range(self.log.blocks))
        return [(position, self.bits(position, entry)) for position, entry in self.log.tables_in(least)]

    def is_pending(self, block: int) -> bool:
        """Whether a table waits for the block."""
        if self._pending[0] != self.log.length:
            self._pending = self.log.length, find_lacking(self._waiting(), self._absorbers())
        return self._pending[1][block]

    def is_prepared(self, block: int) -> bool:
        """Whether the block's live generation has what the configuration of this run needs."""
        figures = self.figures(block)
        return self.wanted is None or not figures.get("known") or figures.get("prepared") == self.wanted

    def views(self, held: set[int] = frozenset()) -> list[BlockView]:
        """What decides about turns, block by block. Takes about 2 us per block where nothing has changed."""
        return [self._view(block, block not in held) for block in range(self.log.blocks)]

    def _view(self, block: int, is_free: bool) -> BlockView:
        figures = {}
        try:
            figures = self.figures(block)
        except Damaged as error:
            set_aside(self.path, Path(error.path), str(error))
            if block not in self.stopped:
                self.damage.append(f"{error}: block {block} waits for a repair, see bin/status --crawl {self.path}")
            self.stopped.add(block)
        is_free = is_free and block not in self.stopped
        last_turn, gave_up = self.log.last_turn.get(block, -1), block in self.log.gave_up
        # A turn that did not prepare it would not do so the second time: it is then listed as it is.
        is_prepared = not figures or block in self.tried or self.is_prepared(block)
        generation, is_pending = self.log.generation(block), self.is_pending(block)
        has_absorbed = self.log.seen.get(block, 0) > last_turn >= 0
        about = generation, bool(figures), last_turn, gave_up, is_free, is_pending, is_prepared
        if block not in self._views or self._views[block][0] != about:
            self._views[block] = (
                about,
                BlockView(
                    block=block,
                    last_turn=last_turn,
                    pending=is_pending,
                    has_absorbed=has_absorbed,
                    free=is_free,
                    was_abandoned=gave_up,
                    is_prepared=is_prepared,
                    **{name: figures[name] for name in FIGURES if name in figures},
                ),
            )
        return self._views[block][1]


def read_aux(crawl: Path, entry: Entry) -> dict | None:
    """The summary of the table that an entry's cycle has for blocks; Damaged where its manifest is gone."""
    folder = crawl / names.cycle(entry.cycle) / names.VERIFIER
    try:
        return read_manifest(folder)["aux"]
    except FileNotFoundError:
        raise Damaged(folder / names.MANIFEST, "expected the manifest of a committed cycle, found none") from None


def now_ms() -> int:
    return time.time_ns() // 1_000_000
