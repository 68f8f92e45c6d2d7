"""The base set of HITS: the pages of given roots, what they link to, and some that link to them; with their edges.

J. Kleinberg, "Authoritative sources in a hyperlinked environment", JACM 46, 1999: at most LINKING_MAX pages that link
to a root are taken, or a popular root would bring the whole graph. They are the first ones by number, so that the same
roots give the same base.
"""

import numpy as np

from graph.csr import Csr
from storage.arrays import Array, Rows

LINKING_MAX = 50  # Kleinberg's d


def base_of(roots: Rows, links: Csr, backlinks: Csr) -> Rows:
    """The numbers of the base set, sorted."""
    parts = [roots.astype(np.int64)]
    for root in roots.tolist():
        low, high = int(backlinks.offsets[root]), int(backlinks.offsets[root + 1])
        parts.append(links.targets[links.offsets[root] : links.offsets[root + 1]].astype(np.int64))
        parts.append(backlinks.targets[low : min(high, low + LINKING_MAX)].astype(np.int64))
    return np.unique(np.concatenate(parts))


def induce(nodes: Rows, links: Csr) -> Csr:
    """The edges among these nodes (sorted, each once), which are numbered anew in their order; without weights."""
    kept, degrees = [np.empty(0, np.int32)], []
    for node in nodes.tolist():
        targets: Array = links.targets[links.offsets[node] : links.offsets[node + 1]]
        at = np.minimum(np.searchsorted(nodes, targets), len(nodes) - 1)
        kept.append(at[nodes[at] == targets].astype(np.int32))
        degrees.append(len(kept[-1]))
    return Csr(np.concatenate(([0], np.cumsum(degrees))).astype(np.int64), np.concatenate(kept))
