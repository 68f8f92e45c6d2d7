"""Which URLs wget -r and the crawler collect of the same documentation sites, one by one, with every difference explained.

Debian's nginx serves real documentation packages under a name each and writes down who asked for what. The crawler learns the
names from a hosts file; wget takes nginx for its proxy, and so needs to know no names. Neither needs root or touches the
machine's own configuration. What the two asked for is compared; why one asked for more is told from the crawl's own tables and rules.

`run.py` joins the parts; `comparison.py` decides what explains a difference; `evidence.py` reads the crawl's tables.
"""

from bench.coverage.run import add_options, measure

__all__ = ["add_options", "measure"]
