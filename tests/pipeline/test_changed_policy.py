"""A crawl whose policy changes: blocks are prepared first, once; a crawl with revisits ends with --until-done."""

import json
import os
from pathlib import Path

import pytest

from contract import names
from contract.config import lookup
from contract.crawl_config import read_crawl_config
from contract.plan import read_plan
from storage.publish import read_manifest
from supervise.demo import SETTINGS
from synthweb import Web
from tests.pipeline.judge import committed_cycles, run

WEB_SEED, WEB_SERVERS = 8, 4
REVISITS = ("--set", "revisit.policy=uniform", "--set", "revisit.interval_s=86400")


@pytest.fixture
def crawl(tmp_path, small_web) -> Path:
    """A crawl after one cycle, by the default policy."""
    state, port = small_web
    settings = tmp_path / "mine.toml"
    settings.write_text(SETTINGS.format(hosts=os.path.relpath(state / "hosts", tmp_path)))
    seeds = Web(WEB_SEED, WEB_SERVERS, port).seeds()
    assert run("seed", "--crawl", tmp_path / "crawl", "--config", settings, *seeds).returncode == 0
    turn = run("run-cycle", "--crawl", tmp_path / "crawl")
    assert turn.returncode == 0, turn.stderr
    return tmp_path / "crawl"


def kinds(crawl: Path) -> list[str]:
    """Of all committed entries, in their order."""
    return [json.loads(path.read_bytes())["kind"] for path in sorted((crawl / names.LOG).iterdir())]


def test_blocks_are_prepared_before_they_are_listed_by_another_policy(crawl):
    before = len(kinds(crawl))
    shown = run("status", "--crawl", crawl, "--json")
    assert json.loads(shown.stdout)["unprepared"] == 0
    turn = run("run-cycle", "--crawl", crawl, "--set", "scheduler.policy=fifo")
    assert turn.returncode == 0, turn.stderr
    after = kinds(crawl)[before:]
    assert after[0] == "absorb" and after.count("crawl") == 1 and after[-1] == "crawl"
    cycle = names.numbered(crawl / names.CYCLES)[-1]
    plan = read_plan(crawl, cycle)
    assert plan.config.scheduler.policy == "fifo" and read_crawl_config(crawl).scheduler.policy == "shortest-path"
    made = read_manifest(crawl / names.generation(plan.block, plan.cycle))
    assert made["prepared"]["policy"] == "fifo"
    assert "unprepared" not in (crawl / names.MESSAGES).read_text() and "did not prepare" not in turn.stderr
    assert json.loads(run("status", "--crawl", crawl, "--json").stdout)["unprepared"] >= 1, "the stored one is another"
    assert run("check", "--crawl", crawl).returncode == 0


@pytest.mark.long
def test_a_crawl_with_revisits_ends_when_nothing_waits(crawl):
    ended = run("crawl", "--crawl", crawl, "--until-done", *REVISITS)
    assert ended.returncode == 0 and "done: nothing is waiting" in ended.stdout + ended.stderr, ended.stderr
    pages = json.loads(run("status", "--crawl", crawl, "--json").stdout)
    assert pages["waiting"] == 0 and pages["visits"] == pages["collected"] > 0
    cycles = committed_cycles(crawl)
    again = run("run-cycle", "--crawl", crawl, *REVISITS)
    assert again.returncode == 0 and "nothing is due before" in again.stdout + again.stderr, again.stdout
    assert committed_cycles(crawl) == cycles, "no page is due for a day"


@pytest.mark.long
def test_a_list_is_sized_to_the_time_that_a_cycle_is_to_take(crawl):
    turn = run("run-cycle", "--crawl", crawl, "--set", "scheduler.cycle_target_s=0.001")
    assert turn.returncode == 0, turn.stderr
    plan = read_plan(crawl, names.numbered(crawl / names.CYCLES)[-1])
    assert lookup(plan.config, "scheduler.list_max_urls") == 100 == lookup(plan.config, "scheduler.server_max_urls")
