"""random-walk: the target of a link that is drawn at random among all links of the pages that were fetched.

B. Ribeiro and D. Towsley, "Estimating and sampling graphs with multidimensional random walks", IMC 2010 (frontier
sampling): many walkers, of which one goes on, drawn by its number of links, along one of these links. Here nobody walks
twice to a page, because the crawl asks for it once.

A URL is drawn with a chance in proportion to the links that lead to it. That is a random order by weights (P. S.
Efraimidis and P. G. Spirakis, "Weighted random sampling with a reservoir", 2006): with u drawn for each URL, uniform in
(0, 1), the largest u^(1 / links) comes first, which is the largest links / -ln u. A URL without links, as a seed,
counts as having one. Each URL draws once, so a rerun has the same order. The price: those that have waited for long
have drawn badly, and a new URL comes a little sooner than its links say.
"""

import numpy as np

from contract.policies.policy import Candidates, Policy, Scores, largest_first
from contract.policies.random_order import WALK, draw

FRACTION_BITS = 53  # of a float of 64 bits
LEAST = 0.5**FRACTION_BITS


def score(of: Candidates) -> Scores:
    drawn = draw(of.rows["key"], of.config.scheduler.seed, WALK) >> np.uint64(64 - FRACTION_BITS)
    waits = -np.log((drawn.astype(np.float64) + 0.5) * LEAST)  # up to 37.5; 0 where rounding makes u 1
    return largest_first(np.maximum(of.rows["links_in"], 1) / np.maximum(waits, LEAST))


POLICY = Policy(score, columns=("key", "links_in"), settings=("seed",), varies=True)
