"""neural-graph: the largest rank of the network, plus what the pages that link to the URL pass on of theirs.

An order of the crawler of the ITMO thesis: a page passes on its rank divided by the number of pages that it leads to,
when it is parsed for the first time, and keeps what it has. So the rank is neither one of the URL alone nor a PageRank
(L. Page, S. Brin, R. Motwani and T. Winograd 1999), whose ranks would have to add up. It is counted in units of
1 / 65,536 of a level.
"""

import numpy as np
import numpy.typing as npt

from contract.policies.neural import QRANK, WEIGHTS_FILE
from contract.policies.policy import Candidates, Policy, largest_first

FRACTION_BITS = 16


def add_ranks(of: Candidates) -> npt.NDArray[np.uint64]:
    own = of.rows["qrank"].astype(np.uint64) << np.uint64(FRACTION_BITS)
    most = np.uint64(np.iinfo(np.uint64).max)
    ranks: npt.NDArray[np.uint64] = own + np.minimum(of.rows["inherited"], most - own)
    return ranks


POLICY = Policy(
    lambda of: largest_first(add_ranks(of)),
    columns=("inherited",),
    features=(QRANK,),
    varies=True,
    hands_on={"inherited": add_ranks},
    files=(WEIGHTS_FILE,),
)
