"""run-cycle: one turn of the ring: schedule, fetch, extract, verify.

  bin/run-cycle [--crawl DIR]        one turn, and what must come before it
  bin/run-cycle --demo               crawl a small web made for it, on this machine only

A turn that was interrupted is gone on with, and that is the turn. Prints a word and exits 0 when
nothing is due. From cron, --quiet prints errors only; while another run works on the same crawl
folder it exits 75. --stop-after ends after one stage, so that the next can be run alone.
--drop-open gives up an interrupted cycle instead of resuming it: no URL is charged, its pages stay
and bin/extractor reads them, and the next turn makes a new list.

The crawl's configuration is the one that bin/seed stored in its folder. --config FILE replaces it
from the next plan on and prints what differs; a change of scope, contact or delay of a crawl that has
pages needs a yes, or --yes without a terminal. --set holds for this run only. A cycle that is open
keeps the configuration of its plan.

Example: bin/seed --crawl mine --config mine.toml https://example.org/ && bin/run-cycle --crawl mine
"""

import sys

from contract import names
from contract.command import at_least, given, is_crawl_given, make_parser, run
from contract.errors import EX_TEMPFAIL, Locked, Usage
from contract.lines import say
from contract.units import moment
from supervise import demo
from supervise.replacement import add_replacement
from supervise.ring import Ring
from supervise.session import Session
from supervise.turns import Done, Sleep

NAME = "run-cycle"


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--demo", action="store_true", help="crawl the demonstration web to its end, below demo/")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.add_argument("--stop-after", choices=names.STAGES[:-1], help="end the turn after this stage; it stays open")
    parser.add_argument(
        "--drop-open",
        nargs="?",
        type=at_least(0),
        const=-1,
        metavar="ID",
        help="give up an open cycle (the only one, or number ID), charging no URL, and end",
    )
    add_replacement(parser)
    arguments = parser.parse_args()
    if arguments.demo:
        if is_crawl_given(arguments) or arguments.config:
            raise Usage(
                "--demo makes its own crawl folder below demo/, with its own configuration: leave --crawl and --config "
                "out"
            )
        return demo.run(arguments)
    try:
        session = Session(arguments)
        if arguments.drop_open is not None:
            code = session.run(lambda ring: drop_open(ring, arguments.drop_open))
            session.say(session.word)
            return code
        code = session.run(lambda ring: one_turn(ring, arguments.stop_after))
    except Locked:
        if arguments.quiet:
            return EX_TEMPFAIL
        raise
    if session.stopped:
        say(f"{NAME}: interrupted; the same command goes on where it stopped", sys.stderr)
        return EX_TEMPFAIL
    session.say(session.word)
    if session.display.tally.cycles:
        session.summarise()
        session.suggest(f"bin/status --crawl {arguments.crawl}", f"bin/crawl{given(arguments)}")
    return code


async def drop_open(ring: Ring, cycle: int) -> str:
    return ring.drop(cycle if cycle >= 0 else None)


async def one_turn(ring: Ring, stop_after: str | None) -> str:
    finished = await ring.start(stop_after)
    if finished is None:
        finished = await ring.turn(stop_after)
    if isinstance(finished, Sleep):
        return f"nothing is due before {moment(finished.until_ms)}"
    if isinstance(finished, Done):
        return "nothing is waiting" if not finished.blocked else "nothing is waiting but in blocks that are held up"
    return f"cycle {finished} done"


if __name__ == "__main__":
    run(main, NAME)
