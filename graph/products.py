"""Products of a graph with a vector: for each node the sum of the values of its targets.

Edges are read from the mapped files, some rows at a time, in two or more threads: a graph that does not fit into memory
takes no more of it than one that does, and gives the same. Only vectors are in memory.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from graph.csr import Csr
from storage.arrays import Array
from storage.compiled import compiled

Values = npt.NDArray[np.float64]
EDGES_AT_ONCE = 1 << 22  # of a thread: large beside its start, small beside memory


def times(links: Csr, values: Values, edges_at_once: int = EDGES_AT_ONCE) -> Values:
    """For each node the sum of the values of its targets, times their weights."""
    product = np.zeros(len(links))

    def add(rows: tuple[int, int]) -> None:
        start, stop = rows
        offsets = links.offsets[start : stop + 1].astype(np.int64)
        edges = slice(int(offsets[0]), int(offsets[-1]))
        offsets -= edges.start
        targets = np.asarray(links.targets[edges])
        targets = targets.view(np.uint32) if targets.dtype.itemsize == 4 else targets.astype(np.uint32)
        if links.weights is None:
            add_values(offsets, targets, values, product[start:stop])
        else:
            add_weighted(offsets, targets, np.asarray(links.weights[edges]), values, product[start:stop])

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for _ in pool.map(add, links.row_pieces(edges_at_once)):
            pass
    return product


@compiled("i8[] u4[] f8[] -> f8[]")
def add_values(offsets: Array, targets: Array, values: Array, product: Array) -> int:
    for node in range(len(offsets) - 1):
        total = 0.0
        for edge in range(offsets[node], offsets[node + 1]):
            total += values[targets[edge]]
        product[node] = total
    return 0


@compiled("i8[] u4[] u4[] f8[] -> f8[]")
def add_weighted(offsets: Array, targets: Array, weights: Array, values: Array, product: Array) -> int:
    for node in range(len(offsets) - 1):
        total = 0.0
        for edge in range(offsets[node], offsets[node + 1]):
            total += values[targets[edge]] * weights[edge]
        product[node] = total
    return 0
