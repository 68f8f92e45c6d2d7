"""The run: makes the web, times every policy on it in a child process, and prints table and goals."""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from bench.fetcher.figures import Goal, goal_lines
from contract import config_file
from contract.command import Parser, at_least
from study.collection import Collection, collect
from study.contestants import Contestant, default_names, enter
from study.pagerank import pagerank
from study.simulate import SETTINGS
from study.simulation import Simulation
from study.synthetic import make_web

SEED = 1
QUICK_PAGES = 5_000
FETCHED_PART = 10  # one page of so many is fetched
BLOCKS = 8
GOALS = (
    Goal("pages_per_s", "pages per second, the slowest policy", 2_000, True),
    Goal("collection_s", "seconds for the web, its PageRank and its keys", 180, False),
    Goal("rss_mb", "MB of memory, the largest process", 4_096, False),
)


class Timed(NamedTuple):
    heap: float  # pages per second
    blocks: float
    rss_mb: float


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--pages", type=at_least(QUICK_PAGES), default=1_000_000, metavar="N", help="of the web (default: 1,000,000)"
    )
    parser.add_argument("--policy", action="append", metavar="NAME", help="only this; may be repeated (default: all)")
    parser.add_argument("--quick", action="store_true", help="a tiny web, to see that it works")


def measure(arguments) -> dict:
    pages = QUICK_PAGES if arguments.quick else arguments.pages
    began = time.perf_counter()
    web = make_web(pages, SEED)
    collection = collect(web, pagerank(web), SEED)
    collection_s = time.perf_counter() - began
    print(f"a web of {pages:,} pages and {len(web.targets):,} links, made in {collection_s:.1f} s", flush=True)
    del web
    config = config_file.load(None, SETTINGS)
    timed = {}
    with tempfile.TemporaryDirectory(prefix="bench-simulate-") as scratch:
        for name in arguments.policy or default_names():
            contestant = enter(name, collection, config, Path(scratch), SEED)
            assert contestant is not None  # the web has URLs
            timed[name] = time_apart(collection, contestant)
    figures = figures_of(collection_s, timed, resident_mb())
    print(*table_lines(timed), *goal_lines(figures, GOALS), sep="\n", flush=True)
    return figures


def time_apart(collection: Collection, contestant: Contestant) -> Timed:
    """In a forked process, so that its memory is that of this policy and of the collection."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=time_both, args=(collection, contestant, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    finally:
        process.join()


def time_both(collection: Collection, contestant: Contestant, result: Connection) -> None:
    rates = [time_one(collection, contestant, blocks) for blocks in (0, BLOCKS)]
    result.send(Timed(*rates, resident_mb()))


def time_one(collection: Collection, contestant: Contestant, blocks: int) -> float:
    simulation = Simulation(collection, collection.graph.seeds, contestant.config, blocks, contestant.files)
    began = time.perf_counter()
    fetched = sum(map(len, simulation.lists(len(collection) // FETCHED_PART)))
    return fetched / (time.perf_counter() - began)


def resident_mb() -> float:
    """The most that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def figures_of(collection_s: float, timed: Mapping[str, Timed], own_mb: float) -> dict:
    return {
        "pages_per_s": round(min(min(each.heap, each.blocks) for each in timed.values())),
        "collection_s": round(collection_s, 1),
        "rss_mb": round(max(own_mb, *(each.rss_mb for each in timed.values()))),
        "pages_per_s_heap": {name: round(each.heap) for name, each in timed.items()},
        "pages_per_s_blocks": {name: round(each.blocks) for name, each in timed.items()},
        "rss_mb_by_policy": {name: round(each.rss_mb) for name, each in timed.items()},
    }


def table_lines(timed: Mapping[str, Timed]) -> list[str]:
    lines = ["policy           pages/s, heap  pages/s, blocks      MB"]
    return lines + [
        f"{name:16} {each.heap:14,.0f} {each.blocks:16,.0f} {each.rss_mb:7,.0f}" for name, each in timed.items()
    ]
