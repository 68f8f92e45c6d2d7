"""A run of the ring by one of its commands: lock, signals, display, and how it ends."""

import signal
import time
from collections.abc import Awaitable, Callable

import trio

from contract.command import given, setting_aside
from contract.crawl_folder import hold_lock, open_folder
from contract.errors import EX_DATAERR, EX_TEMPFAIL
from contract.lines import say
from contract.units import count, duration, size
from supervise.crawl_state import CrawlState
from supervise.display import Display
from supervise.replacement import settle
from supervise.ring import Ring, Stopped
from supervise.stage_process import Stages

Body = Callable[[Ring], Awaitable[str]]  # turns the ring, returns the word to end with


class Session:
    """Holds the crawl's lock from its making to the end of the process."""

    def __init__(self, arguments):
        self.options = given(arguments)
        self.crawl = open_folder(arguments.crawl)
        self.quiet = arguments.quiet
        self._lock = hold_lock(self.crawl)
        self.config = settle(self.crawl, arguments)
        self.display = Display(self.quiet, self.config)
        self.seconds = 0.0
        self.stopped = False
        self.word = ""

    def run(self, body: Body) -> int:
        """Runs the body; the exit code tells whether work is held up or was interrupted."""
        began = time.monotonic()
        try:
            with self.display:
                damage, held = trio.run(self._main, body)
        finally:
            self.seconds = time.monotonic() - began
        for line in (*damage, *held):
            self.display.line(line)
        return EX_DATAERR if damage else EX_TEMPFAIL if held else 0

    async def _main(self, body: Body) -> tuple[list[str], list[str]]:
        """Runs the body; returns what is damaged and which cycles are held."""
        crawl_state = CrawlState(self.crawl)
        stages = Stages(
            crawl_state, self._lock, self.config.supervisor.stop_grace_s, self.display.progress, self.display.line
        )
        self.display.memory_bytes = stages.memory_bytes
        ring = Ring(crawl_state, self.config, stages, self.display.tell, self.options)
        async with trio.open_nursery() as nursery:
            await nursery.start(watch_signals, stages, self.display)
            try:
                with setting_aside(self.crawl):
                    self.word = await body(ring)
            except Stopped as stopped:
                self.stopped = stages.stopping.is_set()
                self.word = str(stopped)
            nursery.cancel_scope.cancel()
        return ring.damage, ring.held

    def say(self, text: str) -> None:
        if not self.quiet:
            say(text)

    def summarise(self) -> None:
        tally = self.display.tally
        self.say(
            f"{count(tally.cycles, 'cycle')} in {duration(self.seconds)}: {count(tally.answered, 'page')}, {size(tally.bytes)}; {tally.failed:,} failed, "
            f"{tally.refused:,} refused, {tally.not_reached:,} not reached; {count(tally.new, 'new URL')}"
        )

    def suggest(self, *commands: str) -> None:
        """What to run next: a line for each command, so that it can be copied whole."""
        if not self.quiet:
            print("next: " + "\n      ".join(commands))


async def watch_signals(stages: Stages, display: Display, task_status=trio.TASK_STATUS_IGNORED) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            display.line("stopping: the stage in progress ends first")
            stages.stopping.set()
