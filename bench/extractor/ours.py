"""The extractor as it is measured: its own process with workers, on some cores, from WARC files to published tables."""

import json
import shutil
import sys
import threading
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.processes import Child, Spent, on_cores
from contract import names
from contract.errors import TryLater

LOOK_EVERY_S = 0.02
LEAST_S = 1e-3  # a few pages may take less time than starts differ by
NO_SCANNER_BYTES = 1 << 40  # more than a corpus has: the compiled tag scanner is not loaded


class Memory(NamedTuple):
    """The largest that was seen, in megabytes."""

    worker: float  # of one worker: its own and what it shares with the process that forked it
    worker_with_files: float  # and the parts of mapped page files in memory, which the kernel may take back
    parent: float  # of the process that joins rows and writes tables


class Ours:
    """Runs of the extractor with so many workers on so many cores, each with a fresh output folder.

    With the tag scanner, it is loaded also for one page, so that loading is part of starting.
    """

    def __init__(self, folder: Path, workers: int, cores: list[int], has_scanner: bool = True):
        self.out = folder / "tables"
        self._log = folder / "extractor.log"
        self._workers = workers
        self._cores = cores[:workers]
        self._scan_from_bytes = 0 if has_scanner else NO_SCANNER_BYTES
        self.start = Spent(0.0, 0.0)

    def learn_start(self, one_page: Path, starts: int) -> None:
        self.run_whole(one_page, 1)  # the first start of all compiles modules and reads them from disk
        spent = [self.run_whole(one_page, 1) for _ in range(starts)]
        self.start = Spent(median(one.wall_s for one in spent), median(one.cpu_s for one in spent))

    def run(self, pages: Path, count: int) -> Spent:
        """What reading a folder of so many pages takes, without starting and publishing."""
        spent = self.run_whole(pages, count)
        return Spent(max(spent.wall_s - self.start.wall_s, LEAST_S), max(spent.cpu_s - self.start.cpu_s, LEAST_S))

    def run_whole(self, pages: Path, count: int) -> Spent:
        child = self._begin(pages)
        try:
            spent = child.wait()
        finally:
            child.kill()
        self._expect(count)
        return spent

    def watch(self, pages: Path, count: int) -> Memory:
        """Reads a folder, and looks at the memory of its processes meanwhile."""
        child = self._begin(pages)
        largest = Memory(0.0, 0.0, 0.0)
        try:
            while not child.has_ended():
                for worker in children_of(child.pid):
                    largest = Memory(*map(max, largest, (*resident_mb(worker), 0.0)))
                largest = Memory(*map(max, largest, (0.0, 0.0, resident_mb(child.pid)[0])))
                threading.Event().wait(LOOK_EVERY_S)
            child.wait()
        finally:
            child.kill()
        self._expect(count)
        return largest

    def counts(self) -> dict:
        return json.loads((self.out / names.MANIFEST).read_text())["counts"]

    def links_bytes(self) -> int:
        return (self.out / names.LINKS).stat().st_size

    def _begin(self, pages: Path) -> Child:
        shutil.rmtree(self.out, ignore_errors=True)
        command = [
            sys.executable,
            "-P",
            "-m",
            "stages.extractor",
            pages,
            "--out",
            self.out,
            "--set",
            f"extractor.workers={self._workers}",
            "--set",
            f"extractor.scan_from_bytes={self._scan_from_bytes}",
        ]
        with on_cores(self._cores):
            return Child(command, self._log)

    def _expect(self, count: int) -> None:
        if (parsed := self.counts()["pages_parsed"]) != count:
            raise TryLater(f"the extractor parsed {parsed} pages of {count}")


def children_of(process: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    try:
        return [
            int(word) for path in Path(f"/proc/{process}/task").glob("*/children") for word in path.read_text().split()
        ]
    except OSError:
        return []


def resident_mb(process: int) -> tuple[float, float]:
    """Memory of a process, without mapped files and with them; zeros where it has ended."""
    try:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        anonymous, files, shared = (int(fields[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile", "RssShmem"))
    except (OSError, KeyError, ValueError):
        return 0.0, 0.0
    return anonymous + shared, anonymous + shared + files
