"""What a run has done so far, added up from the manifests of the cycles that it committed."""

from dataclasses import dataclass, field

from contract import names


@dataclass
class Tally:
    cycles: int = 0
    answered: int = 0
    failed: int = 0
    refused: int = 0
    not_reached: int = 0
    bytes: int = 0
    new: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, report: dict) -> None:
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        self.new += report.get(names.VERIFIER, {}).get("new", 0)
        fetched = report.get(names.FETCHER)
        if fetched:
            self.cycles += 1
            for name in ("answered", "failed", "refused", "not_reached", "bytes"):
                setattr(self, name, getattr(self, name) + fetched[name])
