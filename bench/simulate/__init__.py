"""Pages per second of bin/simulate for every policy, and its memory, over a web of a million pages.

A web made from a seed, with some nine million links, as `bin/simulate order --pages 1000000` makes it. Each policy
fetches a tenth of it, 1,000 pages at a time, once with the whole collection in one heap and once in eight blocks, in a
process of its own. What is the same for all policies is timed apart: making the web, its PageRank, its keys.
"""

from bench.simulate.run import add_options, measure

__all__ = ["add_options", "measure"]
