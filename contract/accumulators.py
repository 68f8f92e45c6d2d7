"""What links bring to the URLs that they lead to: integers that the merge puts together.

UrlsExtraidas and AUX carry them, and the verifier puts them together with those of its rows. Two kinds:
- Sums. A page gives once, when it is parsed for the first time; each gift is added up exactly once. `COUNTED` gives 1
  per page, `MENTIONED` 1 per page of another registered domain. `SHARED` divides what the page's row in Lista_de_URLs
  took along equally among its targets; the remainder of the division stays with the page. A page whose links were
  counted at an earlier visit (`counted` in the list) gives nothing.
- Latest values. The largest value is kept, so it does not matter how often or in which order they come. A page gives at
  every visit. `LINKED` gives the day of the visit, `MODIFIED` the time that a sitemap names for the target.

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

COUNTED, MENTIONED, SHARED = "counted", "mentioned", "shared"
LINKED, MODIFIED = "linked", "modified"
SEED_CASH = 1 << 32  # what a seed may hand on, in the smallest units: large, so that many divisions leave something
DAY_MS = 86_400_000


class Accumulator(NamedTuple):
    name: str
    dtype: str  # of the columns; a sum beyond it stays at its largest value
    manner: str
    of_seed: int = 0  # what a URL has at first that comes as a seed

    @property
    def is_latest(self) -> bool:
        """Whether the largest value is kept, instead of a sum."""
        return self.manner in (LINKED, MODIFIED)

    def combine(self, values: Array, starts: Array) -> npt.NDArray[np.uint64]:
        """One value for each run of `values` that begins at `starts` (i64, rising); not bounded by the dtype."""
        if not len(starts):
            return np.empty(0, np.uint64)
        reduce = np.maximum if self.is_latest else np.add
        combined: npt.NDArray[np.uint64] = reduce.reduceat(values, starts, dtype=np.uint64)
        return combined

    def join(self, values: Array, more: Array) -> Array:
        """Values of the column (of its dtype) put together with more (u64)."""
        most = np.uint64(np.iinfo(self.dtype).max)
        values = values.astype(np.uint64)
        if self.is_latest:
            return np.maximum(values, np.minimum(more, most)).astype(self.dtype)
        room = most - values
        return np.where(more > room, most, values + more).astype(self.dtype)


ACCUMULATORS = (
    Accumulator("links_in", "u4", COUNTED),
    Accumulator("mentions", "u4", MENTIONED),
    Accumulator("cash", "u8", SHARED, of_seed=SEED_CASH),
    Accumulator("linked_day", "u2", LINKED),  # days since 1970-01-01; 0: no page has linked to it
    Accumulator("lastmod_s", "u4", MODIFIED),  # seconds since 1970; 0: no sitemap names a time
)
COUNTED_NAMES = tuple(one.name for one in ACCUMULATORS if one.manner in (COUNTED, MENTIONED))
SHARED_NAMES = tuple(one.name for one in ACCUMULATORS if one.manner == SHARED)
LATEST_NAMES = tuple(one.name for one in ACCUMULATORS if one.is_latest)


@dataclass(frozen=True)
class Links:
    """Followed links of some pages: columns per link, then columns per page."""

    page: npt.NDArray[np.int64]  # index of the link's page
    to_domain: npt.NDArray[np.uint64]
    lastmod_s: npt.NDArray[np.uint32]  # what the page, a sitemap, says of the target; else 0
    from_domain: npt.NDArray[np.uint64]
    is_counted: npt.NDArray[np.bool_]  # its links were counted at an earlier visit
    visited_day: npt.NDArray[np.uint16]
    shares: Mapping[str, npt.NDArray[np.uint64]]  # per shared accumulator: what the page gives to each of its targets


def gifts(links: Links) -> dict[str, Array]:
    """Per accumulator, by name: what each link brings to its target."""
    counts = ~links.is_counted[links.page]
    given: dict[str, Array] = {
        COUNTED: counts,
        MENTIONED: counts & (links.from_domain[links.page] != links.to_domain),
        LINKED: links.visited_day[links.page],
        MODIFIED: links.lastmod_s,
    }
    return {
        one.name: links.shares[one.name][links.page] if one.manner == SHARED else given[one.manner]
        for one in ACCUMULATORS
    }


def share_out(amounts: Array, targets: Array) -> npt.NDArray[np.uint64]:
    """What each page gives to each of its targets, where it divides an amount equally; the remainder stays."""
    shares: npt.NDArray[np.uint64] = amounts.astype(np.uint64) // np.maximum(targets, 1).astype(np.uint64)
    return shares
