"""Servers and hosts during a run: what is left to ask, by which rules, and how often they failed in a row."""

from collections import deque
from dataclasses import dataclass
from functools import cached_property

from contract import robots
from contract.config import Fetcher
from contract.pause import (
    configured_delay_ms,
    crawl_delay_ms,
    forgiven_pause_ms,
    is_slow,
    rested_at_ms,
    rested_from_earlier_ms,
    rested_from_unknown_ms,
    slowed_pause_ms,
    slowed_until_ms,
)
from contract.retry_after import STATUSES
from contract.robots import Rules
from contract.server_failures import charged_server, count_failures
from contract.tables import ANSWERED, FAILED
from contract.url import host_of, server_of
from contract.warc import parse_response
from stages.fetcher.addresses import Address
from stages.fetcher.exchange import Exchange, Origin
from stages.fetcher.politeness import Host
from stages.fetcher.resume import Past


@dataclass(frozen=True)
class Known:
    """What earlier cycles know of a server, from Servidores."""

    robots_text: bytes | None = None  # none where unknown or expired
    delay_ms: int = 0
    last_request_at_ms: int = 0
    ready_at_ms: int = 0  # the server asked for quiet until this moment
    failures: int = 0


class Server:
    def __init__(self, name: str, known: Known, config: Fetcher):
        self.name = name
        self.urls: deque[str] = deque()
        self.failures = known.failures
        self.is_left_alone = False  # for the rest of the cycle
        self.is_away = False  # its robots.txt is being asked for at another host, where a redirect leads
        self.drops_connections = False  # a kept connection turned out dead
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
        return crawl_delay_ms(self.rules.delay_s)

    def origin_at(self, address: Address, agent: str) -> Origin:
        if self._origin is None or self._address != address:
            self._address, self._origin = address, Origin(self.name, str(address), agent)
        return self._origin

    def pop_forbidden(self) -> tuple[str, str] | None:
        """Removes the first URL of the queue if the rules forbid it, and returns it with the rule."""
        if not self.has_more or self.urls[0] == self._allowed:
            return None
        if not (rule := self.rules.forbids(self.urls[0])):
            self._allowed = self.urls[0]
            return None
        return self.urls.popleft(), rule

    def note(self, outcome: str) -> None:
        """Counts failures in a row; too many end the server's part of the cycle."""
        self.failures = count_failures(self.failures, outcome)
        if outcome == FAILED and self.failures >= self._config.server_failures_max:
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
    """The servers of one host, asked in turn, and errands: servers of other hosts whose robots.txt is here."""

    def __init__(self, name: str):
        super().__init__(name)
        self.servers: deque[Server] = deque()
        self.errands: deque[Server] = deque()
        self.is_active = False  # being resolved, waiting for its turn, or asked
        self.addresses: list[Address] = []
        self.why_none = ""  # why it has no addresses, in words
        self.addresses_dead = 0  # in a row, up to now
        self.addresses_unrouted = 0  # likewise, without a route to them
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
        """The server whose turn it is; servers that have nothing left are dropped."""
        while self.servers:
            if self.servers[0].has_more:
                self.servers.rotate(-1)
                return self.servers[-1]
            self.servers.popleft()
        return None

    def obey_late(self, delay_ms: int) -> None:
        """A crawl-delay that came from another host: it counts from the last request to this one."""
        self.rest_at_least(delay_ms)
        self.rest_until(rested_at_ms(self.rested_since_ms, delay_ms))

    def note_end(self, exchange: Exchange, now_ms: int, config: Fetcher) -> None:
        """Takes what an exchange that has ended says about the pace that its server wants."""
        if exchange.status in STATUSES:
            self.slow_down(now_ms, exchange.retry_after_s(now_ms), configured_delay_ms(config))
        elif exchange.outcome == ANSWERED:
            self.speed_up(now_ms)

    def slow_down(self, now_ms: int, retry_after_s: int, delay_ms: int) -> None:
        """Rests as long as the server asked, or twice as long as before where that is longer."""
        self._slow_ms = slowed_pause_ms(self._slow_ms, self.pause_ms, delay_ms)
        self.rest_until(slowed_until_ms(now_ms, self._slow_ms, retry_after_s))

    def speed_up(self, now_ms: int) -> None:
        """After an answer, half of the slowness is forgiven."""
        self._slow_ms = forgiven_pause_ms(self._slow_ms)
        if is_slow(self._slow_ms):
            self.rest_until(rested_at_ms(now_ms, self._slow_ms))


def gather_work(
    urls: list[str], known: dict[str, Known], past: list[Past], config: Fetcher, now_ms: int, *, is_resumed: bool
) -> list[HostWork]:
    """The hosts that have something left to ask, in the list's order, as earlier cycles and attempts left them."""
    done = {event.url for event in past if event.is_final}
    servers: dict[str, Server] = {}
    for url in urls:
        name = server_of(url)
        if name not in servers:
            servers[name] = Server(name, known.get(name, Known()), config)
        if url not in done:
            servers[name].urls.append(url)
    note_past(servers, past)
    hosts: dict[str, HostWork] = {}
    for server in servers.values():
        if server.has_more:
            name = host_of(server.name)
            host = hosts.setdefault(name, HostWork(name))
            host.add(server)
            hold_back(host, server, known.get(server.name, Known()), config, now_ms, is_resumed)
    return list(hosts.values())


def note_past(servers: dict[str, Server], past: list[Past]) -> None:
    """Brings servers to where earlier attempts left them."""
    for event in past:
        server = servers.get(charged_server(server_of(event.url), event.robots_for))
        if server is not None:
            server.note(event.outcome)
            if event.robots_for:
                server.note_robots(event.url, event.outcome, event.block)


def hold_back(host: HostWork, server: Server, known: Known, config: Fetcher, now_ms: int, is_resumed: bool) -> None:
    """Lets the host rest from its last request, of an earlier cycle or of an interrupted attempt."""
    host.rest_until(rested_from_earlier_ms(config, known.delay_ms, known.last_request_at_ms, known.ready_at_ms, now_ms))
    if is_resumed:
        if not server.needs_robots:
            host.rest_at_least(server.delay_ms)
        # No record says which requests were in flight when the attempt was interrupted: every host rests once.
        host.rest_until(rested_from_unknown_ms(config, max(known.delay_ms, host.pause_ms), now_ms))
