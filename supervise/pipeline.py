"""Keeps several cycles of the ring in flight: while one fetches, another one extracts or merges.

One task per cycle, in a trio nursery, and one task that plans the next cycle whenever a block is free. Each cycle works
on a block of its own, so cycles need no locks. How many stages of a kind run at once is up to the ring's limiters.
"""

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import trio

from contract.log import KINDS
from contract.plan import Plan
from contract.units import count, size
from supervise.attempts import Stopped
from supervise.crawl_state import now_ms
from supervise.flights import Flight
from supervise.ring import Ring
from supervise.turns import Done, Sleep, Turn

INBOX_LOOK_S = 5.0  # how often a crawl that waits looks for seeds in inbox/


@dataclass(frozen=True)
class Limits:
    """When a run ends."""

    cycles: int | None = None
    max_pages: int | None = None
    max_bytes: int | None = None
    max_hours: float | None = None
    until_done: bool = False
    patience_s: float = math.inf  # with until_done: how long to wait without a page while nothing is due
    waits: bool = True  # for what is due later; else the run ends

    @property
    def is_bounded(self) -> bool:
        return bool(self.until_done or self.cycles or self.max_pages or self.max_bytes or not self.waits)


class Reached(NamedTuple):
    """A limit."""

    word: str


class OutOfPatience(NamedTuple):
    """Only servers that are not due yet are left, and no page came for a while."""

    until_ms: int


End = Reached | OutOfPatience | Sleep | Done


class Pipeline:
    def __init__(self, ring: Ring, limits: Limits, flights_max: int, stop_after: str | None = None):
        self._ring = ring
        self._limits = limits
        self._flights_max = flights_max
        self._stop_after = stop_after  # the stage after which a run of one cycle stops
        self._flights = ring.flights.flights
        self._places = trio.CapacityLimiter(flights_max)  # for resumed cycles, which may be more
        self._changed = trio.Event()
        ring.on_change = self.wake
        self._error: BaseException | None = None
        self._end_s = time.monotonic() + limits.max_hours * 3600 if limits.max_hours is not None else math.inf
        self._last_page_s = time.monotonic()
        self._pages_seen = 0

    async def run(self) -> End:
        """Runs cycles to a limit. An error, or a stop, ends all cycles in order first; they stay open."""
        end: End | None = None
        async with trio.open_nursery() as nursery:
            try:
                for plan in self._ring.prepare(self._flights_max):
                    self._ring.report("resume", plan=plan)
                    if KINDS[plan.kind].from_inbox:
                        await self._ring.finish(plan)  # before inbox/ is looked at: its file may still be there
                    else:
                        self._start(nursery, plan)
                nursery.start_soon(self._delete)
                end = await self._keep_planning(nursery)
            except Exception as error:
                self._fail(error)
        if self._error is not None:
            raise self._error
        return end

    def _start(self, nursery: trio.Nursery, plan: Plan) -> None:
        self._flights[plan.cycle] = Flight(plan)
        nursery.start_soon(self._finish, plan)

    async def _finish(self, plan: Plan) -> None:
        """One cycle in flight."""
        try:
            async with self._places:
                is_committed = await self._ring.finish(plan, self._stop_after)
        except Exception as error:
            self._fail(error)
            return
        finally:
            del self._flights[plan.cycle]
            self.wake()
        if is_committed:
            await self._delete()

    async def _delete(self) -> None:
        try:
            await self._ring.delete_superseded()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """The first error counts; the other cycles are stopped in order, and the next run resumes them."""
        if self._error is None or isinstance(self._error, Stopped) and not isinstance(error, Stopped):
            self._error = error
        self._ring.attempts.stopping.set()
        self.wake()

    def wake(self) -> None:
        """Something changed that may decide what is planned next."""
        self._changed.set()
        self._changed = trio.Event()

    async def _wait(self, until_ms: int | None = None) -> None:
        """Until something changes, a moment has come, or inbox/ is to be looked at."""
        changed, stopping = self._changed, self._ring.attempts.stopping
        due_s = (until_ms - now_ms()) / 1000 if until_ms is not None else math.inf
        left_s = self._end_s - time.monotonic()  # after the end of the run only its cycles are waited for
        with trio.move_on_after(max(0.0, min(due_s, INBOX_LOOK_S, left_s if left_s > 0 else math.inf))):
            async with trio.open_nursery() as nursery:

                async def end_with(event: trio.Event) -> None:
                    await event.wait()
                    nursery.cancel_scope.cancel()

                nursery.start_soon(end_with, changed)
                nursery.start_soon(end_with, stopping)

    async def _keep_planning(self, nursery: trio.Nursery) -> End:
        """Plans cycles and starts them, until the run has come to its end and no cycle is in flight."""
        ring = self._ring
        while True:
            ring.attempts.stop_if_asked()
            if reached := self._find_limit():
                if not self._flights:
                    return reached
                await self._wait()
                continue
            if len(self._flights) >= self._flights_max or self._pages_left() == 0:
                await self._wait()
                continue
            await ring.take_inbox()
            ring.attempts.stop_if_asked()  # a block whose cycle was stopped meanwhile is not free
            choice = ring.choose(until_done=self._limits.until_done)
            if isinstance(choice, Turn):
                if self._may_plan(choice):
                    self._start(nursery, ring.plan(choice, self._pages_left()))
                else:
                    await self._wait()
            elif self._flights:  # what they find may be work for another block
                await self._wait(choice.until_ms if isinstance(choice, Sleep) else None)
            elif end := self._find_end(choice):
                return end
            else:
                until_ms = choice.until_ms if isinstance(choice, Sleep) else None
                ring.flights.sleeps_until_ms = until_ms or 0
                ring.report("sleep", until_ms=until_ms)
                await self._wait(until_ms)
                ring.flights.sleeps_until_ms = None

    def _may_plan(self, turn: Turn) -> bool:
        """Whether --cycles leaves room for one more cycle that fetches."""
        limit, fetching = self._limits.cycles, self._count_fetching()
        return limit is None or not KINDS[turn.kind].fetches or self._ring.flights.counts.cycles + fetching < limit

    def _count_fetching(self) -> int:
        return sum(KINDS[flight.plan.kind].fetches for flight in self._flights.values())

    def _pages_left(self) -> int | None:
        """What --max-pages leaves for the next list: URLs on open lists count, those of held cycles too."""
        if self._limits.max_pages is None:
            return None
        open_pages = sum(flight.pages_at_most for flight in self._flights.values()) + self._ring.held_pages
        return max(0, self._limits.max_pages - self._ring.flights.counts.answered - open_pages)

    def _find_limit(self) -> Reached | None:
        """The limit that what is committed has reached."""
        limits, run = self._limits, self._ring.flights.counts
        if limits.cycles is not None and run.cycles >= limits.cycles:
            return Reached(f"{count(limits.cycles, 'cycle')} done")
        if limits.max_pages is not None and run.answered + self._ring.held_pages >= limits.max_pages:
            return Reached(f"{count(run.answered, 'page')}: --max-pages reached")
        if limits.max_bytes is not None and run.bytes >= limits.max_bytes:
            return Reached(f"{size(run.bytes)}: --max-bytes reached")
        if time.monotonic() >= self._end_s:
            return Reached("--max-hours reached")
        return None

    def _find_end(self, choice: Sleep | Done) -> End | None:
        """Whether the run ends although no limit is reached: nothing is in flight, and nothing is due now."""
        if isinstance(choice, Done):
            return choice if self._limits.is_bounded or choice.blocked else None
        if not self._limits.waits:
            return choice
        if not self._limits.until_done:
            return None
        answered = self._ring.flights.counts.answered
        if answered != self._pages_seen:
            self._pages_seen, self._last_page_s = answered, time.monotonic()
        patience_ends_s = self._last_page_s + self._limits.patience_s - time.monotonic()
        # If nothing can come before the patience ends, waiting for that moment is of no use.
        return OutOfPatience(choice.until_ms) if choice.until_ms - now_ms() > patience_ends_s * 1000 else None
