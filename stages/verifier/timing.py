"""How long each part of a turn took."""

import time
from collections.abc import Callable, Iterable

# What a store of URLs must do: from the rows that arrive in memory until key, state and text of each are durable.
# Not counted are reading them, the table of servers, the rules about servers, and prescheduling.
STEP = ("sort", "find", "urls", "merge", "states", "texts", "write", "sync")


class Timing:
    """Parts in the order in which they were first marked."""

    def __init__(self):
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {"start": time.process_time()}  # CPU, nearly all of it to load the libraries

    def run(self, steps: Iterable[tuple[str, Callable[..., tuple]]], *values) -> tuple:
        """Runs (part, step) after (part, step): what a step returns are the arguments of the next one."""
        for part, step in steps:
            values = step(*values)
            self.mark(part)
        return values

    def mark(self, part: str) -> None:
        """Everything since the last mark was this part."""
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def summary(self) -> dict[str, float]:
        """With `step`, the sum of its parts, and `total`."""
        step = sum(self.seconds.get(part, 0.0) for part in STEP)
        return {**self.seconds, "step": step, "total": sum(self.seconds.values())}
