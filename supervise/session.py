"""One run of bin/crawl or bin/run-cycle: its lock, signals, display and exit code."""

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

Body = Callable[[Ring], Awaitable[str]]  # runs cycles; returns the word to end with


class Session:
    """Holds the crawl's lock from here to the end of the process."""

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
        """Runs the body; returns 65 where files are damaged, 75 where cycles are held, else 0."""
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
        """Runs the body; returns messages about damage and about held cycles."""
        crawl_state = CrawlState(self.crawl)
        stages = Stages(
            crawl_state, self._lock, self.config.supervisor.stop_grace_s, self.display.progress, self.display.line
        )
        self.display.memory_bytes = stages.memory_bytes
        ring = Ring(crawl_state, self.config, stages, self.display.report, self.options)
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
        run = self.display.counts
        self.say(
            f"{count(run.cycles, 'cycle')} in {duration(self.seconds)}: {count(run.answered, 'page')}, "
            f"{size(run.bytes)}; {run.failed:,} failed, {run.refused:,} refused, {run.not_reached:,} not reached; "
            f"{count(run.new, 'new URL')}"
        )

    def suggest(self, *commands: str) -> None:
        """Prints the commands to run next, one per line, so that each can be copied whole."""
        if not self.quiet:
            print("next: " + "\n      ".join(commands))


async def watch_signals(stages: Stages, display: Display, task_status=trio.TASK_STATUS_IGNORED) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            display.line("stopping: waiting for the stage in progress to end")
            stages.stopping.set()
