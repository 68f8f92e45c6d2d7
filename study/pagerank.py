"""PageRank of a graph, by the power method.

L. Page, S. Brin, R. Motwani and T. Winograd, "The PageRank citation ranking: bringing order to the Web", 1999. A page
without links leads everywhere, as the random surfer does who is bored there.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from study.graphs import Graph

ROUNDS_MAX = 1_000


def pagerank(graph: Graph, damping: float = 0.85, tolerance: float = 1e-9) -> npt.NDArray[np.float64]:
    """The rank of each page, with the sum 1; it is off by at most `tolerance` in all (the sum of differences)."""
    pages = len(graph)
    if not pages:
        return np.empty(0)
    links = csr_array((np.ones(len(graph.targets), np.float32), graph.targets, graph.offsets), shape=(pages, pages))
    to = links.T.tocsr()  # a row per target: its product is a sum per target, without scattered writes
    degrees = graph.degrees
    share = np.divide(damping, degrees, out=np.zeros(pages), where=degrees > 0)
    is_dangling = degrees == 0
    ranks = np.full(pages, 1 / pages)
    for _ in range(ROUNDS_MAX):
        lost = damping * ranks[is_dangling].sum() + 1 - damping
        following = to @ (ranks * share) + lost / pages
        moved = np.abs(following - ranks).sum()
        ranks = following
        if moved * damping / (1 - damping) < tolerance:  # the distance to the limit, as each round shrinks it
            break
    return ranks / ranks.sum()
