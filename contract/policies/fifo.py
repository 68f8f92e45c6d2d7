"""fifo: first come, first served, by the cycle that brought a URL.

The queue of the first crawlers: B. Pinkerton, "Finding what people want: experiences with the WebCrawler", 1994.
"""

import numpy as np

from contract.policies.policy import Column, Feature, Policy, Urls, smallest_first


def cycle_of(urls: Urls) -> Column:
    return np.full(len(urls.key), urls.cycle, np.uint32)


ADDED = Feature("added", "u4", cycle_of)
POLICY = Policy(lambda of: smallest_first(of.rows["added"], 24), features=(ADDED,))
