"""What links bring to the URLs that they lead to: integers that the merge adds up, each exactly once.

A page gives to each URL that it leads to, when it is parsed for the first time. UrlsExtraidas and AUX carry the sums,
and the verifier adds them to its rows. `COUNTED` gives 1 per page, `MENTIONED` 1 per page of another registered domain.
`SHARED` divides what the page's row in Lista_de_URLs took along equally among its targets; the remainder of the
division stays with the page. A page whose links were counted at an earlier visit (`counted` in the list) gives nothing.

A new accumulator is a line of ACCUMULATORS: every program loops over it. Any other new column of UrlsExtraidas is a
line of EXTRACTED in contract/tables.py, filled in contract/inbox.py (seeds), stages/extractor/columns.py (links) and
stages/verifier/harvest.py (as_extracted: URLs of lists that are not ours); AUX has the columns of UrlsExtraidas.
"""

from typing import NamedTuple

COUNTED, MENTIONED, SHARED = "counted", "mentioned", "shared"
SEED_CASH = 1 << 32  # what a seed may hand on, in the smallest units: large, so that many divisions leave something


class Accumulator(NamedTuple):
    name: str
    dtype: str  # of the columns; a sum beyond it stays at its largest value
    manner: str
    of_seed: int = 0  # what a URL has at first that comes as a seed


ACCUMULATORS = (
    Accumulator("links_in", "u4", COUNTED),
    Accumulator("mentions", "u4", MENTIONED),
    Accumulator("cash", "u8", SHARED, of_seed=SEED_CASH),
)
COUNTED_NAMES = tuple(accumulator.name for accumulator in ACCUMULATORS if accumulator.manner != SHARED)
SHARED_NAMES = tuple(accumulator.name for accumulator in ACCUMULATORS if accumulator.manner == SHARED)
