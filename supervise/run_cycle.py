"""run-cycle: runs one cycle of the ring: schedule, fetch, extract, verify.

  bin/run-cycle [--crawl DIR]         one cycle, and what must come before it
  bin/run-cycle --demo                crawl a small web made for it, on this machine only
  bin/run-cycle --demo --config FILE  the same in the order, caps and rules of a profile

Interrupted cycles are resumed first and count as this run's cycle. If nothing is due, no revisit
either, the command says so and exits 0. From cron, use --quiet: it prints errors only. While another
run works on the same crawl folder, the command exits 75. --stop-after ends after one stage; the next
one can then be run alone. --drop-open abandons an interrupted cycle instead of resuming it: no URL is
charged, its pages stay, bin/extractor reads them, and the next cycle of the block makes a new list.

bin/seed stored the crawl's configuration in its folder. --config FILE replaces it from the next plan on
and prints what differs; a file that its policy reads is copied into the crawl folder. To change scope,
contact or delay of a crawl that has pages, confirm at the terminal, or add --yes. --set holds for this
run only. An open cycle keeps the configuration of its plan.

With --demo, --config FILE is a profile, such as profiles/NAME.toml. The crawl lies in demo/NAME/crawl.
Its order, caps, canonical rules and rejections are the profile's; the command prints them first.
Delays, contact, addresses and the hosts in scope stay the demonstration's.

Example: bin/seed --crawl mine --config mine.toml https://example.org/ && bin/run-cycle --crawl mine
         bin/run-cycle --demo --config profiles/valle.toml
"""

import sys

from contract import names
from contract.command import at_least, given, is_crawl_given, make_parser, run
from contract.errors import EX_TEMPFAIL, Locked, Usage
from contract.lines import say_if_possible
from contract.units import moment
from supervise import demo
from supervise.pipeline import Limits, Pipeline
from supervise.replacement import add_replacement
from supervise.ring import Ring
from supervise.session import Session
from supervise.turns import Done, Sleep

NAME = names.CYCLE_COMMAND


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--demo", action="store_true", help="crawl the demonstration web to its end, below demo/")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.add_argument("--stop-after", choices=names.STAGES[:-1], help="stop after this stage; the cycle stays open")
    parser.add_argument(
        "--drop-open",
        nargs="?",
        type=at_least(0),
        const=-1,
        metavar="ID",
        help="abandon an open cycle (the only one, or number ID) without charging any URL, then exit",
    )
    add_replacement(parser)
    arguments = parser.parse_args()
    if arguments.demo:
        if is_crawl_given(arguments):
            raise Usage("--demo makes its own crawl folder below demo/: give no --crawl")
        return demo.run(arguments)
    try:
        session = Session(arguments, NAME)
        if arguments.drop_open is not None:
            code = session.run(lambda ring: drop_open(ring, arguments.drop_open))
            session.say(session.word)
            return code
        code = session.run(lambda ring: one_cycle(ring, arguments.stop_after))
    except Locked:
        if arguments.quiet:
            return EX_TEMPFAIL
        raise
    if session.stopped:
        say_if_possible(f"{NAME}: interrupted; the same command resumes the cycle", sys.stderr)
        return EX_TEMPFAIL
    session.say(session.word)
    if session.flights.counts.cycles:
        session.summarise()
        session.suggest(f"bin/status --crawl {arguments.crawl}", f"bin/crawl{given(arguments)}")
    return code


async def drop_open(ring: Ring, cycle: int) -> str:
    return ring.drop(cycle if cycle >= 0 else None)


async def one_cycle(ring: Ring, stop_after: str | None) -> str:
    """One cycle at a time: those that were interrupted, or else the next one, and what must come before it."""
    end = await Pipeline(ring, Limits(cycles=1, waits=False), 1, stop_after).run()
    if isinstance(end, Sleep):
        return f"nothing is due before {moment(end.until_ms)}"
    if isinstance(end, Done):
        return (
            "nothing is waiting" if not end.blocked else "nothing is waiting, except in blocks that are held or damaged"
        )
    return f"cycle {ring.flights.last_fetched} done"


if __name__ == "__main__":
    run(main, NAME)
