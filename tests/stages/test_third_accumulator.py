"""An accumulator is a line of contract/accumulators.py: with one more, every stage and bin/check's sums carry it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from contract.accumulators import COUNTED, SHARED
from tests.stages.third_accumulator import NAME, OF_SEED, SEEDS

ROOT = Path(__file__).resolve().parents[2]


def turn(folder: Path, manner: str) -> dict:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "tests.stages.third_accumulator", folder, manner],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    crawl = json.loads(ran.stdout.splitlines()[-1])
    assert crawl["wrong"] == {}, "bin/check"
    assert crawl["figures"] == [sum(row[NAME] for row in known_of(crawl, block)) for block in (0, 1)]
    return crawl


def known_of(crawl: dict, block: int) -> list[dict]:
    return [row for row in crawl["known"].values() if row["block"] == block]


def total(rows: list[dict]) -> int:
    return sum(row[NAME] for row in rows)


def waiting(crawl: dict) -> list[dict]:
    """Rows of AUX that no turn has absorbed: those of the last cycle. It was of block 0, and absorbed all before it."""
    return crawl["aux"][2]


@pytest.mark.long
def test_one_that_counts_pages(tmp_path):
    crawl = turn(tmp_path / "crawl", COUNTED)
    for table in (*crawl["extracted"], *crawl["aux"], *crawl["refused"], list(crawl["known"].values())):
        assert [row[NAME] for row in table] == [row["links_in"] for row in table], "a page gives one of each"
    assert all(map(total, crawl["extracted"])) and total(waiting(crawl)) and any(map(total, crawl["refused"]))
    brought = sum(map(total, crawl["extracted"]))
    there = total(crawl["known"].values()) + total(waiting(crawl)) + sum(map(total, crawl["refused"]))
    assert there == brought > 0
    assert crawl["checked"][f"{NAME} of R, AUX, refused and forgotten = {NAME} of all cycles"]
    assert crawl["checked"][f"followed - followed again = sum of {NAME} over UrlsExtraidas"] == 3


def test_one_that_pages_share(tmp_path):
    crawl = turn(tmp_path / "crawl", SHARED)
    assert not any(map(len, crawl["refused"]))
    for given, extracted in zip(crawl["collected"], crawl["extracted"]):
        assert sum(given) == total(extracted) > 0, "what pages give is what their targets receive"
    assert total(crawl["known"].values()) + total(waiting(crawl)) == len(SEEDS) * OF_SEED, "none is lost or made"
