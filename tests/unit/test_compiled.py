"""A compiled function works wherever its module lies, and whatever became of what was kept of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MODULE = """
import numpy as np
from numba import types
from storage.compiled import I8, compiled

@compiled(types.int64(I8))
def add(numbers):
    total = 0
    for number in numbers:
        total += number
    return total

print(add(np.arange(5)), sum(add.stats.cache_hits.values()))
"""


def run_module(folder: Path) -> list[str]:
    run = subprocess.run([sys.executable, folder / "adding.py"], env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder)}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "adding.py").write_text(MODULE)
    return tmp_path


def test_what_was_compiled_is_kept(folder):
    assert run_module(folder) == ["10", "0"] and run_module(folder) == ["10", "1"]


@pytest.mark.parametrize("size", [0, 10, 1_000])
def test_what_is_not_whole_is_not_used(folder, size):
    run_module(folder)
    kept = [path for path in (folder / "__pycache__").iterdir() if path.suffix in (".nbi", ".nbc")]
    assert len(kept) == 2
    for path in kept:
        path.write_bytes(path.read_bytes()[:size])
    assert run_module(folder)[0] == "10"


def test_nothing_is_kept_where_nothing_can_be_written(folder):
    (folder / "__pycache__").write_text("no folder")
    (folder / ".cache").write_text("no folder either")
    assert run_module(folder)[0] == "10" and run_module(folder) == ["10", "0"]
