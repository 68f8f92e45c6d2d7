"""Seconds of the verifier for a cycle of a million URLs as the known ones grow to 350 million, beside DRUM, RocksDB, LMDB, SQLite and others.

Experiment 1 of the VEUNI thesis: a real crawl folder and the real command, from its start to its commit, on a seeded stream; once as crawls
are (7 of 10 extracted URLs known, our bounds) and once as the thesis had it (no repeats, N = 10). Peers get the batches that ours absorbs.

`contest.py` plays the cycles; `stream.py` makes the URLs, `ours.py` runs the command, `peers/` holds one module each, `figures.py` the goals.
"""

from bench.verifier.options import add_options
from bench.verifier.run import measure

__all__ = ["add_options", "measure"]
