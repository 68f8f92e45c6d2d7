"""A stage that keeps dying: when the machine is at fault, and what to report. No URL is charged for it."""

import signal
from collections.abc import Iterable

import psutil

from contract.units import size


class Deaths:
    """Remembers which stages died in all their retries: twice without a success in between is the machine's fault."""

    def __init__(self):
        self._dying: set[str] = set()  # stages whose last cycle ended so
        self._fetcher_died: set[int] = set()  # blocks whose fetcher died through all its retries in this run
        # Of those, the blocks since whose death, or beside which, a fetcher of another block collected pages.
        self._vouched: set[int] = set()
        self._successes = 0  # fetchers that collected pages
        self._begun: dict[int, int] = {}  # block -> successes when its fetcher began

    def note_begun(self, block: int) -> None:
        """A cycle of the block begins to fetch."""
        self._begun[block] = self._successes

    def note_fetched(self, block: int, pages: int) -> None:
        """A fetcher ended well: that it collected pages shows that this machine does not kill every fetcher."""
        self._fetcher_died.discard(block)
        self._vouched.discard(block)
        if pages:
            self._successes += 1
            self._vouched |= self._fetcher_died

    def note_fetcher_death(self, block: int) -> None:
        """The fetcher of the block died through all its retries. Those of other blocks may have passed meanwhile."""
        self._fetcher_died.add(block)
        if self._successes > self._begun.get(block, self._successes):
            self._vouched.add(block)

    def others_pass(self, block: int) -> bool:
        return block in self._vouched

    def note_success(self, stage: str) -> None:
        self._dying.discard(stage)

    def note_death(self, stage: str) -> bool:
        """Records a stage that died in all its retries; true where the machine is at fault."""
        is_again = stage in self._dying
        self._dying.add(stage)
        return is_again


def name_exit(code: int) -> str:
    """How a process ended: `exit code 1`, `signal 9 (SIGKILL)`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


def describe_machine(last_lines: Iterable[str], largest_bytes: int) -> str:
    """What may explain the deaths: the last lines that the stage printed, and memory."""
    lines = "; ".join(line.strip() for line in last_lines if line.strip())
    memory = psutil.virtual_memory()
    return (
        f"last lines: {lines or 'none'}; memory: the largest stage used {size(largest_bytes)}, "
        f"{size(memory.available)} of {size(memory.total)} are available now"
    )
