"""What faults of the machine cost: crawls killed, stopped and damaged over and over, judged by the web's own truth.

Each fault gets its own crawl of the same synthetic web, on loopback. It strikes at random moments (from a seed) until
it has struck --times times or the crawl is over; then the crawl runs to its end. Printed per fault: how often it
struck, URLs of the web's truth that are missing, pages that the tables have twice, URLs given up that the same crawl
without faults did not give up, requests for pages that had been answered before, and whether bin/check agrees.
"""

import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.processes import READY_MAX_S
from contract import names
from contract.command import Parser, at_least
from contract.config import Config
from contract.crawl_folder import open_folder
from contract.errors import TryLater
from contract.generation import open_generation, read_urls
from contract.log import KINDS, State, replay
from contract.plan import open_cycles
from contract.tables import ANSWERED, COLLECTED, GIVEN_UP
from storage.tables import read_table
from supervise.demo import SETTINGS
from synthweb import Rules, Web

ROOT = Path(__file__).resolve().parent.parent
RULES = Rules(excluded_extensions=Config().scope.reject_extensions)
WEB_SEED = 4
STRIKE_WITHIN_S = (0.1, 2.0)  # after the first stage of a run began, or the last strike
WORKER_WITHIN_S = 5.0
RUNS_MAX = 200  # a crawl that needs more has not come to its end


class Outcome(NamedTuple):
    fault: str
    strikes: int
    runs: int
    pages: int
    missing: int
    doubled: int
    charged: int
    asked_again: int
    agrees: bool
    seconds: float


class Trial:
    """One crawl under one fault."""

    def __init__(self, folder: Path, servers: int, seed: int):
        self.random = random.Random(seed)
        self.crawl, self.state = folder / "crawl", folder / "web"
        self.state.mkdir(parents=True)
        self._server = start_web(self.state, servers)
        ready = json.loads((self.state / "ready.json").read_bytes())
        self.web = Web(WEB_SEED, servers, ready["port"])
        self._settings = folder / "pipeline.toml"
        settings = SETTINGS.format(hosts=(self.state / "hosts").resolve())
        self._settings.write_text(settings.replace("first = 2", "first = 4"))  # so many cycles in flight
        self.run("seed", "--config", self._settings, *self.web.seeds())

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait()

    def run(self, name: str, *more) -> subprocess.CompletedProcess:
        return subprocess.run(
            [ROOT / "bin" / name, "--crawl", self.crawl, *map(str, more)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    def start(self) -> subprocess.Popen:
        command = [
            ROOT / "bin/crawl",
            "--crawl",
            self.crawl,
            "--config",
            self._settings,
            "--until-done",
            "--quiet",
            "--set",
            "supervisor.retry_wait_s=0.05",
            "--set",
            "blocks.servers_max=10",
        ]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def has_ended(self, process: subprocess.Popen) -> bool:
        """Whether the run ends within a random moment after it had a stage at work."""
        while process.poll() is None and not find(process, "stages."):
            time.sleep(0.02)
        try:
            process.wait(self.random.uniform(*STRIKE_WITHIN_S))
            return True
        except subprocess.TimeoutExpired:
            return False

    def log(self) -> State:
        return replay(self.crawl, open_folder(self.crawl).blocks_first)


def start_web(state: Path, servers: int) -> subprocess.Popen:
    command = [
        sys.executable,
        "-P",
        "-m",
        "synthweb",
        "serve",
        "--seed",
        WEB_SEED,
        "--servers",
        servers,
        "--port",
        0,
        "--state",
        state,
        "--until-eof",
    ]
    server = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    ends_at_s = time.monotonic() + READY_MAX_S
    while not (state / "ready.json").exists():
        if server.poll() is not None or time.monotonic() > ends_at_s:
            raise TryLater("python -m synthweb serve: did not come up")
        time.sleep(0.02)
    return server


# Faults while a run is at work: each gets the run's process, returns whether it struck.


def kill_run(trial: Trial, process: subprocess.Popen) -> bool:
    process.kill()
    return True


def stop_run(trial: Trial, process: subprocess.Popen) -> bool:
    process.terminate()
    return True


def kill_one(trial: Trial, process: subprocess.Popen, wanted: str, parent: str = "") -> bool:
    """As an out-of-memory killer would: one of the processes whose command line, and whose parent's, say so."""
    try:
        trial.random.choice(find(process, wanted, parent)).kill()
        return True
    except (psutil.Error, IndexError):
        return False


def find(process: psutil.Process | subprocess.Popen, wanted: str, parent: str = "") -> list[psutil.Process]:
    """Processes of a run."""
    try:
        below = psutil.Process(process.pid).children(recursive=True)
        return [child for child in below if is_named(child, wanted) and is_named(child.parent(), parent)]
    except psutil.Error:
        return []  # one ended while we looked


def is_named(process: psutil.Process | None, word: str) -> bool:
    return process is not None and word in " ".join(process.cmdline())


def kill_warm(trial: Trial, process: subprocess.Popen) -> bool:
    return kill_one(trial, process, "supervise.warm_process")


def kill_stage(trial: Trial, process: subprocess.Popen) -> bool:
    return kill_one(trial, process, "stages.", parent="supervise.warm_process")


def kill_fetcher(trial: Trial, process: subprocess.Popen) -> bool:
    return kill_one(trial, process, "stages.fetcher")


def kill_worker(trial: Trial, process: subprocess.Popen) -> bool:
    """A worker lives for a moment only, so it is waited for."""
    ends_at_s = time.monotonic() + WORKER_WITHIN_S
    while process.poll() is None and time.monotonic() < ends_at_s:
        if kill_one(trial, process, "", parent="stages.extractor"):
            return True
        time.sleep(0.01)
    return False


# Faults between two runs: each may change the crawl folder, returns whether it struck.


def lose_plan(trial: Trial) -> bool:
    opened = open_cycles(trial.crawl, trial.log())
    for cycle in opened[:1]:
        (trial.crawl / names.cycle(cycle) / names.PLAN).unlink()
    return bool(opened)


def change_byte(trial: Trial) -> bool:
    """Of a file that the next turn needs; then does what bin/status advises."""
    files = sorted(
        path for path in (trial.crawl / names.GENERATIONS).rglob("*") if path.is_file() and path.stat().st_size
    )
    if not files:
        return False
    path = trial.random.choice(files)
    content = bytearray(path.read_bytes())
    content[trial.random.randrange(len(content))] ^= 0x55
    path.write_bytes(content)
    trial.start().wait()
    for line in trial.run("status").stdout.splitlines():
        if "run: " in line:
            subprocess.run(
                [ROOT / word if word.startswith("bin/") else word for word in shlex.split(line.split("run: ")[1])],
                capture_output=True,
            )
    return True


AT_WORK: dict[str, Callable] = {
    "run killed (SIGKILL)": kill_run,
    "run stopped (SIGTERM)": stop_run,
    "warm process killed (SIGKILL)": kill_warm,
    "stage killed (SIGKILL)": kill_stage,
    "fetcher killed (SIGKILL)": kill_fetcher,
    "extractor worker killed (SIGKILL)": kill_worker,
}
BETWEEN: dict[str, Callable] = {
    "plan of the open cycle lost": lose_plan,
    "a byte of R changed, then repaired": change_byte,
}


STOPPING = ("run stopped (SIGTERM)",)  # a run that is asked to stop exits with 0 too


def strike(trial: Trial, fault: str, times: int) -> tuple[int, int]:
    """Runs the crawl to its end under the fault; returns how often it struck, and how many runs there were."""
    strikes = runs = 0
    while runs < RUNS_MAX:
        runs += 1
        process, strikes_before = trial.start(), strikes
        while strikes < times and not trial.has_ended(process):
            if fault in AT_WORK:
                strikes += AT_WORK[fault](trial, process)
            elif fault in BETWEEN:
                orphans = find(process, "")
                process.kill()
                process.wait()
                psutil.wait_procs(orphans)  # they end by themselves; a file is lost between runs, not under them
                strikes += BETWEEN[fault](trial)
        if process.wait() == 0 and strikes == strikes_before or process.returncode == 0 and fault not in STOPPING:
            return strikes, runs
    raise TryLater(f"{fault}: the crawl did not come to its end in {RUNS_MAX} runs")


def judge(
    trial: Trial, fault: str, strikes: int, runs: int, seconds: float, given_up_before: set[str]
) -> tuple[Outcome, set[str]]:
    log, collected = trial.log(), Counter()
    for entry in (entry for entry in log.entries if entry is not None and KINDS[entry.kind].fetches):
        table = read_table(
            trial.crawl / names.cycle(entry.cycle) / names.EXTRACTOR / names.COLLECTED,
            COLLECTED,
            columns=["url", "outcome"],
        )
        collected.update(row["url"] for row in table.to_pylist() if row["outcome"] == ANSWERED)
    given_up = set()
    for block in range(log.blocks):
        generation = open_generation(trial.crawl, block, log.generation(block))
        given_up |= set(read_urls(trial.crawl, generation, (generation.rows["state"] == GIVEN_UP).nonzero()[0]))
    answered = Counter()
    for line in map(json.loads, (trial.state / "access.jsonl").read_text().splitlines()):
        if (
            line["status"]
            and line["status"] < 500
            and line["status"] != 429
            and not line["target"].endswith("/robots.txt")
        ):
            answered[line["host"], line["target"]] += 1
    outcome = Outcome(
        fault,
        strikes,
        runs,
        len(collected),
        len(trial.web.truth(RULES) - set(collected)),
        sum(number > 1 for number in collected.values()),
        len(given_up - given_up_before) if fault != NO_FAULT else 0,
        sum(number - 1 for number in answered.values()),
        trial.run("check").returncode == 0,
        seconds,
    )
    return outcome, given_up


NO_FAULT = "none"


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--times", type=at_least(1), default=25, metavar="N", help="how often each fault strikes (default 25)"
    )
    parser.add_argument("--servers", type=at_least(1), default=40, metavar="N", help="servers of the web (default 40)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random moments (default 1)")


def measure(arguments) -> dict:
    rows, given_up = [], set()
    print(
        f"{'fault':36} {'strikes':>7} {'runs':>5} {'pages':>6} {'missing':>7} {'doubled':>7} {'charged':>7} "
        f"{'asked again':>11}  check  seconds"
    )
    for fault in (NO_FAULT, *AT_WORK, *BETWEEN):
        with tempfile.TemporaryDirectory(prefix="coletor-reliability-") as folder:
            trial, began = Trial(Path(folder), arguments.servers, arguments.seed), time.monotonic()
            try:
                strikes, runs = strike(trial, fault, arguments.times if fault != NO_FAULT else 0)
                outcome, given_up_now = judge(trial, fault, strikes, runs, time.monotonic() - began, given_up)
            finally:
                trial.close()
        given_up = given_up_now if fault == NO_FAULT else given_up
        rows.append(outcome._asdict())
        print(
            f"{outcome.fault:36} {outcome.strikes:7} {outcome.runs:5} {outcome.pages:6} {outcome.missing:7} "
            f"{outcome.doubled:7} {outcome.charged:7} "
            f"{outcome.asked_again:11}  {'agrees' if outcome.agrees else 'WRONG '} {outcome.seconds:7.0f}",
            flush=True,
        )
    return {"faults": rows}
