"""Servers while they are fetched: what is left to ask, by which rules, and how often they failed in a row."""

from collections import deque
from dataclasses import dataclass
from functools import cached_property

from contract import robots
from contract.config import Fetcher
from contract.robots import Rules
from contract.tables import ANSWERED, FAILED
from contract.url import host_of, server_of
from contract.warc import parse_response
from stages.fetcher.addresses import Address
from stages.fetcher.exchange import Origin
from stages.fetcher.politeness import Host, rested_at
from stages.fetcher.resume import Past

SLOW_LEAST_MS, SLOW_MOST_MS = 1_000, 600_000  # the pause after a 429 or 503 that says nothing more


@dataclass(frozen=True)
class Known:
    """What earlier cycles know of a server, from Servidores."""

    robots_text: bytes | None = None  # none where unknown or expired
    delay_ms: int = 0
    last_request_at_ms: int = 0
    ready_at_ms: int = 0  # before which it has asked not to be asked
    failures: int = 0


class Server:
    def __init__(self, name: str, known: Known, config: Fetcher):
        self.name = name
        self.urls: deque[str] = deque()
        self.failures = known.failures
        self.is_left_alone = False  # for the rest of the cycle
        self.is_away = False  # its robots.txt is being asked for at another host, where a redirect leads
        self.drops_connections = False  # kept ones turn out dead when they are used
        self.home: HostWork | None = None
        self.robots_url = name + robots.PATH
        self._robots_text = known.robots_text
        self._robots_redirects = 0
        self._rules: Rules | None = None
        self._allowed = ""  # the first URL, once the rules have allowed it
        self._origin: Origin | None = None
        self._address: Address | None = None
        self._config = config

    @property
    def has_more(self) -> bool:
        return bool(self.urls) and not self.is_left_alone and not self.is_away

    @property
    def is_on_probation(self) -> bool:
        """Whether it failed, and one more failure ends it."""
        return 0 < self.failures == self._config.server_failures_max - 1

    @property
    def needs_robots(self) -> bool:
        return self._robots_text is None

    @property
    def rules(self) -> Rules:
        """The rules, parsed at first use: many servers of a list are never reached."""
        if self._rules is None:
            self._rules = Rules(self._robots_text, self._config.agent, self.name)
        return self._rules

    @cached_property
    def delay_ms(self) -> int:
        return round(self.rules.delay_s * 1000)

    def origin_at(self, address: Address, agent: str) -> Origin:
        if self._origin is None or self._address != address:
            self._address, self._origin = address, Origin(self.name, str(address), agent)
        return self._origin

    def pop_forbidden(self) -> tuple[str, str] | None:
        """Takes the first URL off the queue if the rules forbid it, and gives it with the rule."""
        if not self.has_more or self.urls[0] == self._allowed:
            return None
        if not (rule := self.rules.forbids(self.urls[0])):
            self._allowed = self.urls[0]
            return None
        return self.urls.popleft(), rule

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
        answer = robots.read_answer(
            url, self._robots_redirects, outcome, parse_response(block), self._config.robots_max_bytes
        )
        if answer.follow:
            self.robots_url = answer.follow
            self._robots_redirects += 1
        elif answer.text is None:
            self.is_left_alone = True
        else:
            self._robots_text = answer.text


class HostWork(Host):
    """The servers of one host, asked in turn, and errands for servers of other hosts whose robots.txt lies here."""

    def __init__(self, name: str):
        super().__init__(name)
        self.servers: deque[Server] = deque()
        self.errands: deque[Server] = deque()
        self.is_active = False  # being resolved, waiting for its turn, or asked
        self.addresses: list[Address] = []
        self.why_none = ""  # why it has no addresses, in words
        self.addresses_dead = 0  # found so one after the other, up to now
        self.addresses_unrouted = 0  # likewise, for want of a route
        self.expires_at_ms = 0
        self.dns_ms = 0
        self.rested_since_ms = 0
        self._slow_ms = 0

    @property
    def address(self) -> Address:
        return self.addresses[0]

    @property
    def has_more(self) -> bool:
        return bool(self.errands) or any(server.has_more for server in self.servers)

    def add(self, server: Server) -> None:
        server.home = self
        self.servers.append(server)

    def next_server(self) -> Server | None:
        """The server whose turn it is; those that are done with are dropped."""
        while self.servers:
            if self.servers[0].has_more:
                self.servers.rotate(-1)
                return self.servers[-1]
            self.servers.popleft()
        return None

    def obey_late(self, delay_ms: int) -> None:
        """A crawl-delay that another host told: it counts from the last request to this one."""
        self.rest_at_least(delay_ms)
        self.rest_until(rested_at(self.rested_since_ms, delay_ms))

    def slow_down(self, now_ms: int, retry_after_s: int, delay_ms: int) -> None:
        """Rests as long as the server asked, or else twice as long as before, when it was the configured delay at least."""
        self._slow_ms = min(max(SLOW_LEAST_MS, 2 * max(self._slow_ms, self.pause_ms, delay_ms)), SLOW_MOST_MS)
        self.rest_until(rested_at(now_ms, max(self._slow_ms, retry_after_s * 1000)))

    def speed_up(self, now_ms: int) -> None:
        """After an answer, half of the slowness is forgiven."""
        self._slow_ms //= 2
        if self._slow_ms >= SLOW_LEAST_MS // 4:
            self.rest_until(rested_at(now_ms, self._slow_ms))


def gather_work(
    urls: list[str], known: dict[str, Known], past: list[Past], config: Fetcher, now_ms: int, *, is_resumed: bool
) -> list[HostWork]:
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
        server = servers.get(event.robots_for or server_of(event.url))
        if server is not None:
            server.note(event.outcome)
            if event.robots_for:
                server.note_robots(event.url, event.outcome, event.block)
    hosts: dict[str, HostWork] = {}
    for server in servers.values():
        if server.has_more:
            name = host_of(server.name)
            host = hosts.setdefault(name, HostWork(name))
            host.add(server)
            place(host, server, known.get(server.name, Known()), config, now_ms, is_resumed)
    return list(hosts.values())


def place(host: HostWork, server: Server, known: Known, config: Fetcher, now_ms: int, is_resumed: bool) -> None:
    """Holds the host back for what it was asked last, by an earlier cycle or by an attempt that broke off."""
    pause_ms = max(round(config.delay_s * 1000), known.delay_ms)
    host.rest_until(max(known.ready_at_ms, rested_at(min(known.last_request_at_ms, now_ms), pause_ms)))
    if is_resumed:
        if not server.needs_robots:
            host.rest_at_least(server.delay_ms)
        # Which requests were in flight when the attempt broke off is not on record: every host rests once.
        host.rest_until(rested_at(now_ms, max(pause_ms, host.pause_ms)))
