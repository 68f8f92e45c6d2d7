"""Graphs as matrices of SciPy: whole where they fit into memory, else rows by rows from the mapped files.

The only module of graph/ that imports SciPy.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from graph.csr import Csr
from storage.arrays import Array, Rows

Values = npt.NDArray[np.float64]
EDGE_BYTES = 16  # of a matrix in memory: index, value, and what SciPy copies
EDGES_AT_ONCE = 1 << 26  # 1 GiB


class Matrix:
    """One row per node, with its edges; `edges_at_once` bounds what is in memory. Products are the same either way."""

    def __init__(self, links: Csr, edges_at_once: int = EDGES_AT_ONCE):
        self._links, self._edges_at_once = links, edges_at_once
        self.is_whole = links.edges <= edges_at_once
        self._kept = list(self._blocks()) if self.is_whole else None

    def _blocks(self) -> Iterator[tuple[int, int, csr_array]]:
        links, start = self._links, 0
        ones = np.ones(min(links.edges, self._edges_at_once) if links.weights is None else 0)
        for start, stop in links.row_pieces(self._edges_at_once):
            low, high = int(links.offsets[start]), int(links.offsets[stop])
            if links.weights is not None:
                data = links.weights[low:high].astype(np.float64)
            else:
                data = ones[: high - low] if high - low <= len(ones) else np.ones(high - low)
            offsets = links.offsets[start : stop + 1] - low
            yield start, stop, csr_array((data, links.targets[low:high], offsets), shape=(stop - start, len(links)))

    def times(self, values: Values) -> Values:
        """For each node the sum of the values of its targets, times their weights."""
        product = np.zeros(len(self._links))
        for start, stop, block in self._kept or self._blocks():
            product[start:stop] = block @ values
        return product


def whole_matrix(links: Csr) -> csr_array:
    return csr_array((np.ones(links.edges), links.targets, links.offsets), shape=(len(links), len(links)))


def transpose(links: Csr) -> Csr:
    """The same edges from their targets, in memory; without weights."""
    back = whole_matrix(links).T.tocsr()
    back.sort_indices()
    return Csr(back.indptr, back.indices)


def components(links: Csr, is_strong: bool) -> tuple[int, npt.NDArray[np.int32]]:
    """The number of components, and that of each node."""
    if not len(links):
        return 0, np.empty(0, np.int32)
    return connected_components(whole_matrix(links), directed=True, connection="strong" if is_strong else "weak")


def reached(links: Csr, start: int) -> Rows:
    """The nodes that a node leads to, itself among them."""
    found: Array = breadth_first_order(whole_matrix(links), start, return_predecessors=False)
    return found.astype(np.int64)
