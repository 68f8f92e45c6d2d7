"""Which positions of the log are kept: those whose every file that a crawl goes on from is still there."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from contract import names
from contract.aux_rows import may_hold
from contract.blocks import interval
from contract.crawl_folder import CrawlFolder
from contract.generation import read_generation_manifest
from contract.log import WITH_ROWS, Entry, State, read_entry
from storage.errors import Damaged, UnknownFormat
from storage.publish import read_json, read_manifest


class Position(NamedTuple):
    number: int  # of the last entry that counts
    entry: Entry | None  # none where it is void
    blocks: int
    lack: str  # what is not there any more; empty where the position is kept


def read_entries(crawl: Path) -> tuple[list[Entry], Damaged | UnknownFormat | None]:
    """The entries of the log up to the first that cannot be read, and what is wrong with that one."""
    entries: list[Entry] = []
    for number in names.numbered(crawl / names.LOG, ".json"):
        try:
            if number != len(entries):
                raise Damaged(
                    crawl / names.LOG / names.log_entry(len(entries)), f"expected an entry, found a gap up to {number}"
                )
            entries.append(read_entry(crawl, number))
        except (Damaged, UnknownFormat) as error:
            return entries, error
    return entries, None


def state_after(crawl: CrawlFolder, entries: list[Entry]) -> State:
    state = State(crawl.blocks_first)
    for entry in entries:
        state.apply(entry)
    return state


class Retention:
    """What of a crawl's generations and AUX is there; each manifest is read once."""

    def __init__(self, crawl: Path):
        self._crawl = crawl
        self._generations: dict[tuple[int, int], str] = {}
        self._aux: dict[int, dict | None] = {}

    def lack_of(self, state: State) -> str:
        """The first thing that the state needs and that is not there, as words; empty where all is."""
        live = [(block, number) for block in range(state.blocks) if (number := state.generation(block)) is not None]
        for block, number in live:
            if lack := self._lack_of_generation(block, number):
                return lack
        for path in self.pending(state):
            if not (self._crawl / path).exists():
                return f"{path} is gone"
        return ""

    def pending(self, state: State) -> Iterator[Path]:
        """The tables, by their path in the crawl folder, with rows that a block has not absorbed."""
        for block in range(state.blocks):
            low, high = interval(block, state.blocks)
            for entry in state.entries[state.seen.get(block, 0) :]:
                if entry is not None and entry.kind in WITH_ROWS and may_hold(self._summary(entry.cycle), low, high):
                    yield Path(names.cycle(entry.cycle)) / names.VERIFIER / entry.rows_file

    def _summary(self, cycle: int) -> dict | None:
        if cycle not in self._aux:
            self._aux[cycle] = read_manifest(self._crawl / names.cycle(cycle) / names.VERIFIER).get("aux")
        return self._aux[cycle]

    def _lack_of_generation(self, block: int, number: int) -> str:
        if (block, number) not in self._generations:
            self._generations[block, number] = self._look_at_generation(Path(names.generation(block, number)))
        return self._generations[block, number]

    def _look_at_generation(self, place: Path) -> str:
        try:
            manifest = read_generation_manifest(self._crawl / place)
        except FileNotFoundError:
            return f"generation {place} is gone"
        except Damaged as error:
            return str(error)
        files = [
            *(place / name for name in manifest["files"]),
            *(Path(names.TEXT) / name for name in manifest["texts"]),
        ]
        missing = [path for path in files if not (self._crawl / path).exists()]
        return f"{missing[0]} is missing (see bin/status)" if missing else ""


def look_at_positions(crawl: CrawlFolder, entries: list[Entry]) -> Iterator[Position]:
    retention = Retention(crawl.path)
    state = State(crawl.blocks_first)
    for number, entry in enumerate(entries):
        counts = state.apply(entry)
        try:
            lack = retention.lack_of(state)
        except (FileNotFoundError, Damaged) as error:  # the manifest of an AUX
            lack = str(error)
        yield Position(number, entry if counts else None, state.blocks, lack)


def planned_at_ms(crawl: Path, cycle: int) -> int | None:
    """When the cycle was planned; none where its plan cannot be read."""
    try:
        return int(read_json(crawl / names.cycle(cycle) / names.PLAN)["now_ms"])
    except (OSError, Damaged, UnknownFormat, KeyError, TypeError, ValueError):
        return None
