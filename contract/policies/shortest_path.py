"""shortest-path: the fewest path segments, then the fewest links from a seed.

The order in which the VEUNI crawler preschedules the URLs of a server (UFMG, 2011); R. Baeza-Yates and C. Castillo,
"Crawling the infinite Web: five levels are enough", WAW 2004, show that pages near the root are those that are read.
"""

import numpy as np

from contract.policies.policy import Candidates, Column, Feature, Policy, Scores, Urls, smallest_first
from contract.url_paths import path_levels


def count_levels(urls: Urls) -> Column:
    return path_levels(urls.lines)


def score(of: Candidates) -> Scores:
    return smallest_first(of.rows["levels"].astype(np.uint32) << 8 | of.rows["depth"], 16)


LEVELS = Feature("levels", "u1", count_levels)
POLICY = Policy(score, columns=("depth",), features=(LEVELS,))
