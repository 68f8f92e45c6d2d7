"""One run of bin/crawl or bin/run-cycle: its lock, signals, processes, display, journal and exit code."""

import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress

import trio

from contract import names
from contract.command import first_error, given, setting_aside
from contract.crawl_folder import hold_lock, open_folder
from contract.errors import EX_DATAERR, EX_TEMPFAIL
from contract.lines import say_if_possible
from contract.totals import FETCHED, without_link_sources
from contract.units import count, duration, size
from supervise.attempts import Attempts, Stopped
from supervise.crawl_state import CrawlState, now_ms
from supervise.deaths import name_exit
from supervise.display import Display
from supervise.events import describe_link_sources
from supervise.flights import Flights
from supervise.journal import Journal
from supervise.launch import COLD_VARIABLE, Cold, Warm
from supervise.live import EVERY_S, Live, describe_end, write_live
from supervise.messages import Messages
from supervise.replacement import settle
from supervise.ring import Ring, StoppedAfter
from supervise.stage_process import Stages, memory_bytes

Body = Callable[[Ring], Awaitable[str]]  # runs cycles; returns the word to end with


class Session:
    """Holds the crawl's lock from here to the end of the process."""

    def __init__(self, arguments, command: str):
        self.options = given(arguments)
        self.crawl = open_folder(arguments.crawl)
        self.quiet = arguments.quiet
        self._lock = hold_lock(self.crawl)
        self.config = settle(self.crawl, arguments)
        self.flights = Flights()
        self.display = Display(self.quiet, self.config, self.flights)
        self.display.memory_of = memory_bytes
        self._messages = Messages(self.crawl.path, self.config)
        run = f"{self.flights.began_at_ms}-{os.getpid()}"
        self._journal = Journal(self.crawl.path, run, command, on_trouble=self._line)
        self._live = Live(run, command)
        self._is_live_troubled = False
        self.seconds = 0.0
        self.stopped = False
        self.word = ""

    def run(self, body: Body) -> int:
        """Runs the body; returns 65 where files are damaged, 75 where cycles are held, else 0."""
        began, why = time.monotonic(), "killed by an error"
        self._journal.begin()
        try:
            with self.display:
                damage, held = trio.run(self._main, body)
            why = "stopped" if self.stopped else self.word
        except BaseException as error:
            cause = first_error(error) if isinstance(error, BaseExceptionGroup) else error
            why = str(cause) or repr(cause)
            raise
        finally:
            self.seconds = time.monotonic() - began
            self._journal.end(why)
            self._write_live(why)
        for line in (*damage, *held):
            self._line(line)
        return EX_DATAERR if damage else EX_TEMPFAIL if held else 0

    async def _main(self, body: Body) -> tuple[list[str], list[str]]:
        """Runs the body; returns messages about damage and about held cycles."""
        with ExitStack() as at_end:
            async with trio.open_nursery() as nursery:
                launcher = self._make_launcher(nursery)
                at_end.callback(launcher.close)  # when its tasks have ended
                crawl_state = CrawlState(self.crawl)
                stages = Stages(crawl_state, launcher, self.config.supervisor, self.display.progress, self._line)
                attempts = Attempts(crawl_state, stages, self.config.supervisor, self._journal, self.report)
                ring = Ring(crawl_state, self.config, attempts, self.flights, self.report, self.options)
                await nursery.start(self._watch_signals, stages)
                nursery.start_soon(self._keep_live)
                try:
                    with setting_aside(self.crawl):
                        self.word = await body(ring)
                except Stopped as stopped:
                    self.stopped = not isinstance(stopped, StoppedAfter)
                    self.word = str(stopped)
                nursery.cancel_scope.cancel()
        crawl_state.write_summary()
        return ring.damage, ring.held

    def _make_launcher(self, nursery: trio.Nursery) -> Cold | Warm:
        if os.environ.get(COLD_VARIABLE):
            return Cold(self._lock, nursery)
        launcher = Warm(self.crawl.path, self._lock, nursery, self.config.supervisor, self._line, self._on_warm_death)
        launcher.start()  # it imports while this process reads the crawl folder
        return launcher

    def _on_warm_death(self, code: int) -> None:
        self.report("warm_died", reason=name_exit(code))

    def report(self, event: str, **facts) -> None:
        self.display.report(event, **facts)
        self._messages.report(event, **facts)

    def _line(self, text: str, cycle: int | None = None, stage: str = "") -> None:
        self.display.line(text)
        self._messages.line(text, cycle=cycle, stage=stage)

    async def _watch_signals(self, stages: Stages, task_status=trio.TASK_STATUS_IGNORED) -> None:
        with trio.open_signal_receiver(*stop_signals()) as signals:
            task_status.started()
            async for _ in signals:
                self._line("stopping: waiting for the stages in progress to end")
                stages.stopping.set()

    async def _keep_live(self) -> None:
        while True:
            self._write_live()
            await trio.sleep(EVERY_S)

    def _write_live(self, why: str | None = None) -> None:
        live = self._live.describe(self.flights, time.monotonic(), now_ms(), memory_bytes)
        trouble = write_live(self.crawl.path / names.LIVE, live if why is None else describe_end(live, now_ms(), why))
        if trouble and not self._is_live_troubled:
            self._is_live_troubled = True
            self._line(f"{trouble}; bin/status does not show what this run does, the crawl goes on")

    def say(self, text: str) -> None:
        if not self.quiet:
            say_if_possible(text)

    def show(self, text: str) -> None:
        """Prints lines whole, however wide they are, so that each can be copied."""
        if not self.quiet:
            with suppress(OSError, ValueError):
                print(text, flush=True)

    def summarise(self) -> None:
        run = self.flights.counts
        own = without_link_sources({name: getattr(run, name) for name in FETCHED}, run.link_sources)
        among = "" if any(run.link_sources.values()) else " of them"  # revisits count link sources too
        again = f", {run.revisited:,}{among} seen again ({run.changed:,} changed)" if run.revisited else ""
        self.say(
            f"{count(run.cycles, 'cycle')} in {duration(self.seconds)}: {count(own['answered'], 'page')}{again}, "
            f"{size(own['bytes'])}; {own['failed']:,} failed, {own['refused']:,} refused, {run.not_reached:,} "
            f"not reached; {count(run.new, 'new URL')}{describe_link_sources(run.link_sources)}"
        )

    def suggest(self, *commands: str) -> None:
        """Prints the commands to run next, one per line, so that each can be copied whole."""
        self.show("next: " + "\n      ".join(commands))


def stop_signals() -> list[signal.Signals]:
    """Those that stop a run in order. A closed terminal sends SIGHUP; under nohup it is ignored, and stays so."""
    is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if is_ignored else [signal.SIGHUP])]
