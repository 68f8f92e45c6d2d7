"""The cycles that have an entry in the log, in bounded form: all below an end, except some ranges.

Cycles get rising numbers and nearly all of them end, so the ranges are those of the cycles in flight, and few others.
"""

from bisect import bisect_right
from collections.abc import Iterator


class ClosedCycles:
    """A set of cycle numbers that takes as much memory as it has holes."""

    def __init__(self, end: int = 0, holes: list[tuple[int, int]] | None = None):
        self.end = end  # all of its numbers are below
        self.holes = list(holes or [])  # ranges [begin, end) of numbers below that are not in it; rising, disjoint

    def __contains__(self, cycle: int) -> bool:
        if not 0 <= cycle < self.end:
            return False
        before = bisect_right(self.holes, (cycle, self.end))
        return not (before and cycle < self.holes[before - 1][1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClosedCycles) and (self.end, self.holes) == (other.end, other.holes)

    def __repr__(self) -> str:
        return f"ClosedCycles({self.end}, {self.holes})"

    def add(self, cycle: int) -> None:
        if cycle >= self.end:
            if cycle > self.end:
                self.holes.append((self.end, cycle))
            self.end = cycle + 1
        elif cycle not in self:
            index = bisect_right(self.holes, (cycle, self.end)) - 1
            begin, end = self.holes[index]
            self.holes[index : index + 1] = [part for part in ((begin, cycle), (cycle + 1, end)) if part[0] < part[1]]

    def copy(self) -> "ClosedCycles":
        return ClosedCycles(self.end, self.holes)

    def missing(self) -> Iterator[int]:
        """The numbers below the end that are not in it."""
        for begin, end in self.holes:
            yield from range(begin, end)

    def count_missing(self) -> int:
        return sum(end - begin for begin, end in self.holes)
