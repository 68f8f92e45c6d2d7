"""crawl: runs cycles until it is stopped or a limit is reached.

  bin/crawl [--crawl DIR]                    until SIGINT or SIGTERM
  bin/crawl --until-done                     until nothing is waiting in any block
  bin/crawl --cycles 10 --max-pages 50000    or until the first of several limits
  bin/crawl --max-bytes 2000000000 --max-hours 8

A stop is clean: the stage in progress ends or is stopped, and no unfinished file is visible. The same
command resumes the crawl. It also does so after kill -9 or a power cut. If all that waits is due
later, the command sleeps until then. If nothing waits at all, it ends if --cycles, --max-pages or
--max-bytes was given; otherwise it waits for seeds. --config, --set and --yes: see bin/run-cycle --help.

Example: bin/crawl --crawl mine --max-hours 8
"""

import math
import time

import trio

from contract.command import at_least, make_parser, run
from contract.units import count, size
from supervise.crawl_state import now_ms
from supervise.replacement import add_replacement
from supervise.ring import Ring
from supervise.session import Session
from supervise.turns import Done, Sleep

NAME = "crawl"
INBOX_LOOK_S = 5.0  # how often an idle crawl looks for seeds in inbox/


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--cycles", type=at_least(1), metavar="N", help="stop after N cycles that fetch")
    parser.add_argument(
        "--max-pages",
        type=at_least(1),
        metavar="N",
        help="stop at N pages, never more; a cycle that is already open is finished first",
    )
    parser.add_argument(
        "--max-bytes", type=at_least(1), metavar="N", help="stop after the cycle in which the answers exceed N bytes"
    )
    parser.add_argument(
        "--max-hours", type=at_least(0.0), metavar="H", help="stop after the cycle in which H hours have passed"
    )
    parser.add_argument("--until-done", action="store_true", help="stop when nothing is waiting")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    add_replacement(parser)
    arguments = parser.parse_args()
    session = Session(arguments)
    code = session.run(lambda ring: run_cycles(ring, session, arguments))
    session.say("stopped; the same command resumes" if session.stopped else session.word)
    session.summarise()
    session.suggest(f"bin/status --crawl {arguments.crawl}", f"bin/check --crawl {arguments.crawl}")
    return code


async def run_cycles(ring: Ring, session: Session, limits) -> str:
    """Runs cycles up to a limit; returns which one, as the word to end with."""
    end = time.monotonic() + limits.max_hours * 3600 if limits.max_hours is not None else math.inf
    run = session.display.counts
    await ring.start()
    while True:
        pages_left = limits.max_pages - run.answered if limits.max_pages is not None else None
        if limits.cycles is not None and run.cycles >= limits.cycles:
            return f"{count(limits.cycles, 'cycle')} done"
        if pages_left is not None and pages_left <= 0:
            return f"{count(run.answered, 'page')}: --max-pages reached"
        if limits.max_bytes is not None and run.bytes >= limits.max_bytes:
            return f"{size(run.bytes)}: --max-bytes reached"
        if time.monotonic() >= end:
            return "--max-hours reached"
        result = await ring.run_cycle(pages_max=pages_left)
        is_bounded = limits.until_done or limits.cycles or limits.max_pages or limits.max_bytes
        if isinstance(result, Done) and (is_bounded or result.blocked):
            return "done: nothing is waiting in any block" if not result.blocked else "nothing can continue"
        if isinstance(result, (Done, Sleep)):
            ring.report("sleep", until_ms=result.until_ms if isinstance(result, Sleep) else None)
            due_s = (result.until_ms - now_ms()) / 1000 if isinstance(result, Sleep) else math.inf
            with trio.move_on_after(max(0.0, min(due_s, INBOX_LOOK_S, end - time.monotonic()))):
                await ring.stages.stopping.wait()


if __name__ == "__main__":
    run(main, NAME)
