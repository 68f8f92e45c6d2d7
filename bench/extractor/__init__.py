"""Pages per second of the extractor on one core and on two, CPU and memory, beside Scrapy's LinkExtractor and lxml.

The pages are real: HTML files of Debian's documentation packages, written once as a folder that the fetcher could have
left. The extractor runs as it always does, from those WARC files to published tables, with the default configuration,
and once more per repeat without its compiled tag scanner. The peers get the same pages, decoded and in memory, and only
find links.

`run.py` joins the parts. `figures.py` computes figures from their numbers, and holds the goals. `timed.py` measures
where the time goes.
"""

from bench.extractor.options import add_options
from bench.extractor.run import measure

__all__ = ["add_options", "measure"]
