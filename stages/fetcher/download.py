"""Fetches a list: joins politeness, name look-ups, transfers and the page files in one loop.

The loop starts what may be started, then waits for the nearest of: a transfer that can continue, a host that becomes
ready, a sync that is due, a name that was resolved, a signal. Nothing in it waits for the disk or for DNS.
"""

import trio

from contract import names
from contract.command import first_error
from contract.errors import ColetorError, TryLater
from contract.stage import Progress
from contract.url import server_of
from stages.fetcher.addresses import Gate
from stages.fetcher.descriptors import allow_connections
from stages.fetcher.engine import Engine
from stages.fetcher.fetch_task import FetchTask, Result
from stages.fetcher.host_admission import HostAdmission
from stages.fetcher.identity import user_agent
from stages.fetcher.outage import NAMES, Held, Outage, Watch
from stages.fetcher.outcomes import Outcomes
from stages.fetcher.politeness import Politeness
from stages.fetcher.repository import About, Repository
from stages.fetcher.request_flow import RequestFlow
from stages.fetcher.resolver import Found, Resolver
from stages.fetcher.resume import History, Past, read_history, remove_asides
from stages.fetcher.server_queues import HostWork, gather_work
from stages.fetcher.settlement import Settlement
from stages.fetcher.stopping import Clock, Stop
from stages.fetcher.suspects import InFlight, Suspects, charge, read_suspects, withhold

QUEUED_MAX = 1_000  # exchanges that wait to be written, before no more is asked for
HOSTS_AT_ONCE = 500  # asked or resolved before sockets and signals get their turn
TOGETHER_S = 0.005  # hosts that become ready within this are asked together
IDLE_MAX_S = 0.5  # the pace of progress
INTERRUPT_SPARE_S = (
    1.0  # a transfer that is still in flight so long after the last one's limit was delayed by ourselves
)


def download(task: FetchTask, suspects: Suspects | None = None) -> Result:
    """Fetches what is left of the list; TryLater where it was interrupted."""
    if suspects is None:
        suspects = Suspects(task.part.attempt, task.part.run) if task.part else read_suspects(task.folder)
    run = Download(task, suspects)
    try:
        trio.run(run.run)
        run.in_flight.clear()
    except BaseExceptionGroup as group:
        error = first_error(group)
        if isinstance(error, (ColetorError, OSError)):  # any other is a defect, which a page may have caused
            run.in_flight.clear()
        raise error from None
    finally:
        run.close()
    task.on_end(run.stop.is_wanted)
    if run.stop.is_wanted:
        raise TryLater(run.stop.why)
    if task.part is None:
        remove_asides(task.folder)
    left, unreachable = run.outcomes.left, run.outcomes.unreachable
    not_reached = [(url, unreachable.get(server_of(url), "")) for url in task.urls if url in left]
    return Result(run.outcomes.counts.as_dict(), not_reached, dict(run.outcomes.counts.errors))


class Download:
    def __init__(self, task: FetchTask, suspects: Suspects):
        self._task = task
        config = task.config
        self._clock = Clock()
        history, past = self._read_past()
        began_at_ms = self._clock.now_ms()
        self._ends_at_ms = began_at_ms + max(0, round(config.cycle_max_s * 1000) - history.active_ms)
        # A transfer has this time left at the end, unless it waits for bandwidth, for which there is no limit.
        self._interrupts_at_ms = self._ends_at_ms + round((config.total_timeout_s + INTERRUPT_SPARE_S) * 1000)
        self.outcomes = Outcomes(task.urls, task.earlier, past, config.retries_max, task.on_final)
        is_resumed = history.next_number > 0
        hosts = gather_work(task.urls, task.known, past, config, began_at_ms, is_resumed=is_resumed)
        gate = Gate(config.allow_private_addresses)
        self._politeness = Politeness(task.slots, config)
        self._settlement = Settlement(
            self.outcomes, task.refused, self._clock.now_ms, lambda server: self._admission.return_home(server)
        )
        self._resolver = Resolver(config, gate)
        self._groups = withhold(hosts, suspects)
        self._is_careful = False  # while suspects are asked, each is in flight alone
        self._admission = HostAdmission(
            hosts,
            self._resolver,
            self._politeness,
            task.domain_of,
            config.dns_queries_max,
            self._settlement.refuse,
            self._on_no_address,
        )
        self._progress = Progress(names.FETCHER)
        self.stop = Stop(self._clock)
        self._outage = Outage()
        # Bodies on their way, queued and being written.
        connections_max = allow_connections(config.connections_max, config.transfers_max + 2 * QUEUED_MAX)
        self._transfers_max = min(config.transfers_max, connections_max)
        first_number, step = (
            (task.part.first_number + task.part.number, task.part.processes) if task.part else (history.next_number, 1)
        )
        about = About(user_agent(config), task.part_of, history.attempts + 1, config)
        in_flight_max = (
            self._transfers_max + 2 * QUEUED_MAX + self._transfers_max
        )  # on their way, queued, being written
        self.in_flight = InFlight(task.folder, suspects.attempt, suspects.next_run, in_flight_max)
        self._repository = self.outcomes.repository = Repository(
            task.folder, first_number, about, step, task.dictionary, self.in_flight.remove_written
        )
        self._flow = RequestFlow(
            task,
            hosts,
            self._politeness,
            self._admission,
            self.outcomes,
            self._settlement,
            self._outage,
            self.in_flight,
            began_at_ms,
            self._clock.now_ms,
            lambda exchange: self._engine.start(exchange),
        )
        self._engine = Engine(config, connections_max, gate.lets_text, self._flow.end)
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
        part = self._task.part
        if part is None:
            history = read_history(self._task.folder)
            return history, history.past
        history = read_history(self._task.folder, below=part.first_number, cut=False)
        return history, [event for event in history.past if part.takes(event.robots_for or server_of(event.url))]

    def close(self) -> None:
        self._engine.close()
        self._repository.close()
        self.in_flight.close()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.stop.listen, self._on_stop)
            while True:
                self._start_requests(now_ms := self._clock.now_ms(), nursery)
                if self._is_finished(now_ms) and not self._release_held(now_ms):
                    break
                if self._watch.is_due:
                    nursery.start_soon(self._watch.look)
                if self._repository.may_write:
                    nursery.start_soon(self._write, now_ms)
                if (due_in_s := self._repository.sync_due_in_s(now_ms)) is not None and due_in_s <= 0:
                    nursery.start_soon(self._repository.sync, now_ms)
                await self._engine.wait(self._wait_s(now_ms))
                if self._progress.is_due():
                    self._report()
            self._interrupt_transfers()
            await self._repository.write(self._clock.now_ms())
            await self._repository.sync(self._clock.now_ms(), is_last=True)
            nursery.cancel_scope.cancel()
        self._report()

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
            return self.stop.is_overdue(now_ms) or now_ms - self._outage.lasted_ms(now_ms) >= self._interrupts_at_ms
        if not self._may_start(now_ms):
            return True
        next_at_ms = self._politeness.next_at()
        is_last = next_at_ms is None or next_at_ms - self._outage.lasted_ms(now_ms) >= self._ends_at_ms
        return self._admission.is_over and is_last and not self._outage.is_doubted

    def _release_held(self, now_ms: int) -> bool:
        """Ends held-back failures that are no outage, else releases the next suspects; whether there were any."""
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
                self._admission.return_home(server)
            return True
        return is_held

    def _wait_s(self, now_ms: int) -> float:
        waits_s = [IDLE_MAX_S]
        if (due_in_s := self._repository.sync_due_in_s(now_ms)) is not None:
            waits_s.append(due_in_s)
        if self._has_room(now_ms) and self._has_slot:
            if self._admission.can_advance:
                waits_s.append(0.0)
            if (next_at_ms := self._politeness.next_at()) is not None:
                waits_s.append(max(TOGETHER_S, (next_at_ms - now_ms) / 1000))
        return min(waits_s)

    def _start_requests(self, now_ms: int, nursery: trio.Nursery) -> None:
        if not self._has_room(now_ms):
            return
        self._admission.advance(now_ms, HOSTS_AT_ONCE, lambda host: nursery.start_soon(self._resolve, host))
        # While transfers wait for bandwidth, one more starts per turn: no host waits for a long body, and few crowd in.
        for _ in range(1 if self._engine.is_throttled else HOSTS_AT_ONCE):
            if not self._has_slot or (host := self._politeness.take(now_ms)) is None:
                return
            if not self._flow.ask(host, now_ms):
                return

    async def _resolve(self, host: HostWork) -> None:
        found = await self._admission.resolve(host, self._clock.now_ms, lambda: self.stop.is_wanted)
        if not found.is_silent:
            self._outage.note_success(NAMES, self._clock.now_ms())
        self._engine.wake()

    def _on_no_address(self, host: HostWork, found: Found) -> None:
        """Takes a host that has no address to ask."""

        def ask_again() -> None:
            self._resolver.forget(host.name)
            self._admission.add(host)

        if found.is_silent:
            self._outage.hold(
                Held(
                    NAMES,
                    self._task.domain_of(host.name),
                    lambda: self._settlement.give_up(host, found.reason),
                    ask_again,
                )
            )
        else:
            self._settlement.give_up(host, found.reason)

    def _interrupt_transfers(self) -> None:
        self._flow.abort(self._engine.abort())
        if not self.stop.is_wanted:
            self.outcomes.end_retries(self._clock.now_ms())

    def _report(self) -> None:
        now_ms = self._clock.now_ms()
        counts, transfers = self.outcomes.counts.as_dict(), len(self._flow)
        next_at_ms = self._politeness.next_at()
        self._progress.report(
            listed=counts["listed"],
            pages=counts["answered"],
            failed=counts["failed"],
            refused=counts["refused"],
            waiting=counts["not_reached"],
            bytes=counts["bytes"],
            transfers=transfers,
            lookups=self._admission.pending,
            hosts=self._politeness.waiting + self._admission.pending + transfers,
            next_ms=0 if next_at_ms is None else max(0, next_at_ms - now_ms),
            left_s=max(0, self._ends_at_ms + self._outage.lasted_ms(now_ms) - now_ms) // 1000,
            errors=dict(self.outcomes.counts.errors),
            outage_s=self._outage.present_ms(now_ms) // 1000,
        )
