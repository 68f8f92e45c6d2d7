"""Fetches a list: joins politeness, name look-ups, transfers and the page files in one loop.

The loop starts what may be started, then waits for the nearest of: a transfer that can go on, a host that becomes
ready, a sync that is due, a name that was resolved, a signal. Nothing in it waits for the disk or for DNS.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import trio

from contract import names
from contract.command import first_error
from contract.config import Fetcher
from contract.errors import TryLater
from contract.stage import Progress
from contract.tables import FAILED, REFUSED, ROBOTS
from contract.url import server_of
from stages.fetcher.engine import Engine, allow_descriptors
from stages.fetcher.exchange import FORBIDDEN_ADDRESS, REJECT_DOMAINS, Exchange
from stages.fetcher.identity import user_agent
from stages.fetcher.politeness import Politeness
from stages.fetcher.repository import About, Repository
from stages.fetcher.resolver import Address, Resolver
from stages.fetcher.resume import read_history, remove_asides
from stages.fetcher.servers import HostWork, Known, Server, gather_work
from stages.fetcher.slots import FileSlots, MemorySlots, slot_of
from stages.fetcher.stopping import Clock, Stop, say
from stages.fetcher.tally import Tally

RESOLVING_MAX = 32  # look-ups at once: below trio's 40 threads
TURNS_AT_ONCE = 500  # hosts served, and URLs refused, before sockets and signals get their turn
IDLE_MAX_S = 0.5  # the pace of progress


@dataclass(frozen=True)
class Job:
    folder: Path  # the stage's folder, not published
    urls: list[str]
    known: dict[str, Known]
    config: Fetcher
    left_out: frozenset[str]  # servers that are not asked: their owners do not want it
    part_of: str
    slots: FileSlots | MemorySlots
    on_final: Callable[[str, str, int, int], None]  # URL, status or reason, bytes, ms


class Result(NamedTuple):
    counts: dict[str, int]  # over all attempts
    not_reached: list[tuple[str, str]]  # URL, and why its server's robots.txt could not be had, where that is the reason


def download(job: Job) -> Result:
    """Fetches what is left of the list; TryLater where it was interrupted."""
    run = Download(job)
    try:
        trio.run(run.run)
    except BaseExceptionGroup as group:
        raise first_error(group) from None
    finally:
        run.close()
    if run.stop.is_wanted:
        raise TryLater("interrupted: run it again to go on")
    remove_asides(job.folder)
    return Result(run.tally.counts(), [(url, run.unreachable.get(server_of(url), "")) for url in job.urls if url in run.left])


class Download:
    def __init__(self, job: Job):
        self._job = job
        self._config = job.config
        self._agent = user_agent(job.config)
        self._clock = Clock()
        history = read_history(job.folder)
        began_at_ms = self._began_at_ms = self._clock.now_ms()
        self._ends_at_ms = began_at_ms + max(0, round(job.config.cycle_max_s * 1000) - history.active_ms)
        self.left = set(job.urls)
        self.unreachable: dict[str, str] = {}  # server -> reason
        self.tally = Tally(len(self.left))
        for event in history.past:
            ends = event.is_final and event.url in self.left  # not: a URL of another list that was fetched here before
            if ends:
                self.left.remove(event.url)
            self.tally.count(event.outcome, event.reason, event.bytes, is_robots=event.is_robots, is_final=ends)
        hosts = gather_work(job.urls, job.known, history.past, job.config, began_at_ms, is_resumed=history.next_number > 0)
        self._unresolved = deque(hosts)
        self._resolving = 0
        self._resolver = Resolver(job.config.hosts_file, job.config.allow_private_addresses)
        self._politeness = Politeness(job.slots, round(job.config.delay_s * 1000))
        self._asked: dict[Exchange, tuple[HostWork, Server]] = {}
        self._progress = Progress(names.FETCHER)
        self.stop = Stop(self._clock)
        self._transfers_max = allow_descriptors(job.config.transfers_max)
        if self._transfers_max < job.config.transfers_max:
            say(f"the limit on open files leaves room for {self._transfers_max} transfers, "
                f"not fetcher.transfers_max = {job.config.transfers_max}")
        about = About(self._agent, job.part_of, history.attempts + 1, job.config)
        self._repository = Repository(job.folder, history.next_number, about)
        self._engine = Engine(job.config.connect_timeout_s, job.config.total_timeout_s, self._on_done)
        if history.next_number == 0 or (hosts and began_at_ms < self._ends_at_ms):
            self._repository.open_file(began_at_ms)

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
                if (due_in_s := self._repository.sync_due_in_s(now_ms)) is not None and due_in_s <= 0:
                    nursery.start_soon(self._repository.sync, now_ms)
                await self._engine.wait(self._wait_s(now_ms))
                if self._progress.is_due():
                    self._tell()
            self._break_off()
            await self._repository.sync(self._clock.now_ms())
            nursery.cancel_scope.cancel()
        self._tell()

    def _may_start(self, now_ms: int) -> bool:
        return not self.stop.is_wanted and now_ms < self._ends_at_ms

    def _is_finished(self, now_ms: int) -> bool:
        if self._engine.in_flight:
            return self.stop.is_overdue(now_ms)
        if not self._may_start(now_ms):
            return True
        next_at_ms = self._politeness.next_at()
        nothing_in_time = next_at_ms is None or next_at_ms >= self._ends_at_ms
        return nothing_in_time and not self._unresolved and not self._resolving

    def _wait_s(self, now_ms: int) -> float:
        waits_s = [IDLE_MAX_S]
        if (due_in_s := self._repository.sync_due_in_s(now_ms)) is not None:
            waits_s.append(due_in_s)
        if self._may_start(now_ms) and self._engine.in_flight < self._transfers_max:
            if (next_at_ms := self._politeness.next_at()) is not None:
                waits_s.append((next_at_ms - now_ms) / 1000)
        return min(waits_s)

    def _start_what_may(self, now_ms: int, nursery: trio.Nursery) -> None:
        if not self._may_start(now_ms):
            return
        while self._unresolved and self._resolving < RESOLVING_MAX:
            host = self._unresolved.popleft()
            self._leave_out(host)
            if not host.has_more:
                continue
            if (found := self._resolver.look_up(host.name)) is not None:
                self._take_address(host, *found)
            else:
                self._resolving += 1
                nursery.start_soon(self._resolve, host)
        for _ in range(TURNS_AT_ONCE):
            if self._engine.in_flight >= self._transfers_max or (host := self._politeness.take(now_ms)) is None:
                return
            if not self._ask(host, now_ms):
                return

    def _leave_out(self, host: HostWork) -> None:
        for server in host.servers:
            while server.name in self._job.left_out and server.has_more:
                self._settle(server, server.urls.popleft(), REFUSED, REJECT_DOMAINS)

    async def _resolve(self, host: HostWork) -> None:
        address, reason = await self._resolver.resolve(host.name)
        self._resolving -= 1
        if not self.stop.is_wanted:
            self._take_address(host, address, reason)
        self._engine.wake()

    def _take_address(self, host: HostWork, address: Address | None, reason: str) -> None:
        if address is not None:
            host.address = str(address)
            self._politeness.admit(host, slot_of(address), self._clock.now_ms())
            return
        for server in host.servers:
            if reason == FORBIDDEN_ADDRESS:
                while server.has_more:
                    self._settle(server, server.urls.popleft(), REFUSED, reason)
            elif server.needs_robots:
                self._settle(server, server.robots_url, FAILED, reason, is_robots=True)
            while server.has_more:
                if (url := server.pop_forbidden()) is not None:
                    self._settle(server, url, REFUSED, ROBOTS)
                else:
                    self._settle(server, server.urls.popleft(), FAILED, reason)

    def _ask(self, host: HostWork, now_ms: int) -> bool:
        """Starts the next request of a host that may be asked, if it has one; false where others must get their turn."""
        is_through = True
        while is_through and (server := host.next_server()) is not None:
            if server.needs_robots:
                self._start(host, server, server.robots_url, now_ms, is_robots=True)
                return True
            host.rest_at_least(server.delay_ms)
            is_through = self._refuse_first(server)
            if is_through and server.has_more:
                self._start(host, server, server.urls.popleft(), now_ms)
                return True
        self._politeness.leave(host, now_ms, host.has_more)
        return is_through

    def _refuse_first(self, server: Server) -> bool:
        """Settles the forbidden URLs at the head of the queue; false where there may be more of them."""
        for _ in range(TURNS_AT_ONCE):
            if (url := server.pop_forbidden()) is None:
                return True
            self._settle(server, url, REFUSED, ROBOTS)
        return False

    def _start(self, host: HostWork, server: Server, url: str, now_ms: int, *, is_robots: bool = False) -> None:
        body_max_bytes = self._config.robots_max_bytes if is_robots else self._config.body_max_bytes
        exchange = Exchange(url, host.address, self._agent, self._config.header_max_bytes, body_max_bytes, is_robots=is_robots)
        exchange.started_at_ms = now_ms
        exchange.times_ms["waited"] = now_ms - max(host.ready_at_ms, self._began_at_ms)
        self._asked[exchange] = host, server
        self._engine.start(exchange)

    def _on_done(self, exchange: Exchange) -> None:
        now_ms = self._clock.now_ms()
        host, server = self._asked.pop(exchange)
        block_bytes = self._repository.write_exchange(exchange, now_ms)
        self.tally.count(exchange.outcome, exchange.reason, block_bytes, is_robots=exchange.is_robots,
                         is_final=not exchange.is_robots)
        server.note(exchange.outcome)
        if exchange.is_robots:
            server.note_robots(exchange.url, exchange.outcome, exchange.response_block())
            if exchange.outcome == FAILED:
                self.unreachable[server.name] = exchange.reason
        else:
            self._end_url(exchange.url, exchange.what, block_bytes, exchange.times_ms["total"])
        if not server.needs_robots and server.has_more:
            host.rest_at_least(server.delay_ms)
            self._refuse_first(server)
        self._politeness.end(host, now_ms, host.has_more)

    def _settle(self, server: Server, url: str, outcome: str, reason: str, *, is_robots: bool = False) -> None:
        """Records an outcome that needed no request."""
        now_ms = self._clock.now_ms()
        self._repository.write_outcome(url, outcome, reason, now_ms, now_ms, is_robots=is_robots)
        self.tally.count(outcome, reason, 0, is_robots=is_robots, is_final=not is_robots)
        server.note(outcome)
        if is_robots:
            self.unreachable[server.name] = reason
            server.note_robots(url, outcome, b"")
        else:
            self._end_url(url, reason, 0, 0)

    def _end_url(self, url: str, what: str, size_bytes: int, total_ms: int) -> None:
        self.left.discard(url)
        self._job.on_final(url, what, size_bytes, total_ms)

    def _break_off(self) -> None:
        now_ms = self._clock.now_ms()
        for exchange in self._engine.abort():
            host, _ = self._asked.pop(exchange)
            self._politeness.end(host, now_ms, has_more=False)

    def _tell(self) -> None:
        counts = self.tally.counts()
        self._progress.tell(
            pages=self.tally.done, bytes=counts["bytes"], servers=len(self._asked), waiting=counts["not_reached"],
            errors=dict(self.tally.errors), listed=counts["listed"],
        )

