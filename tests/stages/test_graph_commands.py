"""bin/graph stats and rank on a crawl: figures beside those of NetworkX, and ranks that the scheduler reads."""

import json
import subprocess
import sys
from pathlib import Path

import networkx
import numpy as np
import pytest

from contract.errors import BadInput
from contract.rank_files import crawl_of, make_ranks, own_ranks
from contract.url import server_of
from graph.build import build
from graph.filters import Filters
from graph.folder import Graph, open_graph
from graph.look_command import main as look
from graph.statistics import fit_power_law
from tests.graph_crawl import LinkCrawl, edges_of, texts_of
from tests.stages.test_graph_build import random_links


@pytest.fixture(scope="module")
def crawl(tmp_path_factory) -> LinkCrawl:
    made = LinkCrawl(tmp_path_factory.mktemp("ranked") / "crawl")
    made.add(
        [*random_links(9, 400), ("http://192.0.2.1/a", "http://192.0.2.1/b"), ("http://far.org/", "http://far.org/x")]
    )
    build(made.crawl, made.folder / "graph", Filters(), 1024, False, lambda *_: None)
    return made


@pytest.fixture(scope="module")
def graph(crawl) -> Graph:
    return open_graph(crawl.folder / "graph")


def bin_graph(crawl: LinkCrawl, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "graph", words[0], "--crawl", str(crawl.folder), *words[1:]],
        capture_output=True,
        text=True,
    )


def as_networkx(graph: Graph, level: str) -> networkx.DiGraph:
    found = networkx.DiGraph()
    found.add_nodes_from(texts_of(graph.level(level)))
    found.add_weighted_edges_from(
        (source, target, weight) for (source, target), weight in edges_of(graph.level(level)).items()
    )
    return found


def ranks_in(path: Path) -> dict[str, float]:
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    return {name: float(rank) for name, rank in lines}


@pytest.mark.parametrize("level", ["pages", "servers", "domains"])
def test_a_node_is_looked_up_by_name_and_by_number(crawl, graph, capsys, level):
    about, edges = graph.level(level), as_networkx(graph, level)
    node = max(edges, key=edges.out_degree)
    number = texts_of(about).index(node)
    for name in (node, str(number)):
        look([name, "--crawl", str(crawl.folder), "--level", level, "--most", "999", "--json"])
        found = json.loads(capsys.readouterr().out)
        assert (found["number"], found["name"]) == (number, node.removesuffix("/") if level == "servers" else node)
        for way, wanted in (
            ("links", edges.out_edges(node, data="weight")),
            ("backlinks", edges.in_edges(node, data="weight")),
        ):
            others = {(end[way == "links"], 1 if level == "pages" else end[2]) for end in wanted}
            texts = texts_of(about)
            assert {(texts[row["number"]], row.get("weight", 1)) for row in found[f"first_{way}"]} == others
            assert found[way] == len(others)
    look([str(number), "--crawl", str(crawl.folder), "--level", level, "--most", "1"])
    assert f"{level[:-1]} {number:,} of {about.nodes:,}" in capsys.readouterr().out
    for name in ("http://none.br/", str(about.nodes), "9" * 5000, "\udcff"):
        with pytest.raises(BadInput, match="is none of the|expected a number below"):
            look([name, "--crawl", str(crawl.folder), "--level", level])


def test_ranks_of_pages_are_read_by_the_scheduler(crawl, graph):
    out = crawl.folder / "graph" / "ranks" / "pages-pagerank.txt"
    done = bin_graph(crawl, "rank")
    assert done.returncode == 0 and str(out) in done.stdout, done.stderr
    assert crawl_of(out.read_bytes().splitlines()[1]) == crawl.crawl.crawl_id and out == own_ranks(crawl.folder)
    expected = networkx.pagerank(as_networkx(graph, "pages"), weight=None, tol=1e-12, max_iter=1_000)
    assert ranks_in(out) == pytest.approx(expected, abs=1e-8)
    taken = make_ranks(out, out.read_bytes(), crawl.crawl.keys())
    by_key = dict(zip(taken["key"].tolist(), taken["rank"].tolist()))
    assert {url: by_key[crawl.key(url)] for url in expected} == pytest.approx(expected, rel=1e-4)


def test_the_task_comes_first(crawl):
    done = subprocess.run(
        [sys.executable, "-m", "graph", "--crawl", crawl.folder, "build"], capture_output=True, text=True
    )
    assert done.returncode == 64 and "the task comes first: bin/graph build" in done.stderr


@pytest.mark.long
def test_ranks_of_servers_personalised(crawl, graph, tmp_path):
    servers = [text.rstrip("/") for text in texts_of(graph.level("servers"))]
    preferred = tmp_path / "preferred.txt"
    preferred.write_text(f"# mine\n{servers[2]}\n\n{servers[5]}/\n")
    out = tmp_path / "ranks.txt"
    words = ["rank", "--level", "servers", "--preferred", str(preferred), "--out", str(out)]
    assert bin_graph(crawl, *words).returncode == 0
    jumps = {f"{servers[2]}/": 1, f"{servers[5]}/": 1}
    expected = networkx.pagerank(as_networkx(graph, "servers"), personalization=jumps, tol=1e-12, max_iter=1_000)
    assert ranks_in(out) == pytest.approx({name.rstrip("/"): rank for name, rank in expected.items()}, abs=1e-8)
    assert len(make_ranks(out, out.read_bytes(), crawl.crawl.keys())) == len(servers)
    preferred.write_text("http://nowhere.br\n")
    done = bin_graph(crawl, *words)
    assert done.returncode == 65 and "line 1: expected one of the servers" in done.stderr


@pytest.mark.long
def test_other_measures_and_what_they_refuse(crawl, graph, tmp_path):
    out = tmp_path / "ranks.txt"
    assert bin_graph(crawl, "rank", "--by", "harmonic", "--level", "domains", "--out", str(out)).returncode == 0
    assert ranks_in(out) == pytest.approx(networkx.harmonic_centrality(as_networkx(graph, "domains")), rel=1e-6)
    roots = tmp_path / "roots.txt"
    roots.write_text("http://far.org/\n")
    words = ["--by", "authorities", "--roots", str(roots), "--out", str(out)]
    assert bin_graph(crawl, "rank", *words).returncode == 0
    assert ranks_in(out) == pytest.approx({"http://far.org/": 0, "http://far.org/x": 1})
    for words in (
        ["--roots", str(roots)],
        ["--by", "harmonic"],
        ["--by", "hubs", "--preferred", "x"],
        ["--damping", "1"],
    ):
        done = bin_graph(crawl, "rank", *words, "--out", str(tmp_path / "none"))
        assert done.returncode == 64 and not (tmp_path / "none").exists()


def test_stats_are_those_of_networkx(crawl, graph):
    done = bin_graph(crawl, "stats", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    for name in ("pages", "servers", "domains"):
        theirs, ours = as_networkx(graph, name), figures[name]
        assert (ours["nodes"], ours["edges"]) == (len(theirs), theirs.number_of_edges())
        core = max(networkx.strongly_connected_components(theirs), key=len)
        assert ours["bow_tie"]["core"] == len(core)
        reaching = networkx.ancestors(theirs, next(iter(core))) - core
        leaving = networkx.descendants(theirs, next(iter(core))) - core
        assert (ours["bow_tie"]["in"], ours["bow_tie"]["out"]) == (len(reaching), len(leaving))
        parts = [ours["bow_tie"][part] for part in ("core", "in", "out", "tendrils", "other")]
        assert sum(parts) == len(theirs) and min(parts) >= 0
        assert ours["links_out"]["max"] == max(degree for _, degree in theirs.out_degree())
        assert sum(ours["links_in"]["distribution"].values()) == len(theirs)
    pages = list(edges_of(graph.pages))
    assert figures["edges_of_pages"]["same_server"] == sum(server_of(a) == server_of(b) for a, b in pages)
    assert sum(figures["edges_of_pages"].values()) == len(pages)
    assert {row["suffix"]: row["domains"] for row in figures["suffixes"]} == {"": 1, "br": 7, "com.br": 5, "org": 1}
    assert sum(row["pages"] for row in figures["suffixes"]) == graph.pages.nodes
    assert sum(row["within"] + row["leaving"] for row in figures["suffixes"]) == len(pages)
    text = bin_graph(crawl, "stats").stdout
    assert f"pages: {graph.pages.nodes:,}, edges: {graph.pages.edges:,}" in text and "(address)" in text


def test_a_power_law_is_found_where_there_is_one():
    chance = np.random.default_rng(1)
    degrees = np.floor(4.5 * (1 - chance.random(50_000)) ** (-1 / 1.3) + 0.5).astype(np.int64)  # from 5 on
    law = fit_power_law(np.bincount(degrees[degrees < 100_000]))
    assert law["exponent"] == pytest.approx(2.3, abs=0.05) and law["distance"] < 0.02
    assert fit_power_law(np.bincount(np.arange(10))) is None


@pytest.mark.long
def test_stats_of_a_crawl_without_pages(tmp_path):
    empty = LinkCrawl(tmp_path / "crawl")
    assert bin_graph(empty, "build").returncode == 0
    done = bin_graph(empty, "stats")
    assert done.returncode == 0 and "pages: 0, edges: 0" in done.stdout and not done.stderr
    assert bin_graph(empty, "rank", "--out", str(tmp_path / "ranks")).returncode == 0
    assert ranks_in(tmp_path / "ranks") == {}
