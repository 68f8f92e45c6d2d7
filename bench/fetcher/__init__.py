"""Pages per second, and CPU per page, of one fetcher process on two cores shared with nginx, beside wrk and Scrapy.

The web is Debian's nginx with one worker, on loopback, serving real documentation pages under 200 names on 200
addresses. The fetcher runs as it always does, robots.txt, DNS, WARC with digests and zstd, and syncs included; only the
pauses are off. wrk asks the same pages and throws them away: the server's limit. Scrapy has the reactor and concurrency
that are best for it, follows no links, and appends bodies to one file. Two more figures: what 1,500 idle sockets cost,
and how much of the politely possible rate is reached at 5,000 servers of different speed.

`run.py` joins the parts. `figures.py` computes figures from their numbers, and holds the goals.
"""

from bench.fetcher.options import add_options
from bench.fetcher.run import measure

__all__ = ["add_options", "measure"]
