"""A compiled function works wherever its module lies, and whatever became of what was kept of it.

Numba is needed once.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from storage.compiled import compiled

ROOT = Path(__file__).resolve().parent.parent.parent
MODULE = """
import sys
import numpy as np
from storage.compiled import compiled

MORE = 0

@compiled()
def larger(number, most):
    return number if number < most else most

@compiled("i8[] i8")
def add(numbers, most):
    total = MORE
    for number in numbers:
        total += larger(number, most)
    return total

print(add(np.arange(5), 3), "numba" in sys.modules)
"""


@compiled("T[] T[,] i8", of=("u1", "f8"))
def add_rows(sums, rows, times):
    for row in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            sums[row] += rows[row, place] * times
    return rows.size


def run_module(folder: Path, **more: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"} | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        **more,
    }
    run = subprocess.run([sys.executable, folder / "adding.py"], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "adding.py").write_text(MODULE)
    return tmp_path


def test_what_was_compiled_is_kept_and_needs_no_numba(folder):
    assert run_module(folder) == ["9", "True"] and run_module(folder) == ["9", "False"]


def test_what_was_compiled_of_another_text_does_not_count(folder):
    run_module(folder)
    (folder / "adding.py").write_text(MODULE.replace("MORE = 0", "MORE = 1"))
    assert run_module(folder) == ["10", "True"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: kept[:0],
        lambda kept: kept[:10],
        lambda kept: kept[:1_000],
        lambda kept: kept[:-1],
        lambda kept: kept[:500] + bytes([kept[500] ^ 1]) + kept[501:],
    ],
    ids=["empty", "head", "part", "end", "bit"],
)
@pytest.mark.sampled(2)
def test_what_is_not_whole_is_not_used(folder, damage):
    run_module(folder)
    (kept,) = (folder / "__pycache__").glob("*.o")
    kept.write_bytes(damage(kept.read_bytes()))
    assert run_module(folder) == ["9", "True"] and run_module(folder) == ["9", "False"]


def test_machine_code_of_another_function_is_not_used(folder):
    """Both are of one module, and have one signature."""
    (folder / "adding.py").write_text(
        MODULE + MODULE[MODULE.index('@compiled("i8') :].replace("add", "take").replace("+=", "-=")
    )
    assert run_module(folder)[::2] == ["9", "-9"]
    kept = {path: path.read_bytes() for path in (folder / "__pycache__").glob("*.o")}
    for path, other in zip(kept, reversed(kept)):
        path.write_bytes(kept[other])
    assert len(kept) == 2 and run_module(folder)[::2] == ["9", "-9"]


def test_what_lies_in_the_way_is_passed_over(folder):
    run_module(folder)
    (kept,) = (folder / "__pycache__").glob("*.o")
    kept.unlink()
    os.mkfifo(kept)
    assert run_module(folder) == ["9", "True"] and run_module(folder) == ["9", "False"]
    kept.unlink()
    kept.mkdir()
    assert run_module(folder) == ["9", "True"] and run_module(folder) == ["9", "False"]
    assert list((folder / "__pycache__").iterdir()) == [kept]


def test_where_the_module_lies_nothing_can_be_written(folder):
    (folder / "__pycache__").write_text("no folder")
    assert run_module(folder) == ["9", "True"] and run_module(folder) == ["9", "False"]
    assert len(list((folder / ".cache" / "coletor").iterdir())) == 1


@pytest.mark.long
def test_nothing_is_kept_where_nothing_can_be_written(folder):
    (folder / "__pycache__").write_text("no folder")
    (folder / ".cache").write_text("no folder either")
    assert run_module(folder) == ["9", "True"] and run_module(folder) == ["9", "True"]


@pytest.mark.long
def test_what_the_environment_wishes_of_numba_and_of_caches_is_survived(folder):
    assert run_module(folder, NUMBA_DISABLE_JIT="1") == ["9", "True"]
    (folder / "__pycache__").rename(folder / "gone")
    (folder / "__pycache__").write_text("no folder")
    assert run_module(folder, XDG_CACHE_HOME="relative", HOME="") == ["9", "True"]
    assert (
        run_module(folder, XDG_CACHE_HOME=str(folder / "cache")) == ["9", "True"]
        and len(list((folder / "cache" / "coletor").iterdir())) == 1
    )


def test_all_of_them_are_compiled_where_the_environment_is_made():
    run = subprocess.run(
        [sys.executable, "-P", ROOT / "environment" / "compile.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    kept = {
        path.name.partition("-")[0]
        for folder in ("storage", "stages")
        for path in (ROOT / folder).rglob("__pycache__/*.o")
    }
    assert kept >= {
        "storage.pairs.search_runs",
        "storage.weave.find_sources",
        "stages.verifier.merge.number_servers",
        "stages.extractor.documents.tag_scan.scan",
    }


@pytest.mark.long
def test_some_that_begin_together_all_work(folder):
    with ThreadPoolExecutor(4) as pool:
        assert {total for total, _ in pool.map(run_module, [folder] * 4)} == {"9"}


def test_arrays_of_each_type_and_of_two_dimensions():
    for dtype in (np.uint8, np.float64):
        sums, rows = np.zeros(2, dtype), np.arange(6).astype(dtype).reshape(2, 3)
        assert add_rows(sums, rows, 2) == 6 and sums.tolist() == [6, 24]
        by_python = np.zeros(2, dtype)
        assert add_rows.function(by_python, rows, 2) == 6 and by_python.tolist() == sums.tolist()


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(2, np.int32), np.zeros((2, 3), np.uint8), 1),
        (np.zeros(2, np.uint8), np.zeros((2, 3)), 1),
        (np.zeros(2), np.zeros(6), 1),
        (np.zeros(4)[::2], np.zeros((2, 3)), 1),
        (np.zeros(2), np.zeros((3, 2)).T, 1),
        (np.zeros(2), np.zeros((2, 3)), 1.5),
    ],
)
def test_other_arguments_than_the_signature_tells_are_refused(arguments):
    with pytest.raises(TypeError, match="expected|integer"):
        add_rows(*arguments)


def test_arguments_are_as_many_as_the_signature_tells():
    with pytest.raises(ValueError, match="argument"):
        add_rows(np.zeros(2), np.zeros((2, 3)))
