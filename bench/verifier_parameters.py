"""What the verifier's bounds cost: seconds, memory and disk by N, servers and URLs per block, and prescheduled URLs.

Each setting plays the stream of `bin/bench verifier` from its beginning, without peers, up to some millions known. The
cycles from there on are measured. Settings that were already measured in the same folder are not measured again.
"""

import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bench.verifier.contest import Contest
from bench.verifier.options import Course, Limits
from bench.verifier.run import open_work_folder
from bench.verifier.stream import Shape
from contract.command import Parser, at_least
from contract.config import Blocks, Config

VALUES = {  # what is varied, each alone; all others are as the configuration has them by default
    "blocks.first": (4, 8, 16, 32, 64),
    "blocks.servers_max": (25_000, 50_000, 100_000, 200_000),
    "blocks.urls_max": (250_000, 500_000, 1_000_000, 2_000_000, 10_000_000),
    "verifier.prescheduled_max": (100, 1_000, 10_000),
}
QUICK_VALUES = {"blocks.first": (2, 4), "verifier.prescheduled_max": (100, 1_000)}
COLUMNS = (
    "ours_s",
    "step_s",
    "limit_s",
    "cpu_s",
    "rss_mb",
    "bytes_per_url",
    "blocks",
    "splits",
    "grow_s",
    "largest_block_urls",
    "largest_block_servers",
)


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--to", type=at_least(0.001), default=5.0, metavar="M", help="millions of known URLs to measure at (default: 5)"
    )
    parser.add_argument(
        "--vary", choices=tuple(VALUES), action="append", help="vary only this; may be repeated (default: all)"
    )
    parser.add_argument("--cycles", type=at_least(1), default=3, metavar="N", help="cycles measured (default: 3)")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("build/bench-verifier-parameters"),
        metavar="DIR",
        help="where it works and resumes (default: build/bench-verifier-parameters)",
    )
    parser.add_argument("--fresh", action="store_true", help="begin anew")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it works; its figures mean nothing"
    )


def measure(arguments) -> dict:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    values = {name: (QUICK_VALUES if arguments.quick else VALUES).get(name, ()) for name in arguments.vary or VALUES}
    if not arguments.quick:
        courses = [make_course(name, value, arguments) for name, some in values.items() for value in some]
        open_work_folder(arguments.folder, courses, arguments.fresh)
        return measure_in(arguments.folder, values, arguments)
    with tempfile.TemporaryDirectory(prefix="bench-verifier-parameters-") as scratch:
        return measure_in(Path(scratch), values, arguments)


def measure_in(folder: Path, values: dict, arguments) -> dict:
    figures: dict[str, dict] = {}
    print(f"{'setting':36}" + "".join(f"{column.removeprefix('largest_'):>15}" for column in COLUMNS), flush=True)
    for name, some in values.items():
        for value in some:
            course = make_course(name, value, arguments)
            contest = Contest(folder / course.name, course)
            row = contest.run()[f"{course.marks[0]:g}"]
            contest.discard()
            figures[course.name] = {column: row[column] for column in COLUMNS}
            print(
                f"{course.name:36}"
                + "".join(f"{'-' if row[column] is None else row[column]:>15}" for column in COLUMNS),
                flush=True,
            )
    return figures


def make_course(name: str, value: int, arguments) -> Course:
    config, shape, mark = Config(), Shape(), arguments.to
    if arguments.quick:
        config = replace(config, blocks=Blocks(first=2, servers_max=4_000, urls_max=100_000))
        shape, mark = Shape(servers=20_000, collected=2_000, extracted=18_000), 0.02
    table, key = name.split(".")
    config = replace(config, **{table: replace(getattr(config, table), **{key: value})})
    limits = Limits((), 0.0, 0.0, 0, 0, fill=False, cycles=1 if arguments.quick else arguments.cycles)
    return Course(f"{name}={value}", shape, config, (mark,), limits)
