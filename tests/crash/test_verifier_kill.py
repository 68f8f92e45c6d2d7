"""The verifier killed at every file operation that matters, or refused it by a full disk: a rerun gives the same bytes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contract.log import CRAWL
from tests.crash.kill_sweep import is_same
from tests.small_crawl import Page, SmallCrawl

SEEDS = [f"http://s{number}.test/" for number in range(12)]
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def harvested(tmp_path_factory) -> tuple[Path, int]:
    """A crawl whose next cycle has its harvest and waits for the verifier."""
    folder = tmp_path_factory.mktemp("harvested") / "crawl"
    crawl = SmallCrawl(folder, 2)
    crawl.seed(SEEDS)
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    listed = crawl.schedule(plan)
    crawl.harvest(plan, {url: Page(links=[f"{url}{number}" for number in range(5)] + SEEDS) for url in listed})
    return folder, plan.cycle


def verifier(crawl: Path, cycle: int, *strace) -> subprocess.CompletedProcess:
    return subprocess.run([*strace, sys.executable, "-P", "-m", "stages.verifier", "--crawl", crawl, "--cycle", str(cycle)],
                          capture_output=True, text=True)


@pytest.fixture(scope="module")
def whole(harvested, tmp_path_factory) -> Path:
    crawl = tmp_path_factory.mktemp("whole") / "crawl"
    shutil.copytree(harvested[0], crawl)
    run = verifier(crawl, harvested[1])
    assert run.returncode == 0, run.stderr
    return crawl


def test_killed_at_every_operation(harvested, whole, tmp_path):
    sweep = subprocess.run([sys.executable, "-P", "-m", "tests.crash.kill_sweep", harvested[0], str(harvested[1]), whole, tmp_path],
                           cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert sweep.returncode == 0, sweep.stderr
    assert int(sweep.stdout) > 30, "operations were not counted: the test tests nothing"


@pytest.mark.parametrize("call, error, number", [
    ("fsync", "EIO", 1), ("fsync", "EIO", 9), ("link,linkat", "ENOSPC", 1), ("link,linkat", "ENOSPC", 3),
])
def test_a_failing_disk_loses_nothing(harvested, whole, tmp_path, needs, call, error, number):
    """Exit code 75, a message, nothing published by halves; once the disk is mended, the same bytes."""
    crawl = tmp_path / "crawl"
    shutil.copytree(harvested[0], crawl)
    faulty = verifier(crawl, harvested[1], needs("strace"), "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}+")
    assert faulty.returncode == 75 and "Traceback" not in faulty.stderr and "run it again" in faulty.stderr, faulty.stderr
    again = verifier(crawl, harvested[1])
    assert again.returncode == 0, again.stderr
    assert is_same(crawl, whole)


@pytest.mark.parametrize("room_kb", [0, 8, 24, 48])
def test_a_full_disk_loses_nothing(harvested, whole, tmp_path, small_disk, room_kb):
    """A real disk with little room: a message and exit code 75; with room again, the same bytes."""
    used_kb = sum(-(-path.stat().st_size // 4096) * 4 for path in harvested[0].rglob("*") if path.is_file()) + 8
    resize = small_disk(tmp_path / "disk", used_kb + room_kb)
    crawl = tmp_path / "disk" / "crawl"
    shutil.copytree(harvested[0], crawl)
    full = verifier(crawl, harvested[1])
    assert full.returncode == 75 and "No space left on device" in full.stderr and "Traceback" not in full.stderr, full.stderr
    resize(used_kb + 4096)
    again = verifier(crawl, harvested[1])
    assert again.returncode == 0, again.stderr
    assert is_same(crawl, whole)
