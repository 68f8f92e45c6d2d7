"""The compressed form of WebGraph, read by PyPI's `webgraph`; and the bytes that WebGraph's Java library writes."""

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from webgraph import BvGraph

from contract.errors import BadInput
from graph import bvgraph
from graph.bvgraph import compress
from graph.csr import Csr
from tests.elias_fano import index_graph
from tests.loop_ways import both_ways

Lists = list[list[int]]


def join(lists: Lists) -> Csr:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    return Csr(offsets, np.array([target for targets in lists for target in targets], np.int32))


def read(folder: Path) -> Lists:
    index_graph(folder)
    found = BvGraph(str(folder / "graph"))
    lists = [list(found.successors(node)) for node in range(found.num_nodes())]
    assert found.num_arcs() == sum(map(len, lists))
    return lists


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def random_lists(seed: int, nodes: int) -> Lists:
    """Lists that share parts with those before them, have runs, and lead far off."""
    chance, lists = np.random.default_rng(seed), []
    for _ in range(nodes):
        own = set(chance.integers(0, nodes, chance.integers(0, 9)).tolist())
        for before in lists[-chance.integers(1, 12) :][:2]:
            own |= {target for target in before if chance.random() < 0.8}
        begin = int(chance.integers(0, nodes))
        own |= set(range(begin, min(begin + int(chance.integers(0, 9)), nodes)))
        lists.append(sorted(own)[:60] if chance.random() < 0.9 else [])
    return lists


HUGE = 100_000
GRAPHS = {
    "no nodes": [],
    "a node": [[]],
    "no edges": [[]] * 3000,
    "self loops": [[node] for node in range(100)],
    "complete": [list(range(60))] * 60,
    "equal lists": [[1, 5, 9, 200, 201, 202, 203, 204]] * 300,
    "first and last": [[0, 299], *[[]] * 298, [0, 299]],
    "each second of the list before": [list(range(0, 300, 1 + node % 2)) for node in range(300)],
    "random": random_lists(1, 3000),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_foreign_reader_finds_the_same_edges(tmp_path, name):
    assert compress(tmp_path, join(GRAPHS[name])) <= 8 * (tmp_path / "graph.graph").stat().st_size
    assert set(bytes_of(tmp_path)) == set(bvgraph.FILES)
    assert read(tmp_path) == GRAPHS[name]


@pytest.mark.parametrize("node", [3, 2 * HUGE - 3])
def test_a_list_of_a_hundred_thousand(tmp_path, node):
    """It has so many bits that graph.ef has the lists around it one by one; the last ones fill no whole entry."""
    lists: Lists = [[]] * (2 * HUGE)
    lists[node], lists[-1] = list(range(0, 2 * HUGE, 2)), [7]
    compress(tmp_path, join(lists))
    assert read(tmp_path) == lists


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.integers(0, 39)), max_size=40))
def test_any_graph(sets):
    lists = [sorted(targets) for targets in sets] + [[]] * (40 - len(sets))
    with tempfile.TemporaryDirectory() as name:
        compress(Path(name), join(lists))
        assert read(Path(name)) == lists


@pytest.mark.parametrize("at_once", [1, 7, 500])
def test_pieces_of_any_size_give_the_same_bytes(tmp_path, monkeypatch, at_once):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    whole.mkdir()
    pieces.mkdir()
    links = join(random_lists(2, 5000))
    compress(whole, links)
    monkeypatch.setattr(bvgraph, "EDGES_AT_ONCE", at_once)
    compress(pieces, links)
    assert bytes_of(pieces) == bytes_of(whole)


@both_ways
def test_the_bytes_are_those_of_java(tmp_path, way):
    """SHA-256 of what BVGraph.store in Java made of these lists (the library that .ci/run fetches)."""
    nodes, lists = 500, []
    for node in range(nodes):
        begin = node // 9 % 40
        spread = {(node * node * 7 + 13 * step * step * (node // 4)) % nodes for step in range(node % 11)}
        lists.append(sorted(spread | set(range(begin, begin + node % 7))))
    with way():
        bits = compress(tmp_path, join(lists))
    assert bits == 32968
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in bytes_of(tmp_path).items()}
    assert digests["graph.graph"] == "909cc8fc674842ca4a4a1b67145224dcae09f360a8e2ffa29be3b93f7b6e97c7"
    assert digests["graph.offsets"] == "ee0abbb78c2989542ef2fe3e78a85dc37e2d609256f7c3cdca358fb85825e6a5"


def test_too_many_nodes_are_refused(tmp_path):
    links = Csr(np.broadcast_to(np.int32(0), (1 << 31) + 1), np.empty(0, np.int32))
    with pytest.raises(BadInput, match="expected fewer than 2,147,483,648, found 2,147,483,648"):
        compress(tmp_path, links)
