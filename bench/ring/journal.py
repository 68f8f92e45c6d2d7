"""What a run did and when, as its journal has it: one attempt of a stage per line."""

import json
from pathlib import Path
from typing import NamedTuple

from contract import names
from storage.publish import is_published, read_manifest


class Attempt(NamedTuple):
    """One attempt of a stage. Times are milliseconds since 1970."""

    cycle: int
    block: int
    stage: str
    begin_ms: int
    end_ms: int
    pages: int = 0


def read_journal(crawl: Path) -> list[Attempt]:
    """All attempts, by the time at which they began; empty where the crawl has no journal."""
    found = []
    for path in sorted((crawl / names.JOURNAL).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if row["event"] == "stage":
                found.append(
                    Attempt(row["cycle"], row["block"], row["stage"], row["begin_ms"], row["end_ms"], row["pages"] or 0)
                )
    return sorted(found, key=lambda attempt: attempt.begin_ms)


def read_waiting(crawl: Path) -> dict[int, int]:
    """Cycle -> how many URLs waited in its block when it was committed; cycles that take in seeds do not say."""
    folders = [path for path in (crawl / names.CYCLES).glob(f"*/{names.VERIFIER}") if is_published(path)]
    counts = {int(folder.parent.name): read_manifest(folder)["counts"] for folder in folders}
    return {cycle: found["waiting"] for cycle, found in counts.items() if "waiting" in found}
