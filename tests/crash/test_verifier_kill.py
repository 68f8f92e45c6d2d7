"""The verifier killed at file operations and writes, or refused them by a full disk: a rerun gives the same bytes."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from contract import names
from storage.publish import read_manifest
from tests.crash.kill_sweep import is_same
from tests.crash.verifier_cases import CASES
from tests.sampling import sampling

ROOT = Path(__file__).resolve().parent.parent.parent


MEMORY = Path("/dev/shm")  # a kill leaves there what it leaves on a disk, and hundreds of copies are quickly made


@pytest.fixture
def scratch(tmp_path):
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Gives, for the name of a case, its crawl folder and the cycle that waits for the verifier; each is made once."""
    made = {}

    def make(name: str) -> tuple[Path, int]:
        if name not in made:
            folder = tmp_path_factory.mktemp(name) / "crawl"
            made[name] = folder, CASES[name](folder)
        return made[name]

    return make


@pytest.fixture(scope="module")
def harvested(cases) -> tuple[Path, int]:
    return cases("crawl")


def verifier(crawl: Path, cycle: int, *strace) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*strace, sys.executable, "-P", "-m", "stages.verifier", "--crawl", crawl, "--cycle", str(cycle)],
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def whole(harvested, tmp_path_factory) -> Path:
    crawl = tmp_path_factory.mktemp("whole") / "crawl"
    shutil.copytree(harvested[0], crawl)
    run = verifier(crawl, harvested[1])
    assert run.returncode == 0, run.stderr
    return crawl


def sweep(case: str, harvested: tuple[Path, int], scratch: Path, where: str, first: int, stride: int) -> int:
    """The first position that the verifier does not reach; those before it were met. See kill_sweep."""
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "tests.crash.kill_sweep",
            case,
            harvested[0],
            str(harvested[1]),
            scratch,
            where,
            str(first),
            str(stride),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(2)
def test_killed_at_operations(cases, scratch, case):
    """In the long run at every operation."""
    assert sweep(case, cases(case), scratch, "operations", *sampling.stride(29)) > 30, (
        "operations were not counted: the test tests nothing"
    )
    written = read_manifest(scratch / "whole" / names.cycle(cases(case)[1]) / names.VERIFIER)["counts"]
    if case == "pieces":
        assert written["pieces"] > 3
    if case == "folding":
        generation = read_manifest(scratch / "whole" / names.generation(0, cases(case)[1]))
        assert len(generation["texts"]) < 16, "nothing was folded"


@pytest.mark.parametrize("case, stride", [("crawl", 29), ("pieces", 67), ("absorb", 67), ("grow", 97), ("folding", 67)])
@pytest.mark.parametrize("where", ["writes", "full"])
@pytest.mark.sampled(2)
def test_killed_or_refused_at_writes(cases, scratch, needs, where, case, stride):
    needs("strace")
    assert sweep(case, cases(case), scratch, where, *sampling.stride(3 * stride, stride)) > 30, (
        "writes were not met: the test tests nothing"
    )


@pytest.mark.parametrize(
    "call, error, number",
    [("fsync", "EIO", 1), ("fsync", "EIO", 9), ("link,linkat", "ENOSPC", 1), ("link,linkat", "ENOSPC", 3)],
)
@pytest.mark.sampled(1)
def test_a_failing_disk_loses_nothing(harvested, whole, tmp_path, needs, call, error, number):
    """Exit code 75, a message, nothing published by halves; once the disk is mended, the same bytes."""
    crawl = tmp_path / "crawl"
    shutil.copytree(harvested[0], crawl)
    faulty = verifier(
        crawl,
        harvested[1],
        needs("strace"),
        "-f",
        "-o",
        "/dev/null",
        "-e",
        f"trace={call}",
        "-e",
        f"inject={call}:error={error}:when={number}+",
    )
    assert faulty.returncode == 75 and "Traceback" not in faulty.stderr and "run it again" in faulty.stderr, (
        faulty.stderr
    )
    again = verifier(crawl, harvested[1])
    assert again.returncode == 0, again.stderr
    assert is_same(crawl, whole)


@pytest.mark.parametrize("room_kb", [0, 12, 28, 44, 60])
@pytest.mark.sampled(1)
def test_a_full_disk_loses_nothing(harvested, whole, tmp_path, small_disk, room_kb):
    """A real disk with little room: a message and exit code 75; with room again, the same bytes."""
    used_kb = sum(-(-path.stat().st_size // 4096) * 4 for path in harvested[0].rglob("*") if path.is_file()) + 8
    resize = small_disk(tmp_path / "disk", used_kb + room_kb)
    crawl = tmp_path / "disk" / "crawl"
    shutil.copytree(harvested[0], crawl)
    full = verifier(crawl, harvested[1])
    assert full.returncode == 75 and "No space left on device" in full.stderr and "Traceback" not in full.stderr, (
        full.stderr
    )
    resize(used_kb + 4096)
    again = verifier(crawl, harvested[1])
    assert again.returncode == 0, again.stderr
    assert is_same(crawl, whole)
