"""The ring: plans a cycle, runs its stages in order, commits it, and resumes what a crash interrupted.

Several cycles may be in flight, each in a task of its own (supervise/pipeline.py). They share this object: the state of
the crawl, which only the main thread changes, and one limiter per kind of stage.
"""

import shlex
from collections.abc import Callable
from contextlib import suppress

import trio

from contract import names
from contract.blocks import block_to_split
from contract.config import Config
from contract.errors import EX_CONFIG, EX_DATAERR, EX_TEMPFAIL, EX_USAGE, BadConfiguration, TryLater, Usage
from contract.held import forget_held, note_held, read_held
from contract.journal_tail import read_tail
from contract.log import ABANDON, ABSORB, KINDS, Entry, commit
from contract.plan import Plan, cycles_without_plan, read_plan, write_plan
from contract.policies import describe, revisits
from contract.policy_files import files_of
from storage.errors import Damaged
from storage.publish import confirm_published, is_published, read_manifest, sync_folder, unpublish
from supervise.attempts import Attempts, Stopped
from supervise.crawl_state import CrawlState, now_ms
from supervise.deaths import Deaths, describe_machine, name_exit
from supervise.deletion import delete, has_pages, remove_garbage, take_snapshot
from supervise.flights import Flight, Flights
from supervise.inbox import commit_taking, plan_takings, publish_taking
from supervise.list_size import TAIL_BYTES, limit_list, size_list
from supervise.lost_plans import close_notes, set_cycle_aside
from supervise.turns import Done, Sleep, Turn, forget_clock_ms, next_step

REMAKES_MAX = 2  # how often a cycle may remake damaged output of its own stages


class StoppedAfter(Stopped):
    """The stage of --stop-after has ended."""


class Ring:
    """Runs the cycles of one crawl, whose lock the caller holds."""

    def __init__(
        self,
        crawl_state: CrawlState,
        config: Config,
        attempts: Attempts,
        flights: Flights,
        report: Callable[..., None],
        options: str = "",
    ):
        self.options = options  # of this run, for the commands that messages suggest
        self.config = config
        self.attempts = attempts
        self.flights = flights
        self.report = report  # report(event, **facts): for display and messages
        self.damage = crawl_state.damage
        self.held: list[str] = []  # cycles that wait for the next run, and why
        self.held_pages = 0  # that held cycles may have
        self.on_change: Callable[[], None] = lambda: None  # called when a stage has ended well
        self.state = crawl_state
        crawl_state.wanted = describe(config, files_of(crawl_state.path, config))
        self._path = crawl_state.path
        self._deaths = Deaths()
        self._deleting = trio.Lock()
        self._fetched_since_split = True

    def prepare(self, flights_max: int) -> list[Plan]:
        """Start-up (rule 8): syncs what is visible, removes garbage; returns the plans of open cycles."""
        self.attempts.fetchers = min(flights_max, self.config.supervisor.fetchers)
        self._sync_what_is_visible()
        close_notes(self.state)
        for cycle in cycles_without_plan(self._path, self.state.log):
            path = self._path / names.cycle(cycle) / names.PLAN
            self._set_aside(cycle, f"{path}: expected the plan of an open cycle, found none")
        remove_garbage(self.state)
        plans = []
        for cycle in self.state.open_cycles():
            try:
                plans.append(read_plan(self._path, cycle))
            except Damaged as error:
                self._set_aside(cycle, str(error))
        return plans

    def drop(self, cycle: int | None) -> str:
        """Abandons an open cycle without charging any URL; its pages stay. Returns what to print."""
        self._sync_what_is_visible()
        opened = self.state.open_cycles()
        if not opened:
            raise Usage("no cycle is open: there is nothing to drop")
        if cycle is None and len(opened) != 1:
            raise Usage(
                f"{len(opened)} cycles are open: {', '.join(map(str, opened))}; --drop-open takes the number of one"
            )
        cycle = opened[0] if cycle is None else cycle
        if cycle not in opened:
            raise Usage(f"cycle {cycle} is not open: bin/status --crawl {self._path} lists those that are")
        folder = self._path / names.cycle(cycle) / names.FETCHER
        try:
            read_plan(self._path, cycle)
        except Damaged as error:
            target = set_cycle_aside(self.state, cycle, str(error))
            return f"cycle {cycle} dropped, no URL is charged; set aside as {target}"
        commit(self._path, Entry(ABANDON, cycle, self.state.log.blocks, reason="dropped by the operator"))
        forget_held(self._path, cycle)
        self.state.refresh()
        pages = (
            f"; its pages stay: bin/extractor {shlex.quote(str(folder))} --out DIR2 reads them"
            if has_pages(folder)
            else ""
        )
        return f"cycle {cycle} dropped, no URL is charged{pages}"

    def _set_aside(self, cycle: int, reason: str) -> None:
        target = set_cycle_aside(self.state, cycle, reason)
        self.damage.append(f"{reason}; cycle {cycle} set aside as {target}, no URL is charged")

    def _sync_what_is_visible(self) -> None:
        """Syncs what a killed run left: it may be visible without being durable, and all that follows rests on it."""
        sync_folder(self._path / names.LOG)
        sync_folder(self._path / names.CYCLES)
        for cycle in self.state.open_cycles():
            sync_folder(self._path / names.cycle(cycle))
            for stage in names.STAGES:
                confirm_published(self._path / names.cycle(cycle) / stage)

    async def take_inbox(self) -> None:
        """Takes in seeds and decisions; the tables are made in a thread, so that other cycles continue."""
        for plan in plan_takings(self.state, self.config):
            await self._take(plan)
            self.attempts.stop_if_asked()

    async def _take(self, plan: Plan) -> None:
        counts = await trio.to_thread.run_sync(publish_taking, self.state, plan)
        commit_taking(self.state, plan, is_gone=counts is None)
        if counts is not None:
            self.report("taken", counts=counts)

    def choose(self, *, until_done: bool = False) -> Turn | Sleep | Done:
        """What to plan next. A run that ends when all is done makes no revisits for their own sake."""
        flights = [flight.plan for flight in self.flights.flights.values()]
        views = self.state.views({plan.block for plan in flights if not KINDS[plan.kind].from_inbox})
        # One split at a time, and a cycle that fetches between two: bounds far too small for the crawl must not keep
        # it from fetching.
        may_split = self._fetched_since_split and not any(KINDS[plan.kind].splits for plan in flights)
        split = block_to_split(self.state.log.blocks) if may_split else None
        return next_step(views, now_ms(), self.config.blocks, split, revisits(self.config) and not until_done)

    def plan(self, turn: Turn, pages_max: int | None = None) -> Plan:
        config = self.config
        if KINDS[turn.kind].fetches and config.scheduler.cycle_target_s:
            config = size_list(config, turn.block, read_tail(self._path, TAIL_BYTES).stages)
        if pages_max is not None:
            config = limit_list(config, max(1, pages_max))
        log = self.state.log
        generation = log.generation(turn.block)
        moment_ms = forget_clock_ms(self.state.views(), now_ms()) if KINDS[turn.kind].forgets else now_ms()
        plan = Plan(self.state.next_cycle(), turn.kind, turn.block, log.blocks, generation, moment_ms, config)
        write_plan(self._path, plan)
        if turn.kind == ABSORB and not self.state.is_prepared(turn.block):
            self.state.tried.add(turn.block)
        self._fetched_since_split = not KINDS[plan.kind].splits and (
            self._fetched_since_split or KINDS[plan.kind].fetches
        )
        self.report("plan", plan=plan)
        return plan

    async def finish(self, plan: Plan, stop_after: str | None = None) -> bool:
        """Runs the stages that a cycle still lacks and commits it; false where damage blocks it or it was abandoned.

        The caller has put the cycle into `flights`, and takes it out.
        """
        if KINDS[plan.kind].from_inbox:
            await self._take(plan)
            return True
        self.attempts.stop_if_asked()
        was_held = bool(read_held(self._path, plan.cycle))
        forget_held(self._path, plan.cycle)
        if self.state.log.generation(plan.block) != plan.generation:
            self._abandon(plan, "its generation is not live any more", parents={})
            return False
        flight = self.flights.flights[plan.cycle]
        remakes = 0
        all_stages = KINDS[plan.kind].stages
        stages = list(all_stages)
        while stages:
            stage = stages[0]
            folder = self._path / names.cycle(plan.cycle) / stage
            code = 0
            if stage == names.VERIFIER or not is_published(folder):
                self.attempts.stop_if_asked()
                code = await self._run(stage, flight)
                if code == 0:
                    self._note_success(stage, flight)
            if code == EX_DATAERR and remakes < REMAKES_MAX and (damaged := self._damaged_stage(plan)):
                remakes += 1
                unpublish(self._path / names.cycle(plan.cycle) / damaged)
                stages = list(all_stages[all_stages.index(damaged) :])
                for again in stages:
                    flight.counts.pop(again, None)
                continue
            if code == EX_DATAERR:
                self._stop_for_damage(plan)
                return False
            if code:
                self._give_way(flight, stage, code, was_held)
                return False
            self.attempts.read_counts(stage, flight)
            self.on_change()
            stages.pop(0)
            if stage == stop_after:
                quoted = shlex.quote(str(self._path))
                raise StoppedAfter(
                    f"stopped after the {stage}\nnext: bin/{stages[0]} --crawl {quoted} --cycle {plan.cycle}\n"
                    f"      bin/run-cycle{self.options}"
                )
        self.state.refresh()
        if not self.state.log.is_closed(plan.cycle):  # its entry is void
            self._abandon(plan, "its generation is not live any more", parents={})
            return False
        self.flights.counts.add(flight.counts)
        if KINDS[plan.kind].fetches:
            self.flights.last_fetched = plan.cycle
        self.report("committed", plan=plan, counts=flight.counts)
        if plan.kind == ABSORB and plan.block in self.state.tried:
            with suppress(Damaged):  # views() will report it
                if not self.state.is_prepared(plan.block):
                    self.report("unprepared", plan=plan)
        return True

    async def delete_superseded(self) -> None:
        """Deletes what nothing needs any more, in a thread: a large generation takes long."""
        async with self._deleting:
            snapshot = take_snapshot(self.state, self.config.blocks.keep_generations)
            deleted = await trio.to_thread.run_sync(delete, snapshot)
            if deleted is not None:
                self.state.note_deleted(deleted)

    async def _run(self, stage: str, flight: Flight) -> int:
        """Runs a stage with its retries. Returns 0, 65, or the exit code of a stage that keeps dying."""
        plan = flight.plan
        if stage == names.FETCHER:
            self._deaths.note_begun(plan.block)
        code = await self.attempts.run(stage, flight, self._deaths.others_pass(plan.block))
        if code == EX_USAGE:
            raise Usage(f"{stage} refused its command line (exit code 64): this is a defect, please report it")
        if code == EX_CONFIG:
            if has_pages(self._path / names.cycle(plan.cycle) / names.FETCHER):
                raise BadConfiguration(
                    f"{stage} refused the configuration of cycle {plan.cycle} (see above). The cycle has pages and "
                    f"stays open; bin/run-cycle --drop-open {plan.cycle} abandons it"
                )
            # The next plan takes the corrected configuration.
            self._abandon(plan, f"{stage} refused its configuration", parents={})
            raise BadConfiguration(f"{stage} refused the configuration of cycle {plan.cycle} (see above)")
        if code == EX_TEMPFAIL:
            raise TryLater(
                f"{stage} of cycle {plan.cycle} cannot continue now (see above); the cycle stays open, run again later"
            )
        return code

    def _note_success(self, stage: str, flight: Flight) -> None:
        self._deaths.note_success(stage)
        if stage == names.FETCHER:
            self._deaths.note_fetched(flight.plan.block, flight.counts[stage].get("answered", 0))

    def _damaged_stage(self, plan: Plan) -> str | None:
        """The first stage of this cycle that lost a file to corrupt/. Never the fetcher: pages cannot be made again."""
        for stage in KINDS[plan.kind].stages:
            folder = self._path / names.cycle(plan.cycle) / stage
            if stage != names.FETCHER and is_published(folder):
                try:
                    files = read_manifest(folder)["files"]
                except Damaged:
                    return stage
                if any(not (folder / name).exists() for name in files):
                    return stage
        return None

    def _give_way(self, flight: Flight, stage: str, code: int, was_held: bool) -> None:
        """A stage died in all its retries. A cycle that has pages is held; any other is abandoned and planned again.

        No URL is charged. A cycle that an earlier run held says nothing about the machine: other blocks get their turn.
        """
        plan = flight.plan
        reason = f"the {stage} died {self.config.supervisor.stage_retries + 1} times, last by {name_exit(code)}"
        is_machine = not was_held and self._deaths.note_death(stage)
        if stage == names.FETCHER:
            self._deaths.note_fetcher_death(plan.block)
        if is_machine or has_pages(self._path / names.cycle(plan.cycle) / names.FETCHER):
            note_held(self._path, plan.cycle, reason)
            self.state.stopped.add(plan.block)
            self.held_pages += flight.pages_at_most
            self.held.append(f"cycle {plan.cycle} of block {plan.block} is held, the next run tries again: {reason}")
            if not is_machine:  # then the run ends, and says why
                self.report("held", plan=plan, reason=reason)
        else:
            self._abandon(plan, reason)
        if is_machine:
            raise TryLater(
                f"{reason}, in two cycles in a row: the machine or a defect is at fault, no URL is charged. "
                f"{describe_machine(self.attempts.last_lines(stage), self.attempts.largest_bytes)}. "
                "The same command tries again"
            )

    def _stop_for_damage(self, plan: Plan) -> None:
        self.state.stopped.add(plan.block)
        self.held_pages += self.flights.flights[plan.cycle].pages_at_most
        self.damage.append(
            f"cycle {plan.cycle} of block {plan.block} cannot continue, a file is damaged: "
            f"see bin/status --crawl {shlex.quote(str(self._path))}"
        )
        self.report("damaged", plan=plan)

    def _abandon(self, plan: Plan, reason: str, parents: dict | None = None) -> None:
        held = {plan.block: plan.generation} if parents is None else parents
        commit(self._path, Entry(ABANDON, plan.cycle, plan.blocks, held, reason=reason))
        self.state.refresh()
        if not KINDS[plan.kind].fetches:
            self.state.stopped.add(plan.block)  # it would be planned at once, and fail again
            self.held.append(f"block {plan.block} waits for the next run: {reason}")
        self.report("abandoned", plan=plan, reason=reason)
