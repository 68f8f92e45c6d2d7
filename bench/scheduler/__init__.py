"""Seconds of the scheduler: a list of 100,000 URLs from a block of 10 million, for every policy, with revisits.

A seeded block as a crawl would have it: 100,000 servers of very different sizes, six URLs of ten collected in 1,000
cycles, with the table MetadadosUrlsColetadas of each, the others waiting. Revisits are on ([revisit] policy optimal).
Choosing is timed from the opened generation to the list with its validators; the command as a whole is timed too, and
so is each feature on the texts of new URLs, and a turn of the verifier on the block, with revisits and without.

`block.py` makes the block, `run.py` measures, `turns.py` the turns, `figures.py` has the goals.
"""

from bench.scheduler.run import add_options, measure

__all__ = ["add_options", "measure"]
