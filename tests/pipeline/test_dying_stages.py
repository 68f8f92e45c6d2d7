"""Stages that keep dying: no URL is charged, pages are kept, and a run ends with exit 75 if the machine is at fault."""

import json
import os
import signal
import subprocess
import threading
from contextlib import suppress

import psutil
import pytest

from contract import names
from contract.crawl_folder import create
from contract.log import ABANDON, CRAWL, replay
from contract.tables import FAILURES
from contract.warc import ANSWERS, ROBOTS_FOR, PageReader
from storage.errors import Damaged
from storage.tables import read_table
from supervise.demo import SETTINGS
from supervise.seed import leave
from supervise.turns import BlockView, Turn, next_turn
from tests.fetcher_lab import NO_ROBOTS, RawServer, ok
from tests.pipeline.judge import ROOT, assert_truth
from tests.pipeline.test_supervisor import HASH_SEED, Crawl, find_stage, has_died, wait_for

SERVERS = 4


@pytest.fixture
def crawl(tmp_path, small_web) -> Crawl:
    return Crawl(tmp_path, *small_web, servers=SERVERS)


class Killer:
    """Kills every process of one stage, as an out-of-memory killer would, at most `most` times."""

    def __init__(self, process: subprocess.Popen, stage: str, most: int = 100):
        self._process, self._stage, self._most = process, stage, most
        self.kills = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self._process.poll() is None and self.kills < self._most:
            child = find_stage(self._process, self._stage)
            if child:
                child.kill()
                self.kills += 1
                while self._process.poll() is None and not has_died(child):
                    threading.Event().wait(0.01)
            threading.Event().wait(0.005)

    def join(self) -> None:
        self._thread.join()


def run_killing(crawl: Crawl, stage: str, *command, most: int = 100) -> tuple[int, str, int]:
    """Exit code, standard error, and how often the stage was killed."""
    process = subprocess.Popen(
        crawl.command(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    killer = Killer(process, stage, most)
    _, errors = process.communicate()
    killer.join()
    return process.returncode, errors, killer.kills


def status(crawl: Crawl) -> dict:
    return json.loads(crawl.run("status", "--json").stdout)


@pytest.mark.long
def test_when_every_fetcher_is_killed_the_run_ends_and_nothing_is_lost(crawl):
    code, errors, kills = run_killing(crawl, names.FETCHER, "crawl", "--until-done")
    assert code == 75, errors
    assert "the fetcher died 4 times, last by signal 9 (SIGKILL), in two cycles in a row" in errors, errors
    assert "last lines:" in errors and "are available now" in errors and "Traceback" not in errors
    assert kills == 8
    assert status(crawl)["states"].get("given_up", 0) == 0, "a fault of the machine is charged to nobody"
    crawl.goes_on("--until-done")
    assert_truth(crawl.path, crawl.web)


@pytest.mark.long
def test_when_every_verifier_is_killed_its_block_waits_for_the_next_run(crawl):
    """The one block that has something to do cannot take its seeds in: no other cycle can die."""
    code, errors, kills = run_killing(crawl, names.VERIFIER, "crawl", "--until-done")
    assert code == 75 and kills == 4, errors
    assert "waits for the next run: the verifier died 4 times, last by signal 9 (SIGKILL)" in errors
    crawl.goes_on()


def test_a_cycle_that_has_pages_is_held_and_the_next_run_resumes_it(crawl):
    assert crawl.run("run-cycle", "--stop-after", names.FETCHER).returncode == 0
    cycle = crawl.open_cycle()
    code, errors, kills = run_killing(crawl, names.EXTRACTOR, "run-cycle", most=4)
    assert kills == 4
    assert (
        f"cycle {cycle} of block" in errors and "is held for the rest of this run: the extractor died 4 times" in errors
    ), errors
    assert code == 75, "work waits for the next run"
    shown = crawl.run("status")
    assert f"held      cycle {cycle} waits for the next run" in shown.stdout and shown.returncode == 0, shown.stdout
    assert ABANDON not in [entry.kind for entry in replay(crawl.path, 2).entries]
    resumed = crawl.run("run-cycle")
    assert resumed.returncode == 0 and f"cycle {cycle} done" in resumed.stdout, resumed.stderr
    assert "held  " not in crawl.run("status").stdout
    crawl.goes_on()


@pytest.mark.long
def test_a_cycle_without_pages_is_abandoned_and_its_urls_are_listed_again(crawl):
    code, errors, kills = run_killing(crawl, names.SCHEDULER, "run-cycle", most=4)
    assert kills == 4 and code == 0, errors
    assert "abandoned, no URL is charged: the scheduler died 4 times" in errors
    kinds = [entry.kind for entry in replay(crawl.path, 2).entries]
    assert ABANDON in kinds and CRAWL in kinds, "the same command went on with the next cycle"
    crawl.goes_on()


@pytest.mark.long
def test_drop_open_charges_nobody_and_keeps_pages(crawl, tmp_path):
    assert "no cycle is open" in crawl.run("run-cycle", "--drop-open").stderr
    assert crawl.run("run-cycle", "--stop-after", names.FETCHER).returncode == 0
    cycle = crawl.open_cycle()
    assert crawl.run("run-cycle", "--drop-open", str(cycle + 5)).returncode == 64
    dropped = crawl.run("run-cycle", "--drop-open")
    assert dropped.returncode == 0 and f"cycle {cycle} dropped, no URL is charged; its pages stay" in dropped.stdout, (
        dropped.stderr
    )
    folder = dropped.stdout.split("bin/extractor ")[1].split()[0]
    assert status(crawl)["open"] == [] and status(crawl)["entries"]["abandon"] == 1
    crawl.goes_on("--until-done")
    assert_truth(crawl.path, crawl.web)
    read = crawl.run("extractor", folder, "--out", tmp_path / "tables")
    assert read.returncode == 0 and (tmp_path / "tables" / names.METADATA).exists(), read.stderr


def has_page(path) -> bool:
    try:
        return any(record.type in ANSWERS and not record.get(ROBOTS_FOR) for record in PageReader(path).records())
    except Damaged:
        return False  # it is being written


@pytest.mark.long
def test_drop_open_keeps_pages_that_were_not_published(crawl):
    process = subprocess.Popen(
        crawl.command("run-cycle", "--set", "fetcher.delay_s=2"),  # so that it is not over before it is stopped
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pages = wait_for(
        lambda: list(filter(has_page, crawl.path.glob(f"{names.CYCLES}/*/{names.FETCHER}/{names.PAGES}/*"))), "a page"
    )
    family = psutil.Process(process.pid).children(recursive=True)  # the fetcher may have fetched all by now
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: all(map(has_died, family)), "what it had started to end")
    if status(crawl)["open"]:  # on a busy machine the cycle may be over
        assert crawl.run("run-cycle", "--drop-open").returncode == 0
    crawl.goes_on()
    assert pages[0].exists() and os.path.getsize(pages[0])


def find_askers(run: subprocess.Popen, port: int) -> list[psutil.Process]:
    """The stage that has a connection from this port, and the worker process of it that does."""
    found = []
    for stage in psutil.Process(run.pid).children(recursive=True):
        try:
            family = [stage, *stage.children()] if f"stages.{names.FETCHER}" in stage.cmdline() else []
            if any(one.laddr.port == port for process in family for one in process.net_connections("tcp") if one.laddr):
                found += reversed(family)
        except psutil.Error:
            continue  # it ended while we looked
    return found


@pytest.mark.long
def test_a_page_that_kills_and_is_alone_in_its_block_is_charged_once_another_block_passes(tmp_path):
    """HASH_SEED puts kill.test and good.test into different blocks, the first of which has its turn first."""
    crawl, process = tmp_path / "crawl", None

    def kill(connection) -> None:
        """Kills the fetcher that asks, not that of the other block."""
        for one in find_askers(process, connection.getpeername()[1]):
            with suppress(psutil.NoSuchProcess):  # a fetcher ends by itself once its worker process is killed
                one.kill()
        connection.recv(1)  # until the kernel has closed it

    pages = {"/": ok(b"<a href=/one>1</a>"), "/one": ok()}
    with RawServer(lambda seen: kill if seen.target == "/deadly" else pages.get(seen.target, NO_ROBOTS)) as server:
        (tmp_path / "hosts").write_text("127.0.0.1 kill.test\n127.0.0.1 good.test\n")
        (tmp_path / "pipeline.toml").write_text(SETTINGS.format(hosts=tmp_path / "hosts"))
        create(crawl, 2, HASH_SEED)
        leave(crawl, [f"http://kill.test:{server.port}/deadly", f"http://good.test:{server.port}/"])
        words = ["--crawl", crawl, "--config", tmp_path / "pipeline.toml", "--set", "supervisor.retry_wait_s=0.01"]
        process = subprocess.Popen(
            [ROOT / "bin/crawl", *words, "--until-done"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        _, errors = process.communicate()
    assert "abandoned, no URL is charged: the fetcher died 4 times" in errors, errors
    failures = [
        row
        for path in crawl.glob(f"{names.CYCLES}/*/{names.EXTRACTOR}/{names.FAILURES}")
        for row in read_table(path, FAILURES).to_pylist()
    ]
    assert {(row["url"], row["reason"]) for row in failures} == {
        (f"http://kill.test:{server.port}/deadly", "killed_fetcher")
    }
    shown = json.loads(subprocess.run([ROOT / "bin/status", "--crawl", crawl, "--json"], capture_output=True).stdout)
    assert shown["states"]["collected"] == 2 and shown["without_plan"] == [], shown


def test_seeds_that_wait_are_taken_in_before_a_block_whose_cycle_was_abandoned_is_listed_again():
    waits, abandoned = BlockView(0, waiting=1, pending=True), BlockView(0, waiting=1, pending=True, was_abandoned=True)
    assert next_turn([waits], 0) == Turn("crawl", 0) and next_turn([abandoned], 0) == Turn("absorb", 0)
