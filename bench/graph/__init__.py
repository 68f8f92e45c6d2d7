"""Edges per second of bin/graph build beside DuckDB, and a PageRank iteration beside scikit-network and others.

A synthetic crawl of 100 million links, in cycles with the tables that an extractor writes (synthetic.py), is built by
the command itself, within 1 GiB. DuckDB gives the same pages and edges their numbers and sorts them, from the same
tables, with the same memory and threads, once in one direction; ours also writes the transposed graph and those of
servers and domains. Both run in turns, three times; figures are medians. Then one iteration of PageRank on that graph:
ours, and as far as each can, scikit-network, igraph (whose method has no iterations: its whole time) and NetworkX, on a
graph of a hundredth of the size. One cycle more shows what it costs when a graph grows. Last, a real graph (cnr-2000)
in WebGraph's compressed form.

`synthetic.py` makes the crawl, `run.py` measures, `compression.py` the compressed form, `peers.py` are the peers,
`figures.py` has the goals.
"""

from bench.graph.run import add_options, measure

__all__ = ["add_options", "measure"]
