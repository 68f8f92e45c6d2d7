"""Runs every stage of a cycle with a failing disk at sampled calls, then once undisturbed.

  python -m tests.crash.disk_sweep CRAWL CYCLE SCRATCH SEED COUNT

CRAWL has the plan of CYCLE, and nothing of it was run. COUNT of the cases are tried, which SEED chooses; 0: all. After
a fault a stage ends with exit code 75 and names the file, or with 0 where the fault did not concern it. A rerun leaves
the bytes of an uninterrupted run; of the fetcher, the same counts. All runs are forks of one process that has imported
everything. Prints per stage how many faults struck.
"""

import errno
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from contract import names
from contract.command import run
from contract.errors import EX_TEMPFAIL
from storage.publish import read_manifest
from supervise.all_stages import MAINS
from tests.crash.kill_sweep import STUCK_AFTER_S, is_same

WRITES = "write,writev,pwrite64"  # Python and Arrow write by these
SYNCS, FOLDERS, NAMES = "fsync,fdatasync", "mkdir,mkdirat", "link,linkat,rename,renameat,renameat2"
ROOM = "ftruncate,fallocate"
SIZES_BYTES = (0, 200, 3_000)  # no file may become larger: the write that crosses it is short, the next one refused
OUR_WRITES = "os.write"  # to files; the fetcher also writes to pipes and sockets, which strace cannot tell from them


class Case(NamedTuple):
    stage: str
    calls: str  # of the system, or OUR_WRITES; empty: `position` is the largest size of a file
    fault: str  # an error; or "short": every write is short, and all the same
    position: int


def list_cases() -> list[Case]:
    cases = [Case(stage, "", "EFBIG", size) for stage in names.STAGES if stage != names.FETCHER for size in SIZES_BYTES]
    for stage in names.STAGES:
        cases += [Case(stage, SYNCS, "EIO", position) for position in (1, 2, 5)]
        cases += [Case(stage, calls, "ENOSPC", position) for calls in (FOLDERS, NAMES) for position in (1, 2)]
    for stage in (names.SCHEDULER, names.VERIFIER):
        cases += [Case(stage, WRITES, error, position) for error in ("EIO", "ENOSPC") for position in (1, 3, 8)]
    cases += [Case(names.FETCHER, ROOM, "ENOSPC", 1), Case(names.FETCHER, OUR_WRITES, "short", 1)]
    return cases + [Case(names.FETCHER, OUR_WRITES, error, at) for error in ("EIO", "ENOSPC") for at in (1, 2, 4)]


def main(crawl: Path, cycle: str, scratch: Path, seed: int, count: int) -> None:
    before = scratch / "before"
    shutil.copytree(crawl, before)
    cases = list_cases()
    chosen = set(random.Random(seed).sample(cases, count)) if count else set(cases)
    struck = Counter()
    for stage in names.STAGES:
        whole = scratch / "whole"
        shutil.copytree(before, whole)
        run_well(stage, whole, cycle, "the uninterrupted run")
        for case in cases:
            if case.stage == stage and case in chosen:
                struck[stage] += try_case(case, before, whole, cycle)
        shutil.rmtree(before)
        whole.rename(before)
    print(*(f"{stage}={struck[stage]}" for stage in names.STAGES))


def try_case(case: Case, before: Path, whole: Path, cycle: str) -> bool:
    """Whether the fault struck."""
    scratch = before.parent
    crawl = scratch / "crawl"
    shutil.copytree(before, crawl)
    code, lines = fork_stage(case.stage, crawl, cycle, case)
    if case.fault == "short":
        assert code == 0, f"{case}: {lines}"
    assert code in (0, EX_TEMPFAIL) and "Traceback" not in lines, f"{case}: exit code {code}, {lines}"
    if code:
        assert f"{case.stage}: {scratch}" in lines and os.strerror(getattr(errno, case.fault)) in lines, (
            f"{case}: {lines}"
        )
    run_well(case.stage, crawl, cycle, f"the rerun after {case}")
    if case.stage == names.FETCHER:
        folder = Path(names.cycle(int(cycle))) / names.FETCHER
        assert counts_of(crawl / folder) == counts_of(whole / folder), f"after {case}"
    else:
        assert is_same(crawl, whole), f"other bytes after {case}"
    shutil.rmtree(crawl)
    return code != 0 or case.fault == "short"


def counts_of(folder: Path) -> dict:
    """What does not depend on how many attempts it took."""
    return {name: number for name, number in read_manifest(folder)["counts"].items() if name in ("answered", "listed")}


def run_well(stage: str, crawl: Path, cycle: str, what: str) -> None:
    code, lines = fork_stage(stage, crawl, cycle)
    assert code == 0, f"{what}: exit code {code}, {lines}"


def fork_stage(stage: str, crawl: Path, cycle: str, case: Case | None = None) -> tuple[int, str]:
    """Runs a stage in a child; returns its exit code, and the few lines of its standard error."""
    begin, go = os.pipe()
    lines, errors = os.pipe()
    child = os.fork()
    if child:
        os.close(begin)
        os.close(errors)
        tracer = trace(child, case) if case and case.calls not in ("", OUR_WRITES) else None
        os.close(go)
        with open(lines, errors="replace") as file:
            told = file.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if tracer:
            tracer.communicate()
        return code, told
    os.close(go)
    os.read(begin, 1)
    signal.alarm(STUCK_AFTER_S)
    os.dup2(errors, 2)
    os.close(errors)
    sys.argv = [stage, "--crawl", str(crawl), "--cycle", cycle]
    sys.stdout = None  # its lines are no writes to be met
    if case and case.calls == OUR_WRITES:
        fail_our_writes(case)
    elif case and not case.calls:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(case.position, 1), resource.RLIM_INFINITY))
    code = 1
    try:
        run(MAINS[stage], stage)
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.stderr.flush()
        os._exit(code)


def trace(child: int, case: Case) -> subprocess.Popen:
    """Lets strace refuse the child's call of this number; returns once it is attached."""
    inject = f"inject={case.calls}:error={case.fault}:when={case.position}"
    tracer = subprocess.Popen(
        ["strace", "-f", "-p", str(child), "-o", os.devnull, "-e", f"trace={case.calls}", "-e", inject],
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = tracer.stderr.readline()
    assert "attached" in lines, lines
    return tracer


def fail_our_writes(case: Case) -> None:
    count, write = 0, os.write

    def fail(descriptor: int, content) -> int:
        nonlocal count
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return write(descriptor, content)
        count += 1
        if case.fault == "short":
            return write(descriptor, memoryview(content)[: -(-len(content) // 2)])
        if count == case.position:
            raise OSError(getattr(errno, case.fault), os.strerror(getattr(errno, case.fault)))
        return write(descriptor, content)

    os.write = fail


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
