"""How a run ends before its work is done: signals, and the one clock of the run."""

import os
import signal
import sys
import time
from collections.abc import Callable

import trio

from contract.errors import EX_TEMPFAIL

GRACE_MS = 3_000  # for what is in flight, well below the supervisor's stop_grace_s
READINGS = 9  # of the two clocks, of which the tightest counts


def say(text: str) -> None:
    print(f"fetcher: {text}\n", end="", file=sys.stderr, flush=True)  # one write, since several processes share it


class Clock:
    """The time of day in ms; steady even when the system clock is set meanwhile.

    Fetchers compare each other's moments (slots.py). A process that lost the CPU between reading the two clocks would
    be ahead of or behind the others by that time, and its pauses too short or too long. So the clocks are read several
    times, and the reading that took the least time counts.
    """

    def __init__(self):
        self._offset_ns = min(read_offset() for _ in range(READINGS))[1]

    def now_ms(self) -> int:
        return (time.monotonic_ns() + self._offset_ns) // 1_000_000


def read_offset() -> tuple[int, int]:
    """How long the reading took, and the time of day less the steady clock, both in ns."""
    before_ns, day_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    return after_ns - before_ns, day_ns - (before_ns + after_ns) // 2


class Stop:
    """Whether the run is to end, and until when requests in flight may continue."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._by_ms: int | None = None
        self.why = "interrupted: run it again to resume"

    @property
    def is_wanted(self) -> bool:
        return self._by_ms is not None

    def is_overdue(self, now_ms: int) -> bool:
        return self.is_wanted and now_ms >= self._by_ms

    def end(self, why: str) -> None:
        """Ends the run in order, at once, for a reason of our own."""
        self._by_ms, self.why = self._clock.now_ms(), why

    async def listen(self, on_stop: Callable[[], None]) -> None:
        """The first signal ends the work in order, the second at once. Runs until cancelled."""
        wanted = [signal.SIGTERM]
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # ignored under a supervisor, which stops us itself
            wanted.append(signal.SIGINT)
        with trio.open_signal_receiver(*wanted) as signals:
            async for _ in signals:
                if self.is_wanted:
                    os._exit(EX_TEMPFAIL)
                say(f"stopping: up to {GRACE_MS // 1000} s for what is in flight")
                self._by_ms = self._clock.now_ms() + GRACE_MS
                on_stop()
