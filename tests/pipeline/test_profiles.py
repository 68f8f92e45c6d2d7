"""bin/run-cycle --demo --config FILE: each profile crawls a small web to its end."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from contract import names
from contract.config import Scheduler, lookup
from contract.crawl_config import read_crawl_config
from contract.tables import URL_LIST
from contract.url import server_of
from storage.tables import read_table
from supervise.demo import WEB_SEED
from supervise.demo_profile import read_profile
from synthweb import Web
from tests.pipeline.judge import ROOT, assert_truth, committed_cycles, run
from tests.pipeline.test_supervisor import wait_for

QUICK, SERVERS = "valle", 12
WHOLE = ("itmo", "veuni")  # their rules leave nothing out of this web
SMALLER = """
from contract.command import run
from supervise import demo, run_cycle
demo.WEB_SERVERS = {servers}
run(run_cycle.main, run_cycle.NAME)
"""


def start(folder: Path, profile: Path) -> subprocess.Popen:
    """The demonstration with a profile and a web of fewer servers."""
    command = [sys.executable, "-P", "-c", SMALLER.format(servers=SERVERS), "--demo", "--config", profile]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, stdin=nothing, stdout=pipe, stderr=pipe, text=True)


def demonstrate(folder: Path, profile: Path) -> subprocess.CompletedProcess:
    process = start(folder, profile)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.mark.parametrize(
    "name",
    [QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in ("itmo", "padova", "silva", "veuni", "archive"))],
)
def test_a_profile_crawls_a_web_to_its_end(name, tmp_path):
    file, crawl = ROOT / "profiles" / f"{name}.toml", tmp_path / "demo" / name / "crawl"
    done = demonstrate(tmp_path, file)
    assert done.returncode == 0 and "nothing is waiting" in done.stdout, done.stderr
    profile = read_profile(file)
    assert all(line in done.stderr for line in profile.describe())
    config = read_crawl_config(crawl)
    assert [change for change in profile.taken if lookup(config, change.name) != change.after] == []
    checked = run("check", "--crawl", crawl)
    assert checked.returncode == 0, checked.stdout
    if name in WHOLE:
        assert_truth(crawl, Web(WEB_SEED, SERVERS, int((crawl.parent / "web" / "port").read_text())))
    assert_caps(crawl, config.scheduler)
    commits = len(names.numbered(crawl / names.LOG, ".json"))
    again = demonstrate(tmp_path, file)
    assert again.returncode == 0 and "nothing is waiting" in again.stdout, again.stderr
    assert len(names.numbered(crawl / names.LOG, ".json")) == commits, "the same command resumes what has ended"
    assert [path.name for path in (tmp_path / "demo").iterdir()] == [name]


def assert_caps(crawl: Path, caps: Scheduler) -> None:
    for cycle in committed_cycles(crawl):
        listed = read_table(crawl / names.cycle(cycle) / names.SCHEDULER / names.URL_LIST, URL_LIST)
        by_server = Counter(map(server_of, listed.column("url").to_pylist()))
        assert by_server.total() <= caps.list_max_urls and max(by_server.values(), default=0) <= caps.server_max_urls


@pytest.mark.long
def test_an_interrupted_demonstration_names_the_command_that_resumes_it(tmp_path):
    file, crawl = ROOT / "profiles" / "itmo.toml", tmp_path / "demo" / "itmo" / "crawl"
    process = start(tmp_path, file)
    wait_for(lambda: names.numbered(crawl / names.CYCLES), "the first of many cycles")
    process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode == 75, errors
    assert f"interrupted; bin/run-cycle --demo --config {file} resumes it" in errors
    done = demonstrate(tmp_path, file)
    assert done.returncode == 0 and "nothing is waiting" in done.stdout, done.stderr
    assert_truth(crawl, Web(WEB_SEED, SERVERS, int((crawl.parent / "web" / "port").read_text())))
