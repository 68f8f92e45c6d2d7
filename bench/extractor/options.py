"""How much is measured: the full run, and a quick one that only shows that everything works."""

from dataclasses import dataclass, replace
from pathlib import Path

from contract.command import Parser, at_least


@dataclass(frozen=True)
class Scale:
    pages: int  # at most; every n-th, so that the mixture stays
    repeats: int
    starts: int  # runs with one page; their median is what starting and publishing takes


FULL = Scale(pages=100_000, repeats=3, starts=3)
QUICK = Scale(pages=300, repeats=1, starts=1)


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--pages",
        type=Path,
        metavar="DIR",
        help="HTML files to read (default: Debian documentation, into build/bench-pages)",
    )
    parser.add_argument(
        "--repeats", type=at_least(1), metavar="N", help=f"interleaved repeats (default: {FULL.repeats})"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few pages, to see that it works; its figures mean nothing"
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        metavar="DIR",
        help="where pages and tables are written (default: the system's temporary folder)",
    )
    parser.add_argument(
        "--only", choices=("speed", "memory", "shares"), action="append", help="measure only this part; may be repeated"
    )


def chosen_scale(arguments) -> Scale:
    scale = QUICK if arguments.quick else FULL
    return replace(scale, repeats=arguments.repeats) if arguments.repeats else scale
