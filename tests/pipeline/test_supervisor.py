"""The supervisor: locks, signals, damage and dying stages, on a small web with real processes."""

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

from contract import names
from contract.crawl_folder import create, hold_lock, open_folder
from contract.log import replay
from storage.publish import FORMAT
from supervise.demo import SETTINGS
from supervise.seed import leave
from synthweb import Web
from tests.pipeline.judge import ROOT, assert_truth

WEB_SEED, WEB_SERVERS = 8, 14
HASH_SEED = 0  # puts servers into both blocks, of 4 as of 14
WITHIN_S = 300  # reached only where it hangs


class Crawl:
    def __init__(self, folder, state, port, servers=WEB_SERVERS, blocks=2):
        self.path, self.state, self.settings = folder / "crawl", state, folder / "pipeline.toml"
        self.web = Web(WEB_SEED, servers, port)
        self.settings.write_text(SETTINGS.format(hosts=state / "hosts"))
        create(self.path, blocks, HASH_SEED)
        leave(self.path, self.web.seeds())

    def copy(self, folder) -> "Crawl":
        """The same crawl of the same web in another folder."""
        other = copy.copy(self)
        other.path = Path(shutil.copytree(self.path, folder / "crawl"))
        return other

    def command(self, name, *more):
        configured = (
            ("--config", self.settings, "--set", "supervisor.retry_wait_s=0.01")
            if name in ("crawl", "run-cycle")
            else ()
        )
        return [ROOT / "bin" / name, "--crawl", self.path, *configured, *more]

    def run(self, name, *more) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(name, *more), capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def goes_on(self, *limits) -> None:
        turns = self.run("crawl", *(limits or ("--cycles", "2")))
        assert turns.returncode == 0, turns.stderr
        checked = self.run("check")
        assert checked.returncode == 0, checked.stdout

    def open_cycle(self) -> int:
        return names.numbered(self.path / names.CYCLES)[-1]


@pytest.fixture
def crawl(tmp_path, synthetic_web) -> Crawl:
    return Crawl(tmp_path, *synthetic_web(WEB_SEED, WEB_SERVERS))


def wait_for(condition, what: str):
    deadline = time.monotonic() + WITHIN_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        threading.Event().wait(0.01)
    return found


@pytest.mark.long
def test_one_turn_and_nothing_due(crawl):
    turn = crawl.run("run-cycle")
    assert turn.returncode == 0 and "done" in turn.stdout and "next: bin/status" in turn.stdout, turn.stderr
    crawl.goes_on("--until-done")
    assert_truth(crawl.path, crawl.web)
    idle = crawl.run("run-cycle")
    assert idle.returncode == 0 and "nothing is waiting" in idle.stdout
    assert crawl.run("run-cycle", "--quiet").stdout == ""


@pytest.mark.long
def test_a_terminal_shows_live_progress(crawl):
    ours, theirs = os.openpty()
    process = subprocess.Popen(crawl.command("crawl", "--cycles", "3"), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # the terminal's other end is closed: the command has ended
    os.close(ours)
    assert process.wait() == 0, shown
    for words in (b"fetching", b"pages", b"of memory", b"cycles,", b"3 cycles done", b"next: bin/status"):
        assert words in shown, words
    assert re.search(rb"[\d,]+ of [\d,]+ URL", shown), "the fetcher's own figures stand beside it"


def test_two_at_once_the_second_says_so(crawl):
    lock = hold_lock(open_folder(crawl.path))
    second = crawl.run("run-cycle")
    assert second.returncode == 75 and "another run works here" in second.stderr
    quiet = crawl.run("run-cycle", "--quiet")
    assert quiet.returncode == 75 and quiet.stdout + quiet.stderr == ""
    assert "running now" in crawl.run("status").stdout
    os.close(lock)
    assert "not running" in crawl.run("status").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.sampled(1)
def test_a_signal_stops_cleanly_and_the_crawl_goes_on(crawl, number):
    process = subprocess.Popen(
        crawl.command("crawl", "--until-done"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    record = crawl.state / "access.jsonl"
    wait_for(lambda: record.exists() and len(record.read_bytes().splitlines()) > 30, "the crawl to fetch")
    stages = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    output, errors = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0 and "stopped" in output, errors
    assert all(map(has_died, stages))
    crawl.goes_on()


@pytest.mark.long
def test_limits(crawl):
    some = crawl.run("crawl", "--max-pages", "10")
    assert some.returncode == 0 and "--max-pages reached" in some.stdout, some.stderr
    status = json.loads(crawl.run("status", "--json").stdout)
    assert status["fetched"]["answered"] == 10
    two = crawl.run("crawl", "--cycles", "2")
    assert "2 cycles done" in two.stdout
    assert "--max-bytes reached" in crawl.run("crawl", "--max-bytes", "1").stdout
    assert "--max-hours reached" in crawl.run("crawl", "--max-hours", "0").stdout


@pytest.mark.parametrize("stage, name", [(names.SCHEDULER, names.URL_LIST), (names.EXTRACTOR, names.COLLECTED)])
@pytest.mark.long
def test_a_damaged_table_of_an_open_cycle_is_made_anew(crawl, stage, name):
    assert crawl.run("run-cycle", "--stop-after", stage).returncode == 0
    flip_a_byte(crawl.path / names.cycle(crawl.open_cycle()) / stage / name)
    turn = crawl.run("run-cycle")
    assert turn.returncode == 0 and "set aside as" in turn.stderr, turn.stderr
    crawl.goes_on()
    assert [path for path in (crawl.path / names.CORRUPT).iterdir() if path.name.endswith(name)]


@pytest.mark.long
def test_a_damaged_page_file_is_set_aside_and_its_urls_are_asked_again(crawl):
    assert crawl.run("run-cycle", "--stop-after", names.FETCHER).returncode == 0
    (pages,) = (crawl.path / names.cycle(crawl.open_cycle()) / names.FETCHER / names.PAGES).iterdir()
    flip_a_byte(pages)
    turn = crawl.run("run-cycle")
    assert turn.returncode == 0, turn.stderr
    crawl.goes_on()
    assert [path for path in (crawl.path / names.CORRUPT).iterdir() if path.name.endswith(".warc.zst")]


@pytest.mark.parametrize("name", ["key.npy", "text"])
@pytest.mark.long
def test_a_damaged_generation_holds_its_block_up_until_it_is_repaired(crawled, name):
    crawl = crawled
    assert crawl.run("run-cycle").returncode == 0
    log = replay(crawl.path, open_folder(crawl.path).blocks_first)
    block, generation = max(log.live.items(), key=lambda item: item[1])
    damaged = (
        crawl.path / names.TEXT / names.segment(generation)
        if name == "text"
        else crawl.path / names.generation(block, generation) / name
    )
    flip_a_byte(damaged)
    assert crawl.run("check").returncode == 65
    held_up = crawl.run("crawl", "--cycles", "2")
    assert held_up.returncode == 65 and "Traceback" not in held_up.stderr, held_up.stderr
    status = crawl.run("status")
    assert status.returncode == 65
    (advice,) = [line.split("run: ")[1].split() for line in status.stdout.splitlines() if "run: " in line]
    repaired = subprocess.run([ROOT / advice[0], *advice[1:]], capture_output=True, text=True)
    assert repaired.returncode == 0, repaired.stderr
    crawl.goes_on()
    assert crawl.run("status").returncode == 0


def test_an_unknown_format_version_stops_with_both_numbers(crawl):
    about = crawl.path / names.CRAWL_FILE
    ours, other = b'"format": %d' % FORMAT, b'"format": %d' % (FORMAT + 1)
    assert ours in about.read_bytes()
    about.write_bytes(about.read_bytes().replace(ours, other))
    for name in ("run-cycle", "crawl", "status", "check"):
        run = crawl.run(name)
        assert (
            run.returncode == 65 and f"format version {FORMAT + 1}, this program reads version {FORMAT}" in run.stderr
        )


def find_stage(process: subprocess.Popen, stage: str) -> psutil.Process | None:
    """The process of this stage that a supervisor has had forked; the first one, where several cycles run it."""
    try:
        for child in psutil.Process(process.pid).children(recursive=True):
            if child.status() != psutil.STATUS_ZOMBIE and f"stages.{stage}" in child.cmdline():
                return child
    except psutil.Error:
        pass  # it ended while we looked
    return None


def has_died(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_an_orphan_of_a_killed_supervisor_ends_and_frees_the_lock(crawl):
    process = subprocess.Popen(crawl.command("crawl", "--quiet"), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stage = wait_for(lambda: find_stage(process, names.FETCHER), "a fetcher")
    process.kill()
    process.wait()
    wait_for(lambda: not stage.is_running(), "the orphan to end")
    crawl.goes_on()


def flip_a_byte(path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x55
    path.write_bytes(content)
