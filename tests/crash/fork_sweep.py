"""Runs bin/fork over and over, each time killed (SIGKILL) at a later file operation, then once more undisturbed.

  python -m tests.crash.fork_sweep CRAWL SCRATCH FIRST STRIDE

After a kill the new folder does not exist or is whole; the next fork to the same path is whole. The operations FIRST,
FIRST + STRIDE, ... are met. Prints the first number that no operation had.
"""

import os
import shutil
import sys
from pathlib import Path

import supervise.fork as fork
from contract import names
from contract.command import run
from tests.crash.kill_sweep import arm, content


def main(crawl: Path, scratch: Path, first: int, stride: int) -> None:
    whole = scratch / "whole"
    assert run_fork(crawl, whole, None) == 0
    number = first
    while True:
        target = scratch / "target"
        status = run_fork(crawl, target, number)
        assert not target.exists() or is_same(target, whole), (
            f"something half-made is there after a kill at operation {number}"
        )
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0
            print(number)
            return
        if not target.exists():
            assert run_fork(crawl, target, None) == 0, f"the next fork after operation {number} failed"
        assert is_same(target, whole) and not list(scratch.glob(".aside-*")), (
            f"other files after a kill at operation {number}"
        )
        shutil.rmtree(target)
        number += stride


def run_fork(crawl: Path, target: Path, kill_at: int | None) -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    sys.argv = ["fork", "--crawl", str(crawl), str(target)]
    sys.stdout = open(os.devnull, "w")
    if kill_at is not None:
        arm(kill_at)
    run(fork.main, "fork")


def is_same(left: Path, right: Path) -> bool:
    names_of_files = content(left)
    return names_of_files == content(right) and all(
        name == names.CRAWL_FILE or (left / name).read_bytes() == (right / name).read_bytes() for name in names_of_files
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
