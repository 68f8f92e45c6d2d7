"""The rows of Servidores: what was known of the servers, updated by the exchanges of a cycle.

Where a request for robots.txt got no answer, 429 or 5xx, nothing new is known: the rules known before stay.
"""

from dataclasses import dataclass

import pyarrow as pa

from contract.config import Fetcher
from contract.pause import crawl_delay_ms
from contract.robots import Rules, read_answer
from contract.robots_groups import read_sitemaps
from contract.server_failures import charged_server, count_failures
from contract.tables import CYCLE_SERVERS, FAILED
from contract.url import Keys
from stages.extractor.recorded_exchange import Exchange

COUNT_MAX = (1 << 32) - 1  # of the u32 columns


@dataclass
class Server:
    """One row of Servidores; end_cycle() adds `new_requests` and `new_total_ms` to `requests` and `mean_ms`."""

    server: str
    server_key: int
    domain_key: int
    robots: bytes | None = None
    robots_expires_at_ms: int = 0
    delay_ms: int = 0
    last_request_at_ms: int = 0
    ready_at_ms: int = 0
    address: str = ""
    requests: int = 0
    mean_ms: int = 0
    failures: int = 0
    last_failure_reason: str = ""
    last_failure_message: str = ""
    last_failure_at_ms: int = 0
    new_requests: int = 0
    new_total_ms: int = 0
    robots_redirects: int = 0
    sitemaps: list[str] | None = None  # that `robots` names; none where they are not read yet

    def note_outcome(self, exchange: Exchange) -> None:
        self.failures = count_failures(self.failures, exchange.outcome)
        if exchange.outcome == FAILED:
            self.last_failure_reason, self.last_failure_message = exchange.reason, exchange.failure_message
            self.last_failure_at_ms = exchange.ended_at_ms

    def end_cycle(self) -> None:
        requests = self.requests + self.new_requests
        if self.new_requests:
            self.mean_ms = min((self.mean_ms * self.requests + self.new_total_ms) // requests, COUNT_MAX)
        self.requests = min(requests, COUNT_MAX)
        if self.sitemaps is None:
            self.sitemaps = read_sitemaps(self.robots or b"")


class Servers:
    def __init__(self, known: pa.Table | None, keys: Keys, config: Fetcher):
        self._keys = keys
        self._config = config
        rows = known.drop_columns("sitemaps").to_pylist() if known is not None else []
        self._servers = {row["server"]: Server(**row) for row in rows}

    def note(self, exchange: Exchange) -> None:
        """Takes the next exchange, in the order of the records.

        A robots.txt may be redirected to another server. That server was asked, but the rules, or the failure to get
        them, belong to the first.
        """
        server = self._find(exchange.server)
        server.address = exchange.address or server.address
        if exchange.is_requested:
            server.new_requests += 1
            server.new_total_ms += exchange.times_ms.get("total", 0)
        if exchange.is_requested or exchange.is_failure:  # a server whose name is not found rests too
            server.last_request_at_ms = max(server.last_request_at_ms, exchange.ended_at_ms)
        server.ready_at_ms = max(server.ready_at_ms, exchange.ready_at_ms)
        charged = self._find(charged_server(exchange.server, exchange.robots_for))
        # A failure without a request may only repeat an earlier one, but not that of a robots.txt redirected elsewhere.
        if exchange.outcome != FAILED or exchange.is_failure or charged is not server:
            charged.note_outcome(exchange)
        if exchange.robots_for:
            self._note_robots(charged, exchange)

    def _find(self, name: str) -> Server:
        server = self._servers.get(name)
        if server is None:
            keyed = self._keys.server(name)
            server = self._servers[name] = Server(keyed.name, keyed.key, keyed.domain_key)
        return server

    def _note_robots(self, server: Server, exchange: Exchange) -> None:
        limit = self._config.robots_max_bytes
        answer = read_answer(exchange.url, server.robots_redirects, exchange.outcome, exchange.message, limit)
        server.robots_redirects = server.robots_redirects + 1 if answer.follow else 0
        if answer.text is not None:
            server.robots = answer.text
            server.robots_expires_at_ms = exchange.started_at_ms + round(self._config.robots_keep_s * 1000)
            rules = Rules(server.robots, self._config.agent, server.server)
            server.sitemaps = list(rules.sitemaps)
            server.delay_ms = crawl_delay_ms(rules.delay_s)

    def table(self) -> pa.Table:
        """All servers, sorted by server_key. Called once, after the last exchange."""
        servers = sorted(self._servers.values(), key=lambda server: server.server_key)
        for server in servers:
            server.end_cycle()
        return pa.table(
            [pa.array([getattr(server, field.name) for server in servers], field.type) for field in CYCLE_SERVERS],
            schema=CYCLE_SERVERS,
        )
