"""How much is measured: the full run, and a quick one that only shows that everything works."""

from dataclasses import dataclass, replace
from pathlib import Path

from contract.command import Parser, at_least


@dataclass(frozen=True)
class Scale:
    pages: int  # URLs in the fetcher's list
    repeats: int
    names: int  # sites that they are spread over, each with an address of its own
    wrk_s: int
    scrapy_pages: int  # URLs that Scrapy gets: fewer, for it needs longer; its rate does not depend on it
    scrapy_trial_pages: int  # ... when its best setting is looked for
    scrapy_concurrencies: tuple[int, ...]
    idle_sockets: int
    polite_servers: int
    polite_delay_s: float
    polite_s: float


FULL = Scale(
    pages=20_000,
    repeats=3,
    names=200,
    wrk_s=5,
    scrapy_pages=4_000,
    scrapy_trial_pages=1_500,
    scrapy_concurrencies=(16, 64, 200),
    idle_sockets=1_500,
    polite_servers=5_000,
    polite_delay_s=5.0,
    polite_s=70.0,
)
QUICK = Scale(
    pages=600,
    repeats=1,
    names=20,
    wrk_s=1,
    scrapy_pages=200,
    scrapy_trial_pages=100,
    scrapy_concurrencies=(16,),
    idle_sockets=50,
    polite_servers=100,
    polite_delay_s=0.5,
    polite_s=5.0,
)


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--pages",
        type=Path,
        metavar="DIR",
        help="HTML files to serve (default: Debian documentation, into build/bench-pages)",
    )
    parser.add_argument(
        "--pages-count", type=at_least(100), metavar="N", help=f"URLs in the fetcher's list (default: {FULL.pages})"
    )
    parser.add_argument(
        "--repeats", type=at_least(1), metavar="N", help=f"interleaved repeats (default: {FULL.repeats})"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny numbers, to see that it works; its figures mean nothing"
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        metavar="DIR",
        help="where the fetcher and Scrapy write (default: the system's temporary folder)",
    )
    parser.add_argument(
        "--names",
        choices=("dns", "hosts"),
        default="dns",
        help="names from a DNS server on loopback, or from a hosts file",
    )
    parser.add_argument(
        "--only",
        choices=("speed", "idle", "polite", "profile"),
        action="append",
        help="measure only this part; may be repeated",
    )


def chosen_scale(arguments) -> Scale:
    scale = QUICK if arguments.quick else FULL
    given = {"pages": arguments.pages_count, "repeats": arguments.repeats}
    return replace(scale, **{name: value for name, value in given.items() if value is not None})
