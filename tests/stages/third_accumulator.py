"""Turns a crawl with one accumulator more, in this process, and prints what became of it as JSON.

  python -m tests.stages.third_accumulator FOLDER MANNER

A process of its own, because tables get their columns when contract.tables is first imported.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from contract import accumulators
from contract.accumulators import COUNTED, Accumulator

NAME, OF_SEED = "third", 1_000_003
SEEDS = [f"http://s{number}.test/" for number in range(12)]


def register(manner: str) -> None:
    """What a line more of contract/accumulators.py would do."""
    of_seed = 0 if manner == COUNTED else OF_SEED
    accumulators.ACCUMULATORS += (Accumulator(NAME, "u4", manner, of_seed),)
    if manner == COUNTED:
        accumulators.COUNTED_NAMES += (NAME,)
    else:
        accumulators.SHARED_NAMES += (NAME,)
        accumulators.HANDED_ON += accumulators.ACCUMULATORS[-1:]


def turn(folder: Path, manner: str) -> dict:
    """Two rounds of scheduler, extractor and verifier over two blocks; the fetcher's pages are made here."""
    from contract import names
    from contract.config import Config
    from contract.log import CRAWL, replay
    from contract.plan import Plan
    from contract.policies import POLICIES
    from contract.policies.policy import Policy, largest_first
    from contract.tables import AUX, COLLECTED, EXTRACTED, REFUSED_ROWS
    from examine.check import check_all
    from examine.findings import Findings
    from stages.extractor.__main__ import extract_cycle
    from storage.publish import publishing
    from storage.tables import read_table
    from tests.extractor_lab import page_file
    from tests.small_crawl import SmallCrawl

    config = Config()
    config = replace(config, scope=replace(config.scope, accept_suffixes=("test",)))
    if manner == COUNTED:  # some URLs are refused, and their sums must not be lost
        config = replace(config, verifier=replace(config.verifier, server_max_urls=3))
    else:
        hands_on = {NAME: lambda of: of.rows[NAME]}
        POLICIES[NAME] = Policy(lambda of: largest_first(of.rows[NAME]), columns=(NAME,), hands_on=hands_on)
        config = replace(config, scheduler=replace(config.scheduler, policy=NAME))
    small = SmallCrawl(folder, 2, config)
    path = small.crawl.path

    def fetch(plan: Plan, listed: list[str]) -> None:
        pages = path / names.cycle(plan.cycle) / names.FETCHER
        with publishing(pages) as manifest:
            (pages / names.PAGES).mkdir()
            links = "".join(f"<a href={seed}{number}>" for seed in SEEDS for number in range(4))
            file = page_file({url: f"<a href={url}/a>{links}" for url in listed})
            (pages / names.PAGES / "00000.warc.zst").write_bytes(file.data())
            manifest["counts"] = {"listed": len(listed)}

    small.seed(SEEDS)
    small.absorb_all()
    cycles = []
    for block in (0, 1, 0):
        plan = small.plan(CRAWL, block)
        fetch(plan, small.schedule(plan))
        extract_cycle(small.crawl, plan, None)
        small.verify(plan)
        cycles.append(path / names.cycle(plan.cycle))
    findings = Findings()
    check_all(small.crawl, replay(path, 2), findings)

    def rows(stage: str, name: str, schema) -> list[list[dict]]:
        return [read_table(cycle / stage / name, schema).to_pylist() for cycle in cycles]

    return {
        "extracted": rows(names.EXTRACTOR, names.EXTRACTED, EXTRACTED),
        "collected": [
            [row[f"{NAME}_taken"] for row in table if f"{NAME}_taken" in row]
            for table in rows(names.EXTRACTOR, names.COLLECTED, COLLECTED)
        ],
        "aux": rows(names.VERIFIER, names.AUX, AUX),
        "refused": rows(names.VERIFIER, names.REFUSED_URLS, REFUSED_ROWS),
        "known": small.rows(),
        "figures": [small.crawl_state.figures(block)[f"{NAME}_sum"] for block in range(2)],
        "checked": findings.checked,
        "wrong": findings.wrong,
    }


if __name__ == "__main__":
    register(sys.argv[2])
    print(json.dumps(turn(Path(sys.argv[1]), sys.argv[2])))
