"""in-links: the most pages that link to it, as far as pages were read.

J. Cho, H. Garcia-Molina and L. Page, "Efficient crawling through URL ordering", WWW 1998 (backlink count).
"""

from contract.policies.policy import Policy, largest_first

POLICY = Policy(lambda of: largest_first(of.rows["links_in"]), columns=("links_in",), varies=True)
