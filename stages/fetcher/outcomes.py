"""The outcome of each URL: one final record, its count and its line, made together.

A temporary failure is recorded without ending its URL, which is asked again a few times. If that never happens, because
the time is over or the server is left alone, the last failure counts.
"""

from collections.abc import Callable

from contract.tables import FAILED
from stages.fetcher.counts import Counts
from stages.fetcher.exchange import Exchange
from stages.fetcher.reasons import TEMPORARY
from stages.fetcher.repository import Repository
from stages.fetcher.resume import Past
from stages.fetcher.revisit import Revisit


class Outcomes:
    def __init__(
        self,
        urls: list[str],
        earlier: dict[str, Revisit],
        past: list[Past],
        retries_max: int,
        on_final: Callable[[str, str, int, int], None],
    ):
        self.left = set(urls)
        self.unreachable: dict[str, str] = {}  # server -> why its robots.txt could not be fetched
        self.counts = Counts(len(self.left))
        self.repository: Repository | None = None
        self._earlier = earlier
        self._retries_max = retries_max
        # URL -> how often it failed and was put back; reason and message of the last failure.
        self._tries: dict[str, tuple[int, str, str]] = {}
        self._on_final = on_final
        for event in past:
            ends = (
                event.is_final and event.url in self.left
            )  # false for a URL of another list that was fetched here before
            if ends:
                self.left.remove(event.url)
                self._tries.pop(event.url, None)
            elif not event.is_robots and event.url in self.left:
                self._note_try(event.url, event.reason, event.message)
            self.counts.add(
                event.outcome,
                event.reason,
                event.bytes,
                is_asked=event.is_asked,
                is_robots=event.is_robots,
                is_final=ends,
            )

    def _note_try(self, url: str, reason: str, message: str) -> None:
        self._tries[url] = self._count_tries(url) + 1, reason, message

    def _count_tries(self, url: str) -> int:
        return self._tries[url][0] if url in self._tries else 0

    def record(self, exchange: Exchange, *, may_retry: bool) -> bool:
        """Records an exchange; true where its URL is to be asked again."""
        url = exchange.url
        may_retry = may_retry and self._count_tries(url) < self._retries_max
        again = may_retry and exchange.reason in TEMPORARY and not exchange.is_robots
        is_final = not again and not exchange.is_robots
        # A robots.txt is kept whole, also where it is a page of the list too: its rules are read from this record.
        earlier = None if exchange.is_robots else self._earlier.get(url)
        size_bytes = self.repository.write_exchange(exchange, is_final=is_final, earlier=earlier)
        self.counts.add(
            exchange.outcome,
            exchange.reason,
            size_bytes,
            is_asked=True,
            is_robots=exchange.is_robots,
            is_final=is_final,
        )
        if exchange.is_robots:
            if exchange.outcome == FAILED:
                self.unreachable[exchange.robots_for] = exchange.reason
        elif again:
            self._note_try(url, exchange.reason, exchange.message)
        else:
            self._end(url, exchange.what, size_bytes, exchange.times_ms["total"])
        return again

    def settle(self, url: str, outcome: str, reason: str, now_ms: int, *, message: str, robots_for: str = "") -> None:
        """Records an outcome that needed no request."""
        self.repository.write_outcome(
            url, outcome, reason, now_ms, is_final=not robots_for, robots_for=robots_for, message=message
        )
        self.counts.add(outcome, reason, 0, is_asked=False, is_robots=bool(robots_for), is_final=not robots_for)
        if robots_for:
            self.unreachable[robots_for] = reason
        else:
            self._end(url, reason, 0, 0)

    def end_retries(self, now_ms: int) -> None:
        """Ends the URLs that waited for another try and will not get it."""
        for url, (_, reason, message) in list(self._tries.items()):
            if url in self.left:
                self.repository.write_outcome(url, FAILED, reason, now_ms, is_final=True, message=message)
                self.counts.add(FAILED, "", 0, is_asked=False, is_robots=False, is_final=True)
                self._end(url, reason, 0, 0)

    def _end(self, url: str, what: str, size_bytes: int, total_ms: int) -> None:
        self.left.discard(url)
        self._tries.pop(url, None)
        self._on_final(url, what, size_bytes, total_ms)
