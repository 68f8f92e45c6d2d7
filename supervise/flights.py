"""What this run is doing now: the cycles in flight, each with its stage and the figures that the stage reports.

The ring keeps it up to date; the display, `live.json` and messages read it.
"""

import time
from dataclasses import dataclass, field

from contract import names
from contract.log import KINDS
from contract.plan import Plan
from supervise.run_counts import RunCounts


@dataclass
class Flight:
    """One cycle in flight."""

    plan: Plan
    stage: str = ""  # that runs, or that the cycle waits for; empty before the first
    is_running: bool = False  # false while the cycle waits: for its turn at the stage, or for a retry
    attempt: int = 0  # of the stage, counted from 1; 0 before the first
    stage_began: float = 0.0  # time.monotonic() of the attempt, or of the wait
    process_id: int = 0  # of the running stage
    requested_ns: int = 0  # time.monotonic_ns() of the request to start it
    start_ms: float | None = None  # from that request to the first line of its main()
    private_bytes: int = 0  # memory of its own when it ended
    figures: dict = field(default_factory=dict)  # the last progress that the running stage reported
    counts: dict[str, dict] = field(default_factory=dict)  # stage -> counts of its manifest, once it has finished

    def enter(self, stage: str, *, is_running: bool, attempt: int = 0) -> None:
        """The cycle waits for a stage, or an attempt of it begins."""
        self.stage, self.is_running, self.attempt = stage, is_running, attempt
        self.stage_began, self.figures = time.monotonic(), {}

    @property
    def pages_at_most(self) -> int:
        """How many pages the cycle may still bring: those of its list, once there is one."""
        if not KINDS[self.plan.kind].fetches:
            return 0
        if names.FETCHER in self.counts:
            return self.counts[names.FETCHER].get("answered", 0)
        if names.SCHEDULER in self.counts:
            return self.counts[names.SCHEDULER].get("listed", 0)
        return self.plan.config.scheduler.list_max_urls


@dataclass
class Flights:
    """All cycles in flight, and what the run has committed so far."""

    began: float = field(default_factory=time.monotonic)
    began_at_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    flights: dict[int, Flight] = field(default_factory=dict)  # by cycle, oldest first
    counts: RunCounts = field(default_factory=RunCounts)  # of committed cycles
    last_fetched: int | None = None  # the last committed cycle that fetched
    sleeps_until_ms: int | None = None  # all that waits is due later; 0: until seeds arrive; none: not asleep
