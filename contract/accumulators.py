"""What links bring to the URLs that they lead to: integers that are added up in the merge, each exactly once.

A page gives to each URL that it leads to, when it is parsed for the first time; UrlsExtraidas and AUX carry the sums, and the
verifier adds them to its rows. A new one is a line here: `COUNTED` gives one a page, `SHARED` divides what the page's row
in Lista_de_URLs took along equally among its targets, and what is left of the division stays with the page.
"""

from typing import NamedTuple

COUNTED, SHARED = "counted", "shared"


class Accumulator(NamedTuple):
    name: str
    dtype: str  # of the columns; a sum beyond it stays at its largest value
    manner: str


ACCUMULATORS = (Accumulator("links_in", "u4", COUNTED), Accumulator("cash", "u8", SHARED))
SEED_CASH = 1 << 32  # of a seed: what it may hand on, in the smallest units, so that many divisions leave something
SHARED_NAMES = tuple(accumulator.name for accumulator in ACCUMULATORS if accumulator.manner == SHARED)
