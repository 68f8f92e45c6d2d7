"""Fetches a list: joins politeness, name look-ups, transfers and the page files in one loop.

The loop starts what may be started, then waits for the nearest of: a transfer that can go on, a host that becomes
ready, a sync that is due, a name that was resolved, a signal. Nothing in it waits for the disk or for DNS.
"""

from collections import deque

import trio

from contract import names
from contract.command import first_error
from contract.errors import TryLater
from contract.stage import Progress
from contract.tables import ANSWERED, FAILED, REFUSED, ROBOTS
from contract.url import host_of, server_of
from stages.fetcher.addresses import Gate
from stages.fetcher.arrivals import Arrivals
from stages.fetcher.bodies import Bodies
from stages.fetcher.descriptors import allow_connections
from stages.fetcher.engine import Engine
from stages.fetcher.exchange import Exchange, Origin, limits_of
from stages.fetcher.identity import user_agent
from stages.fetcher.job import Job, Result
from stages.fetcher.ledger import Ledger
from stages.fetcher.politeness import Politeness, Rest
from stages.fetcher.reasons import FORBIDDEN_ADDRESS, OF_ADDRESS
from stages.fetcher.repository import About, Repository
from stages.fetcher.resolver import Resolver
from stages.fetcher.resume import History, Past, read_history, remove_asides
from stages.fetcher.servers import HostWork, Server, gather_work
from stages.fetcher.stopping import Clock, Stop, say

QUEUED_MAX = 1_000  # exchanges that wait to be written, before no more is asked for
TURNS_AT_ONCE = 500  # hosts served, and URLs refused, before sockets and signals get their turn
TOGETHER_S = 0.005  # hosts that become ready within this are asked in one go
IDLE_MAX_S = 0.5  # the pace of progress
BREAK_OFF_SPARE_S = 1.0  # after which what is still in flight at the end of a cycle was held up by ourselves
KEEP_MAX_MS = 60_000  # a connection that rests longer is closed: servers close theirs by then


def download(job: Job) -> Result:
    """Fetches what is left of the list; TryLater where it was interrupted."""
    run = Download(job)
    try:
        trio.run(run.run)
    except BaseExceptionGroup as group:
        raise first_error(group) from None
    finally:
        run.close()
    job.on_end(run.stop.is_wanted)
    if run.stop.is_wanted:
        raise TryLater("interrupted: run it again to go on")
    if job.part is None:
        remove_asides(job.folder)
    left, unreachable = run.ledger.left, run.ledger.unreachable
    not_reached = [(url, unreachable.get(server_of(url), "")) for url in job.urls if url in left]
    return Result(run.ledger.tally.counts(), not_reached, dict(run.ledger.tally.errors))


class Download:
    def __init__(self, job: Job):
        self._job = job
        self._config = config = job.config
        self._agent = user_agent(config)
        self._clock = Clock()
        history, past = self._read_past()
        began_at_ms = self._began_at_ms = self._clock.now_ms()
        self._ends_at_ms = began_at_ms + max(0, round(config.cycle_max_s * 1000) - history.active_ms)
        # A transfer has this time left at the end, unless it waits for bandwidth, for which there is no limit.
        self._breaks_off_at_ms = self._ends_at_ms + round((config.total_timeout_s + BREAK_OFF_SPARE_S) * 1000)
        self.ledger = Ledger(job.urls, job.earlier, past, config.retries_max, job.on_final)
        is_resumed = history.next_number > 0
        hosts = gather_work(job.urls, job.known, past, config, began_at_ms, is_resumed=is_resumed)
        self._hosts = {host.name: host for host in hosts}
        gate = Gate(config.allow_private_addresses)
        self._politeness = Politeness(job.slots, config)
        self._arrivals = Arrivals(hosts, Resolver(config, gate), self._politeness, job.domain_of, config.dns_queries_max,
                                  self._refuse, self._give_up)
        self._asked: dict[Exchange, tuple[HostWork, Server]] = {}
        self._keepers: dict[Rest, set[str]] = {}  # of an address -> servers that keep a connection to it
        self._page_limits, self._robots_limits = limits_of(config)
        self._bodies = Bodies(job.folder, config.bodies_memory_max_bytes)
        self._progress = Progress(names.FETCHER)
        self.stop = Stop(self._clock)
        connections_max = self._count_connections()
        self._transfers_max = min(config.transfers_max, connections_max)
        first_number, step = (job.part.first_number + job.part.number, job.part.processes) if job.part else (history.next_number, 1)
        about = About(self._agent, job.part_of, history.attempts + 1, config)
        self._repository = self.ledger.repository = Repository(job.folder, first_number, about, step, job.dictionary)
        self._engine = Engine(config, connections_max, gate.lets_text, self._on_done)
        if history.next_number == 0 or (hosts and began_at_ms < self._ends_at_ms):
            self._repository.open_file(began_at_ms)

    def _read_past(self) -> tuple[History, list[Past]]:
        """What earlier attempts left, and of that what concerns this process."""
        part = self._job.part
        if part is None:
            history = read_history(self._job.folder)
            return history, history.past
        history = read_history(self._job.folder, below=part.first_number, cut=False)
        return history, [event for event in history.past if part.takes(event.robots_for or server_of(event.url))]

    def _count_connections(self) -> int:
        wanted = self._config.connections_max
        room = allow_connections(wanted, self._config.transfers_max + 2 * QUEUED_MAX)  # on their way, queued and being written
        if room < wanted:
            say(f"the limit on open files leaves room for {room} connections, not fetcher.connections_max = {wanted}: "
                f"`ulimit -n {wanted + 1000}` raises it where the system allows")
        return room

    def close(self) -> None:
        self._engine.close()
        self._repository.close()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.stop.listen, self._engine.wake)
            while True:
                self._start_what_may(now_ms := self._clock.now_ms(), nursery)
                if self._is_finished(now_ms):
                    break
                if self._repository.may_write:
                    nursery.start_soon(self._write, now_ms)
                if (due_in_s := self._repository.sync_due_in_s(now_ms)) is not None and due_in_s <= 0:
                    nursery.start_soon(self._repository.sync, now_ms)
                await self._engine.wait(self._wait_s(now_ms))
                if self._progress.is_due():
                    self._tell()
            self._break_off()
            await self._repository.write(self._clock.now_ms())
            await self._repository.sync(self._clock.now_ms(), is_last=True)
            nursery.cancel_scope.cancel()
        self._tell()

    async def _write(self, now_ms: int) -> None:
        await self._repository.write(now_ms)
        self._engine.wake()  # a sync may be due

    def _may_start(self, now_ms: int) -> bool:
        return not self.stop.is_wanted and now_ms < self._ends_at_ms

    def _has_room(self, now_ms: int) -> bool:
        return self._may_start(now_ms) and self._engine.has_bandwidth and self._repository.queued <= QUEUED_MAX

    def _is_finished(self, now_ms: int) -> bool:
        if self._engine.in_flight:
            return self.stop.is_overdue(now_ms) or now_ms >= self._breaks_off_at_ms
        if not self._may_start(now_ms):
            return True
        next_at_ms = self._politeness.next_at()
        return self._arrivals.are_over and (next_at_ms is None or next_at_ms >= self._ends_at_ms)

    def _wait_s(self, now_ms: int) -> float:
        waits_s = [IDLE_MAX_S]
        if (due_in_s := self._repository.sync_due_in_s(now_ms)) is not None:
            waits_s.append(due_in_s)
        if self._has_room(now_ms) and self._engine.in_flight < self._transfers_max:
            if self._arrivals.can_advance:
                waits_s.append(0.0)
            if (next_at_ms := self._politeness.next_at()) is not None:
                waits_s.append(max(TOGETHER_S, (next_at_ms - now_ms) / 1000))
        return min(waits_s)

    def _start_what_may(self, now_ms: int, nursery: trio.Nursery) -> None:
        if not self._has_room(now_ms):
            return
        self._arrivals.advance(now_ms, TURNS_AT_ONCE, lambda host: nursery.start_soon(self._resolve, host))
        # While transfers wait for bandwidth one more begins as they go on: none has to wait for a long body, and few crowd in.
        for _ in range(1 if self._engine.is_throttled else TURNS_AT_ONCE):
            if self._engine.in_flight >= self._transfers_max or (host := self._politeness.take(now_ms)) is None:
                return
            if not self._ask(host, now_ms):
                return

    async def _resolve(self, host: HostWork) -> None:
        await self._arrivals.resolve(host, self._clock.now_ms, lambda: self.stop.is_wanted)
        self._engine.wake()

    def _give_up(self, host: HostWork, reason: str) -> None:
        """Settles what was to be asked of a host that has no address to ask."""
        while host.errands:
            self._settle_robots(host.errands.popleft(), FAILED, reason)
        for server in list(host.servers):
            if reason != FORBIDDEN_ADDRESS and server.needs_robots and server.has_more:
                self._settle_robots(server, FAILED, reason)
            while server.has_more:
                if reason == FORBIDDEN_ADDRESS:
                    self._settle(server, server.urls.popleft(), REFUSED, reason)
                elif self._is_through(server) and server.has_more:
                    self._settle(server, server.urls.popleft(), FAILED, reason)

    def _ask(self, host: HostWork, now_ms: int) -> bool:
        """Starts the next request of a host that may be asked, if it has one; false where others must get their turn."""
        if host.expires_at_ms <= now_ms:
            self._politeness.leave(host, now_ms, has_more=False)
            self._send_on(host)
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
            is_through = self._is_through(server)
            if is_through and server.has_more:
                self._start(host, server, now_ms)
                return True
        self._politeness.leave(host, now_ms, host.has_more)
        host.is_active = host.has_more
        return is_through

    def _send_on(self, host: HostWork) -> None:
        host.is_active = False
        self._arrivals.add(host)

    def _send_errand(self, server: Server) -> None:
        """A redirect of robots.txt leads to another host: it is asked there, as politely, before the server goes on."""
        server.is_away = True
        name = host_of(server_of(server.robots_url))
        host = self._hosts.setdefault(name, HostWork(name))
        host.errands.append(server)
        self._arrivals.add(host)

    def _return_home(self, server: Server) -> None:
        server.is_away = False
        if not server.needs_robots:
            server.home.obey_late(server.delay_ms)
        if server.has_more:
            if server not in server.home.servers:
                server.home.servers.append(server)
            self._arrivals.add(server.home)

    def _is_through(self, server: Server) -> bool:
        """Settles the URLs at the head of the queue that the rules forbid; false where there may be more of them."""
        for _ in range(TURNS_AT_ONCE):
            if server.needs_robots or (url := server.pop_forbidden()) is None:
                return True
            self._settle(server, url, REFUSED, ROBOTS)
        return False

    def _refuse(self, host: HostWork) -> None:
        """Settles the URLs of a host that are not to be asked for, before anybody is asked about it."""
        refused = self._job.refused
        for server in host.servers if refused else ():
            out = [url for url in server.urls if url in refused]
            if out:
                server.urls = deque(url for url in server.urls if url not in refused)
            for url in out:
                self._settle(server, url, REFUSED, refused[url])

    def _start(self, host: HostWork, server: Server, now_ms: int, *, is_errand: bool = False) -> None:
        is_robots = is_errand or server.needs_robots
        url = server.robots_url if is_robots else server.urls.popleft()
        is_elsewhere = is_robots and server_of(url) != server.name
        earlier = self._job.earlier.get(url)
        exchange = Exchange(
            Origin(server_of(url), str(host.address), self._agent) if is_elsewhere else server.origin_at(host.address, self._agent),
            url, self._robots_limits if is_robots else self._page_limits, self._bodies, robots_for=server.name if is_robots else "",
            keeps=not is_errand and self._may_keep(host, server),
            conditions=earlier.conditions() if earlier and not is_robots else (),
        )
        exchange.started_at_ms = now_ms
        exchange.times_ms["waited"] = now_ms - max(host.rested_since_ms, self._began_at_ms)
        exchange.times_ms["dns"], host.dns_ms = host.dns_ms, 0
        self._asked[exchange] = host, server
        self._engine.start(exchange)

    def _may_keep(self, host: HostWork, server: Server) -> bool:
        """Whether the connection is kept: if the next request comes soon, and the address has room for one more beside it."""
        keepers = self._keepers.setdefault(host.address_rest, set())
        if not server.urls or server.drops_connections or server.is_on_probation or host.pause_ms > KEEP_MAX_MS:
            keepers.discard(server.name)
        elif len(keepers) < self._config.connections_per_address_max - 1:
            keepers.add(server.name)
        return server.name in keepers

    def _on_done(self, exchange: Exchange) -> None:
        now_ms = self._clock.now_ms()
        host, server = self._asked.pop(exchange)
        host.addresses_dead = host.addresses_dead + 1 if exchange.reason in OF_ADDRESS else 0
        if exchange.was_cut_off:
            server.drops_connections = True
            self._put_back(host, server, exchange)
        elif 0 < host.addresses_dead < len(host.addresses):
            self._put_back(host, server, exchange)
        else:
            self._record(server, exchange)
        if exchange.status in (429, 503):
            host.slow_down(now_ms, exchange.retry_after_s(now_ms), round(self._config.delay_s * 1000))
        elif exchange.outcome == ANSWERED:
            host.speed_up(now_ms)
        if not server.needs_robots and server.has_more:
            host.rest_at_least(server.delay_ms)
            self._is_through(server)
        host.rested_since_ms = now_ms
        self._go_on(host, exchange, now_ms)

    def _put_back(self, host: HostWork, server: Server, exchange: Exchange) -> None:
        """Nobody's failure: a kept connection was dead (RFC 9112 9.3.1), or an address of a name that has others. It is asked
        again after the pause, on a new connection or at the next address."""
        if not exchange.is_robots:
            server.urls.appendleft(exchange.url)
        elif server.is_away:
            host.errands.appendleft(server)

    def _record(self, server: Server, exchange: Exchange) -> None:
        server.note(exchange.outcome)
        is_asked_again = self.ledger.record(exchange, may_retry=not server.is_left_alone)
        if exchange.is_robots:
            block = exchange.response_head() + exchange.body.whole() if exchange.has_answer else b""
            server.note_robots(exchange.url, exchange.outcome, block)
            if server.is_away:
                self._go_on_from_errand(server)
        elif is_asked_again:
            server.urls.append(exchange.url)

    def _go_on_from_errand(self, server: Server) -> None:
        is_elsewhere = host_of(server_of(server.robots_url)) != server.home.name
        if server.needs_robots and not server.is_left_alone and is_elsewhere:
            self._send_errand(server)
        else:
            self._return_home(server)

    def _go_on(self, host: HostWork, exchange: Exchange, now_ms: int) -> None:
        total_ms, has_more = exchange.times_ms["total"], host.has_more
        if exchange.reason in OF_ADDRESS and len(host.addresses) > 1 and has_more:
            self._politeness.end(host, now_ms, total_ms, has_more=False)
            host.addresses.append(host.addresses.pop(0))
            self._arrivals.admit(host, now_ms)
        else:
            self._politeness.end(host, now_ms, total_ms, has_more)
            host.is_active = has_more

    def _settle(self, server: Server, url: str, outcome: str, reason: str) -> None:
        """Records an outcome that needed no request."""
        self.ledger.settle(url, outcome, reason, self._clock.now_ms())
        server.note(outcome)

    def _settle_robots(self, server: Server, outcome: str, reason: str) -> None:
        self.ledger.settle(server.robots_url, outcome, reason, self._clock.now_ms(), robots_for=server.name)
        server.note(outcome)
        server.note_robots(server.robots_url, outcome, b"")
        if server.is_away:
            self._return_home(server)

    def _break_off(self) -> None:
        now_ms = self._clock.now_ms()
        for exchange in self._engine.abort():
            host, _ = self._asked.pop(exchange)
            exchange.body.release()
            self._politeness.end(host, now_ms, 0, has_more=False)
        if not self.stop.is_wanted:
            self.ledger.close_books(now_ms)

    def _tell(self) -> None:
        counts = self.ledger.tally.counts()
        self._progress.tell(
            pages=counts["answered"], bytes=counts["bytes"], servers=len(self._asked), waiting=counts["not_reached"],
            errors=dict(self.ledger.tally.errors), listed=counts["listed"],
        )
