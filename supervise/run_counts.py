"""What this run has done so far: sums over the manifests of the cycles that it committed."""

from dataclasses import dataclass, field

from contract import names
from contract.totals import count_link_sources


@dataclass
class RunCounts:
    cycles: int = 0  # that fetched
    answered: int = 0
    failed: int = 0
    refused: int = 0
    not_reached: int = 0
    bytes: int = 0
    new: int = 0
    revisited: int = 0  # pages that were known already and answered again
    changed: int = 0  # of those
    link_sources: dict[str, int] = field(default_factory=dict)  # the part of these that is of link sources

    def add(self, counts: dict) -> None:
        """`counts` is by stage, of one cycle."""
        merged = counts.get(names.VERIFIER, {})
        self.new += merged.get("new", 0)
        self.revisited += merged.get("revisited", 0)
        self.changed += merged.get("changed", 0)
        fetched = counts.get(names.FETCHER)
        if fetched:
            self.cycles += 1
            for name in ("answered", "failed", "refused", "not_reached", "bytes"):
                setattr(self, name, getattr(self, name) + fetched[name])
            for name, number in count_link_sources(counts.get(names.EXTRACTOR, {})).items():
                self.link_sources = {**self.link_sources, name: self.link_sources.get(name, 0) + number}
