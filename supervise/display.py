"""What a person sees while the ring turns: a live view on a terminal, a line now and then without one."""

import sys
import time
from datetime import datetime

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from contract import names
from contract.plan import CRAWL
from supervise.tally import Tally, size

LINE_EVERY_S = 10.0
VERBS = {names.SCHEDULER: "scheduling", names.FETCHER: "fetching", names.EXTRACTOR: "extracting", names.VERIFIER: "verifying"}


class Display:
    """Takes the events of the ring and the progress of its stages."""

    def __init__(self, quiet: bool):
        self.tally = Tally()
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._began = self._told_at = time.monotonic()
        self._plan = None
        self._stage = "starting"
        self._stage_began = self._began
        self._figures: dict = {}
        self.memory_bytes = lambda: 0  # of the stage that runs
        self._live = None
        if sys.stderr.isatty() and not quiet:
            self._live = Live(console=self._console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def __enter__(self):
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error):
        if self._live:
            self._live.stop()

    def tell(self, event: str, **facts) -> None:
        getattr(self, f"_on_{event}")(**facts)

    def progress(self, figures: dict) -> None:
        self._figures = figures
        if self._live:
            self._live.refresh()  # a stage may be over before the view is drawn again by itself
        elif time.monotonic() - self._told_at >= LINE_EVERY_S:
            self._say(f"{self._where()}: {self._figures_text()}")

    def line(self, text: str) -> None:
        """A line of a stage's standard error: always shown, it is a warning or an error."""
        self._console.print(Text(text))

    def _say(self, text: str) -> None:
        self._told_at = time.monotonic()
        if not self._quiet:
            self._console.print(Text(text))

    def _on_plan(self, plan) -> None:
        self._plan, self._figures = plan, {}

    def _on_resume(self, plan) -> None:
        self._plan, self._figures = plan, {}
        self._say(f"cycle {plan.cycle} ({plan.kind}) was interrupted: going on with it")

    def _on_stage(self, stage: str, plan) -> None:
        self._plan, self._stage, self._figures = plan, stage, {}
        self._stage_began = time.monotonic()

    def _on_sleep(self, until_ms: int | None) -> None:
        """Told every few seconds while it lasts; said once."""
        due = "until seeds come" if until_ms is None else f"until {datetime.fromtimestamp(until_ms / 1000):%Y-%m-%d %H:%M:%S}"
        if self._stage != f"nothing is due {due}":
            self._plan, self._figures, self._stage = None, {}, f"nothing is due {due}"
            self._say(self._stage)

    def _on_seeds(self, taken: int) -> None:
        self._say(f"{taken} seeds taken in")

    def _on_retry(self, stage: str, code: int, wait_s: float) -> None:
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        self.line(f"{stage} ended with {cause}; again in {wait_s:g} s")

    def _on_held_up(self, plan) -> None:
        self.line(f"cycle {plan.cycle} of block {plan.block} is held up by a damaged file; other blocks go on")

    def _on_abandoned(self, plan, reason: str) -> None:
        self.line(f"cycle {plan.cycle} abandoned: {reason}")

    def _on_committed(self, plan, report: dict) -> None:
        self.tally.add(plan.kind, report)
        merged = report.get(names.VERIFIER, {})
        if plan.kind == CRAWL:
            fetched = report[names.FETCHER]
            self._say(f"cycle {plan.cycle} block {plan.block}/{plan.blocks}: {fetched['answered']} pages, {size(fetched['bytes'])}, "
                      f"{fetched['failed']} failed, {fetched['refused']} refused, {fetched['not_reached']} not reached; "
                      f"{merged['new']} new URLs, {merged['waiting']} waiting in the block")
        elif plan.kind == "grow":
            self._say(f"block {plan.block} split in two: {plan.blocks + 1} blocks")

    def _where(self) -> str:
        if self._plan is None:
            return self._stage
        return f"cycle {self._plan.cycle} block {self._plan.block}/{self._plan.blocks} {VERBS.get(self._stage, self._stage)}"

    def _figures_text(self) -> str:
        figures = self._figures
        parts = []
        if "pages" in figures:
            seconds = max(time.monotonic() - self._stage_began, 0.001)
            of = f" of {figures['listed']}" if "listed" in figures else ""
            parts.append(f"{figures['pages']}{of} pages, {figures['pages'] / seconds:.0f}/s")
        if "bytes" in figures:
            parts.append(size(figures["bytes"]))
        if "servers" in figures:
            parts.append(f"{figures['servers']} servers active")
        errors = figures.get("errors")
        if isinstance(errors, dict) and errors:
            parts.append("errors " + " ".join(f"{kind} {number}" for kind, number in sorted(errors.items())))
        return ", ".join(parts)

    def _render(self):
        seconds = time.monotonic() - self._began
        tally = self.tally
        table = Table.grid(padding=(0, 2))
        table.add_row("now", f"{self._where()}  {self._figures_text()}  [{size(self.memory_bytes())} of memory]")
        table.add_row("run", f"{tally.cycles} cycles, {tally.answered} pages, {tally.answered / max(seconds, 1):.0f}/s, "
                             f"{size(tally.bytes)}, {tally.failed} failed, {tally.refused} refused, {seconds:.0f} s")
        return Group(table)
