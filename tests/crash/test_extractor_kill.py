"""The extractor killed, stopped and interrupted.

No worker outlives it, the crawl is free at once, and a rerun gives the same bytes.
"""

import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import stages.extractor.__main__ as extractor
from contract import names
from contract.command import run
from contract.config import Config
from contract.stage import ALIVE_VARIABLE, PROGRESS_VARIABLE
from stages.extractor import chunks
from tests.crash.kill_sweep import arm, is_same
from tests.extractor_lab import Cycle, page_file
from tests.sampling import sampling

PATIENCE_S = 300  # reached only where it hangs
WORKERS = 3
SLOW = """
import os, sys
from pathlib import Path
from contract.command import run
from stages.extractor import __main__ as extractor, chunks
from stages.extractor.documents import html
read, marks = html.read, Path(sys.argv.pop(1))

def slow(content, *rest):
    while b"<slow>" in content:
        (marks / str(os.getpid())).touch()
    return read(content, *rest)

html.read, chunks.CHUNK_RECORDS = slow, 20
run(extractor.main, "extractor")
"""


@pytest.fixture(scope="module")
def fetched(tmp_path_factory) -> Path:
    """A crawl folder whose cycle waits for the extractor.

    Where SLOW runs, the pages behind the first file are slow: more chunks than the workers can hold, so each meets one.
    """
    folder = tmp_path_factory.mktemp("fetched") / "crawl"
    config = Config(extractor=replace(Config().extractor, workers=WORKERS, page_max_s=3600.0))
    files, listed = [], {}
    for number in range(3):
        pages = {
            f"http://s{number}.example/{page}": f"{'<slow>' if number else ''}<a href=/{page}x>x</a><a href=/y>"
            for page in range(30)
        }
        files.append(page_file(pages))
        listed |= dict.fromkeys(pages, 0)
    Cycle(folder, listed, *files, config=config)
    return folder


def command(crawl: Path) -> list:
    return ["--crawl", crawl, "--cycle", "3"]


def extract(crawl: Path, *before, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*before, sys.executable, "-P", "-m", "stages.extractor", *command(crawl)],
        capture_output=True,
        text=True,
        **options,
    )


@pytest.fixture(scope="module")
def whole(fetched, tmp_path_factory) -> Path:
    crawl = tmp_path_factory.mktemp("whole") / "crawl"
    shutil.copytree(fetched, crawl)
    ran = extract(crawl)
    assert ran.returncode == 0, ran.stderr
    return crawl


def wait_for(condition, what: str):
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        threading.Event().wait(0.01)
    return found


class Busy:
    """The command, all of its workers inside of a page that takes long."""

    def __init__(self, crawl: Path, marks: Path, **options):
        marks.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", SLOW, marks, *command(crawl)],
            stdout=subprocess.PIPE,
            start_new_session=True,
            **{"stderr": subprocess.PIPE, **options},
        )
        try:
            wait_for(lambda: len(list(marks.iterdir())) == WORKERS, "the workers did not start")
        except AssertionError:
            self.process.kill()
            raise
        self.workers = psutil.Process(self.process.pid).children()
        assert {worker.pid for worker in self.workers} == {int(mark.name) for mark in marks.iterdir()}

    def end(self, patience_s: float = PATIENCE_S) -> tuple[int, str]:
        """Exit code and standard error; its workers end with it."""
        _, told = self.process.communicate(timeout=patience_s)
        _, alive = psutil.wait_procs(self.workers, timeout=patience_s)  # their pages would take an hour
        assert alive == []
        return self.process.returncode, (told or b"").decode()


def assert_free_and_repeatable(crawl: Path, whole: Path) -> None:
    with (crawl / names.LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    ran = extract(crawl)
    assert ran.returncode == 0 and is_same(crawl, whole), ran.stderr


@pytest.fixture
def crawl(fetched, tmp_path) -> Path:
    return Path(shutil.copytree(fetched, tmp_path / "crawl"))


def test_only_the_extractor_itself_holds_the_lock(crawl, tmp_path):
    """Its workers may live a moment longer than it does, and must not keep the next run out."""
    busy = Busy(crawl, tmp_path / "marks")
    held = {
        process.pid: (crawl / names.LOCK).resolve()
        in {path.resolve() for path in Path(f"/proc/{process.pid}/fd").iterdir()}
        for process in (psutil.Process(busy.process.pid), *busy.workers)
    }
    assert held == {busy.process.pid: True, **{worker.pid: False for worker in busy.workers}}
    busy.process.kill()
    busy.end()


@pytest.mark.parametrize("kind, code", [(signal.SIGKILL, -9), (signal.SIGTERM, -15), (signal.SIGINT, 130)])
@pytest.mark.sampled(1)
def test_ended_while_all_workers_are_busy(crawl, whole, tmp_path, kind, code):
    busy = Busy(crawl, tmp_path / "marks")
    busy.process.send_signal(kind)
    assert busy.end() == (code, "")
    assert_free_and_repeatable(crawl, whole)


def test_ctrl_c(crawl, whole, tmp_path):
    """The terminal sends it to the workers too."""
    busy = Busy(crawl, tmp_path / "marks")
    os.killpg(busy.process.pid, signal.SIGINT)
    assert busy.end() == (130, "")
    assert_free_and_repeatable(crawl, whole)


def test_a_supervisor_that_is_gone(crawl, whole, tmp_path):
    alive_read, alive_write = os.pipe()
    busy = Busy(crawl, tmp_path / "marks", pass_fds=(alive_read,), env={**os.environ, ALIVE_VARIABLE: str(alive_read)})
    os.close(alive_read)
    os.killpg(busy.process.pid, signal.SIGINT)  # is for the supervisor, and ignored
    os.close(alive_write)
    assert busy.end() == (-signal.SIGTERM, "")
    assert_free_and_repeatable(crawl, whole)


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.sampled(1)
def test_workers_that_are_killed_by_hand(crawl, whole, tmp_path, kind):
    """Their pages are read once more, as if nothing had been. An interrupt is none of a worker's business."""
    busy = Busy(crawl, tmp_path / "marks")
    for worker in busy.workers:
        worker.send_signal(kind)
    if kind != signal.SIGINT:
        wait_for(lambda: len(list((tmp_path / "marks").iterdir())) == 2 * WORKERS, "nobody took the places of the dead")
    busy.workers = psutil.Process(busy.process.pid).children()
    busy.process.terminate()
    code, told = busy.end()
    assert code == -signal.SIGTERM and told.count("its worker was killed; it is read once more") == (
        0 if kind == signal.SIGINT else WORKERS
    )
    assert_free_and_repeatable(crawl, whole)


def test_progress_is_told_to_a_supervisor_while_workers_are_busy(crawl, tmp_path):
    read, write = os.pipe()
    busy = Busy(crawl, tmp_path / "marks", pass_fds=(write,), env={**os.environ, PROGRESS_VARIABLE: str(write)})
    os.close(write)
    with open(read) as lines:
        told = [
            json.loads(next(lines)) for _ in range(4)
        ]  # more than chunks that are whole: the last come while nothing does
        busy.process.kill()
        busy.end()
        assert (
            told[0]["stage"] == "extractor"
            and told[-1]["listed"] == 90
            and 0 < told[-1]["pages"] < 90
            and told[-1]["bytes"] > 0
        )
        assert [one["pages"] for one in told] == sorted(one["pages"] for one in told)
        list(lines)  # ends: nobody holds the pipe any more


def test_progress_is_shown_on_a_terminal(crawl, tmp_path):
    ours, theirs = pty.openpty()
    busy = Busy(crawl, tmp_path / "marks", stderr=theirs)
    os.close(theirs)
    shown = os.read(ours, 1000).decode()
    busy.process.kill()
    busy.end()
    os.close(ours)
    assert shown.startswith("extractor: pages=") and "listed=90" in shown


def test_killed_at_every_operation(fetched, whole, tmp_path):
    """At each change of a file, before or after it, and at each result that comes."""
    number, stride = sampling.stride(8)
    while True:
        crawl = Path(shutil.copytree(fetched, tmp_path / f"{number}"))
        status = fork_extractor(crawl, number)
        if not os.WIFSIGNALED(status):
            break
        assert os.WTERMSIG(status) == signal.SIGKILL and fork_extractor(crawl, None) == 0, (
            f"the rerun after operation {number} failed"
        )
        assert is_same(crawl, whole), f"other bytes after a kill at operation {number}"
        number += stride
    assert os.WEXITSTATUS(status) == 0 and is_same(crawl, whole)
    assert number > 20, "operations were not counted: the test tests nothing"


def fork_extractor(crawl: Path, kill_at: int | None) -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        sys.argv = ["extractor", *map(str, command(crawl))]
        sys.stdout = open(os.devnull, "w")
        if kill_at is not None:
            arm(kill_at)
            taken = extractor.Extraction.take
            extractor.Extraction.take = lambda *arguments: (
                os.mkdir(crawl / f".aside-{time.monotonic_ns()}"),
                taken(*arguments),
            )  # counted too
        chunks.CHUNK_RECORDS = 20
        run(extractor.main, "extractor")
    except SystemExit as ended:
        os._exit(ended.code or 0)
    finally:
        os._exit(1)


def test_a_machine_that_starts_no_process(crawl, whole, needs):
    failed = extract(
        crawl, needs("strace"), "-f", "-o", "/dev/null", "-e", "trace=clone", "-e", "inject=clone:error=EAGAIN:when=2+"
    )
    assert (
        failed.returncode == 75
        and "cannot start worker 2: Resource temporarily unavailable" in failed.stderr
        and "Traceback" not in failed.stderr
    )
    assert_free_and_repeatable(crawl, whole)


def test_a_machine_without_proc(crawl, needs):
    failed = extract(crawl, needs("unshare"), "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
    if "mount" in failed.stderr or "unshare" in failed.stderr:
        pytest.skip(f"cannot hide /proc: {failed.stderr.strip()}")
    assert failed.returncode == 75 and "cannot start worker 1: /proc/self/statm: No such file" in failed.stderr, (
        failed.stderr
    )
