"""Exported graphs, opened by their tools: pyarrow, SciPy, NetworkX, webgraph; and the words of raw and mini."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import networkx
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from webgraph import BvGraph

from graph import bvgraph, formats, padova
from graph.build import build
from graph.convert_command import main as convert
from graph.export_command import main as export
from graph.filters import Filters
from graph.folder import Graph, open_graph
from storage.publish import read_manifest
from tests.elias_fano import index_graph
from tests.graph_crawl import LinkCrawl, edges_of, texts_of
from tests.stages.test_graph_build import random_links

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Graph:
    crawl = LinkCrawl(tmp_path_factory.mktemp("formats") / "crawl")
    crawl.add(
        [*random_links(7, 300), ("http://a.br/?q=<b>&\"'", "http://a.br/?q=<b>&\"'"), ("http://z.br/", "http://a.br/")]
    )
    build(crawl.crawl, crawl.folder / "graph", Filters(), 1024, False, lambda *_: None)
    return open_graph(crawl.folder / "graph")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    for module in (bvgraph, formats, padova):
        monkeypatch.setattr(module, "EDGES_AT_ONCE", 16)
    monkeypatch.setattr(padova, "READ_WORDS", 10)


@pytest.fixture
def write(graph, tmp_path):
    def make(name: str, level: str = "pages") -> Path:
        folder = tmp_path / f"{name}-{level}"
        export(["--graph", str(graph.folder.parent), "--format", name, "--out", str(folder), "--level", level])
        assert read_manifest(folder)["level"] == level
        return folder

    return make


def pairs_of(graph: Graph, level: str = "pages") -> set[tuple[int, int]]:
    number = {text: at for at, text in enumerate(texts_of(graph.level(level)))}
    return {(number[source], number[target]) for source, target in edges_of(graph.level(level))}


def lines_of(folder: Path) -> list[str]:
    return (folder / "urls.txt").read_text().split("\n")[:-1]


def test_parquet(graph, write):
    for level in ("pages", "servers", "domains"):
        folder = write("parquet", level)
        edges, nodes = (pq.read_table(folder / f"{name}.parquet").to_pylist() for name in ("edges", "nodes"))
        text = {row["number"]: row[level[:-1].replace("page", "url")] for row in nodes}
        found = {(text[row["from"]], text[row["to"]]): row.get("weight", 1) for row in edges}
        assert found == edges_of(graph.level(level)) and list(text.values()) == texts_of(graph.level(level))


def test_snap_by_networkx(graph, write):
    folder = write("snap")
    read = networkx.read_edgelist(folder / "graph.txt", create_using=networkx.DiGraph, nodetype=int)
    assert set(read.edges) == pairs_of(graph) and lines_of(folder) == texts_of(graph.pages)


@pytest.mark.parametrize("level", ["pages", "servers", "domains"])
def test_webgraph_by_webgraph(graph, write, level):
    folder = write("webgraph", level)
    index_graph(folder)
    found = BvGraph(str(folder / "graph"))
    pairs = {(node, target) for node in range(found.num_nodes()) for target in found.successors(node)}
    assert pairs == pairs_of(graph, level) and found.num_arcs() == graph.level(level).edges
    assert lines_of(folder) == texts_of(graph.level(level))


@pytest.fixture
def java(needs, tmp_path):
    """Reads a graph by a class of WebGraph's Java library, and has another class write it."""
    program = needs("java")
    library = next((ROOT / "build" / "webgraph").glob("**/*.jar"), None)
    if library is None:
        miss = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        miss("WebGraph's Java library is not in build/webgraph: .ci/run fetches it")

    def convert_by_java(folder: Path, reader: str, writer: str) -> Path:
        classes = [f"it.unimi.dsi.webgraph.{writer}", "-g", reader]
        command = [program, "-cp", library, *classes, folder / "graph", tmp_path / writer]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return tmp_path / writer

    return convert_by_java


@pytest.mark.parametrize("level", ["pages", "domains"])
def test_both_forms_of_webgraph_by_java(write, java, level):
    """Java reads each form and writes the other one, as we do; but for a blank at the end of a line."""
    compressed, text = write("webgraph", level), write("webgraph-ascii", level)
    found = java(text, "ASCIIGraph", "BVGraph")
    for name in (bvgraph.GRAPH, bvgraph.OFFSETS):
        assert found.with_suffix(Path(name).suffix).read_bytes() == (compressed / name).read_bytes()
    found = java(compressed, "BVGraph", "ASCIIGraph").with_suffix(".graph-txt").read_text()
    assert found.replace(" \n", "\n") == (text / "graph.graph-txt").read_text()


def test_webgraph_ascii(graph, write):
    """As it.unimi.dsi.webgraph.ASCIIGraph describes it."""
    count, *rows = (write("webgraph-ascii") / "graph.graph-txt").read_text().split("\n")[:-1]
    assert int(count) == len(rows) == graph.pages.nodes
    assert {(at, int(word)) for at, row in enumerate(rows) for word in row.split()} == pairs_of(graph)


@pytest.mark.parametrize("level", ["pages", "servers"])
def test_npz_by_scipy(graph, write, level):
    matrix = sparse.load_npz(write("npz", level) / "graph.npz").tocoo()
    assert matrix.shape == (graph.level(level).nodes,) * 2
    texts = texts_of(graph.level(level))
    found = {(texts[a], texts[b]): weight for a, b, weight in zip(matrix.row, matrix.col, matrix.data)}
    assert found == edges_of(graph.level(level))


@pytest.mark.parametrize(("name", "read"), [("graphml", networkx.read_graphml), ("gexf", networkx.read_gexf)])
@pytest.mark.parametrize("level", ["servers", "domains"])
def test_xml_by_networkx(graph, write, name, read, level):
    found = read(write(name, level) / f"graph.{name}")
    label = {node: about["label"] for node, about in found.nodes(data=True)}
    assert sorted(label.values()) == texts_of(graph.level(level))
    weights = {(label[a], label[b]): int(weight) for a, b, weight in found.edges(data="weight")}
    assert weights == edges_of(graph.level(level))


def test_xml_is_escaped_and_not_made_of_pages(graph, tmp_path):
    assert '&lt;b&gt;&amp;"' in _xml(graph, tmp_path / "a.graphml", formats.escape)
    done = subprocess.run(
        [sys.executable, "-m", "graph", "export", "--format", "gexf", "--out", tmp_path / "x"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 64 and "--level servers" in done.stderr


def _xml(graph, path, quote) -> str:
    formats.write_xml(path, graph.pages, "", "{1}\n", "", "", "", quote)
    return path.read_text()


def test_raw_and_mini_have_the_words_of_the_thesis(graph, write):
    folder, small = write("raw"), write("mini")
    urls = lines_of(folder)
    assert urls == lines_of(small) == texts_of(graph.pages)
    digests = [hashlib.md5(url.encode()).digest() for url in urls]
    wanted_raw, wanted_mini, last = b"", b"", None
    for source, target in sorted(pairs_of(graph)):
        if source != last:
            wanted_raw += bytes([digests[source][0] | 0x80]) + digests[source][1:]
            wanted_mini += (source | 1 << 31).to_bytes(4, "little")
        wanted_raw += bytes([digests[target][0] & 0x7F]) + digests[target][1:]
        wanted_mini += target.to_bytes(4, "little")
        last = source
    assert (folder / "graph.raw").read_bytes() == wanted_raw
    assert (small / "graph.mini").read_bytes() == wanted_mini


def test_raw_and_mini_are_converted_into_each_other(write, tmp_path):
    raw, mini = write("raw"), write("mini")
    convert([str(raw), "--out", str(tmp_path / "to-mini")])
    convert([str(mini), "--out", str(tmp_path / "to-raw")])
    assert (tmp_path / "to-mini/graph.mini").read_bytes() == (mini / "graph.mini").read_bytes()
    assert (tmp_path / "to-raw/graph.raw").read_bytes() == (raw / "graph.raw").read_bytes()
    assert (tmp_path / "to-raw/urls.txt").read_bytes() == (raw / "urls.txt").read_bytes()


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"\xff" * 33, "expected words of 16 bytes"), (b"\x01" * 32, "expected digests of the URLs")],
)
def test_damaged_words_are_refused(write, tmp_path, content, expected):
    raw = write("raw")
    (raw / "graph.raw").write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "graph", "convert", str(raw), "--out", str(tmp_path / "x")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 65 and expected in done.stderr and not (tmp_path / "x/manifest.json").exists()


@pytest.mark.long
def test_a_graph_that_is_not_there_or_partial_is_refused(tmp_path):
    words = [sys.executable, "-m", "graph", "export", "--format", "snap", "--out", str(tmp_path / "x"), "--crawl"]
    done = subprocess.run([*words, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 78 and "is no crawl folder" in done.stderr
    crawl = LinkCrawl(tmp_path / "crawl")
    done = subprocess.run([*words, str(crawl.folder)], capture_output=True, text=True)
    assert done.returncode == 65 and "make it with bin/graph build" in done.stderr
    crawl.add([("http://a.br/", "http://b.br/")])
    crawl.add([])
    (crawl.last / "Ligacoes.parquet").unlink()
    build(crawl.crawl, crawl.folder / "graph", Filters(), 1024, True, lambda *_: None)
    done = subprocess.run([*words, str(crawl.folder)], capture_output=True, text=True)
    assert done.returncode == 65 and "PARTIAL" in done.stderr and "cycle 1" in done.stderr
    done = subprocess.run([*words, str(crawl.folder), "--allow-partial"], capture_output=True, text=True)
    assert done.returncode == 0 and "PARTIAL" in done.stderr
    assert np.loadtxt(tmp_path / "x/graph.txt", int).tolist() == [0, 1]
