"""A crawl that faults strike: several cycles in flight, on four blocks, run to its end and judged by its web."""

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from contract import config_file
from contract.crawl_folder import create, open_folder
from contract.log import Entry, positions, read_entry
from supervise.crawl_state import CrawlState
from supervise.deletion import remove_garbage
from supervise.demo import SETTINGS
from supervise.seed import leave
from synthweb import Web
from tests.pipeline.judge import ROOT, access_record, asked_twice, assert_obedient, assert_one_at_a_time, assert_truth

WEB_SEED, WEB_SERVERS = 8, 4  # 133 pages in all four blocks
HASH_SEED, BLOCKS = 0, 4
DELAY_S = 0.03
SLACK_MS = 10.0  # a fetcher that did not wait would be some 30 ms too early
SYNC_EVERY_PAGES, TRANSFERS_MAX = 5, 20
RUNS_MAX = 60  # a crawl that needs more does not come to its end
WITHIN_S = 600  # reached only where it hangs
SUPERVISOR, WARM, STAGE, WORKER = "supervisor", "warm process", "stage", "extractor worker"


class Struck:
    def __init__(
        self,
        folder: Path,
        state: Path,
        port: int,
        crawl: Path | None = None,
        blocks: int = BLOCKS,
        servers: int = WEB_SERVERS,
        more_keys: tuple[str, ...] = (),
    ):
        self.path, self.state, self.port = crawl or folder / "crawl", state, port
        self.web = Web(WEB_SEED, servers, port)
        self.errors = folder / "stderr"
        settings = folder / "pipeline.toml"
        settings.write_text(SETTINGS.format(hosts=state / "hosts"))
        set_keys = [
            f"fetcher.delay_s={DELAY_S}",
            f"fetcher.sync_every_pages={SYNC_EVERY_PAGES}",
            f"fetcher.transfers_max={TRANSFERS_MAX}",
            "supervisor.retry_wait_s=0.01",
            "extractor.workers=1",
            *more_keys,
        ]
        self.config = config_file.load(settings, set_keys)
        create(self.path, blocks, HASH_SEED, config=self.config)
        leave(self.path, self.web.seeds())

    def command(self, name: str, *more) -> list:
        return [ROOT / "bin" / name, "--crawl", self.path, *map(str, more)]

    def start(self, *more, name: str = "crawl", prefix: tuple = (), **options) -> subprocess.Popen:
        """A run to the end of the crawl, in the background; its standard error is appended to a file."""
        limit = ("--until-done",) if name == "crawl" else ()
        with open(self.errors, "a") as errors:
            return subprocess.Popen(
                [*prefix, *self.command(name, *limit, *more)],
                stdin=subprocess.DEVNULL,
                **{"stdout": subprocess.DEVNULL, "stderr": errors, **options},
            )

    def run(self, name: str, *more) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(name, *more), capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def finish(self, *more) -> None:
        """Runs it to its end, without faults from now on."""
        for _ in range(RUNS_MAX):
            code = self.start(*more).wait(WITHIN_S)
            if code == 0:
                return
            assert code == 75, self.told()  # an orphan holds the lock until it has ended itself
        raise AssertionError(f"it does not come to its end: {self.told()}")

    def told(self) -> str:
        return self.errors.read_text()[-5_000:] if self.errors.exists() else ""

    def status(self) -> dict:
        return json.loads(self.run("status", "--json").stdout)

    def entries(self) -> list[Entry]:
        """Of the log."""
        return [read_entry(self.path, position) for position in positions(self.path)]

    def judge(self, kills: int, delay_s: float = DELAY_S) -> None:
        """The books agree, the truth is collected, manners were kept, and little was asked twice.

        `kills`: how many processes were ended by force. Each may have been a fetcher with unsynced pages.
        """
        assert "Traceback" not in self.told(), self.told()
        checked = self.run("check")
        assert checked.returncode == 0, checked.stdout
        assert_truth(self.path, self.web)
        record = access_record(self.state, self.port)
        assert_obedient(record, self.web)
        assert_one_at_a_time(record, delay_s * 1000, SLACK_MS)
        again = sum(number - 1 for number in asked_twice(record).values())
        assert again <= kills * (SYNC_EVERY_PAGES + TRANSFERS_MAX), "more than what was not yet synced at a kill"
        remove_garbage(CrawlState(open_folder(self.path)))  # as the next start-up does
        leftovers = sorted(self.path.rglob(".aside-*"))
        assert not leftovers, leftovers


def has_ended(process: subprocess.Popen, within_s: float) -> bool:
    try:
        process.wait(within_s)
        return True
    except subprocess.TimeoutExpired:
        return False


def find(run: subprocess.Popen, kind: str, stage: str = "") -> list[int]:
    """Ids of living processes of a run: the supervisor, its child, that one's children, or an extractor's."""
    generation = [run.pid]
    for _ in range((SUPERVISOR, WARM, STAGE).index(kind) if kind != WORKER else 2):
        generation = [child for parent in generation for child in children(parent)]
    if kind == WORKER:
        generation = [child for one in generation if is_stage(one, "extractor") for child in children(one)]
    return [one for one in generation if is_alive(one) and (not stage or is_stage(one, stage))]


def children(process_id: int) -> list[int]:
    """psutil looks at every process of the machine for this."""
    try:
        return [int(child) for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_bytes().split()]
    except OSError:
        return []


def is_stage(process_id: int, stage: str = "") -> bool:
    try:
        return f"stages.{stage}".encode() in Path(f"/proc/{process_id}/cmdline").read_bytes()
    except OSError:
        return False


def is_alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_bytes().rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:
        return False


def wait_for(run: subprocess.Popen, condition):
    """What the condition gives, once it is true; none where the run ends before."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        if run.poll() is not None:
            return None
        threading.Event().wait(0.01)
    return found


def strike(process_id: int, number: int = signal.SIGKILL) -> bool:
    try:
        os.kill(process_id, number)
        return True
    except ProcessLookupError:
        return False
