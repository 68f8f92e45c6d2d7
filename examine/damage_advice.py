"""Which command mends a damaged file of a crawl: what bin/status prints for each note in corrupt/."""

import shlex
from pathlib import Path

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.generation import is_whole, read_generation_manifest
from contract.log import State, replay
from storage.errors import Damaged


def advise(crawl: CrawlFolder, log: State, path: str) -> str:
    """The command to run for a file that was set aside; empty where the crawl continues without it."""
    parts, verifier = Path(path).parts, f"bin/verifier --crawl {shlex.quote(str(crawl.path))}"
    try:
        if parts[0] == names.GENERATIONS:
            cycle, block = int(Path(parts[2]).stem), block_in_need(crawl.path, log, Path(path))
            if block is None or can_repair(crawl, cycle):
                return f"{verifier} --cycle {cycle} --repair"
            return f"{verifier} --rebuild {block}"
        if parts[2:3] == (names.VERIFIER,):
            return f"{verifier} --cycle {int(parts[1])} --repair"
    except (ValueError, IndexError):
        pass  # not a note of ours
    return ""


def can_repair(crawl: CrawlFolder, cycle: int) -> bool:
    """Whether the generation that the cycle merged into is kept and whole; reads the whole log."""
    history = replay(crawl.path, crawl.blocks_first)
    position = history.cycles.get(cycle)
    parents = history.entries[position].parents if position is not None else {}
    return all(number is None or is_whole(crawl.path, block, number) for block, number in parents.items())


def block_in_need(crawl: Path, log: State, path: Path) -> int | None:
    """The block whose live generation has this file, or uses this segment of text; halves of a split share segments."""
    for block in range(log.blocks):
        number = log.generation(block)
        folder = Path(names.generation(block, number)) if number is not None else None
        if path.parent == folder:
            return block
        try:
            if (
                folder
                and path.parent == Path(names.TEXT)
                and path.name in read_generation_manifest(crawl / folder)["texts"]
            ):
                return block
        except (FileNotFoundError, Damaged):
            continue
    return None
