"""How much is measured: marks of known URLs, the two streams, the peers and their limits; and a quick run."""

from argparse import ArgumentTypeError
from dataclasses import dataclass, replace
from pathlib import Path

from bench.verifier.peers import PEERS
from bench.verifier.stream import Shape
from contract.command import Parser, at_least
from contract.config import Blocks, Config

MARKS = (1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 350.0)  # millions known
MILLION = 1_000_000
CENTRAL = "central"  # ours with one block and growth off: Programs 6 and 7 of the thesis
CRAWLS, THESIS = "crawls", "thesis"
# N = 10, k = 100,000 servers per block, no bound on URLs.
THESIS_BLOCKS = Blocks(first=10, servers_max=100_000, urls_max=1 << 40)
UNBOUNDED = Blocks(first=1, servers_max=1 << 40, urls_max=1 << 40)


@dataclass(frozen=True)
class Limits:
    peers: tuple[str, ...]
    peer_s: float  # per cycle
    peer_total_s: float
    memory_bytes: int
    disk_bytes: int
    fill: bool
    cycles: int  # measured at each mark


@dataclass(frozen=True)
class Course:
    """One stream with the configuration that ours has on it."""

    name: str
    shape: Shape
    config: Config
    marks: tuple[float, ...]
    limits: Limits


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--to",
        type=at_least(0.001),
        default=20.0,
        metavar="M",
        help="millions of known URLs to go to (default: 20; 350 is the full run)",
    )
    parser.add_argument(
        "--at",
        type=read_marks,
        metavar="M,M",
        help="millions known to measure at (default: 1,5,10,20,50,100,200,350, up to --to)",
    )
    parser.add_argument(
        "--cycle-urls",
        type=at_least(1_000),
        default=MILLION,
        metavar="N",
        help="URLs per cycle, a tenth of them collected, and servers (default: 1,000,000)",
    )
    parser.add_argument(
        "--stream",
        choices=(CRAWLS, THESIS, "both"),
        default="both",
        help="7 of 10 known and our bounds; no repeats, N = 10, k = 100,000; or one after the other (default)",
    )
    parser.add_argument(
        "--cycles", type=at_least(1), default=3, metavar="N", help="cycles measured at each mark (default: 3)"
    )
    parser.add_argument(
        "--peers", type=read_peers, metavar="A,B", help=f"some of {','.join(PEERS)},{CENTRAL}, or none (default: all)"
    )
    parser.add_argument(
        "--peer-seconds",
        type=at_least(0.1),
        default=60.0,
        metavar="S",
        help="a peer whose cycle takes longer is out (default: 60)",
    )
    parser.add_argument(
        "--peer-minutes",
        type=at_least(0.1),
        default=60.0,
        metavar="M",
        help="and one that has taken so long in all (default: 60)",
    )
    parser.add_argument(
        "--fill",
        action="store_true",
        help="between marks peers are filled in bulk, untimed, and take whole cycles only at marks",
    )
    parser.add_argument(
        "--memory-mb", type=at_least(64), default=1024, metavar="MB", help="memory of each (default: 1024)"
    )
    parser.add_argument(
        "--disk-gb", type=at_least(1.0), default=60.0, metavar="GB", help="disk for all together (default: 60)"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("build/bench-verifier"),
        metavar="DIR",
        help="where it works, and resumes when it was stopped (default: build/bench-verifier)",
    )
    parser.add_argument("--fresh", action="store_true", help="begin anew, also where the folder holds an earlier run")
    parser.add_argument(
        "--rate",
        action="store_true",
        help="print hours and pages per second over the life of a crawl (Tables 4.4 and 4.5)",
    )
    parser.add_argument(
        "--stage-seconds",
        type=at_least(0.0),
        metavar="S",
        help="seconds per cycle of our other stages, for --rate (default: by measured rates)",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="where the plot goes (default: plot.svg in the folder)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it works; its figures mean nothing"
    )


def read_marks(text: str) -> tuple[float, ...]:
    try:
        marks = tuple(sorted(float(word) for word in text.split(",")))
    except ValueError:
        raise ArgumentTypeError(f"expected millions such as 1,20, found {text}") from None
    if not marks or marks[0] <= 0:
        raise ArgumentTypeError(f"expected numbers above 0, found {text}")
    return marks


def read_peers(text: str) -> tuple[str, ...]:
    words = () if text == "none" else tuple(text.split(","))
    if unknown := [word for word in words if word not in (*PEERS, CENTRAL)]:
        raise ArgumentTypeError(f"no such peer: {unknown[0]}; expected some of {', '.join((*PEERS, CENTRAL))}")
    return words


def chosen_courses(arguments) -> list[Course]:
    peers = (*PEERS, CENTRAL) if arguments.peers is None else arguments.peers
    limits = Limits(
        peers,
        arguments.peer_seconds,
        arguments.peer_minutes * 60,
        arguments.memory_mb << 20,
        int(arguments.disk_gb * 1e9),
        arguments.fill,
        arguments.cycles,
    )
    marks = arguments.at or tuple(mark for mark in MARKS if mark <= arguments.to) or (arguments.to,)
    urls, config, thesis = arguments.cycle_urls, Config(), THESIS_BLOCKS
    if arguments.quick:
        urls, marks = 20_000, (0.02, 0.06)
        config = replace(config, blocks=Blocks(first=2, servers_max=4_000, urls_max=100_000))
        thesis = replace(thesis, servers_max=2_000)
        limits = replace(limits, cycles=2)
    shape = Shape(servers=urls, collected=urls // 10, extracted=urls - urls // 10)
    crawls = Course(CRAWLS, shape, config, marks, limits)
    # The columns beside Table 4.3 are VEUNI and DRUM.
    alone = replace(limits, peers=tuple(name for name in peers if name == "drum"))
    original = Course(THESIS, replace(shape, known_share=0.0), replace(config, blocks=thesis), marks, alone)
    return {CRAWLS: [crawls], THESIS: [original]}.get(arguments.stream, [crawls, original])
