"""Which URLs wget -r and the crawler collect of the same documentation sites, with every difference explained.

Debian's nginx serves real documentation packages under one name each and logs who asked for what. The crawler learns
the names from a hosts file; wget takes nginx for its proxy, and so needs to know no names. Neither needs root or
touches the machine's own configuration. The benchmark compares what the two asked for. Where one asked for more, it
finds the reason in the crawl's own tables and rules.

`run.py` joins the parts. `comparison.py` decides what explains a difference. `evidence.py` reads the crawl's tables.
"""

from bench.coverage.run import add_options, measure

__all__ = ["add_options", "measure"]
