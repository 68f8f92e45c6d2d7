"""The ring: gives out cycles, runs their stages in order, and goes on after any crash where it stopped."""

import shlex
from collections.abc import Callable
from dataclasses import replace

import trio

from contract import names
from contract.blocks import block_to_split
from contract.config import Config
from contract.errors import EX_CONFIG, EX_DATAERR, EX_TEMPFAIL, EX_USAGE, BadConfiguration, TryLater, Usage
from contract.held import forget_held, note_held, read_held
from contract.log import ABANDON, ABSORB, CRAWL, FROM_INBOX, GROW, Entry, commit
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

STAGES_OF = {CRAWL: names.STAGES, ABSORB: (names.VERIFIER,), GROW: (names.VERIFIER,)}
REMAKES_MAX = 2  # times that a cycle makes a damaged output of its own stages anew


class Stopped(Exception):
    """The operator asked to stop; the cycle stays open and the next run goes on with it."""


class Ring:
    """Turns the ring of one crawl, whose lock the caller holds."""

    def __init__(
        self, crawl_state: CrawlState, config: Config, stages: Stages, tell: Callable[..., None], options: str = ""
    ):
        self.options = options
        self.crawl_state = crawl_state
        self.config = config
        self.stages = stages
        self.tell = tell  # tell(event, **facts): what the display shows
        self.damage = crawl_state.damage
        self.held: list[str] = []  # cycles that wait for the next run, and why
        self._deaths = Deaths()

    async def start(self, stop_after: str | None = None) -> int | None:
        """Start-up (rule 8): finishes open plans and removes garbage; returns the crawl cycle that it finished."""
        self._sync_what_is_visible()
        for cycle in cycles_without_plan(self.crawl_state.path, self.crawl_state.log):
            self._set_aside(
                cycle,
                f"{self.crawl_state.path / names.cycle(cycle) / names.PLAN}: expected the plan of an open cycle, found none",
            )
        remove_garbage(self.crawl_state)
        finished = None
        for cycle in self.crawl_state.open_cycles():
            try:
                plan = read_plan(self.crawl_state.path, cycle)
            except Damaged as error:
                self._set_aside(cycle, str(error))
                continue
            self.tell("resume", plan=plan)
            if await self._finish(plan, stop_after) and plan.kind == CRAWL:
                finished = cycle
        delete_superseded(self.crawl_state, self.config.blocks.keep_generations)
        return finished

    def drop(self, cycle: int | None) -> str:
        """Gives up an open cycle, charging nobody; its pages stay."""
        self._sync_what_is_visible()
        opened = self.crawl_state.open_cycles()
        if not opened:
            raise Usage("no cycle is open: there is nothing to drop")
        if cycle is None and len(opened) != 1:
            raise Usage(
                f"{len(opened)} cycles are open: {', '.join(map(str, opened))}; --drop-open takes the number of one"
            )
        cycle = opened[0] if cycle is None else cycle
        if cycle not in opened:
            raise Usage(f"cycle {cycle} is not open: bin/status --crawl {self.crawl_state.path} lists those that are")
        folder = self.crawl_state.path / names.cycle(cycle) / names.FETCHER
        try:
            read_plan(self.crawl_state.path, cycle)
        except Damaged as error:
            return f"cycle {cycle} dropped, no URL is charged; set aside as {set_cycle_aside(self.crawl_state, cycle, str(error))}"
        commit(
            self.crawl_state.path, Entry(ABANDON, cycle, self.crawl_state.log.blocks, reason="dropped by the operator")
        )
        forget_held(self.crawl_state.path, cycle)
        self.crawl_state.refresh()
        pages = (
            f"; its pages stay: bin/extractor {shlex.quote(str(folder))} --out DIR2 reads them"
            if has_pages(folder)
            else ""
        )
        return f"cycle {cycle} dropped, no URL is charged{pages}"

    def _set_aside(self, cycle: int, reason: str) -> None:
        target = set_cycle_aside(self.crawl_state, cycle, reason)
        self.damage.append(f"{reason}; cycle {cycle} set aside as {target}, no URL is charged")

    def _sync_what_is_visible(self) -> None:
        """What a run that was killed has left need not be durable; all that follows rests on it."""
        sync_folder(self.crawl_state.path / names.LOG)
        sync_folder(self.crawl_state.path / names.CYCLES)
        for cycle in self.crawl_state.open_cycles():
            sync_folder(self.crawl_state.path / names.cycle(cycle))
            for stage in names.STAGES:
                confirm_published(self.crawl_state.path / names.cycle(cycle) / stage)

    async def turn(self, stop_after: str | None = None, pages_max: int | None = None) -> int | Sleep | Done:
        """One turn that fetches, with the absorb turns and splits that come before it; its cycle, or why there is none."""
        may_grow = True
        while True:
            self._stop_if_asked()
            for counts in take_inbox(self.crawl_state, self.config):
                self.tell("taken", counts=counts)
            held = {read_plan(self.crawl_state.path, cycle).block for cycle in self.crawl_state.open_cycles()}
            views = self.crawl_state.views(held)
            if (
                may_grow
                and must_grow(views, self.config.blocks)
                and views[block_to_split(self.crawl_state.log.blocks)].free
            ):
                await self._finish(self._plan(GROW, block_to_split(self.crawl_state.log.blocks)))
                may_grow = False  # one split a turn: bounds far too small for the crawl must not stop it
                continue
            choice = next_turn(views, now_ms())
            if not isinstance(choice, Turn):
                return choice
            plan = self._plan(choice.kind, choice.block, pages_max)
            if await self._finish(plan, stop_after) and plan.kind == CRAWL:
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
        log = self.crawl_state.log
        plan = Plan(self.crawl_state.next_cycle(), kind, block, log.blocks, log.generation(block), now_ms(), config)
        write_plan(self.crawl_state.path, plan)
        self.tell("plan", plan=plan)
        return plan

    async def _finish(self, plan: Plan, stop_after: str | None = None) -> bool:
        """Runs what is left of a cycle up to its commit; false where damage holds it up or it was abandoned."""
        if plan.kind in FROM_INBOX:
            resume_taking(self.crawl_state, plan)
            return True
        was_held = bool(read_held(self.crawl_state.path, plan.cycle))
        forget_held(self.crawl_state.path, plan.cycle)
        if self.crawl_state.log.generation(plan.block) != plan.generation:
            self._abandon(plan, "its generation is not live any more", parents={})
            return False
        remakes = 0
        whole_turn = STAGES_OF[plan.kind]
        stages = list(whole_turn)
        while stages:
            stage = stages[0]
            folder = self.crawl_state.path / names.cycle(plan.cycle) / stage
            if stage != names.VERIFIER and is_published(folder):
                code = 0
            else:
                self._stop_if_asked()
                self.tell("stage", stage=stage, plan=plan)
                code = await self._run(stage, plan)
                if code == 0:
                    self._note_success(stage, plan)
            if code == EX_DATAERR and remakes < REMAKES_MAX and (damaged := self._damaged_stage(plan)):
                remakes += 1
                unpublish(self.crawl_state.path / names.cycle(plan.cycle) / damaged)
                stages = list(whole_turn[whole_turn.index(damaged) :])
                continue
            if code == EX_DATAERR:
                self._hold_up(plan)
                return False
            if code:
                self._give_way(plan, stage, code, was_held)
                return False
            stages.pop(0)
            if stage == stop_after:
                folder = shlex.quote(str(self.crawl_state.path))
                raise Stopped(
                    f"stopped after the {stage}\nnext: bin/{stages[0]} --crawl {folder} --cycle {plan.cycle}\n"
                    f"      bin/run-cycle{self.options}"
                )
        self.crawl_state.refresh()
        self.tell("committed", plan=plan, report=self.report(plan.cycle))
        delete_superseded(self.crawl_state, self.config.blocks.keep_generations)
        return True

    async def _run(self, stage: str, plan: Plan) -> int:
        """The exit code that counts: 0, 65 or, after its retries, that of a stage that keeps dying."""
        wait_s = self.config.supervisor.retry_wait_s
        for attempt in range(self.config.supervisor.stage_retries + 1):
            code = await self.stages.run(stage, plan.cycle, others_pass=self._deaths.others_pass(plan.block))
            if code in (0, EX_DATAERR):
                return code
            self._stop_if_asked()
            if code == EX_USAGE:
                raise Usage(f"{stage} refused its command line (exit code 64): this is a defect, please report it")
            if code == EX_TEMPFAIL and self.stages.figures.get("outage_s"):
                break  # it has waited for the network as long as it was told to
            if code == EX_CONFIG:
                if has_pages(self.crawl_state.path / names.cycle(plan.cycle) / names.FETCHER):
                    raise BadConfiguration(
                        f"{stage} refused the configuration of cycle {plan.cycle} (see above), which has pages and "
                        f"stays open; bin/run-cycle --drop-open {plan.cycle} gives it up"
                    )
                self._abandon(
                    plan, f"{stage} refused its configuration", parents={}
                )  # the next plan takes the mended one
                raise BadConfiguration(f"{stage} refused the configuration of cycle {plan.cycle} (see above)")
            if attempt < self.config.supervisor.stage_retries:
                self.tell("retry", stage=stage, code=code, wait_s=wait_s)
                with trio.move_on_after(wait_s):
                    await self.stages.stopping.wait()
                self._stop_if_asked()
                wait_s *= 2
        if code == EX_TEMPFAIL:
            raise TryLater(
                f"{stage} of cycle {plan.cycle} cannot go on now (see above); the cycle stays open, run again later"
            )
        return code

    def _note_success(self, stage: str, plan: Plan) -> None:
        self._deaths.note_success(stage)
        if stage == names.FETCHER:
            counts = self.report(plan.cycle)[names.FETCHER]
            self._deaths.note_fetched(plan.block, counts.get("answered", 0))

    def _damaged_stage(self, plan: Plan) -> str | None:
        """The earlier stage of this cycle one of whose files was set aside; pages are not made anew."""
        for stage in STAGES_OF[plan.kind]:
            folder = self.crawl_state.path / names.cycle(plan.cycle) / stage
            if stage != names.FETCHER and is_published(folder):
                try:
                    files = read_manifest(folder)["files"]
                except Damaged:
                    return stage
                if any(not (folder / name).exists() for name in files):
                    return stage
        return None

    def _give_way(self, plan: Plan, stage: str, code: int, was_held: bool) -> None:
        """A stage died through all its retries. Nobody is charged; a cycle that has pages is held, any other is planned anew.

        A cycle that an earlier run held says nothing new about the machine: other blocks must get their turn.
        """
        reason = f"the {stage} died {self.config.supervisor.stage_retries + 1} times, last by {name_exit(code)}"
        is_machine = not was_held and self._deaths.note_death(stage)
        if stage == names.FETCHER:
            self._deaths.note_fetcher_death(plan.block)
        if is_machine or has_pages(self.crawl_state.path / names.cycle(plan.cycle) / names.FETCHER):
            note_held(self.crawl_state.path, plan.cycle, reason)
            self.crawl_state.stopped.add(plan.block)
            self.held.append(f"cycle {plan.cycle} of block {plan.block} is held, the next run tries again: {reason}")
            if not is_machine:  # then the run ends, and says why
                self.tell("held", plan=plan, reason=reason)
        else:
            self._abandon(plan, reason)
        if is_machine:
            raise TryLater(
                f"{reason}, in two cycles in a row: this machine or a defect is at fault, no URL is charged. "
                f"{describe_machine(self.stages.last_lines)}. The same command tries again"
            )

    def _hold_up(self, plan: Plan) -> None:
        self.crawl_state.stopped.add(plan.block)
        self.damage.append(f"cycle {plan.cycle} of block {plan.block} is held up by a damaged file: see bin/status")
        self.tell("held_up", plan=plan)

    def _abandon(self, plan: Plan, reason: str, parents: dict | None = None) -> None:
        held = {plan.block: plan.generation} if parents is None else parents
        commit(self.crawl_state.path, Entry(ABANDON, plan.cycle, plan.blocks, held, reason=reason))
        self.crawl_state.refresh()
        if plan.kind != CRAWL:
            self.crawl_state.stopped.add(plan.block)  # it would be planned again at once, and fail again
            self.held.append(f"block {plan.block} waits for the next run: {reason}")
        self.tell("abandoned", plan=plan, reason=reason)

    def _stop_if_asked(self) -> None:
        if self.stages.stopping.is_set():
            raise Stopped

    def report(self, cycle: int) -> dict:
        """Counts of every stage of a cycle, as their manifests have them."""
        counts = {}
        for stage in names.STAGES:
            folder = self.crawl_state.path / names.cycle(cycle) / stage
            if is_published(folder):
                counts[stage] = read_manifest(folder).get("counts", {})
        return counts
