"""How long each part of a turn took."""

import time


class Timing:
    def __init__(self):
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def mark(self, part: str) -> None:
        """Everything since the last mark was this part."""
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now
