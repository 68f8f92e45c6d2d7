"""How long a transfer may take and how slow it may be. Time in which we held it back, for bandwidth, does not count.

No clock here: moments are arguments, in seconds.
"""

from contract.config import Fetcher
from stages.fetcher.reasons import TIMEOUT_TOTAL, TOO_SLOW

CHECKS_PER_LIMIT = 8  # a time limit is exceeded by at most an eighth ...
CHECK_EVERY_MAX_S = 0.5  # ... or by this


class Stopwatch:
    """The time of one transfer: when it started, how long it was paused, when its speed was measured last."""

    def __init__(self, now_s: float):
        self.started_at_s = self.measured_at_s = now_s
        self._held_s = self._measured_held_s = 0.0  # in pauses that are over
        self._paused_at_s: float | None = None
        self._measured_bytes = 0

    @property
    def is_paused(self) -> bool:
        return self._paused_at_s is not None

    def pause(self, now_s: float) -> None:
        self._paused_at_s = now_s

    def resume(self, now_s: float) -> None:
        self._held_s, self._paused_at_s = self.held_s(now_s), None

    def held_s(self, now_s: float) -> float:
        """How long it has been paused in all."""
        return self._held_s + (now_s - self._paused_at_s if self.is_paused else 0.0)

    def was_slow(self, now_s: float, received_bytes: int, least_bytes: float) -> bool:
        """Whether fewer bytes came since the last measurement than should have, and no pause was the cause."""
        held_s = self.held_s(now_s)
        slow = received_bytes - self._measured_bytes < least_bytes and held_s == self._measured_held_s
        self.measured_at_s, self._measured_bytes, self._measured_held_s = now_s, received_bytes, held_s
        return slow


class TimeLimits:
    def __init__(self, config: Fetcher):
        self._total_s, self._slow_s = config.total_timeout_s, config.slow_s
        self._slow_bytes = config.slow_bytes_per_s * config.slow_s
        self.check_every_s = min(
            CHECK_EVERY_MAX_S, config.total_timeout_s / CHECKS_PER_LIMIT, config.slow_s / CHECKS_PER_LIMIT
        )

    def find_excess(
        self, stopwatch: Stopwatch, now_s: float, received_bytes: int, is_sent: bool
    ) -> tuple[str, str] | None:
        """Reason and message where a transfer has used up its time. It cannot be slow before the request is sent."""
        if now_s - stopwatch.started_at_s - stopwatch.held_s(now_s) >= self._total_s:
            return TIMEOUT_TOTAL, f"not done within fetcher.total_timeout_s = {self._total_s:g}"
        if not is_sent:
            stopwatch.measured_at_s = now_s
        is_measured = now_s - stopwatch.measured_at_s >= self._slow_s
        if is_measured and stopwatch.was_slow(now_s, received_bytes, self._slow_bytes):
            return TOO_SLOW, f"fewer than fetcher.slow_bytes_per_s for fetcher.slow_s = {self._slow_s:g}"
        return None
