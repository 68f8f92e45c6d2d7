"""Faults of the machine during a crawl with several cycles in flight: a small disk, power cuts, clock jumps, hangs."""

import os
import random
import signal
import subprocess
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tests.pipeline.struck import (
    STAGE,
    WEB_SEED,
    WEB_SERVERS,
    WITHIN_S,
    WORKER,
    Struck,
    children,
    find,
    has_ended,
    is_alive,
    strike,
    wait_for,
)
from tests.sampling import sampling

DISK_KB = (4_000, 8_700, 9_300, 64_000)  # the table of slots alone takes 8,192 kB
IMAGE_BYTES, CUTS = 64 << 20, 2
JUMPS = ("+26h", "-400d", "+0", "+3650d", "-90s")
HANG_S = 20.0  # longer than the warm process takes to import, on a busy machine too


@pytest.mark.long
def test_a_disk_fills_up_and_is_enlarged(tmp_path, synthetic_web, small_disk):
    resize = small_disk(tmp_path / "disk", DISK_KB[0])
    crawl = Struck(tmp_path, *synthetic_web(WEB_SEED, WEB_SERVERS), crawl=tmp_path / "disk" / "crawl")
    codes = []
    for size_kb in DISK_KB:
        resize(size_kb)
        codes.append(crawl.start().wait())
    assert codes[0] == 75 and codes[-1] == 0 and set(codes) <= {0, 75}, crawl.told()
    assert "No space left on device" in crawl.told() and "run" in crawl.told()
    crawl.judge(kills=len(DISK_KB) * 4)


class Image:
    """An ext4 file system in a file, mounted by a loop device."""

    def __init__(self, folder: Path, needs):
        self.point, self._file, self._folder = folder / "disk", folder / "image", folder
        self.point.mkdir()
        with open(self._file, "wb") as file:
            file.truncate(IMAGE_BYTES)
        subprocess.run([needs("mkfs.ext4"), "-q", "-E", "nodiscard", self._file], check=True)
        self.mount()

    def mount(self) -> None:
        done = subprocess.run(["mount", "-o", "loop", self._file, self.point], capture_output=True, text=True)
        if done.returncode:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"cannot mount an image: {done.stderr}")

    def unmount(self) -> None:
        """A process that was killed may hold the disk for an instant, until the kernel has cleared it away."""
        deadline = time.monotonic() + WITHIN_S
        while subprocess.run(["umount", self.point], capture_output=True).returncode:
            assert time.monotonic() < deadline, f"{self.point} stays busy"
            threading.Event().wait(0.05)

    def copy(self) -> Path:
        """What a power cut would leave now. REQUIRES: no process writes; the kernel may, so two copies must agree."""
        copies = [self._folder / "copy-1", self._folder / "copy-2"]
        while True:
            for copy in copies:
                subprocess.run(["cp", "--sparse=always", self._file, copy], check=True)
            if not subprocess.run(["cmp", "-s", *copies]).returncode:
                copies[1].unlink()
                return copies[0]

    def put_back(self, copy: Path) -> None:
        """The power is back: what was not on the disk at the copy is lost."""
        self.unmount()
        copy.rename(self._file)
        self.mount()


@pytest.fixture
def image(tmp_path, needs):
    made = Image(tmp_path, needs)
    yield made
    made.unmount()


@pytest.mark.long
def test_a_power_cut_loses_what_was_not_synced_and_no_more(tmp_path, synthetic_web, image):
    crawl = Struck(tmp_path, *synthetic_web(WEB_SEED, WEB_SERVERS), crawl=image.point / "crawl")
    os.sync()
    chance, cuts = random.Random(sampling.seed), 0
    while cuts < CUTS:
        run = crawl.start()
        assert wait_for(run, lambda run=run: len(find(run, STAGE)) > 1), "the crawl ended before the power was cut"
        has_ended(run, chance.uniform(0.5, 3.0))
        stopped = stop_all(run.pid)
        copy = image.copy()
        for process_id in stopped:
            strike(process_id)
        run.wait()
        wait_for_none(stopped)
        image.put_back(copy)
        cuts += 1
    crawl.finish()
    # Each of up to four fetchers may lose what it had not synced.
    crawl.judge(kills=cuts * 4)


def stop_all(process_id: int) -> list[int]:
    """Stops a process and all below it, parents first, so that none can start another."""
    strike(process_id, signal.SIGSTOP)
    return [process_id, *(one for child in children(process_id) for one in stop_all(child))]


def wait_for_none(process_ids: list[int]) -> None:
    while any(map(is_alive, process_ids)):
        threading.Event().wait(0.01)


@pytest.mark.long
@pytest.mark.waits
def test_the_clock_jumps_between_runs_and_during_them(tmp_path, synthetic_web, needs):
    needs("faketime")
    (library,) = list(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    crawl, clock = Struck(tmp_path, *synthetic_web(WEB_SEED, WEB_SERVERS)), tmp_path / "clock"
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",  # a process looks at the file once per second; one that starts, at once
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    for before, during in zip(JUMPS, JUMPS[1:]):
        clock.write_text(f"{before}\n")
        run = crawl.start("--cycles", 4, env=environment)
        wait_for(run, lambda run=run: find(run, STAGE, "fetcher"))
        clock.write_text(f"{during}\n")
        assert run.wait() == 0, crawl.told()
    crawl.finish()
    crawl.judge(kills=0)


@pytest.mark.long
@pytest.mark.waits
def test_stages_that_hang_are_ended_and_run_again(tmp_path, synthetic_web):
    crawl = Struck(tmp_path, *synthetic_web(WEB_SEED, WEB_SERVERS))
    run = crawl.start("--set", f"supervisor.hang_s={HANG_S}")
    stopped = []
    for kind, stage in ((STAGE, "fetcher"), (STAGE, "scheduler"), (STAGE, "verifier"), (WORKER, "")):
        found = wait_for(run, partial(find, run, kind, stage))
        if found and strike(found[0], signal.SIGSTOP):
            stopped.append(found[0])
    ended = run.wait()
    for process_id in stopped:
        strike(process_id)  # a worker that was stopped before it could see the end of its parent
    assert ended == 0, crawl.told()
    assert crawl.told().count("has done nothing for 20 s: it is ended and run again") >= 2, crawl.told()
    crawl.judge(kills=len(stopped))
