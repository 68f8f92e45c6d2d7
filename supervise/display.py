"""What a person sees during a run: a live view on a terminal; elsewhere a line now and then.

On a terminal, one row per cycle in flight and one for the run. What cannot be printed is dropped
(supervise/unbreakable_stream.py): neither a stopped terminal nor a pipe whose reader ended delays or ends the run. A
terminal that is closed sends SIGHUP, which stops the run in order unless nohup made it ignored (supervise/session.py).
"""

import sys
import time
from collections import Counter

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from contract import names
from contract.config import Config
from contract.lines import FIT_MIN
from contract.log import KINDS
from contract.terminal import make_plain
from contract.units import count, duration, size
from supervise.events import INFO, describe_event, describe_kept_keys
from supervise.flight_view import FlightView, Views, count_all, round_s
from supervise.flights import Flights
from supervise.pace import Pace
from supervise.unbreakable_stream import Unbreakable, is_at_terminal

LINE_EVERY_S = 10.0
REFRESHES_PER_S = 4
MEMORY_EVERY_S = 2.0  # reading the private pages of a process takes milliseconds
VERB_WIDTH, BAR_WIDTH, LEFT_WIDTH = 10, 14, 6
LINES_BESIDE = 5  # of the terminal: the title, two of totals, one for the rest, one for the cursor
CYCLES_IN_LINE = 4  # that a line names where there is no terminal
SHOWN_IN_ROWS = {"plan", "stage", "stage_ended", "waits"}  # events that no line is printed for


class Display:
    """Shows the events of the ring and the progress of its stages."""

    def __init__(self, quiet: bool, config: Config, flights: Flights):
        self._config = config  # of this run
        self._flights = flights
        self._quiet = quiet
        self.memory_of = lambda process_id: 0  # private memory of a stage's processes in bytes; the session sets it
        self._console = Console(file=Unbreakable(sys.stderr), highlight=False)
        is_terminal = sys.stderr is not None and is_at_terminal(sys.stderr) and not self._console.is_dumb_terminal
        if self._console.width < FIT_MIN:
            self._console.width = FIT_MIN  # such as of COLUMNS=0, where nothing would be shown
        self._console.soft_wrap = not is_terminal  # lines wrap at the width of a terminal, and only there
        self._printed_at = time.monotonic()
        self._slept = ""  # the last text of a sleep, which is reported again and again while it lasts
        self._views, self._pace = Views(), Pace()
        self._memory = (0, -MEMORY_EVERY_S)  # bytes, and the moment at which they were counted
        self._live = None
        if is_terminal and not quiet:
            # No redirection: what else is printed meanwhile must pass through the guard of contract/terminal.py.
            self._live = Live(
                console=self._console,
                get_renderable=self.render,
                refresh_per_second=REFRESHES_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )

    def __enter__(self):
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error):
        if self._live:
            self._live.stop()

    def report(self, event: str, **facts) -> None:
        """Shows an event of the ring."""
        level, text = describe_event(event, facts)
        if event == "sleep" and text == self._slept:
            return
        self._slept = text if event == "sleep" else ""
        if event not in SHOWN_IN_ROWS and not is_small_commit(event, facts):
            (self._say if level == INFO else self.line)(text)
        if event == "resume":
            for kept in describe_kept_keys(facts["plan"], self._config):
                self._say(kept)

    def progress(self, cycle: int) -> None:
        """The figures of a cycle in flight have changed."""
        if self._live:
            self._live.refresh()  # a short stage may end before the next regular refresh
        elif time.monotonic() - self._printed_at >= LINE_EVERY_S:
            self._say(self.describe_line())
        else:
            self._look()  # rates need samples

    def line(self, text: str) -> None:
        """Prints a warning or an error, such as a line of a stage's standard error; --quiet does not suppress it."""
        self._console.print(Text(make_plain(text)))

    def _say(self, text: str) -> None:
        self._printed_at = time.monotonic()
        if not self._quiet:
            self._console.print(Text(make_plain(text)))

    def _look(self) -> tuple[list[FlightView], str]:
        """The cycles in flight, and the totals of the run with them, in words."""
        now_s = time.monotonic()
        views, run = self._views.look(self._flights, now_s), count_all(self._flights)
        self._pace.note(now_s, run.answered)
        (pages_per_s,) = self._pace.per_s()
        memory_bytes = self._count_memory(now_s)
        totals = (
            f"{count(run.cycles, 'cycle')}, {count(run.answered, 'page')}, {pages_per_s:,.0f}/s, {size(run.bytes)}, "
            f"{run.failed:,} failed, {run.refused:,} refused, {duration(round_s(now_s - self._flights.began))}"
        )
        return views, totals + (f", {size(memory_bytes)} of memory" if memory_bytes else "")

    def _count_memory(self, now_s: float) -> int:
        if not self._memory[0] or now_s - self._memory[1] >= MEMORY_EVERY_S:  # a short run shall show it too
            running = [flight.process_id for flight in list(self._flights.flights.values()) if flight.is_running]
            self._memory = (sum(self.memory_of(process_id) for process_id in running if process_id), now_s)
        return self._memory[0]

    def describe_line(self) -> str:
        """All that happens now as one line, where there is no terminal."""
        views, totals = self._look()
        parts = [f"cycle {view.cycle} block {view.block} {view.describe()}" for view in views[:CYCLES_IN_LINE]]
        if len(views) > CYCLES_IN_LINE:
            parts.append(describe_rest(views[CYCLES_IN_LINE:]))
        return f"{totals} | " + " | ".join(parts or [self._slept or "between cycles"])

    def render(self) -> RenderableType:
        """The live view: a row per cycle in flight, as many as fit, and one for the run."""
        views, totals = self._look()
        rows: list[RenderableType] = []
        fit = max(1, self._console.height - LINES_BESIDE)
        if len(views) > fit:  # those at work first, each group in the order of cycles
            views = sorted(views, key=lambda view: (not view.verb, view.cycle))
        shown, rest = views[:fit], views[fit:]
        width = max([len("cycle"), *(len(str(view.cycle)) for view in views)])
        block_width = max([len("block"), *(len(view.block) for view in views)])
        if views:
            rows.append(make_title(width, block_width))
        rows += [self._row(view, width, block_width) for view in shown]
        if rest:
            rows.append(Text(" " * (width + 2) + describe_rest(rest), no_wrap=True, overflow="ellipsis"))
        if not views:
            rows.append(Text(make_plain(self._slept or "between cycles")))
        grid = Table.grid(padding=(0, 2))
        grid.add_row(Text("run".rjust(width), style="bold"), Text(totals))
        return Group(*rows, grid)

    def _row(self, view: FlightView, width: int, block_width: int) -> Table:
        """Each row is a table of its own: what a cycle waits for may take the room of bar and ETA."""
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(width=width, justify="right", no_wrap=True)
        grid.add_column(width=block_width + 1, justify="right", no_wrap=True)
        cells: list[RenderableType] = [str(view.cycle), view.block]
        text = Text(make_plain(view.text), no_wrap=True, overflow="ellipsis", style="yellow" if view.is_wait else "")
        if view.verb:
            grid.add_column(width=VERB_WIDTH, no_wrap=True)
            cells.append(Text(make_plain(view.verb)))
        if view.verb and not view.is_wait:
            grid.add_column(width=BAR_WIDTH)
            cells.append(make_bar(view))
        grid.add_column(ratio=1, no_wrap=True)
        cells.append(text)
        if view.eta_s is not None:
            grid.add_column(width=LEFT_WIDTH, justify="right", no_wrap=True)
            cells.append(describe_left(view.eta_s))
        grid.add_row(*cells)
        return grid


def is_small_commit(event: str, facts: dict) -> bool:
    """Whether a cycle was committed that only absorbed: it is not worth a line."""
    if event != "committed" or facts["counts"].get(names.VERIFIER, {}).get("prepared") is not None:
        return False
    kind = KINDS[facts["plan"].kind]
    return not kind.fetches and not kind.splits and not kind.forgets


def make_title(width: int, block_width: int) -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    for column_width, justify in ((width, "right"), (block_width + 1, "right"), (None, "left"), (LEFT_WIDTH, "right")):
        grid.add_column(width=column_width, ratio=None if column_width else 1, justify=justify, no_wrap=True)
    grid.add_row("cycle", "block", "now", "left", style="dim")
    return grid


def describe_left(seconds: float) -> str:
    """The time that is left, short: `15 s`, `12 min`, `3.5 h`."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{min(seconds / 3600, 999):.1f} h"


def make_bar(view: FlightView) -> ProgressBar:
    if view.share is None:
        return ProgressBar(total=None, pulse=True, width=BAR_WIDTH)
    return ProgressBar(total=1.0, completed=view.share, width=BAR_WIDTH)


def describe_rest(views: list[FlightView]) -> str:
    """Cycles that have no row: how many do what."""
    doing = Counter(view.verb or view.text.partition(" (")[0] for view in views)
    return f"and {count(len(views), 'cycle')} more: " + ", ".join(f"{number} {what}" for what, number in doing.items())
