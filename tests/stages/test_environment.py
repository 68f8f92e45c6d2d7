"""The stubs of bin/: found from anywhere, one install at a time, and one clear sentence where Python is not right."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.at_terminal import run_at_terminal

ROOT = Path(__file__).resolve().parent.parent.parent
BARE = {"PATH": "/usr/bin:/bin"}  # what cron gives


def make_executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path) -> Path:
    """A fresh clone: no .venv."""
    root = tmp_path / "clone"
    for name in ("bin", "environment"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "requirements.lock", root)
    return root


@pytest.fixture
def only(tmp_path):
    """A PATH with the shell's own tools and the given Python stand-ins."""
    folder = tmp_path / "path"
    folder.mkdir()
    for tool in ("sh", "dirname", "readlink", "cmp", "env", "echo"):
        (folder / tool).symlink_to(shutil.which(tool))

    def add(**pythons) -> dict:
        for name, text in pythons.items():
            make_executable(folder / name.replace("_", "."), text)
        return {"PATH": str(folder)}

    return add


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (ROOT / "bin").iterdir() if path.name not in ("test", "bench", "lint"))
)
@pytest.mark.sampled(2)
def test_every_command_prints_its_manual_with_an_example(name):
    shown = run([ROOT / "bin" / name, "--help"], env=BARE)
    assert shown.returncode == 0, shown.stderr
    assert "Example" in shown.stdout and "--crawl DIR" in shown.stdout
    wrong = run([ROOT / "bin" / name, "--no-such-option"], env=BARE)
    assert wrong.returncode == 64 and "Traceback" not in wrong.stderr


def test_from_any_directory_through_a_symlink_without_a_terminal(tmp_path):
    (tmp_path / "trio.py").write_text("raise SystemExit('the working folder was imported from')")
    (tmp_path / "link").symlink_to(ROOT / "bin" / "run-cycle")
    (tmp_path / "second").symlink_to(tmp_path / "link")
    shown = run([tmp_path / "second", "--help"], env=BARE, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert shown.returncode == 0, shown.stderr


def test_no_python_at_all(clone, only):
    told = run([clone / "bin" / "seed"], env=only())
    assert (
        told.returncode == 78
        and told.stderr == "coletor: Python 3.11 or 3.12 is needed and was not found on PATH (found: no Python).\n"
    )


def test_a_python_that_is_too_new(clone, only):
    told = run(
        [clone / "bin" / "seed"],
        env=only(python3='#!/bin/sh\n[ "$1" = --version ] && echo Python 3.14.1 && exit 0\nexit 1\n'),
    )
    assert told.returncode == 78 and "(found: Python 3.14.1)" in told.stderr and len(told.stderr.splitlines()) == 1


def test_a_python_without_venv(clone, only, tmp_path):
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "sitecustomize.py").write_text("import sys; sys.modules['ensurepip'] = None")
    told = run(
        [clone / "bin" / "seed"],
        env=only(python3_11=f'#!/bin/sh\nPYTHONPATH={tmp_path}/hide exec {sys.executable} "$@"\n'),
    )
    assert told.returncode == 78 and "apt install python3-venv" in told.stderr and len(told.stderr.splitlines()) == 1


FAKE_VENV_PYTHON = """#!/bin/sh
case "$*" in
  *"pip --version"*) exit 0 ;;
  *"pip install"*) echo "$*" >> {log}; printf 'Collecting one==1\\nProcessing /a/b/two.whl\\nInstalling collected \
packages: one, two\\n'; exit {code} ;;
  *) echo "ran $*" ;;
esac
"""


def fake_venv(clone: Path, log: Path, code: int = 0) -> None:
    make_executable(clone / ".venv" / "bin" / "python", FAKE_VENV_PYTHON.format(log=log, code=code))


def test_two_started_at_once_on_a_fresh_clone_install_once(clone, tmp_path):
    fake_venv(clone, tmp_path / "installs")
    both = [
        subprocess.Popen([clone / "bin" / name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for name in ("seed", "crawl")
    ]
    outputs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0] and all(
        re.fullmatch(r"ran -P \S+/environment/start.py supervise\.\w+\n", output) for output in outputs
    )
    assert len((tmp_path / "installs").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "words, begins, has",
    [
        (["sql", "--help"], "sql: answers questions", "Views and their columns:\n\n  (listed after a first use)"),
        (["graph", "-h"], "graph: ", "bin/graph build"),
        (["graph", "rank", "--help"], "graph rank: ranks the pages", "--preferred FILE"),
        (["train-qrank", "--help"], "train-qrank: ", "--ranks"),
        (["bench", "--help"], "bench: ", "bin/bench"),
    ],
)
def test_a_manual_is_printed_before_much_is_installed(clone, tmp_path, words, begins, has):
    fake_venv(clone, tmp_path / "installs")
    for name in ("examine", "graph", "study", "bench"):
        (clone / name).symlink_to(ROOT / name)
    shown = run([clone / "bin" / words[0], *words[1:]])
    assert shown.returncode == 0 and not shown.stderr and not (tmp_path / "installs").exists()
    assert shown.stdout.startswith(begins) and has in shown.stdout and "docs/commands.md" in shown.stdout


def test_control_c_while_a_command_is_importing_is_no_traceback(tmp_path):
    (tmp_path / "slow.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n")
    command = [sys.executable, ROOT / "environment" / "start.py", "slow"]
    ended = run(command, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (ended.returncode, ended.stderr) == (130, "")


def test_a_changed_lock_installs_again_and_tests_add_their_own(clone, tmp_path):
    log = tmp_path / "installs"
    fake_venv(clone, log)
    for _ in range(2):
        assert run([clone / "bin" / "seed"]).returncode == 0
    with open(clone / "requirements.lock", "a") as lock:
        lock.write("another==1\n")
    assert run([clone / "bin" / "seed"]).returncode == 0
    assert run([clone / "environment" / "enter", "test", "pytest"]).returncode == 0
    installs = log.read_text().splitlines()
    assert len(installs) == 3 and installs[2].endswith("[test]") and "requirements.lock" in installs[2]


@pytest.mark.parametrize("extra", ["core", "analysis", "study"])
def test_what_tests_need_holds_what_commands_need(clone, tmp_path, extra):
    """So the tests of a command need no second install; environment/enter relies on it."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras.get(extra, [])) <= set(extras["test"])
    fake_venv(clone, tmp_path / "installs")
    for name in ("test", extra):
        assert run([clone / "environment" / "enter", name, "some.module"]).returncode == 0
    assert len((tmp_path / "installs").read_text().splitlines()) == 1


def test_progress_moves_on_a_terminal_and_is_a_line_without_one(clone, tmp_path):
    fake_venv(clone, tmp_path / "installs")
    piped = run([clone / "bin" / "seed"])
    assert piped.returncode == 0 and piped.stderr.splitlines() == [
        "coletor: installing what 'core' needs into .venv (once, about a minute) ...",
        "coletor: 2 packages collected, installing ...",
    ]
    code, shown = run_at_terminal([clone / "environment" / "enter", "test", "pytest"], columns=60)
    assert code == 0 and "\r" in shown
    steps = [line.strip() for line in shown.replace("\n", "\r").split("\r") if line.strip()]
    assert steps[1:5] == [
        "coletor: package 1: one==1 ...",
        "coletor: package 2: two.whl ...",
        "coletor: 2 packages collected, installing ...",
        "coletor: compiling ...",
    ]
    written = [line for line in shown.replace("\n", "\r").split("\r")[2:] if not line.startswith("ran ")]
    assert max(map(len, written)) < 60, "a line that is written over must not reach the end"


def test_an_install_that_fails_is_tried_again_next_time(clone, tmp_path):
    fake_venv(clone, tmp_path / "installs", code=1)
    failed = run([clone / "bin" / "seed"])
    assert failed.returncode == 75 and "Run the command again" in failed.stderr and "Collecting one==1" in failed.stderr
    fake_venv(clone, tmp_path / "installs")
    assert run([clone / "bin" / "seed"]).returncode == 0


def test_a_clone_that_cannot_be_written(clone, tmp_path, small_disk):
    """On a disk that is mounted for reading only, which holds for root too."""
    small_disk(tmp_path / "disk", 1024)
    shutil.copytree(clone, tmp_path / "disk" / "clone")
    subprocess.run(["mount", "-o", "remount,ro", tmp_path / "disk"], check=True)
    told = run([tmp_path / "disk" / "clone" / "bin" / "seed"])
    assert told.returncode == 78 and "cannot write" in told.stderr and len(told.stderr.splitlines()) == 1, told.stderr
