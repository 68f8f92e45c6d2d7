"""fica: the nearest to a seed by logarithmic distance, first.

A. M. Zareh Bidoki, N. Yazdani and P. Ghodsnia, "FICA: a novel intelligent crawling algorithm based on reinforcement
learning", Web Intelligence and Agent Systems, 2009. A link of a page with n targets is log(n) long, so what is near is
what a surfer who follows links at random is likely to reach. The distance of a URL is that of its nearest way from a
seed. The paper learns the distance step by step, with a learning rate that falls with time and a discount of what lies
far back. Both are left out: here a distance is exact for the links that are known, and the least one stays.

The accumulator `nearness` (contract/accumulators.py) is a large number minus the distance, in units of which 2^16 are a
factor of two. URLs without it, such as those that were found under another policy, come last.
"""

from contract.policies.policy import Policy

POLICY = Policy(
    lambda of: of.rows["nearness"],
    columns=("nearness",),
    varies=True,
    hands_on={"nearness": lambda of: of.rows["nearness"]},
)
