"""Runs one stage of a cycle to its end: waits for a place among those of its kind, and repeats it when it dies."""

from collections import deque
from collections.abc import Callable, Iterable

import trio

from contract import names
from contract.config import Supervisor
from contract.errors import EX_CONFIG, EX_DATAERR, EX_OK, EX_TEMPFAIL, EX_USAGE, TryLater
from storage.publish import is_published, read_manifest
from supervise.crawl_state import CrawlState, now_ms
from supervise.flights import Flight
from supervise.journal import Journal
from supervise.launch import Ended
from supervise.stage_process import Stages

WARM_DEATHS_MAX = 5  # in a row, without a stage that ended well in between
FINAL = (EX_OK, EX_DATAERR, EX_USAGE, EX_CONFIG)  # the same input gives the same code again


class Stopped(Exception):
    """The operator asked to stop; the cycle stays open and the next run resumes it."""


class Attempts:
    """What all cycles of a run share: the stages, and one limiter per kind of stage."""

    def __init__(
        self,
        crawl_state: CrawlState,
        stages: Stages,
        settings: Supervisor,
        journal: Journal,
        report: Callable[..., None],
    ):
        self._state = crawl_state
        self._stages = stages
        self._settings = settings
        self._journal = journal
        self._report = report
        self._places = {stage: trio.CapacityLimiter(getattr(settings, f"{stage}s")) for stage in names.STAGES}
        self._deaths_before = 0  # of the warm process, before a stage last ended well
        self.fetchers = 1  # that may run at the same time, and share the limits of one
        self.largest_bytes = 0  # memory of the largest stage so far

    @property
    def stopping(self) -> trio.Event:
        return self._stages.stopping

    def stop_if_asked(self) -> None:
        if self.stopping.is_set():
            raise Stopped

    def last_lines(self, stage: str) -> Iterable[str]:
        """What the stage printed last on standard error."""
        return self._stages.last_lines.get(stage, deque())

    async def run(self, stage: str, flight: Flight, others_pass: bool) -> int:
        """Runs a stage with its retries; returns its exit code, the last one if it keeps dying."""
        wait_s, attempt = self._settings.retry_wait_s, 1
        while True:
            ended = await self._try(stage, flight, attempt, others_pass)
            if ended.code == EX_OK:
                self._deaths_before = self._stages.warm_deaths
            if ended.code in FINAL:
                return ended.code
            self.stop_if_asked()
            if ended.is_lost:
                self._note_warm_death()
                continue  # the stage is not charged with it
            # After an outage the fetcher has waited for [fetcher] outage_max_s already.
            is_outage = ended.code == EX_TEMPFAIL and bool(flight.figures.get("outage_s"))
            if is_outage or attempt > self._settings.stage_retries:
                return ended.code
            self._report("retry", plan=flight.plan, stage=stage, code=ended.code, wait_s=wait_s)
            flight.enter(stage, is_running=False, attempt=attempt)
            with trio.move_on_after(wait_s):
                await self.stopping.wait()
            self.stop_if_asked()
            attempt, wait_s = attempt + 1, wait_s * 2

    async def _try(self, stage: str, flight: Flight, attempt: int, others_pass: bool) -> Ended:
        """Runs a stage once, as soon as it has a place among those of its kind."""
        flight.enter(stage, is_running=False)
        async with self._places[stage]:
            self.stop_if_asked()
            flight.enter(stage, is_running=True, attempt=attempt)
            self._report("stage", plan=flight.plan, stage=stage, attempt=attempt)
            begin_ms = now_ms()
            fetchers = min(self.fetchers, self._state.log.blocks)
            ended = await self._stages.run(stage, flight, others_pass=others_pass, shares=fetchers)
        self.largest_bytes = max(self.largest_bytes, ended.memory_peak_bytes or 0)
        self.read_counts(stage, flight)
        self._note_in_journal(stage, flight, attempt, begin_ms, ended)
        self._report("stage_ended", plan=flight.plan, stage=stage, code=ended.code)
        return ended

    def read_counts(self, stage: str, flight: Flight) -> None:
        """Reads the counts of a stage's manifest, once it has one."""
        folder = self._state.path / names.cycle(flight.plan.cycle) / stage
        if stage not in flight.counts and is_published(folder):
            flight.counts[stage] = read_manifest(folder).get("counts", {})

    def _note_in_journal(self, stage: str, flight: Flight, attempt: int, begin_ms: int, ended: Ended) -> None:
        pages = bytes_ = None
        if stage == names.FETCHER:
            figures = {**flight.figures, **flight.counts.get(stage, {})}
            pages, bytes_ = figures.get("answered", figures.get("pages")), figures.get("bytes")
        self._journal.stage(
            flight.plan,
            stage,
            attempt,
            begin_ms,
            now_ms(),
            ended.code,
            ended.cpu_s,
            ended.memory_peak_bytes,
            ended.read_bytes,
            ended.written_bytes,
            pages,
            bytes_,
        )

    def _note_warm_death(self) -> None:
        """A death takes the stages of all cycles in flight with it: it counts once."""
        deaths = self._stages.warm_deaths - self._deaths_before
        if deaths > WARM_DEATHS_MAX:
            raise TryLater(
                f"the warm process, which starts the stages, died {deaths} times in a row (see above): the "
                "machine or a defect is at fault, no URL is charged. The same command tries again"
            )
