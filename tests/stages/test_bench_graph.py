"""bin/bench graph: the crawl that it makes has the graph that it says, and a whole quick run."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bench.graph import synthetic
from bench.graph.figures import GOALS
from graph.build import build
from graph.filters import Filters
from graph.folder import open_graph

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_the_graph_of_the_synthetic_crawl_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "LINKS_PER_CYCLE", 4_000)
    made = synthetic.make_crawl(tmp_path / "crawl", 10_000)
    build(made.crawl, tmp_path / "graph", Filters(), 1024, False, lambda *_: None)
    pages = open_graph(tmp_path / "graph").pages
    assert (pages.nodes, pages.edges) == (500, made.rows)
    chance = np.random.default_rng(1)
    wanted = []
    for fetched in np.array_split(chance.permutation(500), 3):
        wanted += zip(*(ends.tolist() for ends in synthetic.make_links(fetched, 500, chance)))
    found = [
        ends for sources, targets, _ in pages.links.edge_pieces(999) for ends in zip(sources.tolist(), targets.tolist())
    ]
    assert found == sorted(wanted)


@pytest.mark.long
def test_a_quick_run_prints_all_keys(tmp_path):
    out = tmp_path / "figures.json"
    graph = tmp_path / "graph.npz"
    np.savez(graph, offsets=np.array([0, 2, 2, 3]), targets=np.array([0, 2, 1]))
    words = [ROOT / "bin" / "bench", "graph", "--quick", "--folder", tmp_path, "--cnr", graph, "--json", out]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(out.read_text())
    keys = ("edges_per_s", "rss_mb", "bits_per_edge", "iteration_s", "ratio_scikit_network", "ratio_duckdb", "growth_s")
    assert figures["bits_per_link_compressed"] == 7.333  # 22 bits, counted by hand
    assert all(key in figures for key in keys)
    assert all(goal.text in done.stdout for goal in GOALS)
    assert set(tmp_path.iterdir()) == {graph, out}
