"""simulate: compares orders over link graphs that are known, without a network, through the crawler's own policies.

  bin/simulate order        rank of what each policy fetches, in one heap and in blocks with prescheduling
  bin/simulate domains      pages and registered domains against time, with a pause per domain
  bin/simulate freshness    freshness and age of pages that change, for each policy of [revisit]

The graph is a web made from a seed (--pages), a file (--graph: .npz, .parquet or a text of links), or what a crawl has
collected (--crawl); study/graph_files.py says what files look like. Each seed makes another web, or begins a crawl of
the given graph elsewhere. URLs of a made web tell a little about in-links: with --noise 1 only which pages are home
pages, with less of it more (study/synthetic.py). The tables, in Markdown, are printed; --out DIR also gets them, with a
figure.

`omniscient` knows the true ranks. A policy that needs URLs gets a dash where the graph has none. Policies that read
ranks get those of an earlier crawl, which fetched --earlier of the pages. On a web from a seed, `neural` uses weights
that were trained on another such web. Lists have at most 1,000 URLs, 50 of them of one server, and 50 URLs per server
are prescheduled, unless --config or --set says otherwise. With blocks a round of all of them has as many URLs as one
list of the heap. With `domains` the pause is 30 s.

Examples:
  bin/simulate order --seeds 5 --out /tmp/orders
  bin/simulate order --graph web.npz --policies 'random,in-links,0.7*in-links + 0.3*opic'
  bin/simulate domains --hours 6 --policies new-domains,spread,breadth-first
  bin/simulate freshness --days 400
"""

import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from contract import config_file
from contract.command import Parser, add_configuration, at_least, is_crawl_given, make_parser, run
from contract.config import Config
from contract.errors import BadInput, Usage
from contract.qrank.weights import pack
from study import domains, orders, visits
from study.contestants import EARLIER, check_names, default_names, parts_named
from study.graph_files import open_graph
from study.orders import Source
from study.pagerank import pagerank
from study.synthetic import NOISE, make_web
from study.training import train

NAME = "simulate"
KINDS = ("order", "domains", "freshness")
# As in the thesis at ITMO University: 1,000 URLs at a time, at most 50 per site.
SETTINGS = ("scheduler.list_max_urls=1000", "scheduler.server_max_urls=50", "verifier.prescheduled_max=50")
VALLE_SETTINGS = ("fetcher.delay_s=30.0",)
TRAINED_SEED = 1_000_003  # of the web that weights are trained on: no run has it
LEARNED = ("neural", "neural-graph")


def main() -> None:
    parser = make_parser(NAME, __doc__)
    add_options(parser)
    add_configuration(parser)
    arguments = parser.parse_args()
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.what == "freshness":
        found = visits.run_visits(arguments.days, arguments.seeds, show)
        report(arguments, visits.table(found))
        if arguments.out is not None:
            visits.figure(found, arguments.out / "freshness.png", f"freshness, {arguments.seeds} seeds")
        return
    settings = () if arguments.config else SETTINGS + VALLE_SETTINGS * (arguments.what == "domains")
    config = config_file.load(arguments.config, [*settings, *arguments.set])
    names = arguments.policies or default_names()
    check_names(names, config)
    source, title = open_source(arguments)
    with tempfile.TemporaryDirectory(prefix="simulate-") as scratch:
        config = with_weights(names, config, source, Path(scratch))
        study = compare_orders if arguments.what == "order" else compare_times
        study(arguments, source, names, config, Path(scratch), title)


def add_options(parser: Parser) -> None:
    parser.add_argument("what", choices=KINDS, metavar="|".join(KINDS), help="what is compared")
    parser.add_argument("--graph", type=Path, metavar="FILE", help="the links: .npz, .parquet or a text")
    parser.add_argument("--pages", type=at_least(100), metavar="N", help="of a web from a seed (default: 200,000)")
    parser.add_argument(
        "--noise", type=at_least(0.0, 1.0), default=NOISE, metavar="X", help=f"its URLs' (default: {NOISE})"
    )
    parser.add_argument(
        "--policies", type=split_names, metavar="A,B", help="policies or mixes, with commas between (default: all)"
    )
    parser.add_argument("--seeds", type=at_least(1), default=5, metavar="N", help="runs (default: 5)")
    parser.add_argument(
        "--fetch", type=at_least(1), default=25_000, metavar="N", help="pages to fetch (default: 25,000)"
    )
    parser.add_argument(
        "--blocks", type=at_least(0, 1 << 16), default=8, metavar="N", help="0: only the heap (default: 8)"
    )
    share = at_least(0.0, 1.0)
    parser.add_argument("--earlier", type=share, default=EARLIER, metavar="SHARE", help="0 to 1 (default: 0.5)")
    parser.add_argument("--hours", type=at_least(0.1), default=24.0, metavar="H", help="with domains (default: 24)")
    parser.add_argument("--days", type=at_least(10), default=400, metavar="N", help="with freshness (default: 400)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write the tables (.md) and the figure (.png)")


def split_names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def open_source(arguments: Namespace) -> tuple[Source, str]:
    """Where collections come from, and their name."""
    given = [arguments.graph is not None, is_crawl_given(arguments), arguments.pages is not None]
    if sum(given) > 1:
        raise Usage("expected one of --graph, --crawl and --pages, found more")
    if not any(given[:2]):
        pages = arguments.pages or 200_000
        return Source(pages, noise=arguments.noise), f"webs of {pages:,} pages from {arguments.seeds} seeds"
    path = arguments.graph or arguments.crawl
    graph = open_graph(path)
    if not len(graph.targets):
        raise BadInput(f"{path}: expected a graph with links, found {len(graph):,} pages without any")
    if arguments.what == "domains" and graph.urls is None:
        raise BadInput(f"{path}: expected a graph with URLs, which say what is a domain; found page numbers")
    return Source(len(graph), graph), f"{path.name}: {len(graph):,} pages, {len(graph.targets):,} links"


def with_weights(names: list[str], config: Config, source: Source, folder: Path) -> Config:
    """With weights from another web, where a policy needs them, the configuration names none, and webs have seeds."""
    if source.graph or config.scheduler.weights_file or not set(LEARNED) & parts_named(names, config):
        return config
    show("training on a web of its own")
    web = make_web(source.pages, TRAINED_SEED, source.noise)
    assert web.urls is not None
    path = folder / "weights.npz"
    path.write_bytes(pack(train(web.urls, pagerank(web), TRAINED_SEED)))
    return replace(config, scheduler=replace(config.scheduler, weights_file=str(path)))


def compare_orders(
    arguments: Namespace, source: Source, names: list[str], config: Config, folder: Path, title: str
) -> None:
    fetch = min(arguments.fetch, source.pages)
    sizes = (arguments.seeds, fetch, arguments.blocks, arguments.earlier)
    trials = orders.run_trials(source, names, config, *sizes, folder, show)
    report(arguments, f"{orders.table(trials, names)}\n\n{orders.course_table(trials, names)}")
    if arguments.out is not None:
        orders.figure(trials, names, arguments.out / "order.png", title)


def compare_times(
    arguments: Namespace, source: Source, names: list[str], config: Config, folder: Path, title: str
) -> None:
    sizes = (arguments.seeds, arguments.hours, arguments.earlier)
    found = domains.run_times(source, names, config, *sizes, folder, show)
    report(arguments, domains.table(found, arguments.hours))
    if arguments.out is not None:
        domains.figure(found, arguments.hours, arguments.out / "domains.png", title)


def report(arguments: Namespace, tables: str) -> None:
    show("")
    print(tables, flush=True)
    if arguments.out is not None:
        (arguments.out / f"{arguments.what}.md").write_text(tables + "\n")


def show(step: str) -> None:
    """The present step, over the one before, on a terminal only; an empty text clears it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{step[:100]}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main, NAME)
