"""The requests of a run: which one is next for a host that may be asked, and what follows when it has ended.

A host's servers are asked in turn, robots.txt first. An *errand* is the robots.txt of another host's server that a
redirect led here. A request that failed by nobody's fault, or that may have failed by our own network's, goes back to
its queue and is asked again after the pause.
"""

from collections.abc import Callable

from contract.url import host_of, server_of
from stages.fetcher.bodies import Bodies
from stages.fetcher.exchange import Exchange, Origin, limits_of
from stages.fetcher.fetch_task import FetchTask
from stages.fetcher.host_admission import HostAdmission
from stages.fetcher.identity import user_agent
from stages.fetcher.kept_connections import KeptConnections
from stages.fetcher.outage import ROUTE, Held, Outage
from stages.fetcher.outcomes import Outcomes
from stages.fetcher.politeness import Politeness
from stages.fetcher.reasons import OF_ADDRESS, SIGNS_OF_LIFE
from stages.fetcher.server_queues import HostWork, Server
from stages.fetcher.settlement import Settlement
from stages.fetcher.suspects import InFlight


class RequestFlow:
    def __init__(
        self,
        task: FetchTask,
        hosts: list[HostWork],
        politeness: Politeness,
        admission: HostAdmission,
        outcomes: Outcomes,
        settlement: Settlement,
        outage: Outage,
        in_flight: InFlight,
        began_at_ms: int,
        clock: Callable[[], int],
        start_transfer: Callable[[Exchange], None],
    ):
        self._task = task
        self._config = task.config
        self._hosts = {host.name: host for host in hosts}
        self._politeness = politeness
        self._admission = admission
        self._outcomes = outcomes
        self._settlement = settlement
        self._outage = outage
        self._in_flight = in_flight
        self._began_at_ms = began_at_ms
        self._clock = clock
        self._start_transfer = start_transfer
        self._agent = user_agent(task.config)
        self._page_limits, self._robots_limits = limits_of(task.config)
        self._bodies = Bodies(task.folder, task.config.bodies_memory_max_bytes)
        self._kept_connections = KeptConnections(task.config.connections_per_address_max)
        self._asked: dict[Exchange, tuple[HostWork, Server]] = {}

    def __len__(self) -> int:
        """How many requests are under way."""
        return len(self._asked)

    def ask(self, host: HostWork, now_ms: int) -> bool:
        """Starts the next request of a host that may be asked, if it has one; false where others must get a turn."""
        if host.expires_at_ms <= now_ms:
            self._politeness.leave(host, now_ms, has_more=False)
            self._resolve_again(host)
            return True
        if host.errands:
            self._start(host, host.errands.popleft(), now_ms, is_errand=True)
            return True
        is_through = True
        while is_through and (server := host.next_server()) is not None:
            if server.needs_robots:
                if host_of(server_of(server.robots_url)) != host.name:
                    self._send_errand(server)
                    continue
                self._start(host, server, now_ms)
                return True
            host.rest_at_least(server.delay_ms)
            is_through = self._settlement.is_through(server)
            if is_through and server.has_more:
                self._start(host, server, now_ms)
                return True
        self._politeness.leave(host, now_ms, host.has_more)
        host.is_active = host.has_more
        return is_through

    def _resolve_again(self, host: HostWork) -> None:
        host.is_active = False
        self._admission.add(host)

    def _send_errand(self, server: Server) -> None:
        """A redirect of robots.txt leads to another host. It is asked there, as politely, before the server's pages."""
        server.is_away = True
        name = host_of(server_of(server.robots_url))
        host = self._hosts.setdefault(name, HostWork(name))
        host.errands.append(server)
        self._admission.add(host)

    def _start(self, host: HostWork, server: Server, now_ms: int, *, is_errand: bool = False) -> None:
        is_robots = is_errand or server.needs_robots
        url = server.robots_url if is_robots else server.urls.popleft()
        is_elsewhere = is_robots and server_of(url) != server.name
        earlier = self._task.earlier.get(url)
        exchange = Exchange(
            Origin(server_of(url), str(host.address), self._agent)
            if is_elsewhere
            else server.origin_at(host.address, self._agent),
            url,
            self._robots_limits if is_robots else self._page_limits,
            self._bodies,
            robots_for=server.name if is_robots else "",
            keeps=not is_errand and self._kept_connections.may_keep(host, server),
            conditions=earlier.conditions() if earlier and not is_robots else (),
        )
        exchange.started_at_ms = now_ms
        exchange.times_ms["waited"] = now_ms - max(host.rested_since_ms, self._began_at_ms)
        exchange.times_ms["dns"], host.dns_ms = host.dns_ms, 0
        self._asked[exchange] = host, server
        self._in_flight.add(exchange)
        self._start_transfer(exchange)

    def end(self, exchange: Exchange) -> None:
        """Takes an exchange that has ended."""
        now_ms = self._clock()
        host, server = self._asked.pop(exchange)
        host.addresses_dead = host.addresses_dead + 1 if exchange.reason in OF_ADDRESS else 0
        host.addresses_unrouted = host.addresses_unrouted + 1 if exchange.has_no_route else 0
        if exchange.reason in SIGNS_OF_LIFE:
            self._outage.note_success(ROUTE, now_ms, exchange.address)
        if exchange.was_cut_off:
            server.drops_connections = True
            self._put_back(host, server, exchange)
        elif 0 < host.addresses_dead < len(host.addresses):
            self._put_back(host, server, exchange)
        elif self._may_be_ours(host, exchange):
            self._hold(host, server, exchange, now_ms)
            return
        else:
            self._record(server, exchange)
        host.note_end(exchange, now_ms, self._config)
        if not server.needs_robots and server.has_more:
            host.rest_at_least(server.delay_ms)
            self._settlement.is_through(server)
        host.rested_since_ms = now_ms
        self._give_back(host, exchange, now_ms)

    def _put_back(self, host: HostWork, server: Server, exchange: Exchange) -> None:
        """Puts back a request that failed by nobody's fault, to be asked again after the pause: a kept connection was
        dead (RFC 9112 9.3.1), or one address of a name that has others."""
        self._in_flight.remove(exchange)
        if not exchange.is_robots:
            server.urls.appendleft(exchange.url)
        elif server.is_away:
            host.errands.appendleft(server)

    def _may_be_ours(self, host: HostWork, exchange: Exchange) -> bool:
        """Whether our own network may have failed: it is down, or knows no route to any address of the host."""
        if self._outage.is_down:
            return exchange.reason not in SIGNS_OF_LIFE
        return host.addresses_unrouted >= len(host.addresses) and not self._outage.has_route(exchange.address)

    def _hold(self, host: HostWork, server: Server, exchange: Exchange, now_ms: int) -> None:
        """Holds back a failure, and all other requests to its host."""

        def fail() -> None:
            self._record(server, exchange)
            self._admission.add(host)

        def ask_again() -> None:
            exchange.body.release()
            host.addresses_dead = host.addresses_unrouted = 0
            self._put_back(host, server, exchange)
            self._admission.add(host)

        self._in_flight.remove(exchange)
        host.rested_since_ms, host.is_active = now_ms, False
        self._politeness.end(host, now_ms, exchange.times_ms["total"], has_more=False)
        self._outage.hold(Held(ROUTE, self._task.domain_of(host.name), fail, ask_again, exchange.address))

    def _record(self, server: Server, exchange: Exchange) -> None:
        server.note(exchange.outcome)
        is_asked_again = self._outcomes.record(exchange, may_retry=not server.is_left_alone)
        if exchange.is_robots:
            block = exchange.response_head() + exchange.body.whole() if exchange.has_answer else b""
            server.note_robots(exchange.url, exchange.outcome, block)
            if server.is_away:
                self._end_errand(server)
        elif is_asked_again:
            server.urls.append(exchange.url)

    def _end_errand(self, server: Server) -> None:
        """Follows the next redirect to another host, or returns to the server's own."""
        is_elsewhere = host_of(server_of(server.robots_url)) != server.home.name
        if server.needs_robots and not server.is_left_alone and is_elsewhere:
            self._send_errand(server)
        else:
            self._admission.return_home(server)

    def _give_back(self, host: HostWork, exchange: Exchange, now_ms: int) -> None:
        """Begins the pause of the host; after a failure of its address, the next address takes over."""
        total_ms, has_more = exchange.times_ms["total"], host.has_more
        if exchange.reason in OF_ADDRESS and len(host.addresses) > 1 and has_more:
            self._politeness.end(host, now_ms, total_ms, has_more=False)
            host.addresses.append(host.addresses.pop(0))
            self._admission.admit(host, now_ms)
        else:
            self._politeness.end(host, now_ms, total_ms, has_more)
            host.is_active = has_more

    def abort(self, exchanges: list[Exchange]) -> None:
        """Takes exchanges that were interrupted: they have no end, but their hosts rest."""
        now_ms = self._clock()
        for exchange in exchanges:
            host, _ = self._asked.pop(exchange)
            exchange.body.release()
            self._politeness.end(host, now_ms, 0, has_more=False)
