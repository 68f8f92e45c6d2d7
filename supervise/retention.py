"""Which positions of the log are kept: those for which every file that a crawl needs to continue is still there."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.generation import read_generation_manifest
from contract.log import Entry, History, State, read_entry
from contract.pending import find_pending, live_absorber
from storage.errors import Damaged, UnknownFormat
from storage.publish import read_json, read_manifest


class Position(NamedTuple):
    number: int  # of the last entry that counts
    entry: Entry | None  # none where it is void
    blocks: int
    lack: str  # the first file that is gone, as words; empty where the position is kept


def read_entries(crawl: Path) -> tuple[list[Entry], Damaged | UnknownFormat | None]:
    """The entries of the log up to the first unreadable one, and what is wrong with that one."""
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


def state_after(crawl: CrawlFolder, entries: list[Entry]) -> History:
    state = History(crawl.blocks_first)
    for entry in entries:
        state.apply(entry)
    return state


class Retention:
    """Which generations and AUX of a crawl still exist; each manifest is read once."""

    def __init__(self, crawl: Path):
        self._crawl = crawl
        self._generations: dict[tuple[int, int], str] = {}
        self._aux: dict[int, dict | None] = {}

    def lack_of(self, state: State) -> str:
        """The first file that the state needs and that is gone, as words; empty where all exist."""
        live = [(block, number) for block in range(state.blocks) if (number := state.generation(block)) is not None]
        for block, number in live:
            if lack := self._lack_of_generation(block, number):
                return lack
        for path in self.pending(state):
            if not (self._crawl / path).exists():
                return f"{path} is gone"
        return ""

    def pending(self, state: State) -> Iterator[Path]:
        """The tables that wait for a block, by their path in the crawl folder."""
        for block in range(state.blocks):
            for entry, _ in find_pending(state, live_absorber(state, block), self._summary):
                yield Path(names.cycle(entry.cycle)) / names.VERIFIER / entry.rows_file

    def _summary(self, entry: Entry) -> dict | None:
        if entry.cycle not in self._aux:
            folder = self._crawl / names.cycle(entry.cycle) / names.VERIFIER
            self._aux[entry.cycle] = read_manifest(folder).get("aux")
        return self._aux[entry.cycle]

    def _lack_of_generation(self, block: int, number: int) -> str:
        if (block, number) not in self._generations:
            self._generations[block, number] = self._look_at_generation(Path(names.generation(block, number)))
        return self._generations[block, number]

    def _look_at_generation(self, relative: Path) -> str:
        try:
            manifest = read_generation_manifest(self._crawl / relative)
        except FileNotFoundError:
            return f"generation {relative} is gone"
        except Damaged as error:
            return str(error)
        files = [
            *(relative / name for name in manifest["files"]),
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
