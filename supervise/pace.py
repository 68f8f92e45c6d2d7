"""How fast a run works: rates over the last minute, from samples of what it has done so far."""

from collections import deque

WINDOW_S = 60.0
SAMPLE_EVERY_S = 1.0  # so that a window has a bounded number of samples


class Pace:
    """Rates of one or more counters that only grow. Pure: moments are arguments, in seconds of one clock."""

    def __init__(self, window_s: float = WINDOW_S, every_s: float = SAMPLE_EVERY_S):
        self._window_s = window_s
        self._every_s = every_s
        self._samples: deque[tuple[float, tuple[int, ...]]] = deque()
        self._last: tuple[float, tuple[int, ...]] | None = None

    def note(self, now_s: float, *counters: int) -> None:
        if self._last and any(new < old for new, old in zip(counters, self._last[1])):
            self._samples.clear()  # what was counted is counted anew: an abandoned cycle, or a stage that began again
        self._last = (now_s, counters)
        if not self._samples or now_s - self._samples[-1][0] >= self._every_s:
            self._samples.append(self._last)
        # The newest sample that is older than the window stays: rates count from there.
        while len(self._samples) > 2 and now_s - self._samples[1][0] >= self._window_s:
            self._samples.popleft()

    @property
    def covers_s(self) -> float:
        """The time that the rates are taken over."""
        return self._last[0] - self._samples[0][0] if self._last else 0.0

    def per_s(self) -> tuple[float, ...]:
        """The rate of each counter; zeros before there is time between two samples."""
        if not self._last:
            return ()
        began_s, first = self._samples[0]
        seconds = self._last[0] - began_s
        if seconds <= 0:
            return (0.0,) * len(first)
        return tuple((new - old) / seconds for new, old in zip(self._last[1], first))
