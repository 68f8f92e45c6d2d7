"""Figures of a graph: degrees with their fits, the bow-tie, links within and between servers, domains and suffixes.

Bow-tie: A. Broder et al., "Graph structure in the Web", WWW 2000. The core is the largest strong component; `in` leads
to it, `out` is led to, `tendrils` hang on the rest of its weak component, `other` has no connection to it.
Fits: A. Clauset, C. Shalizi and M. Newman, "Power-law distributions in empirical data", SIAM Review 51, 2009: the
exponent by maximum likelihood above a least degree, which is the one with the smallest Kolmogorov-Smirnov distance.
"""

from typing import Any

import numpy as np

from contract.url import is_address
from graph.csr import Csr
from graph.folder import DOMAINS, PAGES, SERVERS, Graph, Level
from graph.matrices import EDGE_BYTES, components, reached
from storage.arrays import Array, Rows

FIT_LEAST = 50  # nodes that a fit needs above its least degree
FIT_DEGREES_MAX = 200  # candidates for the least degree
SUFFIXES_SHOWN = 20
EDGES_AT_ONCE = 1 << 20


def describe_degrees(links: Csr) -> dict[str, Any]:
    """Mean, median and largest degree, nodes per power of two, and a power law."""
    degrees = links.degrees()
    if not len(degrees):
        return {"nodes": 0}
    bits = np.frexp(degrees.astype(np.float64))[1]  # 0 for 0, 1 for 1, 2 for 2 and 3, ...
    counts = np.bincount(bits)
    return {
        "nodes": len(degrees),
        "mean": round(float(degrees.mean()), 3),
        "median": float(np.median(degrees)),
        "max": int(degrees.max()),
        "distribution": {name_of(power): int(count) for power, count in enumerate(counts) if count},
        "power_law": fit_power_law(np.bincount(degrees)),
    }


def name_of(power: int) -> str:
    if power < 2:
        return str(power)
    return f"{1 << (power - 1)}-{(1 << power) - 1}"


def fit_power_law(counts: Rows) -> dict[str, float] | None:
    """Exponent, least degree and distance of the best fit; none where nodes are few. `counts` are nodes by degree."""
    degree = np.flatnonzero(counts)
    degree = degree[degree > 0]
    nodes = counts[degree]
    above = np.cumsum(nodes[::-1])[::-1]
    best = None
    for start in np.flatnonzero(above >= FIT_LEAST)[:FIT_DEGREES_MAX].tolist():
        if len(degree) - start < 2:
            break
        least, values, weights = degree[start], degree[start:], nodes[start:]
        exponent = 1 + above[start] / float((weights * np.log(values / (least - 0.5))).sum())
        observed = np.cumsum(weights) / above[start]
        expected = 1 - ((values + 0.5) / (least - 0.5)) ** (1 - exponent)
        distance = float(np.abs(observed - expected).max())
        if best is None or distance < best["distance"]:
            best = {"exponent": round(exponent, 3), "least_degree": int(least), "distance": round(distance, 4)}
    return best


def describe_bow_tie(links: Csr, backlinks: Csr) -> dict[str, int]:
    """Nodes of each part; in memory."""
    if not len(links):
        return dict.fromkeys(("core", "in", "out", "tendrils", "other", "strong_components", "weak_components"), 0)
    strong, component = components(links, is_strong=True)
    core = np.bincount(component).argmax()
    start = int(np.flatnonzero(component == core)[0])
    size = int((component == core).sum())
    weak, part = components(links, is_strong=False)
    to_core, from_core = len(reached(backlinks, start)) - size, len(reached(links, start)) - size
    connected = int((part == part[start]).sum())
    return {
        "core": size,
        "in": to_core,
        "out": from_core,
        "tendrils": connected - size - to_core - from_core,
        "other": len(links) - connected,
        "strong_components": strong,
        "weak_components": weak,
    }


def diagonal(links: Csr) -> Array:
    """The weight of the edge of each node to itself."""
    found = np.zeros(len(links), np.int64)
    for sources, targets, weights in links.edge_pieces(EDGES_AT_ONCE):
        own = sources == targets
        found[sources[own]] = weights[own]
    return found


def describe_borders(graph: Graph) -> dict[str, int]:
    """Edges of pages by what their ends share."""
    servers, domains = (graph.level(name).links for name in (SERVERS, DOMAINS))
    total = graph.pages.edges
    in_server, in_domain = int(diagonal(servers).sum()), int(diagonal(domains).sum())
    return {"same_server": in_server, "same_domain": in_domain - in_server, "between_domains": total - in_domain}


def suffix_of(domain: str) -> str:
    """What follows the first label of a registered domain; an address has none."""
    return "" if is_address(domain.strip("[]")) else domain.partition(".")[2]


def describe_suffixes(graph: Graph) -> list[dict[str, Any]]:
    """The suffixes with most pages: their domains and pages, and the edges within them, from them and to them."""
    level = graph.level(DOMAINS)
    names = [suffix_of(domain) for piece in level.texts.pieces() for domain in piece]
    suffixes, number = np.unique(
        np.array(names, object).astype(str) if names else np.empty(0, str), return_inverse=True
    )
    within, leaving, arriving = (np.zeros(len(suffixes), np.int64) for _ in range(3))
    for sources, targets, weights in level.links.edge_pieces(EDGES_AT_ONCE):
        own, other = number[sources], number[targets]
        same = own == other
        np.add.at(within, own[same], weights[same])
        np.add.at(leaving, own[~same], weights[~same])
        np.add.at(arriving, other[~same], weights[~same])
    pages_of_server = np.diff(graph.first_pages)
    pages = np.bincount(number[graph.domain_of_server], weights=pages_of_server, minlength=len(suffixes)).astype(int)
    domains = np.bincount(number, minlength=len(suffixes))
    order = np.argsort(-pages, kind="stable")[:SUFFIXES_SHOWN].tolist()
    return [
        {
            "suffix": str(suffixes[at]),
            "domains": int(domains[at]),
            "pages": int(pages[at]),
            "within": int(within[at]),
            "leaving": int(leaving[at]),
            "arriving": int(arriving[at]),
        }
        for at in order
    ]


def describe_level(level: Level, memory_bytes: int) -> dict[str, Any]:
    fits = level.edges * EDGE_BYTES * 2 + level.nodes * 32 <= memory_bytes
    return {
        "nodes": level.nodes,
        "edges": level.edges,
        "links_out": describe_degrees(level.links),
        "links_in": describe_degrees(level.backlinks),
        "bow_tie": describe_bow_tie(level.links, level.backlinks) if fits else None,
    }


def describe_graph(graph: Graph, memory_bytes: int) -> dict[str, Any]:
    """All figures; the bow-tie of a level only where the level fits into the memory."""
    collected = int(np.count_nonzero(graph.collected))
    return {
        "cycles": len(graph.manifest["cycles"]),
        "missing_cycles": sorted(map(int, graph.manifest["missing"])),
        "filters": graph.manifest["filters"],
        "links": graph.manifest["counts"],
        "collected": collected,
        "links_per_collected_page": round(graph.pages.edges / collected, 3) if collected else None,
        **{name: describe_level(graph.level(name), memory_bytes) for name in (PAGES, SERVERS, DOMAINS)},
        "edges_of_pages": describe_borders(graph),
        "suffixes": describe_suffixes(graph),
    }
