"""A run of the ring by one of its commands: lock, signals, display, and how it ends."""

import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from contract.command import setting_aside
from contract.config import Config, require_contact
from contract.crawl_folder import hold_lock, open_folder
from contract.errors import EX_DATAERR
from supervise.books import Books, resolved
from supervise.display import Display
from supervise.ring import Ring, Stopped
from supervise.stage_process import Stages
from supervise.tally import size

Body = Callable[[Ring], Awaitable[str]]  # turns the ring, returns the word to end with


class Session:
    def __init__(self, crawl: Path, config: Config, quiet: bool, options: str = ""):
        self.options = options  # how the command was told which crawl and configuration, for hints
        self.crawl = open_folder(crawl)
        self.config = resolved(config)
        self.quiet = quiet
        self.display = Display(quiet)
        require_contact(config.fetcher)
        self.seconds = 0.0
        self.stopped = False
        self.word = ""

    def run(self, body: Body) -> int:
        """Runs the body under the crawl's lock; the exit code tells whether work is held up or was interrupted."""
        lock = hold_lock(self.crawl)
        began = time.monotonic()
        try:
            with self.display:
                damage = trio.run(self._main, body, lock)
        finally:
            self.seconds = time.monotonic() - began
        if damage:
            for line in damage:
                self.display.line(line)
            return EX_DATAERR
        return 0

    async def _main(self, body: Body, lock: int) -> list[str]:
        books = Books(self.crawl)
        stages = Stages(books, lock, self.config.supervisor.stop_grace_s, self.display.progress, self.display.line)
        self.display.memory_bytes = stages.memory_bytes
        ring = Ring(books, self.config, stages, self.display.tell, self.options)
        async with trio.open_nursery() as nursery:
            await nursery.start(watch_signals, stages, self.display)
            try:
                with setting_aside(self.crawl):
                    self.word = await body(ring)
            except Stopped as stopped:
                self.stopped = stages.stopping.is_set()
                self.word = str(stopped)
            nursery.cancel_scope.cancel()
        return ring.damage

    def say(self, text: str) -> None:
        if not self.quiet:
            print(text)

    def summarise(self) -> None:
        tally = self.display.tally
        self.say(f"{tally.cycles} cycles in {self.seconds:.0f} s: {tally.answered} pages, {size(tally.bytes)}; "
                 f"{tally.failed} failed, {tally.refused} refused, {tally.not_reached} not reached; {tally.new} new URLs")


async def watch_signals(stages: Stages, display: Display, task_status=trio.TASK_STATUS_IGNORED) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            display.line("stopping: the stage in progress ends first")
            stages.stopping.set()
