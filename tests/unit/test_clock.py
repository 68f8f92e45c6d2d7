"""The fetcher's clock: processes that share a table of moments must agree on the time of day."""

import time

from stages.fetcher.stopping import READINGS, Clock

MS = 1_000_000
LOST_MS = 40


class LostCpu:
    """Clocks of a process that loses the CPU for LOST_MS before each of the chosen readings."""

    def __init__(self, monkeypatch, lost_before: set[int]):
        self._now_ns, self._readings, self._lost_before = 10**15, 0, lost_before
        monkeypatch.setattr(time, "time_ns", lambda: self._read() + 10**18)
        monkeypatch.setattr(time, "monotonic_ns", self._read)

    def _read(self) -> int:
        self._now_ns += LOST_MS * MS if self._readings in self._lost_before else 100
        self._readings += 1
        return self._now_ns


def test_a_process_that_loses_the_cpu_while_it_reads_its_clocks_agrees_with_the_others(monkeypatch):
    for lost_before in ({0}, {1}, {2}, {1, 5}, set(range(3 * READINGS - 3))):
        lost = LostCpu(monkeypatch, lost_before)
        clock = Clock()
        assert abs(clock.now_ms() - (lost._now_ns + 10**18) // MS) <= 1, lost_before
