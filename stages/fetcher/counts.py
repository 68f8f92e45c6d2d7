"""Counts for the manifest, taken in the same way from exchanges as they end and from records read back."""

from collections import Counter

from contract.tables import ANSWERED, FAILED, REFUSED


class Counts:
    def __init__(self, listed: int):
        self._listed = listed
        self._outcomes = Counter({ANSWERED: 0, FAILED: 0, REFUSED: 0})
        self._requests = self._robots_requests = self._bytes = 0
        self.errors: Counter[str] = Counter()

    def add(
        self, outcome: str, reason: str, response_bytes: int, *, is_asked: bool, is_robots: bool, is_final: bool
    ) -> None:
        """Takes one exchange, or an outcome without one; `is_final` says that it ends a URL of the list."""
        if is_final:
            self._outcomes[outcome] += 1
        if reason:
            self.errors[reason] += 1
        if is_asked:
            self._requests += 1
            self._robots_requests += is_robots
        self._bytes += response_bytes

    @property
    def done(self) -> int:
        return self._outcomes.total()

    @property
    def bytes(self) -> int:
        return self._bytes

    def as_dict(self) -> dict[str, int]:
        return {
            "listed": self._listed,
            **self._outcomes,
            "not_reached": self._listed - self.done,
            "requests": self._requests,
            "robots_requests": self._robots_requests,
            "bytes": self._bytes,
        }
