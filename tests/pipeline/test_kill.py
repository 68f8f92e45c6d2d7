"""kill -9 at random moments, of the supervisor or of a stage, and the crawl goes on: nothing lost, nothing twice."""

import os
import random
import signal
import subprocess
import time

import psutil
import pytest

from contract.crawl_folder import create
from supervise.demo import SETTINGS
from supervise.seed import leave
from synthweb import Web
from tests.pipeline.judge import ROOT, access_record, asked_twice, assert_obedient, assert_truth

WEB_SEED, WEB_SERVERS = 4, 40
KILLS = 25
SYNC_EVERY_PAGES = 5
TRANSFERS_MAX = 20
WITHIN_S = 900  # reached only where it does not end


@pytest.fixture
def web(synthetic_web):
    return synthetic_web(WEB_SEED, WEB_SERVERS)


@pytest.mark.long
def test_killed_at_random_moments_nothing_is_lost_or_doubled(tmp_path, web):
    state, port = web
    crawl, settings = tmp_path / "crawl", tmp_path / "pipeline.toml"
    settings.write_text(SETTINGS.format(hosts=state / "hosts"))
    create(crawl, 2)
    leave(crawl, Web(WEB_SEED, WEB_SERVERS, port).seeds())
    command = [
        ROOT / "bin/crawl",
        "--crawl",
        crawl,
        "--config",
        settings,
        "--until-done",
        "--set",
        f"fetcher.sync_every_pages={SYNC_EVERY_PAGES}",
        "--set",
        f"fetcher.transfers_max={TRANSFERS_MAX}",
        "--set",
        "blocks.servers_max=20",
        "--set",
        "supervisor.retry_wait_s=0.05",
        "--quiet",
    ]
    random_moments = random.Random(20261116)
    kills, deadline = 0, time.monotonic() + WITHIN_S
    process = None
    while process is None or process.returncode != 0:
        assert time.monotonic() < deadline, "the crawl does not come to its end"
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while kills < KILLS and not has_ended(process, random_moments.uniform(0.2, 2.0)):
            kills += 1
            kill_one(process.pid, random_moments)
        _, errors = process.communicate()
        assert process.returncode in (0, 75, -signal.SIGKILL), (
            errors
        )  # 75: an orphan holds the lock until it has ended itself
    assert kills == KILLS, "the crawl ended before it was killed often enough"
    truth = Web(WEB_SEED, WEB_SERVERS, port)
    assert_truth(crawl, truth)
    record = access_record(state, port)
    assert_obedient(record, truth)
    asked = asked_twice(record)
    assert sum(number - 1 for number in asked.values()) <= kills * (SYNC_EVERY_PAGES + TRANSFERS_MAX), (
        "more than what was not yet synced at a kill"
    )
    checked = subprocess.run([ROOT / "bin/check", "--crawl", crawl], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    leftovers = list(crawl.rglob(".aside-*"))
    assert not leftovers


def has_ended(process: subprocess.Popen, within_s: float) -> bool:
    try:
        process.wait(within_s)
        return True
    except subprocess.TimeoutExpired:
        return False


def kill_one(supervisor: int, random_moments: random.Random) -> None:
    """Kills the supervisor or, every other time, the stage that it runs."""
    stages = psutil.Process(supervisor).children()
    if stages and random_moments.random() < 0.5:
        try:
            stages[0].kill()
        except psutil.NoSuchProcess:
            pass
    else:
        os.kill(supervisor, signal.SIGKILL)
