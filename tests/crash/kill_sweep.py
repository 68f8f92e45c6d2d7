"""Runs the verifier over and over, each time killed (SIGKILL) at the next file operation, then once more undisturbed.

  python -m tests.crash.kill_sweep HARVESTED CYCLE WHOLE SCRATCH

Forks from one process that has imported everything, so that hundreds of kills take seconds. Compares each crawl
folder after its rerun with WHOLE, an uninterrupted run; prints how many operations there were.
"""

import filecmp
import os
import shutil
import signal
import sys
from pathlib import Path

import stages.verifier.__main__ as verifier
from contract.command import run

OPERATIONS = ("fsync", "link", "rename", "unlink", "mkdir")


def main(harvested: Path, cycle: str, whole: Path, scratch: Path) -> None:
    number = 0
    while True:
        number += 1
        crawl = scratch / "crawl"
        shutil.copytree(harvested, crawl)
        status = fork_verifier(crawl, cycle, number)
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0 and is_same(crawl, whole)
            print(number - 1)
            return
        assert fork_verifier(crawl, cycle, None) == 0, f"the rerun after operation {number} failed"
        assert is_same(crawl, whole), f"other bytes after a kill at operation {number}"
        shutil.rmtree(crawl)


def fork_verifier(crawl: Path, cycle: str, kill_at: int | None) -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    sys.argv = ["verifier", "--crawl", str(crawl), "--cycle", cycle]
    sys.stdout = open(os.devnull, "w")
    if kill_at is not None:
        arm(kill_at)
    run(verifier.main, "verifier")


def arm(kill_at: int) -> None:
    """Half of the kills come before the operation, half right after it."""
    count = 0

    def wrap(operation):
        def counted(*arguments, **more):
            nonlocal count
            count += 1
            if count == kill_at and kill_at % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return operation(*arguments, **more)
            finally:
                if count == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
        return counted

    for name in OPERATIONS:
        setattr(os, name, wrap(getattr(os, name)))


def is_same(left: Path, right: Path) -> bool:
    return content(left) == content(right) and all(filecmp.cmp(left / name, right / name, shallow=False) for name in content(left))


def content(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".aside-") and path.name != "lock")
    return sorted(path.relative_to(folder).as_posix() for path in files)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
