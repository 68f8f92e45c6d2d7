"""What the supervisor knows about a crawl: the state of its log, and its manifests, each read once."""

import time
from pathlib import Path

from contract import names
from contract.crawl_folder import CrawlFolder, set_aside
from contract.generation import read_generation_manifest
from contract.log import KINDS, Entry, State, positions, read_entry, replay
from contract.pending import find_pending, live_absorber
from contract.plan import open_cycles
from storage.errors import Damaged
from storage.publish import read_manifest
from supervise.turns import BlockView


class CrawlState:
    """A crawl as this run sees it; refresh() after each commit."""

    def __init__(self, crawl: CrawlFolder):
        self.crawl = crawl
        self.log: State = replay(crawl.path, crawl.blocks_first)
        self.stopped: set[int] = set()  # blocks that this run leaves alone: a damaged file or a dying stage
        self.damage: list[str] = []  # messages about damaged files that this run found
        self.aux_kept_from = 0  # position before which all AUX is deleted, but for that of seeds
        self._figures: dict[tuple[int, int], dict] = {}
        self._aux: dict[int, dict] = {}  # cycle -> summary of its AUX

    @property
    def path(self) -> Path:
        return self.crawl.path

    def refresh(self) -> None:
        for position in positions(self.path)[self.log.length :]:
            self.log.apply(read_entry(self.path, position))

    def open_cycles(self) -> list[int]:
        return open_cycles(self.path, self.log)

    def next_cycle(self) -> int:
        """The id for the next plan. No id is used twice: every plan leaves a folder or an entry in the log."""
        return max([-1, *names.numbered(self.path / names.CYCLES), *self.log.cycles]) + 1

    def figures(self, block: int) -> dict:
        """The manifest of the block's live generation; empty where it has none."""
        generation = self.log.generation(block)
        if generation is None:
            return {}
        if (block, generation) not in self._figures:
            folder = self.path / names.generation(block, generation)
            try:
                self._figures[block, generation] = read_generation_manifest(folder)
            except FileNotFoundError:
                raise Damaged(
                    folder / names.MANIFEST, "expected the manifest of a live generation, found none"
                ) from None
        return self._figures[block, generation]

    def aux(self, entry: Entry) -> dict | None:
        """The summary of the table that an entry's cycle has for blocks; none where its kind has none."""
        if KINDS[entry.kind].table and entry.cycle not in self._aux:
            folder = self.path / names.cycle(entry.cycle) / names.VERIFIER
            try:
                self._aux[entry.cycle] = read_manifest(folder)["aux"]
            except FileNotFoundError:
                raise Damaged(
                    folder / names.MANIFEST, "expected the manifest of a committed cycle, found none"
                ) from None
        return self._aux.get(entry.cycle)

    def is_pending(self, block: int) -> bool:
        return any(True for _ in find_pending(self.log, live_absorber(self.log, block), self.aux))

    def _was_abandoned(self, block: int) -> bool:
        position = self.log.last_turn.get(block)
        entry = self.log.entries[position] if position is not None else None
        return entry is not None and self.log.is_abandoned(entry.cycle)

    def views(self, held: set[int] = frozenset()) -> list[BlockView]:
        names_of_figures = (
            "known",
            "waiting",
            "earliest_due_ms",
            "servers",
            "largest_domain_known",
            "largest_domain_servers",
        )
        views = []
        for block in range(self.log.blocks):
            figures = {}
            try:
                figures = self.figures(block)
            except Damaged as error:
                set_aside(self.path, Path(error.path), str(error))
                if block not in self.stopped:
                    self.damage.append(f"{error}: block {block} waits for a repair, see bin/status --crawl {self.path}")
                self.stopped.add(block)
            views.append(
                BlockView(
                    block=block,
                    last_turn=self.log.last_turn.get(block, -1),
                    pending=self.is_pending(block),
                    free=block not in self.stopped and block not in held,
                    was_abandoned=self._was_abandoned(block),
                    **{name: figures[name] for name in names_of_figures if name in figures},
                )
            )
        return views


def now_ms() -> int:
    return time.time_ns() // 1_000_000
