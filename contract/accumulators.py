"""What links bring to the URLs that they lead to: integers that the merge puts together.

UrlsExtraidas and AUX carry them, and the verifier puts them together with those of its rows. Two kinds:
- Sums. A page gives once, when it is parsed for the first time; each gift is added up exactly once. A page whose links
  were counted at an earlier visit (`counted` in the list) gives nothing. `COUNTED` gives 1 per page, `MENTIONED` 1 per
  page of another registered domain, `RELEVANT` what the page's text is worth to a topic.
- Largest values. The largest one is kept, so it does not matter how often or in which order they come. A page gives at
  every visit. `LINKED` gives the day of the visit, but not to the page itself: most name themselves as canonical.
  `MODIFIED` gives the time that a sitemap names for the target, if both have one registered domain: a foreign sitemap
  could spoil the trust in a server's own.

Some are handed on: the page's row in Lista_de_URLs takes an amount along, which its policy names (`hands_on`), and its
first parsed answer gives to each target a part of it. `SHARED` and `INHERITED` divide it equally, and sums are kept;
what is `SHARED` leaves the page, but for the remainder of the division. `NEAREST` gives the amount minus a cost that
grows with the number of targets, and the largest is kept.

A new accumulator is a line of ACCUMULATORS: every program loops over it. Any other new column of UrlsExtraidas is a
line of EXTRACTED in contract/tables.py, filled in contract/inbox.py (seeds), stages/extractor/columns.py (links) and
stages/verifier/harvest.py (as_extracted: URLs of lists that are not ours); AUX has the columns of UrlsExtraidas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

COUNTED, MENTIONED, RELEVANT = "counted", "mentioned", "relevant"
LINKED, MODIFIED = "linked", "modified"
SHARED, INHERITED, NEAREST = "shared", "inherited", "nearest"
SEED_CASH = 1 << 32  # what a seed may hand on, in the smallest units: large, so that many divisions leave something
SEED_NEARNESS = 1 << 31  # of a seed, in units of which NEARNESS_STEP are a factor of two in the number of targets
NEARNESS_STEP = 1 << 16
DAY_MS = 86_400_000


class Accumulator(NamedTuple):
    name: str
    dtype: str  # of the columns; a sum beyond it stays at its largest value
    manner: str
    of_seed: int = 0  # what a URL has at first that comes as a seed

    @property
    def is_largest(self) -> bool:
        """Whether the largest value is kept, instead of a sum."""
        return self.manner in (LINKED, MODIFIED, NEAREST)

    def combine(self, values: Array, starts: Array) -> npt.NDArray[np.uint64]:
        """One value for each run of `values` that begins at `starts` (i64, rising); not bounded by the dtype."""
        if not len(starts):
            return np.empty(0, np.uint64)
        reduce = np.maximum if self.is_largest else np.add
        combined: npt.NDArray[np.uint64] = reduce.reduceat(values, starts, dtype=np.uint64)
        return combined

    def join(self, values: Array, more: Array) -> Array:
        """Values of the column (of its dtype) put together with more (u64)."""
        most = np.uint64(np.iinfo(self.dtype).max)
        values = values.astype(np.uint64)
        if self.is_largest:
            return np.maximum(values, np.minimum(more, most)).astype(self.dtype)
        room = most - values
        return np.where(more > room, most, values + more).astype(self.dtype)


ACCUMULATORS = (
    Accumulator("links_in", "u4", COUNTED),
    Accumulator("mentions", "u4", MENTIONED),
    Accumulator("cash", "u8", SHARED, of_seed=SEED_CASH),
    Accumulator("inherited", "u8", INHERITED),
    Accumulator("relevance", "u4", RELEVANT),
    Accumulator("nearness", "u4", NEAREST, of_seed=SEED_NEARNESS),
    Accumulator("linked_day", "u2", LINKED),  # days since 1970-01-01; 0: no page has linked to it
    Accumulator("lastmod_s", "u4", MODIFIED),  # seconds since 1970; 0: no sitemap names a time
)
COUNTED_NAMES = tuple(one.name for one in ACCUMULATORS if one.manner in (COUNTED, MENTIONED, RELEVANT))
SHARED_NAMES = tuple(one.name for one in ACCUMULATORS if one.manner == SHARED)
LATEST_NAMES = tuple(one.name for one in ACCUMULATORS if one.manner in (LINKED, MODIFIED))
HANDED_ON = tuple(one for one in ACCUMULATORS if one.manner in (SHARED, INHERITED, NEAREST))


@dataclass(frozen=True)
class Links:
    """Followed links of some pages: columns per link, then columns per page."""

    page: npt.NDArray[np.int64]  # index of the link's page
    to_domain: npt.NDArray[np.uint64]
    is_to_itself: npt.NDArray[np.bool_]  # the page links to its own URL
    lastmod_s: npt.NDArray[np.uint32]  # what the page, a sitemap, says of the target; else 0
    from_domain: npt.NDArray[np.uint64]
    is_counted: npt.NDArray[np.bool_]  # its links were counted at an earlier visit
    visited_day: npt.NDArray[np.uint16]
    relevance: npt.NDArray[np.uint32]  # what its text is worth to a topic
    shares: Mapping[str, npt.NDArray[np.uint64]]  # per accumulator of HANDED_ON: what each of its targets gets


def gifts(links: Links) -> dict[str, Array]:
    """Per accumulator, by name: what each link brings to its target."""
    counts = ~links.is_counted[links.page]
    is_mention = links.from_domain[links.page] != links.to_domain
    given: dict[str, Array] = {
        COUNTED: counts,
        MENTIONED: counts & is_mention,
        RELEVANT: np.where(counts, links.relevance[links.page], 0),
        LINKED: np.where(links.is_to_itself, 0, links.visited_day[links.page]),
        MODIFIED: np.where(is_mention, 0, links.lastmod_s),
    }
    return {
        one.name: links.shares[one.name][links.page] if one in HANDED_ON else given[one.manner] for one in ACCUMULATORS
    }


def share_out(one: Accumulator, amounts: Array, targets: Array) -> npt.NDArray[np.uint64]:
    """What each page gives to each of its targets, of which it has so many."""
    if one.manner == NEAREST:
        cost = np.rint(NEARNESS_STEP * np.log2(np.maximum(targets, 1)))
        nearness: npt.NDArray[np.uint64] = np.maximum(amounts - cost, 0).astype(np.uint64)
        return nearness
    shares: npt.NDArray[np.uint64] = amounts.astype(np.uint64) // np.maximum(targets, 1).astype(np.uint64)
    return shares
