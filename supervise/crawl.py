"""crawl: runs cycles until it is stopped or a limit is reached.

  bin/crawl [--crawl DIR]                    until SIGINT, SIGTERM or SIGHUP
  bin/crawl --until-done                     until nothing is waiting, or only servers that do not answer
  bin/crawl --cycles 10 --max-pages 50000    or until the first of several limits
  bin/crawl --max-bytes 2000000000 --max-hours 8

Up to [supervisor] cycles_in_flight cycles are in flight at the same time, each on a block of its own: while one
fetches, another one extracts or merges.

A stop is clean: the stages in progress end or are stopped, and no unfinished file is visible. The same
command resumes the crawl. It also does so after kill -9 or a power cut. If all that waits is due
later, the command sleeps until then, or until collected pages are due again ([revisit]). If nothing
waits at all, it ends if --cycles, --max-pages or --max-bytes was given; otherwise it waits for seeds.

With --until-done the command makes no revisits for their own sake, so they never keep it from ending:
they only fill lists of URLs that wait. --until-done also ends when only servers in back-off are left
and no page came, or can come, for --patience minutes. It then prints which servers those are, why, and
what to run later. --config, --set and --yes: see bin/run-cycle --help.

Example: bin/crawl --crawl mine --max-hours 8
"""

from contract import names
from contract.command import at_least, make_parser, run
from contract.policies import revisits
from contract.units import moment
from supervise.left_servers import describe_left
from supervise.pipeline import End, Limits, OutOfPatience, Pipeline, Reached
from supervise.replacement import add_replacement
from supervise.ring import Ring
from supervise.session import Session

NAME = names.CRAWL_COMMAND
PATIENCE_MIN = 10.0


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--cycles", type=at_least(1), metavar="N", help="stop after N cycles that fetch")
    parser.add_argument(
        "--max-pages",
        type=at_least(1),
        metavar="N",
        help="stop at N pages, never more; cycles that are already open are finished first",
    )
    parser.add_argument(
        "--max-bytes", type=at_least(1), metavar="N", help="plan no more cycles once the answers exceed N bytes"
    )
    parser.add_argument(
        "--max-hours", type=at_least(0.0), metavar="H", help="plan no more cycles once H hours have passed"
    )
    parser.add_argument(
        "--until-done", action="store_true", help="stop when nothing is waiting, or only servers in back-off"
    )
    parser.add_argument(
        "--patience",
        type=at_least(0.0),
        default=PATIENCE_MIN,
        metavar="MIN",
        help=f"with --until-done: minutes without a page while nothing is due (default {PATIENCE_MIN:g})",
    )
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    add_replacement(parser)
    arguments = parser.parse_args()
    session = Session(arguments, NAME)
    limits = Limits(
        arguments.cycles,
        arguments.max_pages,
        arguments.max_bytes,
        arguments.max_hours,
        arguments.until_done,
        arguments.patience * 60,
    )
    code = session.run(lambda ring: run_cycles(ring, limits))
    session.say("stopped; the same command resumes" if session.stopped else session.word)
    session.summarise()
    session.suggest(f"bin/status --crawl {arguments.crawl}", f"bin/check --crawl {arguments.crawl}")
    return code


async def run_cycles(ring: Ring, limits: Limits) -> str:
    """Runs cycles up to a limit; returns which one, as the word to end with."""
    end = await Pipeline(ring, limits, ring.config.supervisor.cycles_in_flight).run()
    return word_of(end, ring)


def word_of(end: End, ring: Ring) -> str:
    if isinstance(end, Reached):
        return end.word
    if isinstance(end, OutOfPatience):
        return (
            f"done for now: all that waits belongs to servers that are not due before {moment(end.until_ms)}\n"
            f"{describe_left(ring.state)}\n"
            f"later: bin/crawl{ring.options} --until-done"
        )
    if end.blocked:
        return "nothing can continue"
    left = f"; bin/crawl{ring.options} without --until-done revisits pages" if revisits(ring.config) else ""
    return f"done: nothing is waiting in any block{left}"


if __name__ == "__main__":
    run(main, NAME)
