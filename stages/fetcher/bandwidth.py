"""How fast answers are read: a bucket of bytes that fills at a rate and may be overdrawn by the last read.

No clock here: moments are arguments, in seconds. An overdraft is paid back before the next read, so the rate holds over
any period much longer than one read.
"""

BURST_S = 0.1  # of the rate may be read at once after a quiet time: small against the 10 s over which people measure


class Bandwidth:
    def __init__(self, bytes_per_s: float):
        self._bytes_per_s = bytes_per_s
        self._level_bytes = bytes_per_s * BURST_S
        self._filled_at_s: float | None = None

    @property
    def is_limited(self) -> bool:
        return bool(self._bytes_per_s)

    def take(self, size_bytes: int) -> None:
        """Counts bytes that have been read."""
        if self._bytes_per_s:
            self._level_bytes -= size_bytes

    def wait_s(self, now_s: float) -> float:
        """Seconds until more may be read, 0 where it may be now."""
        if not self._bytes_per_s:
            return 0.0
        if self._filled_at_s is not None and now_s > self._filled_at_s:
            gained = (now_s - self._filled_at_s) * self._bytes_per_s
            self._level_bytes = min(self._level_bytes + gained, self._bytes_per_s * BURST_S)
        self._filled_at_s = now_s
        return max(0.0, -self._level_bytes / self._bytes_per_s)
