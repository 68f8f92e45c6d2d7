"""run-cycle: one turn of the ring: schedule, fetch, extract, verify.

  bin/run-cycle [--crawl DIR]        one turn, and what must come before it
  bin/run-cycle --demo               crawl a small web made for it, on this machine only

A turn that was interrupted is gone on with, and that is the turn. Prints a word and exits 0 when
nothing is due. From cron, --quiet prints errors only; while another run works on the same crawl
folder it exits 75. --stop-after ends after one stage, so that the next can be run alone.

Example: bin/seed --crawl mine https://example.org/ && bin/run-cycle --crawl mine --set fetcher.contact=https://example.org/crawler
"""

import sys
from datetime import datetime

from contract import names
from contract.command import add_configuration, given, load_configuration, make_parser, run
from contract.errors import EX_TEMPFAIL, Locked, Usage
from supervise import demo
from supervise.ring import Ring
from supervise.session import Session
from supervise.turns import Done, Sleep

NAME = "run-cycle"


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--demo", action="store_true", help="crawl the demonstration web to its end, below demo/")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.add_argument("--stop-after", choices=names.STAGES[:-1], help="end the turn after this stage; it stays open")
    add_configuration(parser)
    arguments = parser.parse_args()
    if arguments.demo:
        if arguments.crawl != parser.get_default("crawl"):
            raise Usage("--demo makes its own crawl folder below demo/: leave --crawl out, or change to another folder")
        return demo.run(arguments)
    session = Session(arguments.crawl, load_configuration(arguments), arguments.quiet, given(arguments))
    try:
        code = session.run(lambda ring: one_turn(ring, arguments.stop_after))
    except Locked:
        if arguments.quiet:
            return EX_TEMPFAIL
        raise
    if session.stopped:
        print(f"{NAME}: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return EX_TEMPFAIL
    session.say(session.word)
    if session.display.tally.cycles:
        session.summarise()
        session.say(f"next: bin/status --crawl {arguments.crawl}, or bin/crawl{given(arguments)} to go on")
    return code


async def one_turn(ring: Ring, stop_after: str | None) -> str:
    finished = await ring.start(stop_after)
    if finished is None:
        finished = await ring.turn(stop_after)
    if isinstance(finished, Sleep):
        due = datetime.fromtimestamp(finished.until_ms / 1000)
        return f"nothing is due before {due:%Y-%m-%d %H:%M:%S}"
    if isinstance(finished, Done):
        return "nothing is waiting" if not finished.blocked else "nothing is waiting but in blocks that are held up"
    return f"cycle {finished} done"


if __name__ == "__main__":
    run(main, NAME)
