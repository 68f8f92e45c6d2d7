"""Numbers of a graph at the ends of their types, and what it takes to cut a graph into pieces."""

import tracemalloc

import numpy as np
import pytest

from graph.csr import Csr
from graph.levels import ServerOf, count_pairs

U32_MAX = (1 << 32) - 1


def test_weights_stop_at_the_largest_number():
    pairs, weights = count_pairs(np.array([7, 5, 5], np.uint64), np.array([U32_MAX + 9, U32_MAX, 2], np.int64))
    assert pairs.tolist() == [5, 7] and weights.tolist() == [U32_MAX, U32_MAX]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_pieces_of_a_graph_are_found_without_a_copy_of_it(kind):
    rows = 1 << 20
    links = Csr(np.arange(rows + 1, dtype=kind), np.broadcast_to(np.zeros(1, np.int32), rows))
    tracemalloc.start()
    try:
        pieces = list(links.row_pieces(rows // 4))
        assert tracemalloc.get_traced_memory()[1] < rows
    finally:
        tracemalloc.stop()
    assert pieces == [(start, start + rows // 4) for start in range(0, rows, rows // 4)]


def test_servers_are_found_for_numbers_of_either_sign():
    by_search = ServerOf(np.array([0, 2, 5], np.int64), 0)
    assert by_search(np.array([0, 1, 2, 4], np.uint64)).tolist() == by_search(np.array([0, 1, 2, 4])).tolist()
