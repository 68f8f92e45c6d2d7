"""A crawl that lost its whole R: every block is made again from the tables of its cycles, and the crawl goes on."""

import shutil

import pytest

from contract import names
from contract.crawl_folder import create, open_folder
from contract.log import GROW, replay
from supervise.demo import SETTINGS
from supervise.seed import leave
from synthweb import Web
from tests.pipeline.judge import run

WEB_SEED, WEB_SERVERS = 8, 14


@pytest.mark.long
def test_all_of_r_is_made_again_and_the_crawl_goes_on(synthetic_web, tmp_path):
    state, port = synthetic_web(WEB_SEED, WEB_SERVERS)
    crawl, settings = tmp_path / "crawl", tmp_path / "pipeline.toml"
    settings.write_text(SETTINGS.format(hosts=state / "hosts"))
    create(crawl, 1)  # so that the first bound is surely passed, whatever the keys are
    leave(crawl, Web(WEB_SEED, WEB_SERVERS, port).seeds())
    more = ("--config", settings, "--set", "blocks.keep_generations=0", "--set", "blocks.servers_max=4", "--quiet")
    assert run("crawl", "--crawl", crawl, *more, "--cycles", "5").returncode == 0
    log = replay(crawl, open_folder(crawl).blocks_first)
    assert [entry for entry in log.entries if entry and entry.kind == GROW], (
        "no block was split: the test tests less than it should"
    )
    before = {
        path.relative_to(crawl): path.read_bytes() for path in (crawl / names.GENERATIONS).rglob("*") if path.is_file()
    }
    shutil.rmtree(crawl / names.GENERATIONS)
    assert run("check", "--crawl", crawl).returncode == 65
    for block in range(log.blocks):
        if log.generation(block) is not None:
            rebuilt = run("verifier", "--crawl", crawl, "--rebuild", block)
            assert rebuilt.returncode == 0, rebuilt.stderr
    after = {
        path.relative_to(crawl): path.read_bytes() for path in (crawl / names.GENERATIONS).rglob("*") if path.is_file()
    }
    assert after == before
    checked = run("check", "--crawl", crawl)
    assert checked.returncode == 0, checked.stdout
    on = run("crawl", "--crawl", crawl, *more, "--cycles", "1")
    assert on.returncode == 0, on.stderr
    assert run("check", "--crawl", crawl).returncode == 0
