"""The file that a policy reads becomes the crawl's own copy: by bin/seed and by runs, or nothing is changed."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from contract import names
from contract.config import Scheduler
from contract.config_file import load
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import create, open_folder
from contract.errors import BadConfiguration, BadInput
from contract.policy_files import files_of, verify_files
from contract.rank_files import read_ranks
from supervise.crawl_state import CrawlState
from supervise.inbox import take_inbox
from supervise.replacement import settle
from supervise.seed import leave

ROOT = Path(__file__).resolve().parent.parent.parent
RANKS = "# of an earlier crawl\nhttp://a.test/ 0.5\nhttp://a.test 0.25\n\nhttp://b.test/x 2\n"
SETTINGS = (
    '[scheduler]\npolicy = "pagerank"\nranks_file = "ranks.txt"\n[fetcher]\ncontact = "mailto:nobody@localhost"\n'
)


def run(name, crawl, *more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "bin" / name, "--crawl", crawl, *more], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@pytest.fixture
def settings(tmp_path) -> Path:
    (tmp_path / "ranks.txt").write_text(RANKS)
    (tmp_path / "mine.toml").write_text(SETTINGS)
    return tmp_path / "mine.toml"


@pytest.fixture
def crawl(tmp_path, settings) -> Path:
    """A crawl that was seeded with the settings."""
    made = run("seed", tmp_path / "crawl", "--config", settings, "http://a.test/")
    assert made.returncode == 0, made.stderr
    return tmp_path / "crawl"


def settled(crawl: Path, config: Path | None = None, *overrides: str):
    arguments = SimpleNamespace(config=config, set=list(overrides), yes=False, quiet=True)
    return settle(open_folder(crawl), arguments)


def copies(crawl: Path) -> list[Path]:
    return names.visible_files(crawl / names.FILES)


def test_a_new_crawl_has_its_own_copy_and_can_be_moved(crawl, tmp_path, settings):
    (copy,) = copies(crawl)
    assert f'ranks_file = "files/{copy.name}"' in (crawl / names.CONFIGURATION).read_text()
    config, keys = read_crawl_config(crawl), open_folder(crawl).keys()
    ranks = dict(read_ranks(verify_files(crawl, config)["scheduler.ranks_file"]).tolist())
    assert ranks == {keys.of("http://a.test/"): 0.5, keys.of("http://a.test"): 0.25, keys.of("http://b.test/x"): 2.0}
    (tmp_path / "ranks.txt").unlink()  # what becomes of it does not matter
    moved = Path(shutil.move(crawl, tmp_path / "elsewhere"))
    assert settled(moved).scheduler.ranks_file == str(moved / names.FILES / copy.name)


def test_the_same_configuration_again_is_no_change(crawl, settings):
    stored = (crawl / names.CONFIGURATION).read_bytes()
    again = run("seed", crawl, "--config", settings, "http://b.test/")
    assert again.returncode == 0, again.stderr
    settled(crawl, settings)
    assert (crawl / names.CONFIGURATION).read_bytes() == stored and len(copies(crawl)) == 1


def test_another_text_is_a_change_that_seeds_refuse_and_runs_take(crawl, settings, tmp_path):
    stored = (crawl / names.CONFIGURATION).read_bytes()
    (tmp_path / "ranks.txt").write_text(RANKS.replace("0.5", "0.75"))
    refused = run("seed", crawl, "--config", settings, "http://b.test/")
    assert refused.returncode == 64 and "scheduler.ranks_file" in refused.stderr
    assert (crawl / names.CONFIGURATION).read_bytes() == stored and len(copies(crawl)) == 1
    assert settled(crawl, settings) == read_crawl_config(crawl)
    assert (crawl / names.CONFIGURATION).read_bytes() != stored and len(copies(crawl)) == 2


def test_set_takes_a_file_for_one_run(tmp_path, settings):
    crawl = create(
        tmp_path / "crawl", 1, config=load(settings, ["scheduler.policy=fifo", "scheduler.ranks_file="])
    ).path
    config = settled(crawl, None, "scheduler.policy=pagerank", f"scheduler.ranks_file={tmp_path}/ranks.txt")
    assert files_of(crawl, config)["scheduler.ranks_file"] == Path(config.scheduler.ranks_file) == copies(crawl)[0]
    assert read_crawl_config(crawl).scheduler.ranks_file == ""


@pytest.mark.parametrize(
    "text, expected",
    [
        ("http://a.test/ nan\n", "line 1: expected a URL or server, a blank and its rank"),
        ("http://a.test/ 1\nhttp://b.test/ -1\n", "line 2: expected"),
        ("http://a.test/ inf\n", "line 1: expected"),
        ("1 http://a.test/\n", "found '1 http://a.test/'"),
        ("http://a.test/ 1\nhttp://a.test/ 2\n", "line 2: expected each URL once"),
        ("a,b,c\n", "line 1: expected"),
        ("\x00\xff", "line 1: expected"),
    ],
)
@pytest.mark.sampled(3)
def test_a_file_that_holds_something_else_changes_nothing(tmp_path, settings, text, expected):
    (tmp_path / "ranks.txt").write_text(text)
    made = run("seed", tmp_path / "crawl", "--config", settings, "http://a.test/")
    assert made.returncode == 65 and expected in made.stderr and f"{tmp_path}/ranks.txt" in made.stderr
    assert not (tmp_path / "crawl").exists()


def test_a_run_that_refuses_a_file_leaves_the_crawl_as_it_was(crawl, settings, tmp_path):
    stored = (crawl / names.CONFIGURATION).read_bytes()
    (tmp_path / "ranks.txt").write_text("junk\n")
    with pytest.raises(BadInput):
        settled(crawl, settings)
    (tmp_path / "ranks.txt").unlink()
    with pytest.raises(BadConfiguration, match="scheduler.ranks_file: expected a file"):
        settled(crawl, settings)
    np.save(tmp_path / "other.npy", np.zeros(3))
    (tmp_path / "other.npy").rename(tmp_path / "ranks.txt")
    with pytest.raises(BadInput, match="the copy of another crawl"):
        settled(crawl, settings)
    assert (crawl / names.CONFIGURATION).read_bytes() == stored and len(copies(crawl)) == 1


def test_a_policy_without_its_file_is_refused(tmp_path, settings):
    settings.write_text(SETTINGS.replace('ranks_file = "ranks.txt"\n', ""))
    made = run("seed", tmp_path / "crawl", "--config", settings, "http://a.test/")
    assert made.returncode == 78 and "scheduler.ranks_file: expected a file of ranks" in made.stderr
    assert not (tmp_path / "crawl").exists()


@pytest.mark.parametrize("damage", ["lost", "changed"])
@pytest.mark.sampled(1)
def test_a_copy_that_is_gone_is_named_and_the_advice_works(crawl, settings, damage):
    (copy,) = copies(crawl)
    good = copy.read_bytes()
    copy.unlink() if damage == "lost" else copy.write_bytes(good[:-1] + b"x")
    with pytest.raises((BadConfiguration, BadInput), match=f"{copy}.*bin/run-cycle --crawl {crawl} --config FILE"):
        settled(crawl)
    shown = run("status", crawl)
    if damage == "lost":
        assert shown.returncode == 65 and str(copy) in shown.stdout and "--config FILE" in shown.stdout, shown.stdout
    assert run("seed", crawl, "http://b.test/").returncode == 0, "seeds wait until it is mended"
    settled(crawl, None, "scheduler.policy=fifo")  # which does not read it
    settled(crawl, settings)
    assert copy.read_bytes() == good and run("status", crawl).returncode == 0


def test_a_crawl_whose_seeding_was_killed_gets_its_copy_from_the_first_run(tmp_path, settings):
    crawl = create(tmp_path / "crawl", 1, config=load(settings)).path
    assert read_crawl_config(crawl).scheduler.ranks_file == f"{tmp_path}/ranks.txt"
    config = settled(crawl)
    assert read_crawl_config(crawl) == config and config.scheduler.ranks_file == str(copies(crawl)[0])


def test_a_crawl_whose_seeding_was_killed_has_a_status_and_a_fork(tmp_path, settings):
    weights = create(tmp_path / "weights", 1, config=replace(load(settings), scheduler=Scheduler(policy="neural"))).path
    shown = run("status", weights)
    assert shown.returncode == 0, shown.stderr
    crawl = create(tmp_path / "crawl", 1, config=load(settings)).path
    leave(crawl, ["http://a.test/"])
    take_inbox(CrawlState(open_folder(crawl)), read_crawl_config(crawl))
    forked = run("fork", crawl, tmp_path / "fork")
    assert forked.returncode == 0, forked.stderr
    assert settled(tmp_path / "fork").scheduler.ranks_file == str(copies(tmp_path / "fork")[0])


def test_a_fork_has_the_copy_too(crawl, tmp_path):
    take_inbox(CrawlState(open_folder(crawl)), read_crawl_config(crawl))
    forked = run("fork", crawl, tmp_path / "fork")
    assert forked.returncode == 0, forked.stderr
    shutil.rmtree(crawl)
    (copy,) = copies(tmp_path / "fork")
    assert settled(tmp_path / "fork").scheduler.ranks_file == str(copy)
    assert f'ranks_file = "files/{copy.name}"' in (tmp_path / "fork" / names.CONFIGURATION).read_text()
