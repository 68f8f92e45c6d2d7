"""Fetches a list: joins politeness, name look-ups, transfers and the page files in one loop.

The loop starts what may be started, then waits for the nearest of: a transfer that can go on, a host that becomes
ready, a sync that is due, a name that was resolved, a signal. Nothing in it waits for the disk or for DNS.
"""

import trio

from contract import names
from contract.command import first_error
from contract.errors import ColetorError, TryLater
from contract.stage import Progress
from contract.tables import ANSWERED
from contract.url import host_of, server_of
from stages.fetcher.addresses import Gate
from stages.fetcher.bodies import Bodies
from stages.fetcher.descriptors import allow_connections
from stages.fetcher.engine import Engine
from stages.fetcher.exchange import Exchange, Origin, limits_of
from stages.fetcher.fetch_task import Job, Result
from stages.fetcher.host_admission import Arrivals
from stages.fetcher.identity import user_agent
from stages.fetcher.kept_connections import Keepers
from stages.fetcher.outage import NAMES, ROUTE, Held, Outage, Watch
from stages.fetcher.outcomes import Ledger
from stages.fetcher.politeness import Politeness
from stages.fetcher.reasons import OF_ADDRESS, SIGNS_OF_LIFE
from stages.fetcher.repository import About, Repository
from stages.fetcher.resolver import Found, Resolver
from stages.fetcher.resume import History, Past, read_history, remove_asides
from stages.fetcher.server_queues import HostWork, Server, gather_work
from stages.fetcher.settlement import Settlement
from stages.fetcher.stopping import Clock, Stop
from stages.fetcher.suspects import InFlight, Suspects, charge, read_suspects, withhold

QUEUED_MAX = 1_000  # exchanges that wait to be written, before no more is asked for
TURNS_AT_ONCE = 500  # hosts served before sockets and signals get their turn
TOGETHER_S = 0.005  # hosts that become ready within this are asked in one go
IDLE_MAX_S = 0.5  # the pace of progress
BREAK_OFF_SPARE_S = 1.0  # after which what is still in flight at the end of a cycle was held up by ourselves


def download(job: Job, suspects: Suspects | None = None) -> Result:
    """Fetches what is left of the list; TryLater where it was interrupted."""
    if suspects is None:
        suspects = Suspects(job.part.attempt, job.part.run) if job.part else read_suspects(job.folder)
    run = Download(job, suspects)
    try:
        trio.run(run.run)
        run.in_flight.clear()
    except BaseExceptionGroup as group:
        error = first_error(group)
        if isinstance(error, (ColetorError, OSError)):  # not a defect, which a page may have brought to light
            run.in_flight.clear()
        raise error from None
    finally:
        run.close()
    job.on_end(run.stop.is_wanted)
    if run.stop.is_wanted:
        raise TryLater(run.stop.why)
    if job.part is None:
        remove_asides(job.folder)
    left, unreachable = run.ledger.left, run.ledger.unreachable
    not_reached = [(url, unreachable.get(server_of(url), "")) for url in job.urls if url in left]
    return Result(run.ledger.tally.counts(), not_reached, dict(run.ledger.tally.errors))


class Download:
    def __init__(self, job: Job, suspects: Suspects):
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
        self._settlement = Settlement(
            self.ledger, job.refused, self._clock.now_ms, lambda server: self._arrivals.return_home(server)
        )
        self._resolver = Resolver(config, gate)
        self._groups = withhold(hosts, suspects)
        self._is_careful = False  # suspects are asked: nothing else is in flight beside one
        self._arrivals = Arrivals(
            hosts,
            self._resolver,
            self._politeness,
            job.domain_of,
            config.dns_queries_max,
            self._settlement.refuse,
            self._on_nowhere,
        )
        self._asked: dict[Exchange, tuple[HostWork, Server]] = {}
        self._keepers = Keepers(config.connections_per_address_max)
        self._page_limits, self._robots_limits = limits_of(config)
        self._bodies = Bodies(job.folder, config.bodies_memory_max_bytes)
        self._progress = Progress(names.FETCHER)
        self.stop = Stop(self._clock)
        self._outage = Outage()
        # Bodies on their way, queued and being written.
        connections_max = allow_connections(config.connections_max, config.transfers_max + 2 * QUEUED_MAX)
        self._transfers_max = min(config.transfers_max, connections_max)
        first_number, step = (
            (job.part.first_number + job.part.number, job.part.processes) if job.part else (history.next_number, 1)
        )
        about = About(self._agent, job.part_of, history.attempts + 1, config)
        most = self._transfers_max + 2 * QUEUED_MAX + self._transfers_max  # on their way, queued and being written
        self.in_flight = InFlight(job.folder, suspects.attempt, suspects.next_run, most)
        self._repository = self.ledger.repository = Repository(
            job.folder, first_number, about, step, job.dictionary, self.in_flight.remove_written
        )
        self._engine = Engine(config, connections_max, gate.lets_text, self._on_done)
        self._watch = Watch(
            self._outage,
            self._resolver.is_answered,
            self._clock.now_ms,
            config.outage_max_s,
            self._engine.wake,
            self.stop.end,
        )
        if history.next_number == 0 or (hosts and began_at_ms < self._ends_at_ms):
            self._repository.open_file(began_at_ms)
        self._groups = charge(self._groups, suspects, self._settlement)

    def _read_past(self) -> tuple[History, list[Past]]:
        """What earlier attempts left, and of that what concerns this process."""
        part = self._job.part
        if part is None:
            history = read_history(self._job.folder)
            return history, history.past
        history = read_history(self._job.folder, below=part.first_number, cut=False)
        return history, [event for event in history.past if part.takes(event.robots_for or server_of(event.url))]

    def close(self) -> None:
        self._engine.close()
        self._repository.close()
        self.in_flight.close()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.stop.listen, self._on_stop)
            while True:
                self._start_what_may(now_ms := self._clock.now_ms(), nursery)
                if self._is_finished(now_ms) and not self._ask_what_waits(now_ms):
                    break
                if self._watch.is_due:
                    nursery.start_soon(self._watch.look)
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

    def _on_stop(self) -> None:
        self.in_flight.clear()
        self._engine.wake()

    def _may_start(self, now_ms: int) -> bool:
        return not self.stop.is_wanted and now_ms - self._outage.lasted_ms(now_ms) < self._ends_at_ms

    def _has_room(self, now_ms: int) -> bool:
        if self._outage.is_doubted or not self._may_start(now_ms):
            return False
        return self._engine.has_bandwidth and self._repository.queued <= QUEUED_MAX

    @property
    def _has_slot(self) -> bool:
        return not self.in_flight if self._is_careful else self._engine.in_flight < self._transfers_max

    def _is_finished(self, now_ms: int) -> bool:
        if self._engine.in_flight:
            return self.stop.is_overdue(now_ms) or now_ms - self._outage.lasted_ms(now_ms) >= self._breaks_off_at_ms
        if not self._may_start(now_ms):
            return True
        next_at_ms = self._politeness.next_at()
        is_last = next_at_ms is None or next_at_ms - self._outage.lasted_ms(now_ms) >= self._ends_at_ms
        return self._arrivals.are_over and is_last and not self._outage.is_doubted

    def _ask_what_waits(self, now_ms: int) -> bool:
        """Ends what was held back and is no outage, then asks the next group of suspects; whether there is more to do."""
        if self.stop.is_wanted:
            return False
        if self._outage.doubt_names():
            return True
        is_held = self._outage.fail()
        if not self._may_start(now_ms):
            return False
        if not is_held and self._groups:
            urls, self._is_careful = self._groups.pop(0)
            for server, url in urls:
                server.urls.append(url)
                self._arrivals.return_home(server)
            return True
        return is_held

    def _wait_s(self, now_ms: int) -> float:
        waits_s = [IDLE_MAX_S]
        if (due_in_s := self._repository.sync_due_in_s(now_ms)) is not None:
            waits_s.append(due_in_s)
        if self._has_room(now_ms) and self._has_slot:
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
            if not self._has_slot or (host := self._politeness.take(now_ms)) is None:
                return
            if not self._ask(host, now_ms):
                return

    async def _resolve(self, host: HostWork) -> None:
        found = await self._arrivals.resolve(host, self._clock.now_ms, lambda: self.stop.is_wanted)
        if not found.is_silent:
            self._outage.note_success(NAMES, self._clock.now_ms())
        self._engine.wake()

    def _on_nowhere(self, host: HostWork, found: Found) -> None:
        """Takes a host that has no address to ask."""

        def ask_again() -> None:
            self._resolver.forget(host.name)
            self._arrivals.add(host)

        if found.is_silent:
            self._outage.hold(
                Held(
                    NAMES,
                    self._job.domain_of(host.name),
                    lambda: self._settlement.give_up(host, found.reason),
                    ask_again,
                )
            )
        else:
            self._settlement.give_up(host, found.reason)

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
            is_through = self._settlement.is_through(server)
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

    def _start(self, host: HostWork, server: Server, now_ms: int, *, is_errand: bool = False) -> None:
        is_robots = is_errand or server.needs_robots
        url = server.robots_url if is_robots else server.urls.popleft()
        is_elsewhere = is_robots and server_of(url) != server.name
        earlier = self._job.earlier.get(url)
        exchange = Exchange(
            Origin(server_of(url), str(host.address), self._agent)
            if is_elsewhere
            else server.origin_at(host.address, self._agent),
            url,
            self._robots_limits if is_robots else self._page_limits,
            self._bodies,
            robots_for=server.name if is_robots else "",
            keeps=not is_errand and self._keepers.may_keep(host, server),
            conditions=earlier.conditions() if earlier and not is_robots else (),
        )
        exchange.started_at_ms = now_ms
        exchange.times_ms["waited"] = now_ms - max(host.rested_since_ms, self._began_at_ms)
        exchange.times_ms["dns"], host.dns_ms = host.dns_ms, 0
        self._asked[exchange] = host, server
        self.in_flight.add(exchange)
        self._engine.start(exchange)

    def _on_done(self, exchange: Exchange) -> None:
        now_ms = self._clock.now_ms()
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
        if exchange.status in (429, 503):
            host.slow_down(now_ms, exchange.retry_after_s(now_ms), round(self._config.delay_s * 1000))
        elif exchange.outcome == ANSWERED:
            host.speed_up(now_ms)
        if not server.needs_robots and server.has_more:
            host.rest_at_least(server.delay_ms)
            self._settlement.is_through(server)
        host.rested_since_ms = now_ms
        self._go_on(host, exchange, now_ms)

    def _put_back(self, host: HostWork, server: Server, exchange: Exchange) -> None:
        """Nobody's failure: a kept connection was dead (RFC 9112 9.3.1), or an address of a name that has others. It is asked
        again after the pause, on a new connection or at the next address."""
        self.in_flight.remove(exchange)
        if not exchange.is_robots:
            server.urls.appendleft(exchange.url)
        elif server.is_away:
            host.errands.appendleft(server)

    def _may_be_ours(self, host: HostWork, exchange: Exchange) -> bool:
        """Whether a failure may be our own network's: it is down, or knows no route to any address of the host."""
        if self._outage.is_down:
            return exchange.reason not in SIGNS_OF_LIFE
        return host.addresses_unrouted >= len(host.addresses) and not self._outage.has_route(exchange.address)

    def _hold(self, host: HostWork, server: Server, exchange: Exchange, now_ms: int) -> None:
        """Holds back a failure, and what else there is to ask of its host."""

        def fail() -> None:
            self._record(server, exchange)
            self._arrivals.add(host)

        def ask_again() -> None:
            exchange.body.release()
            host.addresses_dead = host.addresses_unrouted = 0
            self._put_back(host, server, exchange)
            self._arrivals.add(host)

        self.in_flight.remove(exchange)
        host.rested_since_ms, host.is_active = now_ms, False
        self._politeness.end(host, now_ms, exchange.times_ms["total"], has_more=False)
        self._outage.hold(Held(ROUTE, self._job.domain_of(host.name), fail, ask_again, exchange.address))

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
            self._arrivals.return_home(server)

    def _go_on(self, host: HostWork, exchange: Exchange, now_ms: int) -> None:
        total_ms, has_more = exchange.times_ms["total"], host.has_more
        if exchange.reason in OF_ADDRESS and len(host.addresses) > 1 and has_more:
            self._politeness.end(host, now_ms, total_ms, has_more=False)
            host.addresses.append(host.addresses.pop(0))
            self._arrivals.admit(host, now_ms)
        else:
            self._politeness.end(host, now_ms, total_ms, has_more)
            host.is_active = has_more

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
        self._progress.report(
            pages=counts["answered"],
            bytes=counts["bytes"],
            servers=len(self._asked),
            waiting=counts["not_reached"],
            errors=dict(self.ledger.tally.errors),
            listed=counts["listed"],
            outage_s=self._outage.present_ms(self._clock.now_ms()) // 1000,
        )
