"""Options of bin/bench ring, and how large its numbers are."""

from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path

from contract.command import Parser, at_least

PARTS = ("12", "60", "tls", "slow", "demo", "start", "age")
PEERS = ("scrapy", "wget", "wget_2", "spider", "crawlee")
PEERS_BY_DEFAULT = ("scrapy", "wget", "wget_2", "spider")  # Crawlee alone takes some five minutes per web


@dataclass(frozen=True)
class Scale:
    repeats: int
    manuals: int  # of those in web.py
    copies: int  # of each, on hosts of their own or together
    tls_domains: int
    tls_hosts: int  # per domain
    tls_pages: int  # per host
    tls_page_bytes: int
    slow_servers: int
    slow_s: float
    starts: int
    commits: int  # of the old crawl
    long_servers: int
    long_pages: int  # per server

    def names(self, part: str) -> int:
        """How many names a web has: of the part 60, one per copy of a manual; of the part 12, a fifth."""
        return self.manuals * self.copies if part == "60" else self.manuals


FULL = Scale(
    repeats=3,
    manuals=12,
    copies=5,
    tls_domains=20,
    tls_hosts=20,
    tls_pages=5,
    tls_page_bytes=240_000,
    slow_servers=500,
    slow_s=60.0,
    starts=50,
    commits=100_000,
    long_servers=2_000,
    long_pages=500,
)
QUICK = Scale(
    repeats=1,
    manuals=2,
    copies=2,
    tls_domains=2,
    tls_hosts=2,
    tls_pages=3,
    tls_page_bytes=240_000,
    slow_servers=20,
    slow_s=20.0,
    starts=3,
    commits=1_000,
    long_servers=40,
    long_pages=50,
)


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="measure only this part; may be repeated (default: all)"
    )
    parser.add_argument(
        "--peer", choices=PEERS, action="append", help="measure only this peer; may be repeated (default: no crawlee)"
    )
    parser.add_argument(
        "--repeats", type=at_least(1), metavar="N", help=f"interleaved repeats (default: {FULL.repeats})"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny numbers, to see that it works; its figures mean nothing"
    )
    parser.add_argument(
        "--long", action="store_true", help="a million pages: the memory of every process, in some 30 minutes"
    )
    parser.add_argument(
        "--gantt", type=Path, metavar="FILE", help="PNGs of what ran when in our last run, FILE-12 and FILE-60"
    )
    parser.add_argument(
        "--scratch", type=Path, metavar="DIR", help="where all tools write (default: the system's temporary folder)"
    )


def chosen_scale(arguments: Namespace) -> Scale:
    scale = QUICK if arguments.quick else FULL
    return replace(scale, repeats=arguments.repeats) if arguments.repeats else scale
