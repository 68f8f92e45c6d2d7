"""Forks of a crawl of a small web, made while it rests and while it runs, all crawled to the same end."""

import subprocess
from pathlib import Path

import pytest

from contract.crawl_folder import create
from supervise.demo import SETTINGS
from supervise.seed import leave
from synthweb import Web
from tests.pipeline.judge import ROOT, RULES, assert_truth, run

WEB_SEED, WEB_SERVERS = 8, 4
FORKS_OF_A_RUNNING_CRAWL = 2


@pytest.fixture
def web(small_web, tmp_path):
    state, port = small_web
    (tmp_path / "pipeline.toml").write_text(SETTINGS.format(hosts=state / "hosts"))
    create(tmp_path / "crawl", 2)
    web = Web(WEB_SEED, WEB_SERVERS, port)
    leave(
        tmp_path / "crawl", [*web.seeds(), *sorted(web.truth(RULES))]
    )  # all of it, so that few cycles are left to the end
    return web


def crawl_command(crawl: Path, *limits) -> tuple:
    return (
        "crawl",
        "--crawl",
        crawl,
        "--config",
        crawl.parent / "pipeline.toml",
        "--set",
        "blocks.keep_generations=2",
        "--quiet",
        *limits,
    )


def assert_whole(crawl: Path) -> None:
    checked = run("check", "--crawl", crawl)
    assert checked.returncode == 0, checked.stdout


def kept(crawl: Path) -> list[int]:
    return [
        int(line.split()[1])
        for line in run("fork", "--crawl", crawl, "--list").stdout.splitlines()
        if line.startswith("commit ")
    ]


@pytest.mark.long
def test_every_fork_and_the_crawl_itself_come_to_the_same_end(web, tmp_path):
    crawl = tmp_path / "crawl"
    turns = run(*crawl_command(crawl, "--cycles", "4", "--set", "scheduler.server_max_urls=5"))
    assert turns.returncode == 0, turns.stderr
    opened = run("run-cycle", "--crawl", crawl, "--config", tmp_path / "pipeline.toml", "--stop-after", "fetcher")
    assert opened.returncode == 0, opened.stderr
    positions = kept(crawl)
    assert len(positions) >= 3
    forks = {}
    for at in {positions[0], positions[-2], positions[-1]}:
        forks[at] = tmp_path / f"fork-{at}"
        made = run("fork", "--crawl", crawl, "--at", at, forks[at])
        assert made.returncode == 0, made.stderr
        assert_whole(forks[at])
    twice = tmp_path / "twice"
    assert run("fork", "--crawl", crawl, "--at", positions[-1], twice).returncode == 0
    of_fork = tmp_path / "fork-of-fork"
    assert run("fork", "--crawl", forks[positions[-1]], "--at", positions[-2], of_fork).returncode == 0
    for folder in (crawl, of_fork):
        to_its_end = run(*crawl_command(folder, "--until-done"))
        assert to_its_end.returncode == 0, to_its_end.stderr
    for folder in (crawl, *forks.values(), twice, of_fork):
        assert_whole(folder)
    for folder in (crawl, of_fork):
        assert_truth(folder, web)


@pytest.mark.long
def test_a_running_crawl_is_forked_without_its_lock(web, tmp_path):
    crawl = tmp_path / "crawl"
    assert run(*crawl_command(crawl, "--cycles", "1", "--set", "scheduler.server_max_urls=5")).returncode == 0
    command = crawl_command(crawl, "--until-done", "--set", "scheduler.server_max_urls=20")
    process = subprocess.Popen(
        [ROOT / "bin" / command[0], *map(str, command[1:])], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    forks = []
    for number in range(FORKS_OF_A_RUNNING_CRAWL):
        made = run("fork", "--crawl", crawl, tmp_path / f"fork-{number}")
        assert made.returncode in (0, 75), made.stderr
        assert (tmp_path / f"fork-{number}").exists() == (made.returncode == 0)
        forks += [tmp_path / f"fork-{number}"] if made.returncode == 0 else []
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert forks, "none was made"
    for folder in (crawl, *forks):
        assert_whole(folder)
    assert run(*crawl_command(forks[-1], "--cycles", "2")).returncode == 0
    assert_whole(forks[-1])
