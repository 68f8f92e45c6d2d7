"""PageRank of a graph that is in memory, by the one function for it, which is that of bin/graph rank."""

import numpy as np
import numpy.typing as npt

from graph import pagerank as ranks
from graph.csr import Csr
from graph.matrices import transpose
from study.graphs import Graph


def pagerank(graph: Graph, damping: float = 0.85, tolerance: float = 1e-9) -> npt.NDArray[np.float64]:
    """The rank of each page, with the sum 1; it is off by at most `tolerance` in all (the sum of differences)."""
    links = Csr(graph.offsets, graph.targets)
    return ranks.pagerank(links, transpose(links), damping, tolerance)
