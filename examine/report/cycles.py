"""The cycles of a crawl as rows, from the log and the manifests: what each fetched, and what was known after it.

Rows leave link sources out, but those that were not reached: no table says which these are.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from contract import names
from contract.log import KINDS, Entry, History
from contract.tables import ANSWERED, FAILED, REFUSED
from contract.totals import count_link_sources, without_link_sources
from examine.link_sources import leave_out
from examine.report.damage import LeftOut
from storage.publish import read_json, read_manifest

IN_BLOCK = ("known", "collected", "waiting")  # figures of a block after a merge
FETCHED = ("listed", "answered", "failed", "refused", "not_reached")


@dataclass
class Cycles:
    rows: list[dict] = field(default_factory=list)  # of cycles that merged, in the order of the log
    stored_bytes: int = 0  # bodies as received
    decoded_bytes: int = 0  # without their content encoding
    disk_bytes: int = 0  # of the page files
    # Of the policy new-domains: domains that were followed deeper, or closed; pages by their links to their own domain.
    domains_deeper: int = 0
    domains_closed: int = 0
    own_domain_links: Counter[str] = field(default_factory=Counter)

    def add_new_domains(self, counts: dict) -> None:
        self.domains_deeper += counts.get("domains_deeper", 0)
        self.domains_closed += counts.get("domains_closed", 0)
        self.own_domain_links.update(counts.get("own_domain_links", {}))

    def add_fetched(self, crawl: Path, cycle: int) -> dict:
        folder = crawl / names.cycle(cycle)
        fetched, extracted = read_manifest(folder / names.FETCHER), read_manifest(folder / names.EXTRACTOR)
        self.stored_bytes += fetched["counts"]["bytes"]
        self.decoded_bytes += extracted["counts"]["bytes_decoded"]
        self.disk_bytes += sum(about["bytes"] for about in fetched["files"].values())
        counts = {name: fetched["counts"][name] for name in FETCHED}
        theirs = count_link_sources(extracted["counts"])
        theirs["listed"] = sum(theirs.get(outcome, 0) for outcome in (ANSWERED, FAILED, REFUSED))
        return without_link_sources(counts, theirs)


class Blocks:
    """What is known in each block, and in all."""

    def __init__(self):
        self._figures: dict[int, dict[str, float]] = {}

    def merge(self, block: int, counts: dict) -> None:
        counted = leave_out(counts)
        self._figures[block] = {name: counted[name] for name in IN_BLOCK}

    def split(self, block: int, upper: int, counts: dict) -> None:
        """The cycle knows how many URLs each half has; the rest is shared likewise until each half's next merge."""
        before = self._figures.get(block, dict.fromkeys(IN_BLOCK, 0))
        share = counts[f"known_{upper}"] / max(1, counts["known_before"])
        self._figures[upper] = {name: before[name] * share for name in IN_BLOCK}
        self._figures[block] = {name: before[name] * (1 - share) for name in IN_BLOCK}

    def total(self) -> dict[str, int]:
        return {name: round(sum(figures[name] for figures in self._figures.values())) for name in IN_BLOCK}


def read_cycles(crawl: Path, log: History, left_out: LeftOut) -> Cycles:
    cycles, blocks = Cycles(), Blocks()
    for position, entry in enumerate(log.entries):
        if entry is None or not (KINDS[entry.kind].merges or KINDS[entry.kind].forgets or KINDS[entry.kind].splits):
            continue
        with left_out.reading(crawl / names.cycle(entry.cycle)):
            cycles.rows.append({"commit": position} | read_cycle(crawl, entry, cycles, blocks))
    return cycles


def read_cycle(crawl: Path, entry: Entry, cycles: Cycles, blocks: Blocks) -> dict:
    folder, block = crawl / names.cycle(entry.cycle), min(entry.generations)
    counts = read_manifest(folder / names.VERIFIER)["counts"]
    if KINDS[entry.kind].splits:
        blocks.split(block, entry.blocks - 1, counts)
    else:
        blocks.merge(block, counts)
        cycles.add_new_domains(counts)
    fetched = cycles.add_fetched(crawl, entry.cycle) if entry.fetches else dict.fromkeys(FETCHED, 0)
    about = {"cycle": entry.cycle, "kind": entry.kind, "block": block}
    return about | {"at_ms": read_json(folder / names.PLAN)["now_ms"]} | fetched | blocks.total()
