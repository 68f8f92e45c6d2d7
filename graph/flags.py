"""What the tables of cycles know of a URL, as bits."""

ANSWERED = 1  # a page was fetched
KNOWN = 2  # the crawl has the URL in R
SEED = 4
FLAG_BITS = 3
