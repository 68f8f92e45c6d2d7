"""response-time: servers that answer fast first; `slow_share` of each list is kept for the slower half of servers.

The VEUNI crawler (UFMG, 2011) orders servers so, and keeps a share for slow ones, which would otherwise wait for ever.
"""

import numpy as np

from contract.policies.policy import DEPTHS, Candidates, Column, Policy, Scores, smallest_first


def score(of: Candidates) -> Scores:
    """A server that was never asked counts as a fast one. Within a server the fewest links from a seed come first."""
    return smallest_first(of.server("mean_ms"), 24) | DEPTHS - of.rows["depth"]


def reserve_slow(of: Candidates) -> tuple[Column, float]:
    asked = of.servers("mean_ms")[of.servers("requests") > 0]
    median = np.median(asked) if len(asked) else 0
    return of.server("mean_ms") > median, of.config.scheduler.slow_share


POLICY = Policy(score, columns=("depth",), reserve=reserve_slow)
