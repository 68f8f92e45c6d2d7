"""server-size: servers with the most waiting URLs first, so that none is left with a long queue at the end.

C. Castillo, M. Marin, A. Rodriguez and R. Baeza-Yates, "Scheduling algorithms for Web crawling", LA-Web 2004
("larger sites first"), where it came close to the best order that knows PageRank in advance.
"""

from contract.policies.policy import DEPTHS, Candidates, Policy, Scores, largest_first


def score(of: Candidates) -> Scores:
    """Within a server the fewest links from a seed come first."""
    return largest_first(of.server("waiting")) & ~DEPTHS | DEPTHS - of.rows["depth"]


POLICY = Policy(score, columns=("depth",))
