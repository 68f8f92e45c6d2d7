"""random: any order, the same for the same seed; what other orders are compared with.

J. Cho, H. Garcia-Molina and L. Page, "Efficient crawling through URL ordering", WWW 1998, compare with it too.
"""

import numpy as np

from contract.policies.policy import Candidates, Policy, Scores
from contract.url_paths import GOLDEN


def score(of: Candidates) -> Scores:
    """The URL's key, which is a hash with the crawl's own secret, mixed with the seed.

    The seed is multiplied first: near seeds would otherwise move the URLs of one order instead of making another.
    """
    with np.errstate(over="ignore"):
        mixed = (of.rows["key"] ^ np.uint64(of.config.scheduler.seed) * GOLDEN) * GOLDEN
        mixed = (mixed ^ mixed >> np.uint64(32)) * GOLDEN
    return (mixed >> np.uint64(32)).astype(np.uint32)


POLICY = Policy(score, columns=("key",), settings=("seed",))
