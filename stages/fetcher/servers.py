"""Servers of the list while they are fetched: what is left to ask, by which rules, and how often they failed in a row."""

from collections import deque
from dataclasses import dataclass

from contract import robots
from contract.config import Fetcher
from contract.robots import Rules
from contract.tables import ANSWERED, FAILED
from contract.url import host_of, server_of
from contract.warc import parse_response
from stages.fetcher.politeness import Host, rested_at
from stages.fetcher.resume import Past


@dataclass(frozen=True)
class Known:
    """What earlier cycles know of a server, from Servidores."""
    robots_text: bytes | None = None  # none where unknown or expired
    delay_ms: int = 0
    last_request_at_ms: int = 0
    failures: int = 0


class Server:
    def __init__(self, name: str, known: Known, config: Fetcher):
        self.name = name
        self.urls: deque[str] = deque()
        self.failures = known.failures
        self.is_left_alone = False  # for the rest of the cycle
        self.robots_url = name + robots.PATH
        self._robots_text = known.robots_text
        self._robots_redirects = 0
        self._rules: Rules | None = None
        self._allowed = ""  # the first URL, once the rules have allowed it
        self._config = config

    @property
    def has_more(self) -> bool:
        return bool(self.urls) and not self.is_left_alone

    @property
    def needs_robots(self) -> bool:
        return self._robots_text is None

    @property
    def rules(self) -> Rules:
        """The rules, parsed at first use: many servers of a list are never reached."""
        if self._rules is None:
            self._rules = Rules(self._robots_text, self._config.agent)
        return self._rules

    @property
    def delay_ms(self) -> int:
        return round(self.rules.delay_s * 1000)

    def pop_forbidden(self) -> str | None:
        """Takes the first URL off the queue if the rules forbid it."""
        if not self.has_more or self.urls[0] == self._allowed:
            return None
        if self.rules.allows(self.urls[0]):
            self._allowed = self.urls[0]
            return None
        return self.urls.popleft()

    def note(self, outcome: str) -> None:
        """Counts failures in a row; a refusal is our own doing and counts neither way."""
        if outcome == ANSWERED:
            self.failures = 0
        elif outcome == FAILED:
            self.failures += 1
            if self.failures >= self._config.server_failures_max:
                self.is_left_alone = True

    def note_robots(self, url: str, outcome: str, block: bytes) -> None:
        """Takes the end of an exchange for robots.txt; `block` is the response block, empty without an answer."""
        answer = robots.read_answer(url, self._robots_redirects, outcome, parse_response(block), self._config.robots_max_bytes)
        if answer.follow:
            self.robots_url = answer.follow
            self._robots_redirects += 1
        elif answer.text is None:
            self.is_left_alone = True
        else:
            self._robots_text = answer.text


class HostWork(Host):
    """The servers of one host, asked in turn."""

    def __init__(self, name: str, pause_ms: int):
        super().__init__(name, pause_ms)
        self.servers: deque[Server] = deque()
        self.address = ""

    @property
    def has_more(self) -> bool:
        return any(server.has_more for server in self.servers)

    def next_server(self) -> Server | None:
        """The server whose turn it is; those that are done with are dropped."""
        while self.servers:
            if self.servers[0].has_more:
                self.servers.rotate(-1)
                return self.servers[-1]
            self.servers.popleft()
        return None


def gather_work(urls: list[str], known: dict[str, Known], past: list[Past], config: Fetcher, now_ms: int, *,
                is_resumed: bool) -> list[HostWork]:
    """The hosts that have something left to ask, in the list's order, as earlier cycles and attempts leave them."""
    done = {event.url for event in past if event.is_final}
    servers: dict[str, Server] = {}
    for url in urls:
        name = server_of(url)
        if name not in servers:
            servers[name] = Server(name, known.get(name, Known()), config)
        if url not in done:
            servers[name].urls.append(url)
    for event in past:
        server = servers.get(server_of(event.url))
        if server is not None:
            server.note(event.outcome)
            if event.is_robots:
                server.note_robots(event.url, event.outcome, event.block)
    hosts: dict[str, HostWork] = {}
    delay_ms = round(config.delay_s * 1000)
    for server in servers.values():
        if server.has_more:
            host = hosts.setdefault(host_of(server.name), HostWork(host_of(server.name), delay_ms))
            host.servers.append(server)
            place(host, server, known.get(server.name, Known()), delay_ms, now_ms, is_resumed)
    return list(hosts.values())


def place(host: HostWork, server: Server, known: Known, delay_ms: int, now_ms: int, is_resumed: bool) -> None:
    """Holds the host back for what it was asked last, by an earlier cycle or by an attempt that broke off."""
    pause_ms = max(delay_ms, known.delay_ms)
    host.ready_at_ms = max(host.ready_at_ms, rested_at(min(known.last_request_at_ms, now_ms), pause_ms))
    if is_resumed:
        if not server.needs_robots:
            host.rest_at_least(server.delay_ms)
        # Which requests were in flight when the attempt broke off is not on record: every host rests once.
        host.ready_at_ms = max(host.ready_at_ms, rested_at(now_ms, max(pause_ms, host.pause_ms)))
