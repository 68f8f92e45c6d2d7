"""Continuous crawling in virtual time: one run per step, as from cron, before which the clocks are set.

`VirtualCrawl` starts this module as a process of its own, under libfaketime, whose clock is a file. That process is a
run of bin/run-cycle for each step, but one that keeps its warm process: thirty days would take a quarter of an hour
otherwise. All that is asked in a step happens at the step's moment on the web, and a few moments later in the crawl.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from datetime import datetime
from pathlib import Path

import trio

from contract import config_file, names
from contract.crawl_folder import create
from supervise.demo import SETTINGS
from supervise.pipeline import Limits, Pipeline
from supervise.ring import Ring
from supervise.seed import leave
from supervise.session import Session
from synthweb import ChangingWeb, set_clock
from synthweb.changing import START_MS
from synthweb.record import replace_text
from tests.pipeline.judge import ROOT, run

CLOCK = "clock"
CACHED_S = 2.2  # a process looks at its clock's file once per second, which it counts in whole seconds


class VirtualCrawl:
    """A crawl of a changing web, from START_MS on, in steps of `step_ms`; `rules`: more sections of its settings."""

    def __init__(
        self, folder: Path, state: Path, web: ChangingWeb, library: str, step_ms: int, *set_keys: str, rules: str = ""
    ):
        folder.mkdir(exist_ok=True)
        self.path, self.web, self.step_ms = folder / "crawl", web, step_ms
        self._state, self._folder, self._library = state, folder, library
        self.errors = folder / "stderr"
        self._settings = folder / "pipeline.toml"
        text = SETTINGS.format(hosts=state / "hosts").replace("first = 2", "first = 1")
        text = text.replace("delay_s = 0.01", "delay_s = 0.0\ndelay_response_factor = 0.0")
        self._settings.write_text(f"{text}\n{rules}")
        keys = ["extractor.workers=1", "supervisor.retry_wait_s=0.01", "fetcher.robots_keep_s=1e8", *set_keys]
        self.steps = self.steps_done() + 1 if self.path.exists() else 0
        if not self.steps:
            create(self.path, 1, 0, config=config_file.load(self._settings, keys))
            leave(self.path, web.seeds())

    def moment_ms(self, step: int) -> int:
        return START_MS + step * self.step_ms

    def moment_of(self, date: str) -> int:
        """The moment of the step in which something happened; `date` as WARC records have it."""
        passed_ms = datetime.fromisoformat(date).timestamp() * 1000 - START_MS
        return self.moment_ms(int(passed_ms // self.step_ms))

    def start(self, steps: int) -> subprocess.Popen:
        """So many more steps, in the background."""
        first, self.steps = self.steps, self.steps + steps
        clock = self._folder / CLOCK
        write_offset(clock, self.moment_ms(first), time.time() - time.monotonic())
        replace_text(clock.with_suffix(".step"), str(first))
        environment = {
            **os.environ,
            "LD_PRELOAD": self._library,
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_CACHE_DURATION": "1",  # seconds; looking at the file for each reading of the clock is slow
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DISABLE_SHM": "1",  # processes need not agree on more than the file: a fifth less CPU
            "NO_FAKE_STAT": "1",  # or compiled functions look older than their source, and are compiled in each step
        }
        words = [self.path, self._state, clock, time.time() - time.monotonic(), first, steps, self.step_ms]
        with open(self.errors, "a") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.pipeline.virtual_days", *map(str, words)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )

    def live(self, steps: int) -> None:
        """So many more steps."""
        code = self.start(steps).wait()
        assert code == 0, self.told()

    def told(self) -> str:
        return self.errors.read_text()[-5_000:]

    def steps_done(self) -> int:
        """How many steps have begun: a process that was killed leaves the last one to be resumed."""
        return int((self._folder / "clock.step").read_text())

    def check(self) -> None:
        checked = run("check", "--crawl", self.path)
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def requests(self) -> list[dict]:
        """The web's record of this crawl's requests for pages, with their moments as `started_wall_ms`."""
        lines = [json.loads(line) for line in (self._state / "access.jsonl").read_text().splitlines()]
        for line in lines:
            line["url"] = f"http://{line['host']}:{self.web.port}{line['target']}"
        return [line for line in lines if line["target"] != "/robots.txt"]

    def page_files(self) -> list[Path]:
        return sorted((self.path / names.CYCLES).glob(f"*/{names.FETCHER}/{names.PAGES}/*.warc.*"))


def write_offset(clock: Path, moment_ms: int, ahead_s: float) -> None:
    """Sets the clock of libfaketime: how far it is ahead. `ahead_s`: the real clock less the monotonic one."""
    replace_text(clock, f"{moment_ms / 1000 - (time.monotonic() + ahead_s):+.3f}\n")


def main() -> int:
    path, state, clock = map(Path, sys.argv[1:4])
    ahead_s = float(sys.argv[4])
    first, steps, step_ms = map(int, sys.argv[5:8])

    def set_clocks(step: int) -> None:
        moment_ms = START_MS + step * step_ms
        set_clock(state, moment_ms)
        write_offset(clock, moment_ms, ahead_s)
        replace_text(clock.with_suffix(".step"), str(step))

    async def live(ring: Ring) -> str:
        for step in range(first, first + steps):
            set_clocks(step)
            await trio.sleep(CACHED_S)  # from then on no process has the clock of the step before
            done = ring.flights.counts.cycles
            await Pipeline(ring, Limits(cycles=done + 1, waits=False), 1).run()
        return "all steps done"

    set_clocks(first)
    session = Session(Namespace(crawl=path, config=None, set=[], yes=True, quiet=True), names.CYCLE_COMMAND)
    with contextlib.redirect_stdout(sys.stderr):
        return session.run(live)


if __name__ == "__main__":
    sys.exit(main())
