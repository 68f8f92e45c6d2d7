"""The run: makes the crawl, builds its graph, lets the peers do theirs, and prints table and goals."""

import json
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from statistics import median

from bench.extractor.ours import resident_mb
from bench.fetcher.figures import goal_lines
from bench.graph.compression import measure_compression
from bench.graph.figures import GOALS, table_lines
from bench.graph.synthetic import Synthetic, add_cycle, make_crawl
from bench.processes import Child, run_child
from contract.command import Parser, at_least
from contract.errors import TryLater
from graph.folder import FORWARD, open_graph

ROOT = Path(__file__).resolve().parents[2]
EDGES, QUICK_EDGES = 100_000_000, 20_000
MEMORY_MIB = 1024
LOOK_EVERY_S = 0.05
PEERS = ("ours", "scikit-network", "igraph")  # each on the whole graph, as far as it can
ONCE = ("igraph",)
SMALL_PEERS = ("ours", "scikit-network", "igraph", "networkx")
SMALL = 100  # NetworkX needs some 400 bytes per edge
CNR = ROOT.parent / "shared" / "data" / "cnr-2000.npz"
BUILD = [ROOT / "bin" / "graph", "build"]


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--edges", type=at_least(1_000), default=EDGES, metavar="N", help="links of the crawl (default: 100,000,000)"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), metavar="DIR", help="where all is made (9 GB)"
    )
    parser.add_argument(
        "--repeats", type=at_least(1), default=3, metavar="N", help="rounds, of which medians are taken (default: 3)"
    )
    parser.add_argument(
        "--cnr", type=Path, default=CNR, metavar="FILE", help="the graph to compress, an .npz file (default: cnr-2000)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few edges, to see that it works; its figures mean nothing"
    )


def measure(arguments) -> dict:
    edges, repeats = (QUICK_EDGES, 1) if arguments.quick else (arguments.edges, arguments.repeats)
    with tempfile.TemporaryDirectory(prefix="bench-graph-", dir=arguments.folder) as name:
        folder = Path(name)
        print(f"making a crawl of {edges:,} links ...", flush=True)
        made = make_crawl(folder / "crawl", edges)
        figures = measure_builds(folder, made, repeats)
        iterations = measure_iterations(folder, repeats)
        figures |= measure_growth(folder, made)
        shutil.rmtree(folder / "crawl")
        small = folder / "small"
        make_crawl(small, max(edges // SMALL, 1_000))
        run_child([*BUILD, "--crawl", small], folder / "log")
        iterations |= {f"{peer}, a hundredth": run_peer(folder, peer, small / "graph") for peer in SMALL_PEERS}
        if arguments.cnr.exists():
            compressed = folder / "compressed"
            compressed.mkdir()
            figures |= measure_compression(arguments.cnr, compressed)
        else:
            print(f"{arguments.cnr}: not there, so nothing is compressed; name a graph with --cnr")
    figures |= {
        "iteration_s": iterations["ours"],
        "iterations": {name: seconds if seconds is None else round(seconds, 4) for name, seconds in iterations.items()},
        "ratio_scikit_network": ratio(iterations["scikit-network"], iterations["ours"]),
    }
    for line in (*table_lines(figures), *goal_lines(figures, GOALS)):
        print(line)
    return figures


def ratio(theirs: float | None, ours: float | None) -> float:
    return round(theirs / ours, 2) if theirs and ours else 0.0


def measure_builds(folder: Path, made: Synthetic, repeats: int) -> dict:
    """Ours and DuckDB's, in turns; medians of the times, the most of memory."""
    ours: list[dict] = []
    theirs: list[float | None] = []
    scratch = folder / "duckdb"
    for number in range(repeats):
        shutil.rmtree(made.crawl.path / "graph", ignore_errors=True)
        ours.append(measure_build(folder, made.crawl.path))
        scratch.mkdir()
        theirs.append(run_peer(folder, "duckdb", made.crawl.path, MEMORY_MIB, scratch))
        shutil.rmtree(scratch)
        print(f"build {number + 1} of {repeats}: {ours[-1]['wall_s']:.1f} s, DuckDB {theirs[-1]} s", flush=True)
    pages = open_graph(made.crawl.path / "graph", is_verified=True).pages
    if pages.edges != made.rows:
        raise TryLater(f"the graph has {pages.edges:,} edges, and {made.rows:,} were made")
    stored = sum((pages.folder / f"pages.{FORWARD}.{part}.npy").stat().st_size for part in ("offsets", "targets"))
    build_s, duckdb_s = median([one["wall_s"] for one in ours]), None if None in theirs else median(theirs)
    return {
        "edges": pages.edges,
        "pages": pages.nodes,
        "build_s": round(build_s, 2),
        "cpu_s": round(median([one["cpu_s"] for one in ours]), 2),
        "edges_per_s": round(pages.edges / build_s),
        "rss_mb": round(max(one["rss_mb"] for one in ours)),
        "rss_with_files_mb": round(max(one["rss_with_files_mb"] for one in ours)),
        "bits_per_edge": round(stored * 8 / pages.edges, 2),
        "duckdb_s": duckdb_s,
        "ratio_duckdb": ratio(duckdb_s, build_s),
    }


def measure_build(folder: Path, crawl: Path) -> dict[str, float]:
    """Builds by the command, in a process of its own, whose memory is looked at all the time."""
    largest, ended = [0.0, 0.0], threading.Event()
    child = Child([*BUILD, "--crawl", crawl, "--memory-mib", MEMORY_MIB], folder / "log")

    def look() -> None:
        while not ended.wait(LOOK_EVERY_S):
            largest[:] = map(max, largest, resident_mb(child.pid))

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        spent = child.wait()
    finally:
        ended.set()
        child.kill()
    looker.join()
    return {"wall_s": spent.wall_s, "cpu_s": spent.cpu_s, "rss_mb": largest[0], "rss_with_files_mb": largest[1]}


def measure_growth(folder: Path, made: Synthetic) -> dict[str, float]:
    """The build after one cycle more, whose pages have been fetched before and have other links now."""
    links = add_cycle(made)
    grown = measure_build(folder, made.crawl.path)
    print(f"build after {links:,} links more: {grown['wall_s']:.1f} s", flush=True)
    return {"growth_s": round(grown["wall_s"], 2), "growth_cpu_s": round(grown["cpu_s"], 2), "growth_links": links}


def measure_iterations(folder: Path, repeats: int) -> dict[str, float | None]:
    """Seconds of each peer, medians of turns; those that take long have one turn."""
    graph, found = folder / "crawl" / "graph", {peer: [] for peer in PEERS}
    for number in range(repeats):
        for peer in PEERS:
            if not number or peer not in ONCE:
                found[peer].append(run_peer(folder, peer, graph))
    return {peer: None if None in seconds else median(seconds) for peer, seconds in found.items()}


def run_peer(folder: Path, name: str, *words: object) -> float | None:
    """What a peer measured of itself; none where it failed, as one that runs out of memory does."""
    output = folder / "output"
    try:
        run_child([sys.executable, "-m", "bench.graph.peers", name, *words], folder / "log", output)
    except TryLater as error:
        print(f"{name}: {error}", flush=True)
        return None
    return json.loads(output.read_text())
