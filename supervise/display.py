"""What a person sees during a run: a live view on a terminal; elsewhere a line now and then."""

import sys
import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from contract import names
from contract.config import Config
from contract.crawl_config import encode_value, find_differences
from contract.log import KINDS, SEED
from contract.terminal import beneath, make_plain
from contract.units import count, duration, moment, size
from supervise.deaths import name_exit
from supervise.run_counts import RunCounts

LINE_EVERY_S = 10.0
VERBS = {
    names.SCHEDULER: "scheduling",
    names.FETCHER: "fetching",
    names.EXTRACTOR: "extracting",
    names.VERIFIER: "verifying",
}


class Display:
    """Shows the events of the ring and the progress of its stages."""

    def __init__(self, quiet: bool, config: Config):
        self._config = config  # of this run
        self.counts = RunCounts()
        self._quiet = quiet
        # Lines wrap at the width of a terminal, and only there.
        self._console = Console(file=beneath(sys.stderr), highlight=False, soft_wrap=not sys.stderr.isatty())
        self._began = self._printed_at = time.monotonic()
        self._plan = None
        self._stage = "starting"
        self._stage_began = self._began
        self._figures: dict = {}
        self.memory_bytes = lambda: 0  # of the stage that runs
        self._live = None
        if sys.stderr.isatty() and not quiet:
            # No redirection: what else is printed meanwhile must pass through the guard of contract/terminal.py.
            self._live = Live(
                console=self._console,
                get_renderable=self._render,
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )

    def __enter__(self):
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error):
        if self._live:
            self._live.stop()

    def report(self, event: str, **facts) -> None:
        """Shows an event of the ring: calls the method `_on_EVENT` with its facts."""
        getattr(self, f"_on_{event}")(**facts)

    def progress(self, figures: dict) -> None:
        self._figures = figures
        if self._live:
            self._live.refresh()  # a short stage may end before the next regular refresh
        elif time.monotonic() - self._printed_at >= LINE_EVERY_S:
            self._say(f"{self._where()}: {self._figures_text()}")

    def line(self, text: str) -> None:
        """Prints a warning or an error, such as a line of a stage's standard error; --quiet does not suppress it."""
        self._console.print(Text(make_plain(text)))

    def _say(self, text: str) -> None:
        self._printed_at = time.monotonic()
        if not self._quiet:
            self._console.print(Text(make_plain(text)))

    def _on_plan(self, plan) -> None:
        self._plan, self._figures = plan, {}

    def _on_resume(self, plan) -> None:
        self._plan, self._figures = plan, {}
        self._say(f"cycle {plan.cycle} ({plan.kind}) was interrupted: resuming it")
        for difference in find_differences(self._config, plan.config):
            self._say(
                f"cycle {plan.cycle} keeps its plan's {difference.name} = {encode_value(difference.after)} "
                f"(now {encode_value(difference.before)})"
            )

    def _on_stage(self, stage: str, plan) -> None:
        self._plan, self._stage, self._figures = plan, stage, {}
        self._stage_began = time.monotonic()

    def _on_sleep(self, until_ms: int | None) -> None:
        """Reported every few seconds while it lasts; printed once."""
        due = "until seeds arrive" if until_ms is None else f"until {moment(until_ms)}"
        if self._stage != f"nothing is due {due}":
            self._plan, self._figures, self._stage = None, {}, f"nothing is due {due}"
            self._say(self._stage)

    def _on_taken(self, counts: dict) -> None:
        if counts["kind"] == SEED:
            self._say(f"{count(counts['new'], 'seed')} taken in")
        else:
            self._say(f"reconsidered: {count(counts['urls'], 'URL')} and {count(counts['servers'], 'server')}")

    def _on_retry(self, stage: str, code: int, wait_s: float) -> None:
        self.line(f"{stage} ended by {name_exit(code)}; again in {duration(wait_s)}")

    def _on_held(self, plan, reason: str) -> None:
        self.line(
            f"cycle {plan.cycle} of block {plan.block} is held for the rest of this run: {reason}; others continue"
        )

    def _on_damaged(self, plan) -> None:
        self.line(f"cycle {plan.cycle} of block {plan.block} cannot continue, a file is damaged; other blocks continue")

    def _on_abandoned(self, plan, reason: str) -> None:
        self.line(f"cycle {plan.cycle} abandoned, no URL is charged: {reason}")

    def _on_committed(self, plan, counts: dict) -> None:
        self.counts.add(counts)
        merged = counts.get(names.VERIFIER, {})
        if KINDS[plan.kind].fetches:
            fetched = counts[names.FETCHER]
            self._say(
                f"cycle {plan.cycle} block {plan.block}/{plan.blocks}: {count(fetched['answered'], 'page')}, "
                f"{size(fetched['bytes'])}, {fetched['failed']:,} failed, {fetched['refused']:,} refused, "
                f"{fetched['not_reached']:,} not reached; {count(merged['new'], 'new URL')}, "
                f"{merged['waiting']:,} waiting in the block"
            )
        elif KINDS[plan.kind].splits:
            self._say(f"block {plan.block} split in two: {count(plan.blocks + 1, 'block')}")

    def _where(self) -> str:
        if self._plan is None:
            return self._stage
        verb = VERBS.get(self._stage, self._stage)
        return f"cycle {self._plan.cycle} block {self._plan.block}/{self._plan.blocks} {verb}"

    def _figures_text(self) -> str:
        figures = self._figures
        parts = []
        if "pages" in figures:
            seconds = max(time.monotonic() - self._stage_began, 0.001)
            of = f"{figures['pages']:,} of " if "listed" in figures else ""
            parts.append(
                f"{of}{count(figures.get('listed', figures['pages']), 'page')}, {figures['pages'] / seconds:.0f}/s"
            )
        if "bytes" in figures:
            parts.append(size(figures["bytes"]))
        if "servers" in figures:
            parts.append(f"{count(figures['servers'], 'server')} active")
        errors = figures.get("errors")
        if isinstance(errors, dict) and errors:
            parts.append("errors " + " ".join(f"{kind} {number}" for kind, number in sorted(errors.items())))
        return ", ".join(parts)

    def _render(self):
        seconds = time.monotonic() - self._began
        run = self.counts
        table = Table.grid(padding=(0, 2))
        now = f"{self._where()}  {self._figures_text()}  [{size(self.memory_bytes())} of memory]"
        table.add_row("now", Text(make_plain(now)))
        table.add_row(
            "run",
            f"{count(run.cycles, 'cycle')}, {count(run.answered, 'page')}, {run.answered / max(seconds, 1):.0f}/s, "
            f"{size(run.bytes)}, {run.failed:,} failed, {run.refused:,} refused, {duration(round(seconds))}",
        )
        return Group(table)
