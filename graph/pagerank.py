"""PageRank and HITS, by the power method.

L. Page, S. Brin, R. Motwani and T. Winograd, "The PageRank citation ranking: bringing order to the Web", 1999. A node
without links leads where the surfer jumps to anyway: everywhere, or to the preferred nodes. Edges with weights are
followed in proportion to them. J. Kleinberg, "Authoritative sources in a hyperlinked environment", JACM 46, 1999.
"""

import numpy as np

from graph.csr import Csr
from graph.products import EDGES_AT_ONCE, Values, times
from storage.arrays import Rows

DAMPING = 0.85
TOLERANCE = 1e-9
ROUNDS_MAX = 1_000


def pagerank(
    links: Csr,
    backlinks: Csr,
    damping: float = DAMPING,
    tolerance: float = TOLERANCE,
    preferred: Rows | None = None,
    edges_at_once: int = EDGES_AT_ONCE,
) -> Values:
    """The rank of each node, with the sum 1; it is off by at most `tolerance` in all (the sum of differences).

    `preferred`: nodes that the surfer jumps to, each alike (personalised PageRank); none: all nodes.
    """
    nodes = len(links)
    if not nodes:
        return np.empty(0)
    given = links.degrees().astype(np.float64) if links.weights is None else times(links, np.ones(nodes), edges_at_once)
    share = np.divide(damping, given, out=np.zeros(nodes), where=given > 0)
    jumps = np.zeros(nodes)
    jumps[slice(None) if preferred is None else preferred] = 1
    jumps /= jumps.sum()
    is_dangling, ranks = given == 0, jumps.copy()
    for _ in range(ROUNDS_MAX):
        lost = damping * ranks[is_dangling].sum() + 1 - damping
        following = times(backlinks, ranks * share, edges_at_once) + lost * jumps
        moved = np.abs(following - ranks).sum()
        ranks = following
        if moved * damping / (1 - damping) < tolerance:  # the distance to the limit, as each round shrinks it
            break
    return ranks / ranks.sum()


def hits(
    links: Csr, backlinks: Csr, tolerance: float = TOLERANCE, edges_at_once: int = EDGES_AT_ONCE
) -> tuple[Values, Values]:
    """(hubs, authorities), each with the sum 1; rounds end when neither moves by more than `tolerance` in all."""
    nodes = len(links)
    hubs = authorities = np.full(nodes, 1 / max(nodes, 1))
    for _ in range(ROUNDS_MAX):
        next_authorities = scale(times(backlinks, hubs, edges_at_once))
        next_hubs = scale(times(links, next_authorities, edges_at_once))
        moved = max(np.abs(next_hubs - hubs).sum(), np.abs(next_authorities - authorities).sum())
        hubs, authorities = next_hubs, next_authorities
        if moved < tolerance:
            break
    return hubs, authorities


def scale(values: Values) -> Values:
    total = values.sum()
    return values / total if total else values
