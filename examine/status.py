"""status: prints what a crawl is doing and has done, what is wrong, and what to do about it.

  bin/status [--crawl DIR]               one screen for a person
  bin/status --crawl DIR --watch [S]     the same again every S seconds (default 2), until Ctrl-C
  bin/status --crawl DIR --blocks        with a table of the blocks
  bin/status --crawl DIR --json          one JSON object with all figures
  bin/status --crawl DIR --prometheus FILE
                                         replaces FILE, for the textfile collector of node_exporter; prints nothing

It reads files only: the log, manifests, live.json and the end of the journal. It is quick at any size and age of the
crawl, needs no lock, and does not disturb a crawl at work.

The line `known` counts URLs by state: `prescheduled` ones may be in the next list, `waiting` ones not yet. The estimate
rests on both, and on the pages per second of the last hour. Exit code 65 if something is damaged and a command must
be run, else 0.

Example: bin/status --crawl demo/crawl --watch
"""

import json
import signal
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from contract.command import at_least, make_parser, run
from contract.crawl_folder import open_folder
from contract.errors import EX_DATAERR, Usage
from contract.lines import FIT_MIN, fit, say, width_of
from contract.terminal import beneath
from examine.crawl_figures import describe
from examine.prometheus import write_metrics
from examine.status_page import LABEL_WIDTH, make_page

NAME = "status"
WATCH_EVERY_S = 2.0
WATCH_LEAST_S, WATCH_MOST_S = 0.1, 86_400.0


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--blocks", action="store_true", help="print a table of the blocks too")
    parser.add_argument(
        "--watch",
        type=at_least(WATCH_LEAST_S, WATCH_MOST_S),
        nargs="?",
        const=WATCH_EVERY_S,
        metavar="SECONDS",
        help="print it again and again, until Ctrl-C",
    )
    parser.add_argument("--prometheus", type=Path, metavar="FILE", help="replace FILE by metrics for node_exporter")
    arguments = parser.parse_args()
    if sum((arguments.json, arguments.watch is not None, arguments.prometheus is not None)) > 1:
        raise Usage("--json, --watch and --prometheus: give one of them")
    if arguments.watch is not None:
        return watch(arguments.crawl, arguments.watch, arguments.blocks)
    status = look(arguments.crawl)
    if arguments.prometheus is not None:
        write_metrics(arguments.prometheus, status)
    elif arguments.json:
        print(json.dumps(status))
    else:
        for line in make_page(status, with_blocks=arguments.blocks, width=width_of(sys.stdout)):
            say(line, indent=LABEL_WIDTH)
    return exit_code_of(status)


def look(crawl: Path) -> dict:
    return describe(open_folder(crawl), time.time_ns() // 1_000_000)


def exit_code_of(status: dict) -> int:
    is_damaged = status["without_plan"] or status["configuration"] or any(note["run"] for note in status["damage"])
    return EX_DATAERR if is_damaged else 0


def watch(crawl: Path, every_s: float, with_blocks: bool) -> int:
    """Shows the page again and again; Ctrl-C or SIGTERM ends it. Without a terminal, pages follow each other."""
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # or it would leave the alternate screen as it is
        look(crawl)  # a folder that is no crawl is an error at once, not a page
        console = Console(file=beneath(sys.stdout), highlight=False)
        if width_of(sys.stdout) is None or console.is_dumb_terminal:
            while True:
                for line in make_page(look(crawl), with_blocks=with_blocks):
                    say(line)
                print(flush=True)
                time.sleep(every_s)
        if console.width < FIT_MIN:
            console.width = FIT_MIN  # such as of COLUMNS=0
        with Live(
            console=console, auto_refresh=False, screen=True, redirect_stdout=False, redirect_stderr=False
        ) as live:
            while True:
                page = make_page(look(crawl), with_blocks=with_blocks, width=console.width)
                live.update(Text(fit_screen(page, console)), refresh=True)
                time.sleep(every_s)
    except KeyboardInterrupt:
        return 0


def fit_screen(lines: list[str], console: Console) -> str:
    """As many lines as the terminal has; the last one says how many are left out."""
    fitted = "\n".join(fit(line, console.width, LABEL_WIDTH) for line in lines).split("\n")
    height = max(1, console.height)
    if len(fitted) > height:
        left_out = len(fitted) - height + 1
        fitted = [*fitted[: height - 1], f"({left_out} more lines: bin/status without --watch shows them)"]
    return "\n".join(fitted)


if __name__ == "__main__":
    run(main, NAME)
