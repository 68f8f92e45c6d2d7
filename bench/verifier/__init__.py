"""Seconds of the verifier per cycle of a million URLs, from 1 to 350 million known, beside DRUM, RocksDB and others.

Experiment 1 of the VEUNI thesis: a real crawl folder and the real command, from its start to its commit, on a seeded
stream; once as crawls are (7 of 10 extracted URLs known, our bounds) and once as the thesis had it (no repeats, N =
10). Peers get the batches that ours absorbs: DRUM, RocksDB, LMDB, SQLite and others.

`contest.py` plays the cycles, `stream.py` makes the URLs, `ours.py` runs the command, `peers/` holds one module per
peer, `figures.py` the goals.
"""

from bench.verifier.options import add_options
from bench.verifier.run import measure

__all__ = ["add_options", "measure"]
