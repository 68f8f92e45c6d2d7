"""Runs the verifier once for each damage to each file that it may read, and prints as JSON what came of it.

  python -m tests.crash.damage_sweep HARVESTED CYCLE SCRATCH FIRST STRIDE PATTERN...

A row of the list is [file, damage, exit code, standard error, whether the crawl has the bytes of an undamaged run]; the
file itself is not compared. Patterns name files below the crawl folder. Of all pairs of a file and a damage, those
numbered FIRST, FIRST + STRIDE, ... from 1 are tried.
"""

import filecmp
import json
import os
import shutil
import sys
from itertools import product
from pathlib import Path

from tests.crash.kill_sweep import content, fork_verifier

DAMAGES = {
    "emptied": lambda data: b"",
    "truncated": lambda data: data[: len(data) * 2 // 3],
    "last byte lost": lambda data: data[:-1],
    "bit in the middle": lambda data: flip(data, len(data) // 2),
    "bit near the end": lambda data: flip(data, len(data) - 5),
}


def flip(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 1 << offset % 8]) + data[offset + 1 :]


def main(harvested: Path, cycle: str, scratch: Path, first: int, stride: int, patterns: list[str]) -> None:
    whole, crawl, rows = scratch / "whole", scratch / "crawl", []
    shutil.copytree(harvested, whole)
    assert fork_verifier(whole, cycle) == 0, "the undamaged run failed"
    paths = sorted({path for pattern in patterns for path in harvested.glob(pattern) if path.is_file()})
    for path, kind in list(product(paths, DAMAGES))[first - 1 :: stride]:
        name = path.relative_to(harvested).as_posix()
        shutil.copytree(harvested, crawl, copy_function=os.link)  # nothing is ever written into a file that exists
        (crawl / name).unlink()
        (crawl / name).write_bytes(DAMAGES[kind](path.read_bytes()))
        status = fork_verifier(crawl, cycle, "damaged")
        written = [each for each in content(crawl) if each != name]
        same = (
            written == [each for each in content(whole) if each != name]
            and not filecmp.cmpfiles(crawl, whole, written, shallow=False)[1]
        )
        rows.append([name, kind, os.waitstatus_to_exitcode(status), (scratch / "stderr").read_text(), same])
        shutil.rmtree(crawl)
    print(json.dumps(rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:])
