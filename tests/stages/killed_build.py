"""Runs bin/graph build and kills it at its n-th creation, renaming or deletion of a file: N CRAWL OUT."""

import os
import signal
import sys

sys.argv, (steps, crawl, out) = ["graph", "build", "--crawl", sys.argv[2], "--out", sys.argv[3]], sys.argv[1:]
left = int(steps)
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link")


def count(event: str, arguments: tuple) -> None:
    global left
    is_written = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_CREAT | os.O_WRONLY)
    if event in CHANGES or is_written and out in str(arguments[0]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


from contract.command import run  # noqa: E402
from graph.__main__ import NAME, main  # noqa: E402

sys.addaudithook(count)
run(main, NAME)
