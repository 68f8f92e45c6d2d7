"""graph build: writes the link graph of a crawl.

  bin/graph build [--crawl DIR] [--out GRAPH]

Pages are numbered from 0 on, in the order of their sorted URLs: those that a committed cycle collected or found. An
edge leads from a page to a target, once, however often pages link to it. Servers and registered domains have graphs of
their own, with the number of edges between their pages as weight. Each graph is written both ways. Links whose page or
target has no text are left out and counted: a target that was not followed has one with keep_links = "all" only. Link
sources ([scope] link_sources) are no pages.

The graph is sorted on disk, within --memory-mib. After more cycles the same command adds what they found, and sorts
nothing else again. A build that was interrupted leaves the earlier graph; run the same command again. docs/graph.md
describes the files.

Example: bin/graph build --crawl demo/crawl --collected
"""

from argparse import ArgumentTypeError
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from contract import names
from contract.accumulators import DAY_MS
from contract.command import Parser, at_least, make_parser
from contract.config import LINK_KINDS
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import open_folder
from contract.lines import say
from contract.units import count
from graph.build import build
from graph.filters import Filters
from graph.folder import LEVELS, Graph, open_graph
from graph.reporting import make_report

MEMORY_LEAST_MIB = 320


def main(words: list[str]) -> None:
    parser = make_parser("graph build", __doc__)
    parser.add_argument(
        "--out", type=Path, metavar="GRAPH", help="the folder of the graph (default: graph in the crawl)"
    )
    add_options(parser)
    arguments = parser.parse_args(words)
    crawl = open_folder(arguments.crawl)
    scope = read_crawl_config(crawl.path).scope
    filters = Filters(
        collected=arguments.collected,
        in_scope=arguments.in_scope,
        nofollow=not arguments.without_nofollow,
        kinds=arguments.kinds,
        until_ms=arguments.until,
        newest=arguments.newest,
        link_sources=scope.link_sources,
        seeds_are_sources=scope.seeds_are_link_sources,
    )
    root = arguments.out or crawl.path / names.GRAPH
    report = make_report("graph build")
    folder, is_new = build(crawl, root, filters, arguments.memory_mib, arguments.allow_partial, report)
    for line in describe(open_graph(root, is_verified=True), folder, is_new):
        say(line)


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--memory-mib", type=at_least(MEMORY_LEAST_MIB), default=1024, metavar="N", help="memory to use (default: 1024)"
    )
    parser.add_argument("--collected", action="store_true", help="pages: only URLs that were answered")
    parser.add_argument("--in-scope", action="store_true", help="pages: only URLs that the crawl took into R")
    parser.add_argument("--without-nofollow", action="store_true", help="links: none that are nofollow")
    parser.add_argument(
        "--kinds", type=read_kinds, default=0, metavar="KIND,...", help="links: only of these kinds, as a,area,redirect"
    )
    parser.add_argument(
        "--until", type=read_day, metavar="DATE", help="links: only of visits up to the end of that day"
    )
    parser.add_argument("--newest", action="store_true", help="links: only those of the newest visit of each page")
    parser.add_argument("--allow-partial", action="store_true", help="leave out cycles whose tables are damaged")


def read_kinds(text: str) -> int:
    """The bits of link kinds."""
    unknown = [kind for kind in text.split(",") if kind not in LINK_KINDS]
    if unknown:
        raise ArgumentTypeError(f"expected kinds among {', '.join(LINK_KINDS)}; found {unknown[0]!r}")
    return sum({1 << LINK_KINDS.index(kind) for kind in text.split(",")})


def read_day(text: str) -> int:
    """The last millisecond of a day, UTC."""
    try:
        begin = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ArgumentTypeError(f"expected a date such as 2026-11-18, found {text!r}") from None
    return int(begin.timestamp() * 1000) + DAY_MS - 1


def describe(graph: Graph, folder: Path, is_new: bool) -> Iterator[str]:
    about, counts = graph.manifest, graph.manifest["counts"]
    yield f"{folder}: {'written' if is_new else 'up to date'}, from {count(len(about['cycles']), 'cycle')}"
    if graph.is_partial:
        yield f"PARTIAL: {count(len(about['missing']), 'cycle')} left out: {', '.join(about['missing'])}"
    for name in LEVELS:
        level = graph.level(name)
        yield f"{name}: {level.nodes:,}, edges: {level.edges:,}"
    yield (
        f"links: {counts['rows']:,}; left out: {counts['no_target']:,} to targets without a page, "
        f"{counts['no_page']:,} from what is no page, {counts['link_sources']:,} from or to link sources, "
        f"{counts['filtered']:,} by the options, {counts['repeated']:,} repeated"
    )
    for key, first, second in about["shared"]:
        urls = graph.pages.texts.read(np.array([first, second]))
        yield f"key {key} is shared by two URLs; all links to it lead to the first one: {urls[0]} {urls[1]}"
