"""Seconds and CPU of a whole crawl (fetch, store, extract, deduplicate, schedule), beside Scrapy, wget and spider-rs.

Debian's nginx serves twelve real manuals, five times each, under 60 names and once more under 12, all on loopback, with
pauses off. Every tool starts at the same URLs and stores what it fetches. nginx's log shows whether it asked for the
same URLs as the others; if not, it gets no ratio. Ours runs with default settings, with tuned ones, and `sequential`:
one cycle in flight, each stage started as a new process. More parts: TLS with large pages, slow servers with pauses on,
the demonstration, the start of a stage, the age of a crawl, and with --long the memory of every process.

`run.py` joins the parts. `figures.py` computes figures from their numbers, and holds the goals.
"""

from bench.ring.options import add_options
from bench.ring.run import measure

__all__ = ["add_options", "measure"]
