"""random: any order, the same for the same seed; what other orders are compared with.

J. Cho, H. Garcia-Molina and L. Page, "Efficient crawling through URL ordering", WWW 1998, compare with it too.
"""

import numpy as np

from contract.policies.policy import Candidates, Column, Policy, Scores
from contract.url_paths import GOLDEN

PURPOSE_SHIFT = np.uint64(56)  # seeds have 53 bits
RANK_OF_UNKNOWN, WALK = 1, 2  # purposes


def draw(key: Column, seed: int, purpose: int = 0) -> Column:
    """Numbers of 64 bits as if drawn: URLs' keys, which are hashes with the crawl's own secret, mixed with the seed.

    The seed is multiplied first: near seeds would otherwise move the URLs of one order instead of making another.
    Policies that draw for another purpose get other numbers: they may be parts of one mix.
    """
    with np.errstate(over="ignore"):
        mixed: Column = (key ^ (np.uint64(seed) | np.uint64(purpose) << PURPOSE_SHIFT) * GOLDEN) * GOLDEN
        mixed = (mixed ^ mixed >> np.uint64(32)) * GOLDEN
    return mixed


def score(of: Candidates) -> Scores:
    return (draw(of.rows["key"], of.config.scheduler.seed) >> np.uint64(32)).astype(np.uint32)


POLICY = Policy(score, columns=("key",), settings=("seed",))
