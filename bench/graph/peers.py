"""The peers of bin/bench graph, each in a process of its own: python -m bench.graph.peers NAME PATH [...]."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contract import names
from graph.folder import open_graph
from graph.products import Values, times

ITERATIONS = 20
ROW = """
    SELECT url_key AS key, url FROM read_parquet('{0}/UrlsColetadas.parquet')
    UNION SELECT url_key, url FROM read_parquet('{0}/UrlsExtraidas.parquet')
"""


def run_duckdb(crawl: str, memory_mib: str, scratch: str) -> float:
    """Seconds for numbers in the order of URLs, and for the distinct edges as pairs of numbers, sorted, in a file."""
    import duckdb

    began = time.perf_counter()
    base = f"{crawl}/{names.CYCLES}/*/{names.EXTRACTOR}"
    connection = duckdb.connect(f"{scratch}/graph.duckdb")
    connection.execute(
        f"SET memory_limit = '{memory_mib}MiB'; SET threads = 2; SET temp_directory = '{scratch}/spilled'"
    )
    connection.execute(
        f"CREATE TABLE pages AS SELECT key, CAST(row_number() OVER (ORDER BY url) - 1 AS UINTEGER) AS number "
        f"FROM ({ROW.format(base)})"
    )
    connection.execute(
        f"COPY (SELECT DISTINCT source.number AS source, target.number AS target "
        f"FROM read_parquet('{base}/Ligacoes.parquet') AS link JOIN pages AS source ON source.key = link.from_key "
        f"JOIN pages AS target ON target.key = link.to_key ORDER BY 1, 2) TO '{scratch}/edges.parquet' (FORMAT parquet)"
    )
    return time.perf_counter() - began


def per_iteration(solve: Callable[[int], object], many: int = ITERATIONS) -> float:
    """Seconds of one iteration: of many, less what one alone takes. A first call warms up."""
    solve(1)
    taken = []
    for iterations in (1, 1 + many):
        began = time.perf_counter()
        solve(iterations)
        taken.append(time.perf_counter() - began)
    return (taken[1] - taken[0]) / many


def run_ours(graph: str) -> float:
    pages = open_graph(Path(graph), is_verified=True).pages
    backlinks, degrees = pages.backlinks, np.maximum(pages.links.degrees(), 1)

    def solve(iterations: int) -> Values:
        ranks = np.full(pages.nodes, 1 / pages.nodes)
        for _ in range(iterations):
            following = 0.85 * times(backlinks, ranks / degrees)
            following += (1 - following.sum()) / pages.nodes
            moved = np.abs(following - ranks).sum()
            ranks = following
        return ranks if moved >= 0 else None

    return per_iteration(solve)


def adjacency(graph: str):
    from scipy.sparse import csr_matrix

    pages = open_graph(Path(graph), is_verified=True).pages
    links = pages.links
    return csr_matrix((np.ones(pages.edges, np.float32), links.targets, links.offsets), shape=(pages.nodes,) * 2)


def run_scikit_network(graph: str) -> float:
    from sknetwork.ranking import PageRank

    matrix = adjacency(graph)
    return per_iteration(lambda iterations: PageRank(solver="piteration", n_iter=iterations, tol=0).fit_predict(matrix))


def run_igraph(graph: str) -> float:
    """The whole time: PRPACK has no iterations to count."""
    import igraph

    sources, targets = adjacency(graph).nonzero()
    made = igraph.Graph(n=int(open_graph(Path(graph), is_verified=True).pages.nodes), directed=True)
    made.add_edges(np.stack([sources, targets], axis=1))
    began = time.perf_counter()
    made.pagerank(damping=0.85)
    return time.perf_counter() - began


def run_networkx(graph: str) -> float:
    import networkx

    made = networkx.from_scipy_sparse_array(adjacency(graph), create_using=networkx.DiGraph)

    def solve(iterations: int) -> None:
        try:
            networkx.pagerank(made, max_iter=iterations, tol=0)
        except networkx.PowerIterationFailedConvergence:
            return

    return per_iteration(solve, 25 * ITERATIONS)  # which are short beside its start


PEERS = {
    "duckdb": run_duckdb,
    "ours": run_ours,
    "scikit-network": run_scikit_network,
    "igraph": run_igraph,
    "networkx": run_networkx,
}

if __name__ == "__main__":
    print(json.dumps(PEERS[sys.argv[1]](*sys.argv[2:])))
