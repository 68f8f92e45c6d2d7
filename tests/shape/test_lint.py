"""Format and rules by ruff, types by mypy, both as pyproject.toml configures them: what bin/lint runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--no-cache", "--output-format", "concise", "."),
        ("ruff", "format", "--no-cache", "--check", "."),
        ("mypy",),
    ],
    ids=" ".join,
)
def test_nothing_is_found(command, tmp_path):
    module, *arguments = command
    cache = ("--cache-dir", tmp_path) if module == "mypy" else ()
    found = subprocess.run(
        [sys.executable, "-P", "-m", module, *arguments, *cache], cwd=ROOT, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout + found.stderr
