"""breadth-first: the fewest links from a seed.

M. Najork and J. L. Wiener, "Breadth-first search crawling yields high-quality pages", WWW 2001.
"""

from contract.policies.policy import Policy, smallest_first

POLICY = Policy(lambda of: smallest_first(of.rows["depth"], 8), columns=("depth",))
