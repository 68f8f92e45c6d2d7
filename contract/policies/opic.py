"""opic: the most cash. A page that is fetched hands its cash on to the pages that it leads to.

S. Abiteboul, M. Preda and G. Cobena, "Adaptive on-line page importance computation", WWW 2003.
"""

from contract.policies.policy import Policy, largest_first

POLICY = Policy(
    lambda of: largest_first(of.rows["cash"]),
    columns=("cash",),
    varies=True,
    hands_on={"cash": lambda of: of.rows["cash"]},
)
