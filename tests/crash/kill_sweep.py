"""Runs the verifier over and over, each time killed (SIGKILL) or refused at a later position, then once undisturbed.

  python -m tests.crash.kill_sweep CASE HARVESTED CYCLE SCRATCH WHERE FIRST STRIDE

CASE is one of verifier_cases. WHERE is `operations` (killed at operations on files and folders), `writes` (killed at
writes, those of libraries too) or `full` (a write finds the disk full). The positions FIRST, FIRST + STRIDE, ... are
met. All runs are forks of one process that has imported everything, so hundreds of kills take seconds. After a kill the
live generations can be read, and a rerun leaves the bytes of an uninterrupted run. Prints the first position not met.
"""

import filecmp
import os
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import stages.verifier.__main__ as verifier
from contract.command import run
from contract.crawl_folder import open_folder
from contract.errors import EX_TEMPFAIL
from contract.generation import open_generation
from contract.log import replay
from stages.verifier import walk
from tests.crash.verifier_cases import PIECES_ROW_BYTES

OPERATIONS = ("fsync", "link", "rename", "unlink", "mkdir")
WRITES = "write,writev,pwrite64"  # Python and Arrow write by these
INJECTED = {"writes": "signal=KILL", "full": "error=ENOSPC"}
STUCK_AFTER_S = 600  # reached only where it hangs


def main(harvested: Path, cycle: str, scratch: Path, where: str, first: int, stride: int) -> None:
    whole, crawl, number = scratch / "whole", scratch / "crawl", first
    shutil.copytree(harvested, whole)
    assert fork_verifier(whole, cycle) == 0, "the uninterrupted run failed"
    while True:
        shutil.copytree(harvested, crawl)
        status = fork_verifier(crawl, cycle, where, number)
        if status == 0:
            assert is_same(crawl, whole)
            print(number)
            return
        assert died_well(status, where, scratch), (
            f"at {where} {number}: status {status}, {(scratch / 'stderr').read_text()}"
        )
        assert fork_verifier(crawl, cycle) == 0, (
            f"the rerun after {where} {number} failed: {(scratch / 'stderr').read_text()}"
        )
        assert is_same(crawl, whole), f"other bytes after {where} {number}"
        shutil.rmtree(crawl)
        number += stride


def died_well(status: int, where: str, scratch: Path) -> bool:
    if where != "full":
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    told = (scratch / "stderr").read_text()
    said = (
        f"verifier: {scratch}" in told
        and "No space left" in told
        and "run it again" in told
        and "Traceback" not in told
    )  # and which file
    return os.waitstatus_to_exitcode(status) == EX_TEMPFAIL and said


def fork_verifier(crawl: Path, cycle: str, where: str | None = None, number: int = 0) -> int:
    """Runs it in a child, its standard error in the file `stderr` beside the crawl; returns the wait status."""
    begin, go = os.pipe()
    child = os.fork()
    if child:
        os.close(begin)
        tracer = trace(child, where, number) if where in INJECTED else None
        os.close(go)
        status = os.waitpid(child, 0)[1]
        if tracer:
            tracer.communicate()
        return status
    os.close(go)
    os.read(begin, 1)
    signal.alarm(STUCK_AFTER_S)
    os.dup2(os.open(crawl.parent / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.argv = ["verifier", "--crawl", str(crawl), "--cycle", cycle]
    sys.stdout = None  # its lines are no writes to be met
    if where == "operations":
        arm(number)
    if where is None:
        open_live(crawl)
    run(verifier.main, "verifier")


def trace(child: int, where: str, number: int) -> subprocess.Popen:
    """Lets strace meet the child's write of this number; returns once it is attached."""
    tracer = subprocess.Popen(
        [
            "strace",
            "-f",
            "-p",
            str(child),
            "-o",
            os.devnull,
            "-e",
            f"trace={WRITES}",
            "-e",
            f"inject={WRITES}:{INJECTED[where]}:when={number}",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    told = tracer.stderr.readline()
    assert "attached" in told, told
    return tracer


def open_live(crawl: Path) -> None:
    log = replay(crawl, open_folder(crawl).blocks_first)
    for block in range(log.blocks):
        open_generation(crawl, block, log.generation(block))


def arm(kill_at: int) -> None:
    """Half of the kills come before the operation, half right after it. Several threads may sync at the same time."""
    numbers = count(1)

    def wrap(operation):
        def counted(*arguments, **more):
            number = next(numbers)
            if number == kill_at and kill_at % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return operation(*arguments, **more)
            finally:
                if number == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        return counted

    for name in OPERATIONS:
        setattr(os, name, wrap(getattr(os, name)))


def is_same(left: Path, right: Path) -> bool:
    return content(left) == content(right) and all(
        filecmp.cmp(left / name, right / name, shallow=False) for name in content(left)
    )


def content(folder: Path) -> list[str]:
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".aside-") and path.name != "lock"
    )
    return sorted(path.relative_to(folder).as_posix() for path in files)


if __name__ == "__main__":
    if sys.argv[1] == "pieces":
        walk.ARRIVED_ROW_BYTES = PIECES_ROW_BYTES
    main(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5], int(sys.argv[6]), int(sys.argv[7]))
