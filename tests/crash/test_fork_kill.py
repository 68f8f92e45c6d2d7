"""bin/fork killed at every file operation: its target is whole or not there, and the next attempt makes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contract.log import CRAWL
from tests.sampling import sampling
from tests.small_crawl import Page, SmallCrawl

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def crawl(tmp_path) -> Path:
    small = SmallCrawl(tmp_path / "crawl", 1)
    small.seed(["http://a.test/", "http://b.test/"])
    small.absorb_all()
    plan = small.plan(CRAWL, 0)
    small.harvest(plan, {url: Page(links=[f"{url}1", f"{url}2"]) for url in small.schedule(plan)})
    small.verify(plan)
    return small.crawl.path


def test_killed_at_every_operation(crawl, tmp_path):
    (tmp_path / "scratch").mkdir()
    first, stride = map(str, sampling.stride(13))
    sweep = subprocess.run(
        [sys.executable, "-P", "-m", "tests.crash.fork_sweep", crawl, tmp_path / "scratch", first, stride],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert sweep.returncode == 0, sweep.stderr
    assert int(sweep.stdout) > 60, "operations were not counted: the test tests nothing"


@pytest.mark.parametrize(
    "call, number", [("link,linkat", 1), ("link,linkat", 20), ("rename,renameat,renameat2", 1), ("fsync", 4)]
)
@pytest.mark.sampled(1)
def test_a_kill_by_the_system_leaves_the_place_free(crawl, tmp_path, needs, call, number):
    command = [sys.executable, "-P", "-m", "supervise.fork", "--crawl", crawl, tmp_path / "new"]
    killed = subprocess.run(
        [
            needs("strace"),
            "-f",
            "-o",
            "/dev/null",
            "-e",
            f"trace={call}",
            "-e",
            f"inject={call}:signal=SIGKILL:when={number}",
            *command,
        ],
        cwd=ROOT,
    )
    assert killed.returncode != 0
    assert call.startswith("rename") or not (tmp_path / "new").exists()
    if not (tmp_path / "new").exists():
        assert list(tmp_path.glob(".aside-fork-*"))
        assert subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode == 0
    checked = subprocess.run(
        [sys.executable, "-P", "-m", "supervise.fork", "--crawl", tmp_path / "new", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0 and "commit        2" in checked.stdout


@pytest.mark.parametrize("call, error", [("link,linkat", "ENOSPC"), ("fsync", "EIO"), ("mkdir,mkdirat", "EDQUOT")])
@pytest.mark.sampled(1)
def test_a_failing_disk_leaves_nothing(crawl, tmp_path, needs, call, error):
    command = [sys.executable, "-P", "-m", "supervise.fork", "--crawl", crawl, tmp_path / "new"]
    faulty = subprocess.run(
        [
            needs("strace"),
            "-f",
            "-o",
            "/dev/null",
            "-e",
            f"trace={call}",
            "-e",
            f"inject={call}:error={error}:when=3+",
            *command,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert faulty.returncode == 75 and "Traceback" not in faulty.stderr, faulty.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl"]


def test_what_cannot_be_linked_is_copied(crawl, tmp_path, needs):
    command = [sys.executable, "-P", "-m", "supervise.fork", "--crawl", crawl, tmp_path / "new"]
    calls = "link,linkat"
    made = subprocess.run(
        [
            needs("strace"),
            "-f",
            "-o",
            "/dev/null",
            "-e",
            f"trace={calls}",
            "-e",
            f"inject={calls}:error=EMLINK:when=5..9",
            *command,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0 and " 5 copied" in made.stdout, made.stderr
