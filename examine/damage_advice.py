"""Which command mends a damaged file of a crawl: what bin/status prints for each note in corrupt/.

It reads the manifests of live generations, once, and no other file: a crawl may have many notes, a long log and large
blocks. Whether the generation before a damaged one is whole, only its checksums tell. So the advice for a live
generation is --rebuild, which looks for that itself: it begins at the generation before, as --repair does, if that one
is whole, else further back.
"""

import shlex
from functools import cached_property
from pathlib import Path

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.generation import read_generation_manifest
from contract.log import State
from storage.errors import Damaged, UnknownFormat


class Adviser:
    """Advises on one state of a crawl."""

    def __init__(self, crawl: CrawlFolder, log: State):
        self._crawl = crawl.path
        self._live = {
            Path(names.generation(block, number)): block
            for block in range(log.blocks)
            if (number := log.generation(block)) is not None
        }

    def advise(self, path: str) -> str:
        """The command to run for a file that was set aside; empty where the crawl continues without it."""
        parts, verifier = Path(path).parts, f"bin/verifier --crawl {shlex.quote(str(self._crawl))}"
        try:
            if parts[0] == names.GENERATIONS:
                cycle, block = int(Path(parts[2]).stem), self._find_block(Path(path))
                return f"{verifier} --cycle {cycle} --repair" if block is None else f"{verifier} --rebuild {block}"
            if parts[2:3] == (names.VERIFIER,):
                return f"{verifier} --cycle {int(parts[1])} --repair"
            if parts[0] == names.FILES:
                return f"bin/run-cycle --crawl {shlex.quote(str(self._crawl))} --config FILE"
        except (ValueError, IndexError):
            pass  # not a note of ours
        return ""

    def _find_block(self, path: Path) -> int | None:
        """The block whose live generation has this file, or uses this segment of text; none where no one does."""
        if path.parent == Path(names.TEXT):
            return self._block_of_text.get(path.name)
        return self._live.get(path.parent)

    @cached_property
    def _block_of_text(self) -> dict[str, int]:
        """A block that uses each segment of text; halves of a split share segments."""
        found: dict[str, int] = {}
        for folder, block in self._live.items():
            try:
                texts = read_generation_manifest(self._crawl / folder).get("texts", {})
            except (OSError, Damaged, UnknownFormat):
                continue
            for name in texts:
                found.setdefault(name, block)
        return found
