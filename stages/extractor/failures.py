"""Falhas: the URLs, and the robots.txt of servers, that failed or were refused in a cycle, and why."""

from collections import Counter

import pyarrow as pa

from contract.tables import ANSWERED, FAILURES, FAILURES_ORDER
from contract.url import Keys
from stages.extractor.columns import Rows
from stages.extractor.recorded_exchange import Exchange

ATTEMPTS_MAX = 255  # of the u8 column


class Failures:
    def __init__(self, keys: Keys):
        self._keys = keys
        self._rows = Rows(FAILURES, FAILURES_ORDER)
        self._tried: dict[str, Exchange] = {}  # URL -> its last attempt, of URLs that have not ended
        self._robots: dict[str, Exchange] = {}  # server -> the last exchange for its robots.txt, where that failed
        self._robots_attempts: Counter[tuple[str, str]] = Counter()  # of a server and a URL of its robots.txt

    def note(self, exchange: Exchange) -> None:
        """Takes the next exchange, in the order of the records."""
        if exchange.robots_for:
            self._robots_attempts[exchange.robots_for, exchange.url] += exchange.is_requested
            if exchange.outcome == ANSWERED:
                self._robots.pop(exchange.robots_for, None)
            else:
                self._robots[exchange.robots_for] = exchange
        elif not exchange.is_final:
            self._tried[exchange.url] = exchange

    def end(self, exchange: Exchange, attempts: int) -> None:
        """Takes the exchange that ended a URL, and the number of requests for it."""
        tried = self._tried.pop(exchange.url, exchange)
        if exchange.outcome != ANSWERED:
            # A last record without an address repeats why the attempt before it failed.
            is_repeated = not exchange.address and exchange.reason == tried.reason
            self._append(exchange.server, tried if is_repeated else exchange, attempts, is_robots=False)

    def _append(self, server_name: str, exchange: Exchange, attempts: int, *, is_robots: bool) -> None:
        server = self._keys.server(server_name)
        self._rows.append(
            (
                server.domain_key,
                self._keys.of(exchange.url),
                server.key,
                exchange.url,
                server_name,
                is_robots,
                exchange.outcome,
                exchange.reason,
                exchange.failure_message,
                exchange.address,
                exchange.ended_at_ms,
                min(attempts, ATTEMPTS_MAX),
            )
        )

    def table(self) -> pa.Table:
        """All rows. REQUIRES: the last exchange was taken."""
        for server, exchange in self._robots.items():
            self._append(server, exchange, self._robots_attempts[server, exchange.url], is_robots=True)
        return self._rows.table()
