"""Compiled loops: what is promised of them wherever their modules lie, and whatever became of what numba kept."""

import ast
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
def smaller(number, most):
    return number if number < most else most

@compiled("i8[] i8 -> i8[]", 8)
def add(numbers, most, sums):
    for row in range(len(numbers)):
        sums[0] += MORE + smaller(numbers[row], most)
    return len(numbers)

for rows in map(int, sys.argv[1:]):
    sums = np.zeros(rows, np.int64)
    add(np.arange(rows), 3, sums)
    print(sums[0], "numba" in sys.modules)
"""
NOT_OF_STAGES = ("bvgraph", "cut_files", "harmonic", "numbering", "products")  # bin/graph alone uses them
WHAT_STAGES_IMPORT = """
import sys
import stages.extractor.__main__, stages.scheduler.__main__, stages.verifier.__main__
assert "numba" not in sys.modules
from storage.compiled import is_loaded, load_all, loops
assert not is_loaded()
load_all()
assert is_loaded() and all(loop.machine for loop in loops)
assert "scipy" not in sys.modules  # numba would import it
print(*sorted(loop.function.__name__ for loop in loops))
"""


@compiled("i8[] u1[,] i8 -> i8[]")
def add_rows(begin, rows, times, sums):
    for row in range(rows.shape[0]):
        sums[row] = begin[row]
        for column in range(rows.shape[1]):
            sums[row] += rows[row, column] * times
    return rows.size


def run_module(folder: Path, *rows: int, **more: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))} | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        **more,
    }
    command = [sys.executable, folder / "adding.py", *map(str, rows or (10,))]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def kept_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.nb[ic]")}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "adding.py").write_text(MODULE)
    return tmp_path


def test_little_work_runs_without_numba_and_much_with_it(folder):
    """Calls are added up: the third one brings the process to more than eight rows."""
    assert run_module(folder, 4, 3, 5, 2) == ["6", "False", "3", "False", "9", "True", "1", "True"]


def test_what_was_compiled_is_kept_beside_the_module_until_its_text_changes(folder):
    run_module(folder)
    kept = kept_of(folder)
    assert {path.parent for path in kept} == {folder / "__pycache__"} and len(kept) == 2
    run_module(folder)
    assert kept_of(folder) == kept
    (folder / "adding.py").write_text(MODULE.replace("MORE = 0", "MORE = 1"))
    assert run_module(folder) == ["34", "True"] and kept_of(folder) != kept


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: b"",
        lambda kept: kept[:10],
        lambda kept: kept[:-100],
        lambda kept: bytes(len(kept)),
        lambda kept: b"x" * len(kept),
    ],
    ids=["empty", "head", "part", "zeros", "other"],
)
@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.sampled(1)
def test_what_is_damaged_is_compiled_anew_and_replaced(folder, damage, ending):
    run_module(folder)
    whole = kept_of(folder)
    (kept,) = (path for path in whole if path.suffix == ending)
    kept.write_bytes(damage(whole[kept]))
    damaged = kept_of(folder)
    assert damaged != whole and run_module(folder) == ["24", "True"]
    assert kept_of(folder)[kept] != damaged[kept]
    repaired = kept_of(folder)
    assert run_module(folder) == ["24", "True"] and kept_of(folder) == repaired


@pytest.mark.long
def test_what_lies_in_the_way_is_passed_over(folder):
    run_module(folder)
    (index,) = (path for path in kept_of(folder) if path.suffix == ".nbi")
    index.unlink()
    index.mkdir()
    assert run_module(folder) == ["24", "True"]


def test_where_the_module_lies_nothing_can_be_written(folder):
    (folder / "__pycache__").write_text("no folder")
    assert run_module(folder) == ["24", "True"]
    assert {path.parent.parent for path in kept_of(folder)} == {folder / ".cache" / "numba"}
    assert run_module(folder, NUMBA_CACHE_DIR=str(folder / "named")) == ["24", "True"]
    assert kept_of(folder / "named")


def test_nothing_is_kept_where_nothing_can_be_written(folder):
    (folder / "__pycache__").write_text("no folder")
    (folder / ".cache").write_text("no folder either")
    assert run_module(folder) == ["24", "True"] and not kept_of(folder)


@pytest.mark.long
def test_some_that_begin_together_all_work(folder):
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(run_module, [folder] * 3)) == [["24", "True"]] * 3
    assert len(kept_of(folder)) == 2 and not list(folder.rglob("*.tmp.*"))
    assert run_module(folder) == ["24", "True"]


def test_a_debugger_sees_python(folder):
    assert run_module(folder, NUMBA_DISABLE_JIT="1") == ["24", "True"] and not kept_of(folder)


def test_importing_stages_imports_no_numba_and_all_loops_load_before_a_fork():
    run = subprocess.run(
        [sys.executable, "-c", WHAT_STAGES_IMPORT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    marked = {
        node.name
        for path in loop_files()
        if path.stem not in NOT_OF_STAGES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(mark, ast.Call) and mark.args for mark in node.decorator_list if is_compiled(mark))
    }
    assert set(run.stdout.split()) == marked and len(marked) == 13


def test_a_fork_neither_compiles_nor_reads_what_was_kept(folder):
    (folder / "adding.py").write_text(
        MODULE[: MODULE.index("for rows in map")]
        + """
import os, shutil
from storage.compiled import load_all
load_all()
shutil.rmtree("__pycache__")
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sums = np.zeros(10, np.int64)
add(np.arange(10), 3, sums)
assert sums[0] == 24 and not os.path.exists("__pycache__")
"""
    )
    run = subprocess.run(
        [sys.executable, "adding.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_all_of_them_are_compiled_where_the_environment_is_made():
    run = subprocess.run(
        [sys.executable, "-P", ROOT / "environment" / "compile.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    folders = ("contract", "stages", "storage")
    kept = {path.name.partition("-")[0] for name in folders for path in (ROOT / name).glob("**/__pycache__/*.nbc")}
    assert kept >= {"pairs.search_runs", "text_segments.copy_lines", "url_paths.locate", "tag_scan.scan"}


def is_compiled(mark: ast.expr) -> bool:
    return isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "compiled"


def loop_files() -> list[Path]:
    return [
        path
        for package in ("storage", "contract", "graph", "stages")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "@compiled(" in path.read_text()
    ]


@pytest.mark.parametrize("path", loop_files(), ids=lambda path: path.stem)
def test_a_loop_reads_only_what_its_own_file_says(path):
    """numba keeps machine code until that file changes, so what comes from another file could be an old version."""
    tree = ast.parse(path.read_text())
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    } - {"np"}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(is_compiled, node.decorator_list)):
            read = {name.id for statement in node.body for name in ast.walk(statement) if isinstance(name, ast.Name)}
            assert not read & imported, node.name


def test_machine_code_does_what_python_does():
    rows, begin = np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([1, -1])
    by_machine_code, by_python = np.zeros(2, np.int64), np.zeros(2, np.int64)
    rows.flags.writeable = False  # as columns of files are
    assert add_rows(begin, rows, 2, by_machine_code) == add_rows.function(begin, rows, 2, by_python) == 6
    assert by_machine_code.tolist() == by_python.tolist() == [7, 23]


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(2), np.zeros((2, 3), np.uint8), 1, np.zeros(2, np.int64)),
        (np.zeros(2, np.int64), np.zeros(6, np.uint8), 1, np.zeros(2, np.int64)),
        (np.zeros(4, np.int64)[::2], np.zeros((2, 3), np.uint8), 1, np.zeros(2, np.int64)),
        (np.zeros(2, np.int64), np.zeros((3, 2), np.uint8).T, 1, np.zeros(2, np.int64)),
        (np.zeros(2, np.int64), np.zeros((2, 3), np.uint8), 1, np.frombuffer(bytes(16), np.int64)),
        (np.zeros(2, np.int64), np.zeros((2, 3), np.uint8), np.zeros(1, np.int64)),
    ],
    ids=["type", "dimensions", "steps", "order", "read-only", "number"],
)
def test_other_arguments_than_the_signature_tells_are_refused(arguments):
    with pytest.raises(TypeError):
        add_rows(*arguments)
