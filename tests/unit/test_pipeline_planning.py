"""The task that plans: what it does when a stop, or the end of the run, comes while cycles are in flight."""

import time
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from contract.log import CRAWL
from supervise.attempts import Stopped
from supervise.flights import Flights
from supervise.pipeline import Limits, Pipeline
from supervise.turns import Turn
from tests.made_up_flights import make_plan


class MadeUpRing:
    """One block, whose cycle lasts until it is stopped or released."""

    def __init__(self):
        self.flights = Flights(0.0, 0)
        self.attempts = SimpleNamespace(stopping=trio.Event(), stop_if_asked=self._stop_if_asked)
        self.held_pages = 0
        self.released = trio.Event()
        self.planned: list[int] = []
        self.on_inbox = lambda: None
        self.report = lambda event, **facts: None

    def _stop_if_asked(self) -> None:
        if self.attempts.stopping.is_set():
            raise Stopped

    def prepare(self, flights_max: int) -> list:
        return []

    async def take_inbox(self) -> None:
        """Takes so long that a cycle which a stop ends is gone in between."""
        if self.flights.flights:
            self.on_inbox()
            await trio.testing.wait_all_tasks_blocked()
            await trio.lowlevel.checkpoint()

    def choose(self, *, until_done: bool) -> Turn:
        return Turn(CRAWL, len(self.flights.flights))

    def plan(self, turn: Turn, pages_max: int | None):
        self.planned.append(turn.block)
        return make_plan(len(self.planned), turn.block)

    async def finish(self, plan, stop_after) -> bool:
        async with trio.open_nursery() as nursery:

            async def end_with(event: trio.Event) -> None:
                await event.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(end_with, self.attempts.stopping)
            nursery.start_soon(end_with, self.released)
        self.attempts.stop_if_asked()
        self.flights.counts.cycles += 1
        return True

    async def delete_superseded(self) -> None:
        pass


def test_a_block_whose_cycle_was_stopped_while_seeds_were_taken_in_is_not_planned_again():
    async def main():
        ring = MadeUpRing()
        ring.on_inbox = ring.attempts.stopping.set
        with pytest.raises(Stopped):
            await Pipeline(ring, Limits(), 2).run()
        return ring.planned

    assert trio.run(main) == [0]


def test_cycles_that_outlast_the_end_of_the_run_are_waited_for_without_looking_again_and_again():
    async def main():
        ring = MadeUpRing()
        pipeline = Pipeline(ring, Limits(max_hours=1.0), 1)
        looks = []
        find_limit, pipeline._find_limit = pipeline._find_limit, lambda: (looks.append(1), find_limit())[1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pipeline.run)
            await trio.testing.wait_all_tasks_blocked()
            pipeline._end_s = time.monotonic() - 1
            pipeline.wake()
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()
            ring.released.set()
        return len(looks)

    assert trio.run(main) < 10
