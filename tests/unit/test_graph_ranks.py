"""Ranks of graphs beside those of NetworkX; the same within memory and by blocks."""

import networkx
import numpy as np
import pytest

from graph.base_set import base_of, induce
from graph.csr import Csr
from graph.harmonic import count_balls, harmonic
from graph.matrices import transpose
from graph.pagerank import hits, pagerank


def random_graph(seed: int, nodes: int = 60, edges: int = 240) -> Csr:
    """Some nodes lead nowhere, and some are led to by nobody."""
    chance = np.random.default_rng(seed)
    pairs = np.unique((chance.random((edges, 2)) ** 2 * [nodes - 8, nodes]).astype(np.int64), axis=0)
    offsets = np.searchsorted(pairs[:, 0], np.arange(nodes + 1)).astype(np.int32)
    return Csr(offsets, pairs[:, 1].astype(np.int32))


def as_networkx(links: Csr) -> networkx.DiGraph:
    found = networkx.DiGraph()
    found.add_nodes_from(range(len(links)))
    for sources, targets, weights in links.edge_pieces(1 << 20):
        each = np.ones(len(sources)) if weights is None else weights
        found.add_weighted_edges_from(zip(sources.tolist(), targets.tolist(), each.tolist()))
    return found


def weighted(links: Csr, seed: int) -> tuple[Csr, Csr]:
    """The graph with weights, both ways."""
    weights = np.random.default_rng(seed).integers(1, 9, links.edges).astype(np.uint32)
    sources = np.repeat(np.arange(len(links)), links.degrees())
    order = np.lexsort((sources, links.targets))
    back = transpose(links)
    return Csr(links.offsets, links.targets, weights), Csr(back.offsets, back.targets, weights[order])


def values_of(by_node: dict[int, float]) -> np.ndarray:
    return np.array([by_node[node] for node in range(len(by_node))])


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("preferred", [None, np.array([3, 17])])
@pytest.mark.parametrize("has_weights", [False, True])
def test_pagerank_is_that_of_networkx(seed, preferred, has_weights):
    links = random_graph(seed)
    links, back = weighted(links, seed) if has_weights else (links, transpose(links))
    jumps = None if preferred is None else {int(node): 1 for node in preferred}
    expected = values_of(networkx.pagerank(as_networkx(links), personalization=jumps, tol=1e-12, max_iter=1_000))
    whole = pagerank(links, back, preferred=preferred, tolerance=1e-12)
    assert np.abs(whole - expected).sum() < 1e-9
    assert np.abs(pagerank(links, back, preferred=preferred, edges_at_once=16) - whole).max() < 1e-8


@pytest.mark.parametrize("seed", [1, 2])
def test_hits_is_that_of_networkx(seed):
    links = random_graph(seed)
    expected = [values_of(found) for found in networkx.hits(as_networkx(links), max_iter=10_000, tol=1e-12)]
    for edges_at_once in (1 << 20, 16):
        found = hits(links, transpose(links), edges_at_once=edges_at_once)
        assert all(np.abs(ours - theirs).max() < 1e-6 for ours, theirs in zip(found, expected))


def test_the_base_set_is_kleinbergs(monkeypatch):
    monkeypatch.setattr("graph.base_set.LINKING_MAX", 2)
    links = random_graph(6)
    whole, roots = as_networkx(links), np.array([5, 20])
    wanted = set(roots.tolist())
    for root in roots.tolist():
        wanted |= set(whole.successors(root)) | set(sorted(whole.predecessors(root))[:2])
    base = base_of(roots, links, transpose(links))
    assert base.tolist() == sorted(wanted) and len(base) < len(links)
    part = as_networkx(induce(base, links))
    named = {(int(base[source]), int(base[target])) for source, target in part.edges}
    assert named == set(whole.subgraph(wanted).edges) and len(named) > 5


@pytest.mark.parametrize("nodes", [1, 60, 150])  # one search, and more than a word of them
def test_harmonic_centrality_is_that_of_networkx(nodes):
    links = random_graph(4, nodes + 8, 4 * nodes)
    expected = values_of(networkx.harmonic_centrality(as_networkx(links)))
    found = harmonic(transpose(links), 1 << 20)
    assert found.error == 0 and np.allclose(found.values, expected)


@pytest.mark.long
def test_hyperball_is_as_far_off_as_it_says():
    """Errors of nodes that the same pages reach go together, so the errors of several hashes are taken."""
    links = random_graph(5, 1_000, 6_000)
    back = transpose(links)
    exact = harmonic(back, 1 << 20).values
    estimated = harmonic(back, 2 * 1_000 << 8, exact_max=10)
    assert estimated.error == pytest.approx(1.04 / 16)
    offsets, is_large = back.offsets.astype(np.int64), exact > 10

    def errors(bits: int) -> np.ndarray:
        found = [count_balls(offsets, back.targets, bits, seed)[is_large] / exact[is_large] - 1 for seed in range(40)]
        return np.array(found)

    assert (estimated.values[is_large] / exact[is_large] - 1).tolist() == errors(8)[0].tolist()
    for bits in (4, 8):
        off, error = errors(bits), 1.04 / np.sqrt(1 << bits)
        assert abs(off.mean()) < error / 2 and error / 3 < off.std() < 2 * error


def test_graphs_without_nodes_and_without_edges():
    empty, alone = Csr(np.zeros(1, np.int32), np.empty(0, np.int32)), Csr(np.zeros(3, np.int32), np.empty(0, np.int32))
    assert len(pagerank(empty, empty)) == 0 and pagerank(alone, alone).tolist() == [0.5, 0.5]
    assert hits(alone, alone)[0].tolist() == [0, 0] and len(hits(empty, empty)[0]) == 0
    assert harmonic(alone, 1 << 20).values.tolist() == [0, 0]
    assert harmonic(empty, 1 << 20, exact_max=0).values.tolist() == []
