"""Graphs as matrices of SciPy, in memory: components, searches, transposes. No other module of graph/ imports it."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from graph.csr import Csr
from storage.arrays import Array, Rows

EDGE_BYTES = 16  # of a matrix in memory: index, value, and what SciPy copies


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
