"""crawl: turns the ring until told to stop.

  bin/crawl [--crawl DIR]                    go on until SIGINT or SIGTERM
  bin/crawl --until-done                     until nothing waits in any block
  bin/crawl --cycles 10 --max-pages 50000    or until one of the limits is reached
  bin/crawl --max-bytes 2000000000 --max-hours 8

Stopping is clean: the stage in progress ends or is abandoned, nothing half-made is visible, and the
same command goes on where it stopped. So does it after kill -9 or a power cut. When all that waits
is due later, it sleeps until then; when nothing waits at all, it ends if a number of cycles,
pages or bytes was given, and else waits for seeds. --config, --set and --yes: see bin/run-cycle --help.

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
INBOX_LOOK_S = 5.0  # how long seeds left in the inbox of an idle crawl wait at most


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--cycles", type=at_least(1), metavar="N", help="stop after N turns that fetch")
    parser.add_argument(
        "--max-pages",
        type=at_least(1),
        metavar="N",
        help="stop at N pages, never more; a cycle that is open already is finished first",
    )
    parser.add_argument(
        "--max-bytes", type=at_least(1), metavar="N", help="stop after the cycle that passes N bytes of answers"
    )
    parser.add_argument(
        "--max-hours", type=at_least(0.0), metavar="H", help="stop after the cycle in which H hours end"
    )
    parser.add_argument("--until-done", action="store_true", help="stop when nothing is waiting")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    add_replacement(parser)
    arguments = parser.parse_args()
    session = Session(arguments)
    code = session.run(lambda ring: turn_on(ring, session, arguments))
    session.say("stopped; the same command goes on" if session.stopped else session.word)
    session.summarise()
    session.suggest(f"bin/status --crawl {arguments.crawl}", f"bin/check --crawl {arguments.crawl}")
    return code


async def turn_on(ring: Ring, session: Session, limits) -> str:
    end = time.monotonic() + limits.max_hours * 3600 if limits.max_hours is not None else math.inf
    tally = session.display.tally
    await ring.start()
    while True:
        pages_left = limits.max_pages - tally.answered if limits.max_pages is not None else None
        if limits.cycles is not None and tally.cycles >= limits.cycles:
            return f"{count(limits.cycles, 'cycle')} done"
        if pages_left is not None and pages_left <= 0:
            return f"{count(tally.answered, 'page')}: --max-pages reached"
        if limits.max_bytes is not None and tally.bytes >= limits.max_bytes:
            return f"{size(tally.bytes)}: --max-bytes reached"
        if time.monotonic() >= end:
            return "--max-hours reached"
        result = await ring.turn(pages_max=pages_left)
        is_bounded = limits.until_done or limits.cycles or limits.max_pages or limits.max_bytes
        if isinstance(result, Done) and (is_bounded or result.blocked):
            return "done: nothing is waiting in any block" if not result.blocked else "nothing can go on"
        if isinstance(result, (Done, Sleep)):
            ring.tell("sleep", until_ms=result.until_ms if isinstance(result, Sleep) else None)
            due_s = (result.until_ms - now_ms()) / 1000 if isinstance(result, Sleep) else math.inf
            with trio.move_on_after(max(0.0, min(due_s, INBOX_LOOK_S, end - time.monotonic()))):
                await ring.stages.stopping.wait()


if __name__ == "__main__":
    run(main, NAME)
