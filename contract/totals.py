"""What all cycles of a crawl have fetched: sums over the manifests of past cycles, each read once.

The supervisor keeps the sums up to a position of the log in log_summary.json (`contract/log_summary.py`). A reader adds
the cycles past that position.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract import names
from storage.errors import Damaged, UnknownFormat
from storage.publish import read_manifest

if TYPE_CHECKING:
    from contract.log import State

# Counts of a fetcher's manifest that are added up. An extractor's manifest has those of link sources, if there are any.
FETCHED = ("answered", "failed", "refused", "bytes")
UNREADABLE = (FileNotFoundError, NotADirectoryError, Damaged, UnknownFormat, KeyError, TypeError, AttributeError)


@dataclass
class Totals:
    """Sums over the cycles that fetched and that were committed before a position of the log."""

    fetched: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FETCHED, 0))
    reasons: Counter[str] = field(default_factory=Counter)  # why listed URLs were not answered -> URLs
    uncounted: list[int] = field(default_factory=list)  # cycles whose manifest of pages could not be read
    link_sources: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FETCHED, 0))  # their part of `fetched`

    def copy(self) -> "Totals":
        return Totals(dict(self.fetched), Counter(self.reasons), list(self.uncounted), dict(self.link_sources))

    def add_cycle(self, crawl: Path, cycle: int) -> None:
        """Adds a committed cycle that fetched."""
        extracted = read_extracted(crawl, cycle)
        if not self._add_fetched(crawl, cycle, extracted):
            self.uncounted.append(cycle)
        self.reasons.update(read_reasons(extracted))

    def add_uncounted(self, crawl: Path) -> None:
        """Adds the cycles whose manifest of pages can be read now, after a repair."""
        self.uncounted = [
            cycle for cycle in self.uncounted if not self._add_fetched(crawl, cycle, read_extracted(crawl, cycle))
        ]

    def _add_fetched(self, crawl: Path, cycle: int, extracted: Mapping[str, Any]) -> bool:
        try:
            counts = read_manifest(crawl / names.cycle(cycle) / names.FETCHER)["counts"]
            self.fetched = {name: self.fetched[name] + int(counts[name]) for name in FETCHED}
        except UNREADABLE:
            return False
        found = count_link_sources(extracted)
        self.link_sources = {name: self.link_sources[name] + found.get(name, 0) for name in FETCHED}
        return True


def read_extracted(crawl: Path, cycle: int) -> dict[str, Any]:
    """The counts of a cycle's extractor; empty where its tables were not kept."""
    try:
        return dict(read_manifest(crawl / names.cycle(cycle) / names.EXTRACTOR)["counts"])
    except (*UNREADABLE, ValueError):
        return {}


def read_reasons(counts: Mapping[str, Any]) -> dict[str, int]:
    """Why listed URLs of a cycle were not answered: reason -> URLs, from the counts of its extractor."""
    try:
        return {str(reason): int(number) for reason, number in counts["reasons"].items()}
    except (*UNREADABLE, ValueError):
        return {}


def count_link_sources(counts: Mapping[str, Any]) -> dict[str, int]:
    """How much of what a cycle fetched is of link sources: FETCHED, from the counts of its extractor; empty where they
    have none.
    """
    try:
        return {name: int(counts["link_sources"][name]) for name in FETCHED}
    except (*UNREADABLE, ValueError):
        return {}


def without_link_sources(fetched: Mapping[str, int], of_link_sources: Mapping[str, int]) -> dict[str, int]:
    """What was fetched for the collection."""
    return {name: number - of_link_sources.get(name, 0) for name, number in fetched.items()}


def read_totals(crawl: Path, state: "State") -> Totals:
    """The sums over all cycles that the log has committed, as `bin/status` prints them. Only reads, changes nothing.

    `state` is what `contract.log_summary.read_log` returns (or `CrawlState.log`). It brings the sums that the
    supervisor cached, and the entries past them; only the manifests of those are read. Without a cache, all are.
    Counts per kind of entry are in `state.kinds`.
    """
    totals = state.summed.copy()
    totals.add_uncounted(crawl)
    for _, entry in state.recent:
        if entry.fetches:
            totals.add_cycle(crawl, entry.cycle)
    return totals
