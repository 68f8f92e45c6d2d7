"""One attempt of a stage: its pipes, its progress, and what ends it: a stop, a hang, or the death of its supervisor."""

import json
import os
import signal
import time
from collections import deque
from collections.abc import Callable

import psutil
import trio

from contract.config import Supervisor
from contract.errors import TryLater
from contract.stage import ORPHAN_GRACE_S, OTHERS_PASS_VARIABLE, SHARES_VARIABLE
from contract.units import duration
from supervise.crawl_state import CrawlState
from supervise.flights import Flight
from supervise.launch import Cold, Ended, Launched, Warm, Work, read_lines

LINES_KEPT = 3  # of standard error, to say why a stage keeps dying
PIPES_GRACE_S = 1.0  # to read the rest of the pipes; a grandchild might hold them open
# A stage that the warm process forked, but did not report before it died, ends itself within this time.
LOST_GRACE_S = ORPHAN_GRACE_S + 30.0
HANG_LOOKS = 20  # within the time after which a stage counts as hanging
BUSY_SHARE = 0.01  # of a core; a stage that only waits for a stopped worker uses a tenth of that


class Stages:
    """Runs stages of one crawl; setting `stopping` ends all that run."""

    def __init__(
        self,
        crawl_state: CrawlState,
        launcher: Cold | Warm,
        config: Supervisor,
        on_progress: Callable[[int], None],
        on_line: Callable[..., None],
    ):
        self._crawl = crawl_state.path
        self._launcher = launcher
        self._config = config
        self._on_progress = on_progress  # gets the cycle
        self._on_line = on_line  # gets the text, and the cycle and the stage that it is about
        self.last_lines: dict[str, deque[str]] = {}  # stage -> the last lines of its standard error
        self.stopping = trio.Event()

    @property
    def warm_deaths(self) -> int:
        """How often a warm process of this run has died."""
        return self._launcher.deaths

    async def run(self, stage: str, flight: Flight, *, others_pass: bool = False, shares: int = 1) -> Ended:
        """Runs a stage once. `shares`: how many fetchers may run at the same time and share the limits of one."""
        self.last_lines[stage] = deque(maxlen=LINES_KEPT)
        progress_read, progress_write = os.pipe()
        errors_read, errors_write = os.pipe()
        streams = trio.lowlevel.FdStream(progress_read), trio.lowlevel.FdStream(errors_read)
        environment = {OTHERS_PASS_VARIABLE: "yes" if others_pass else "", SHARES_VARIABLE: str(shares)}
        arguments = ["--crawl", str(self._crawl), "--cycle", str(flight.plan.cycle)]
        flight.requested_ns, flight.private_bytes = time.monotonic_ns(), 0
        try:
            launched = await self._launch(Work(stage, arguments, environment, progress_write, errors_write))
        finally:
            os.close(progress_write)
            os.close(errors_write)
        flight.process_id = launched.process_id if launched else 0
        try:
            ended = await self._attend(stage, flight, launched, *streams)
            # Its largest resident size without what the warm process had is too little where it freed such pages.
            return ended._replace(memory_peak_bytes=max(ended.memory_peak_bytes or 0, flight.private_bytes) or None)
        finally:
            flight.process_id = 0
            if launched:
                launched.signal(signal.SIGKILL)  # only where this task was cancelled

    async def _launch(self, work: Work) -> Launched | None:
        """Starts a stage. A stop does not wait for a warm process that is itself stopped, or hangs in an import."""

        async def end_when_stopping() -> None:
            await self.stopping.wait()
            await trio.sleep(self._config.stop_grace_s)
            self._launcher.kill()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_when_stopping)
            launched = await self._launcher.launch(work)
            nursery.cancel_scope.cancel()
        return launched

    async def _attend(self, stage: str, flight: Flight, launched: Launched | None, progress, errors) -> Ended:
        """Reads the pipes of a stage until it has ended."""
        with trio.CancelScope() as reading:
            async with trio.open_nursery() as readers, trio.open_nursery() as watchers:
                readers.start_soon(read_lines, progress, lambda line: self._take_progress(flight, line))
                readers.start_soon(read_lines, errors, lambda line: self._take_line(stage, flight, line))
                if launched is None:  # nothing is known of it but its pipes: they end when it has ended
                    reading.deadline = trio.current_time() + LOST_GRACE_S
                    ended = Ended(-signal.SIGTERM, is_lost=True)
                else:
                    watchers.start_soon(self._end_when_stopping, launched)
                    watchers.start_soon(self._end_when_hanging, stage, flight, launched)
                    ended = await launched.wait()
                    reading.deadline = trio.current_time() + PIPES_GRACE_S
                watchers.cancel_scope.cancel()
        if launched is None and reading.cancelled_caught:
            raise TryLater(
                f"the {stage} of cycle {flight.plan.cycle} outlived the warm process that started it, and does not "
                "end; end it (ps shows its command line), then run the same command again"
            )
        return ended

    async def _end_when_stopping(self, launched: Launched) -> None:
        await self.stopping.wait()
        launched.signal(signal.SIGTERM)
        await trio.sleep(self._config.stop_grace_s)
        launched.signal(signal.SIGKILL)
        await trio.sleep(self._config.stop_grace_s)
        self._launcher.kill()  # it should have reported the end by now

    async def _end_when_hanging(self, stage: str, flight: Flight, launched: Launched) -> None:
        """Kills a stage whose figures stay the same and that uses hardly any CPU, both for `hang_s`."""
        look_s = self._config.hang_s / HANG_LOOKS
        figures, used_s, since = flight.figures, 0.0, trio.current_time()
        while True:
            await trio.sleep(look_s)
            before_s, used_s = used_s, cpu_s(launched.process_id)
            if flight.figures != figures or used_s - before_s >= BUSY_SHARE * look_s:
                figures, since = flight.figures, trio.current_time()
            elif trio.current_time() - since >= self._config.hang_s:
                self._on_line(
                    f"the {stage} of cycle {flight.plan.cycle} has done nothing for {duration(self._config.hang_s)}: "
                    "it is ended and run again",
                    flight.plan.cycle,
                    stage,
                )
                launched.signal(signal.SIGKILL)
                await trio.sleep(self._config.hang_s)
                self._launcher.kill()  # it should have reported the end by now
                return

    def _take_line(self, stage: str, flight: Flight, line: str) -> None:
        self.last_lines[stage].append(line)
        self._on_line(line, flight.plan.cycle, stage)

    def _take_progress(self, flight: Flight, line: str) -> None:
        try:
            figures = json.loads(line)
        except ValueError:
            return
        if not isinstance(figures, dict):
            return
        if "began_ns" in figures:  # these two are of the warm process
            flight.start_ms = (figures["began_ns"] - flight.requested_ns) / 1e6
        elif "private_bytes" in figures:
            flight.private_bytes = figures["private_bytes"]
        else:
            flight.figures = figures
            self._on_progress(flight.plan.cycle)


def family(process_id: int) -> list[psutil.Process]:
    """A process and all its descendants; empty where it has ended."""
    try:
        first = psutil.Process(process_id)
        return [first, *first.children(recursive=True)]
    except psutil.Error:
        return []


def memory_bytes(process_id: int) -> int:
    """Private memory of a stage's processes: what they share with the warm process is not theirs."""
    total = 0
    for process in family(process_id):
        try:
            total += process.memory_full_info().uss
        except psutil.Error:
            continue
    return total


def cpu_s(process_id: int) -> float:
    total = 0.0
    for process in family(process_id):
        try:
            used = process.cpu_times()
            total += used.user + used.system
        except psutil.Error:
            continue
    return total
