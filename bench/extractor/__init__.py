"""Pages a second of the extractor on one core and on two, with CPU, memory and bytes a link, beside Scrapy's LinkExtractor and lxml.

The pages are real: HTML files of Debian's documentation packages, written once as a folder that the fetcher could have left.
The extractor runs as it always does, from those WARC files to published tables, with the default configuration. The peers get
the same pages, decoded and in memory, and only find links.

`run.py` joins the parts; `figures.py` holds what is computed from their numbers, and the goals; `timed.py` tells where the time goes.
"""

from bench.extractor.options import add_options
from bench.extractor.run import measure

__all__ = ["add_options", "measure"]
