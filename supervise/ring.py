"""The ring: plans cycles, runs their stages in order, and resumes what a crash interrupted."""

import shlex
from collections.abc import Callable
from dataclasses import replace

import trio

from contract import names
from contract.blocks import block_to_split
from contract.config import Config
from contract.errors import EX_CONFIG, EX_DATAERR, EX_TEMPFAIL, EX_USAGE, BadConfiguration, TryLater, Usage
from contract.held import forget_held, note_held, read_held
from contract.log import ABANDON, GROW, KINDS, Entry, commit
from contract.plan import Plan, cycles_without_plan, read_plan, write_plan
from storage.errors import Damaged
from storage.publish import confirm_published, is_published, read_manifest, sync_folder, unpublish
from supervise.crawl_state import CrawlState, now_ms
from supervise.deaths import Deaths, describe_machine, name_exit
from supervise.deletion import delete_superseded, has_pages, remove_garbage
from supervise.inbox import resume_taking, take_inbox
from supervise.lost_plans import set_cycle_aside
from supervise.stage_process import Stages
from supervise.turns import Done, Sleep, Turn, must_grow, next_turn

REMAKES_MAX = 2  # how often a cycle may remake damaged output of its own stages


class Stopped(Exception):
    """The operator asked to stop; the cycle stays open and the next run resumes it."""


class Ring:
    """Runs the cycles of one crawl, whose lock the caller holds."""

    def __init__(
        self, crawl_state: CrawlState, config: Config, stages: Stages, report: Callable[..., None], options: str = ""
    ):
        self.options = options  # of this run, for the commands that messages suggest
        self._state = crawl_state
        self._path = crawl_state.path
        self.config = config
        self.stages = stages
        self.report = report  # report(event, **facts): for the display
        self.damage = crawl_state.damage
        self.held: list[str] = []  # cycles that wait for the next run, and why
        self._deaths = Deaths()

    async def start(self, stop_after: str | None = None) -> int | None:
        """Start-up (rule 8): removes garbage and finishes open plans; returns the last finished cycle that fetched."""
        self._sync_what_is_visible()
        for cycle in cycles_without_plan(self._path, self._state.log):
            path = self._path / names.cycle(cycle) / names.PLAN
            self._set_aside(cycle, f"{path}: expected the plan of an open cycle, found none")
        remove_garbage(self._state)
        finished = None
        for cycle in self._state.open_cycles():
            try:
                plan = read_plan(self._path, cycle)
            except Damaged as error:
                self._set_aside(cycle, str(error))
                continue
            self.report("resume", plan=plan)
            if await self._finish(plan, stop_after) and KINDS[plan.kind].fetches:
                finished = cycle
        delete_superseded(self._state, self.config.blocks.keep_generations)
        return finished

    def drop(self, cycle: int | None) -> str:
        """Abandons an open cycle without charging any URL; its pages stay. Returns what to print."""
        self._sync_what_is_visible()
        opened = self._state.open_cycles()
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
            target = set_cycle_aside(self._state, cycle, str(error))
            return f"cycle {cycle} dropped, no URL is charged; set aside as {target}"
        commit(self._path, Entry(ABANDON, cycle, self._state.log.blocks, reason="dropped by the operator"))
        forget_held(self._path, cycle)
        self._state.refresh()
        pages = (
            f"; its pages stay: bin/extractor {shlex.quote(str(folder))} --out DIR2 reads them"
            if has_pages(folder)
            else ""
        )
        return f"cycle {cycle} dropped, no URL is charged{pages}"

    def _set_aside(self, cycle: int, reason: str) -> None:
        target = set_cycle_aside(self._state, cycle, reason)
        self.damage.append(f"{reason}; cycle {cycle} set aside as {target}, no URL is charged")

    def _sync_what_is_visible(self) -> None:
        """Syncs what a killed run left: it may be visible without being durable, and all that follows rests on it."""
        sync_folder(self._path / names.LOG)
        sync_folder(self._path / names.CYCLES)
        for cycle in self._state.open_cycles():
            sync_folder(self._path / names.cycle(cycle))
            for stage in names.STAGES:
                confirm_published(self._path / names.cycle(cycle) / stage)

    async def run_cycle(self, stop_after: str | None = None, pages_max: int | None = None) -> int | Sleep | Done:
        """Runs one cycle that fetches, after the absorb cycles and splits that are due before it.

        Returns the cycle, or why no block has one now.
        """
        may_grow = True
        while True:
            self._stop_if_asked()
            for counts in take_inbox(self._state, self.config):
                self.report("taken", counts=counts)
            held = {read_plan(self._path, cycle).block for cycle in self._state.open_cycles()}
            views = self._state.views(held)
            if may_grow and must_grow(views, self.config.blocks) and views[block_to_split(self._state.log.blocks)].free:
                await self._finish(self._plan(GROW, block_to_split(self._state.log.blocks)))
                may_grow = (
                    False  # one split per cycle: bounds far too small for the crawl must not keep it from fetching
                )
                continue
            choice = next_turn(views, now_ms())
            if not isinstance(choice, Turn):
                return choice
            plan = self._plan(choice.kind, choice.block, pages_max)
            if await self._finish(plan, stop_after) and KINDS[plan.kind].fetches:
                return plan.cycle

    def _plan(self, kind: str, block: int, pages_max: int | None = None) -> Plan:
        config = self.config
        if pages_max is not None and pages_max < config.scheduler.list_max_urls:
            least = max(1, pages_max)
            config = replace(
                config,
                scheduler=replace(
                    config.scheduler, list_max_urls=least, server_max_urls=min(least, config.scheduler.server_max_urls)
                ),
            )
        log = self._state.log
        plan = Plan(self._state.next_cycle(), kind, block, log.blocks, log.generation(block), now_ms(), config)
        write_plan(self._path, plan)
        self.report("plan", plan=plan)
        return plan

    async def _finish(self, plan: Plan, stop_after: str | None = None) -> bool:
        """Runs the stages that a cycle still lacks and commits it; false where damage blocks it or it was abandoned."""
        if KINDS[plan.kind].from_inbox:
            resume_taking(self._state, plan)
            return True
        was_held = bool(read_held(self._path, plan.cycle))
        forget_held(self._path, plan.cycle)
        if self._state.log.generation(plan.block) != plan.generation:
            self._abandon(plan, "its generation is not live any more", parents={})
            return False
        remakes = 0
        all_stages = KINDS[plan.kind].stages
        stages = list(all_stages)
        while stages:
            stage = stages[0]
            folder = self._path / names.cycle(plan.cycle) / stage
            if stage != names.VERIFIER and is_published(folder):
                code = 0
            else:
                self._stop_if_asked()
                self.report("stage", stage=stage, plan=plan)
                code = await self._run(stage, plan)
                if code == 0:
                    self._note_success(stage, plan)
            if code == EX_DATAERR and remakes < REMAKES_MAX and (damaged := self._damaged_stage(plan)):
                remakes += 1
                unpublish(self._path / names.cycle(plan.cycle) / damaged)
                stages = list(all_stages[all_stages.index(damaged) :])
                continue
            if code == EX_DATAERR:
                self._stop_for_damage(plan)
                return False
            if code:
                self._give_way(plan, stage, code, was_held)
                return False
            stages.pop(0)
            if stage == stop_after:
                folder = shlex.quote(str(self._path))
                raise Stopped(
                    f"stopped after the {stage}\nnext: bin/{stages[0]} --crawl {folder} --cycle {plan.cycle}\n"
                    f"      bin/run-cycle{self.options}"
                )
        self._state.refresh()
        self.report("committed", plan=plan, counts=self._counts_of(plan.cycle))
        delete_superseded(self._state, self.config.blocks.keep_generations)
        return True

    async def _run(self, stage: str, plan: Plan) -> int:
        """Runs a stage with its retries. Returns 0, 65, or the last exit code of a stage that keeps dying."""
        wait_s = self.config.supervisor.retry_wait_s
        for attempt in range(self.config.supervisor.stage_retries + 1):
            code = await self.stages.run(stage, plan.cycle, others_pass=self._deaths.others_pass(plan.block))
            if code in (0, EX_DATAERR):
                return code
            self._stop_if_asked()
            if code == EX_USAGE:
                raise Usage(f"{stage} refused its command line (exit code 64): this is a defect, please report it")
            if code == EX_TEMPFAIL and self.stages.figures.get("outage_s"):
                break  # it has waited for the network for [fetcher] outage_max_s
            if code == EX_CONFIG:
                if has_pages(self._path / names.cycle(plan.cycle) / names.FETCHER):
                    raise BadConfiguration(
                        f"{stage} refused the configuration of cycle {plan.cycle} (see above). The cycle has pages and "
                        f"stays open; bin/run-cycle --drop-open {plan.cycle} abandons it"
                    )
                # The next plan takes the corrected configuration.
                self._abandon(plan, f"{stage} refused its configuration", parents={})
                raise BadConfiguration(f"{stage} refused the configuration of cycle {plan.cycle} (see above)")
            if attempt < self.config.supervisor.stage_retries:
                self.report("retry", stage=stage, code=code, wait_s=wait_s)
                with trio.move_on_after(wait_s):
                    await self.stages.stopping.wait()
                self._stop_if_asked()
                wait_s *= 2
        if code == EX_TEMPFAIL:
            raise TryLater(
                f"{stage} of cycle {plan.cycle} cannot continue now (see above); the cycle stays open, run again later"
            )
        return code

    def _note_success(self, stage: str, plan: Plan) -> None:
        self._deaths.note_success(stage)
        if stage == names.FETCHER:
            counts = self._counts_of(plan.cycle)[names.FETCHER]
            self._deaths.note_fetched(plan.block, counts.get("answered", 0))

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

    def _give_way(self, plan: Plan, stage: str, code: int, was_held: bool) -> None:
        """A stage died in all its retries. A cycle that has pages is held; any other is abandoned and planned again.

        No URL is charged. A cycle that an earlier run held says nothing about the machine: other blocks get their turn.
        """
        reason = f"the {stage} died {self.config.supervisor.stage_retries + 1} times, last by {name_exit(code)}"
        is_machine = not was_held and self._deaths.note_death(stage)
        if stage == names.FETCHER:
            self._deaths.note_fetcher_death(plan.block)
        if is_machine or has_pages(self._path / names.cycle(plan.cycle) / names.FETCHER):
            note_held(self._path, plan.cycle, reason)
            self._state.stopped.add(plan.block)
            self.held.append(f"cycle {plan.cycle} of block {plan.block} is held, the next run tries again: {reason}")
            if not is_machine:  # then the run ends, and says why
                self.report("held", plan=plan, reason=reason)
        else:
            self._abandon(plan, reason)
        if is_machine:
            raise TryLater(
                f"{reason}, in two cycles in a row: the machine or a defect is at fault, no URL is charged. "
                f"{describe_machine(self.stages.last_lines)}. The same command tries again"
            )

    def _stop_for_damage(self, plan: Plan) -> None:
        self._state.stopped.add(plan.block)
        self.damage.append(
            f"cycle {plan.cycle} of block {plan.block} cannot continue, a file is damaged: "
            f"see bin/status --crawl {shlex.quote(str(self._path))}"
        )
        self.report("damaged", plan=plan)

    def _abandon(self, plan: Plan, reason: str, parents: dict | None = None) -> None:
        held = {plan.block: plan.generation} if parents is None else parents
        commit(self._path, Entry(ABANDON, plan.cycle, plan.blocks, held, reason=reason))
        self._state.refresh()
        if not KINDS[plan.kind].fetches:
            self._state.stopped.add(plan.block)  # it would be planned at once, and fail again
            self.held.append(f"block {plan.block} waits for the next run: {reason}")
        self.report("abandoned", plan=plan, reason=reason)

    def _stop_if_asked(self) -> None:
        if self.stages.stopping.is_set():
            raise Stopped

    def _counts_of(self, cycle: int) -> dict:
        """The counts in the manifest of each stage of a cycle."""
        counts = {}
        for stage in names.STAGES:
            folder = self._path / names.cycle(cycle) / stage
            if is_published(folder):
                counts[stage] = read_manifest(folder).get("counts", {})
        return counts
