"""A stage that keeps dying: when the machine is at fault, and what to report. No URL is charged for it."""

import resource
import signal
from collections.abc import Iterable

import psutil

from contract.units import size


class Deaths:
    """Remembers which stage died last in all its retries: twice in a row the same one is the machine's fault."""

    def __init__(self):
        self._last = ""
        self._fetcher_died: set[int] = set()  # blocks whose fetcher died through all its retries in this run
        self._vouched: set[int] = (
            set()
        )  # of those, the blocks since whose death a fetcher of another block collected pages

    def note_fetched(self, block: int, pages: int) -> None:
        """A fetcher ended well: that it collected pages shows that this machine does not kill every fetcher."""
        self._fetcher_died.discard(block)
        self._vouched.discard(block)
        if pages:
            self._vouched |= self._fetcher_died

    def note_fetcher_death(self, block: int) -> None:
        self._fetcher_died.add(block)

    def others_pass(self, block: int) -> bool:
        return block in self._vouched

    def note_success(self, stage: str) -> None:
        if stage == self._last:
            self._last = ""

    def note_death(self, stage: str) -> bool:
        """Records a stage that died in all its retries; true where the machine is at fault."""
        is_again = stage == self._last
        self._last = stage
        return is_again


def name_exit(code: int) -> str:
    """How a process ended: `exit code 1`, `signal 9 (SIGKILL)`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


def describe_machine(last_lines: Iterable[str]) -> str:
    """What may explain the deaths: the last lines that the stage printed, and memory."""
    lines = "; ".join(line.strip() for line in last_lines if line.strip())
    largest_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    memory = psutil.virtual_memory()
    return (
        f"last lines: {lines or 'none'}; memory: the largest stage used {size(largest_bytes)}, "
        f"{size(memory.available)} of {size(memory.total)} are available now"
    )
