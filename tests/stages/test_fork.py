"""bin/fork: a crawl folder cut at a commit has what the crawl had then, and is a crawl of its own."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from contract import names
from contract.config import Config
from contract.crawl_folder import open_folder
from contract.errors import EX_DATAERR, EX_TEMPFAIL, EX_USAGE, TryLater
from contract.log import CRAWL
from contract.units import count
from storage.publish import read_json, read_manifest
from supervise.crawl_state import CrawlState
from supervise.fork import Fork, folder_aside
from supervise.retention import read_entries
from tests.small_crawl import Page, SmallCrawl

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS = [f"http://s{number}.test/" for number in range(12)]


def run(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "bin/fork", *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def open_small(path: Path) -> SmallCrawl:
    """A crawl folder that is there already."""
    crawl = SmallCrawl.__new__(SmallCrawl)
    crawl.crawl = open_folder(path)
    crawl.config, crawl.keys, crawl.crawl_state = Config(), crawl.crawl.keys(), CrawlState(crawl.crawl)
    return crawl


def turn(crawl: SmallCrawl, block: int) -> None:
    plan = crawl.plan(CRAWL, block)
    listed = crawl.schedule(plan)
    crawl.harvest(
        plan, {url: Page(links=[f"{url}{plan.cycle}-{number}" for number in range(3)] + SEEDS) for url in listed}
    )
    crawl.verify(plan)


@pytest.fixture(scope="module")
def grown_once(tmp_path_factory) -> tuple[SmallCrawl, list[dict]]:
    crawl = SmallCrawl(tmp_path_factory.mktemp("grown") / "crawl")
    known: list[dict] = []

    def note():
        while len(known) < crawl.crawl_state.log.length:
            known.append(crawl.rows())

    crawl.seed(SEEDS)
    note()
    for block in (0, 1):
        crawl.absorb(block)
        note()
    for step in (
        lambda: turn(crawl, 0),
        lambda: turn(crawl, 1),
        lambda: crawl.grow(0),
        lambda: turn(crawl, 2),
        lambda: crawl.absorb(0),
        lambda: turn(crawl, 0),
    ):
        step()
        note()
    return crawl, known


@pytest.fixture
def grown(grown_once, tmp_path) -> tuple[SmallCrawl, list[dict]]:
    """A crawl with a split and nothing deleted, and what it knew after each commit."""
    crawl, known = grown_once
    return open_small(shutil.copytree(crawl.crawl.path, tmp_path / "crawl", symlinks=True)), list(known)


def test_a_fork_knows_what_the_crawl_knew_after_that_commit(grown, tmp_path):
    crawl, known = grown
    ids = {crawl.crawl.crawl_id}
    cuts = (0, 2, 4, 5, len(known) - 1)  # seeds alone, all blocks, before the split, right after it, the last
    for at in cuts:
        made = run("--crawl", crawl.crawl.path, "--at", at, tmp_path / f"fork-{at}")
        assert made.returncode == 0 and f"a crawl of {count(at + 1, 'commit')};" in made.stdout, made.stderr
        fork = open_small(tmp_path / f"fork-{at}")
        assert fork.crawl_state.log.length == at + 1 and fork.rows() == known[at]
        assert fork.crawl_state.open_cycles() == [] and fork.crawl.hash_seed == crawl.crawl.hash_seed
        assert fork.crawl_state.next_cycle() == fork.crawl_state.log.closed.end
        ids.add(fork.crawl.crawl_id)
        about = read_json(fork.crawl.path / names.CRAWL_FILE)["forked_from"]
        assert (about["crawl_id"], about["commit"]) == (crawl.crawl.crawl_id, at)
    assert len(ids) == len(cuts) + 1
    assert not list(tmp_path.glob(".aside-*"))


def test_the_fork_and_the_crawl_go_their_own_ways(grown, tmp_path):
    """Both use the same numbers for other cycles; neither changes a byte of the other."""
    crawl, known = grown
    forks = [tmp_path / "one", tmp_path / "two"]
    for folder in forks:
        assert run("--crawl", crawl.crawl.path, "--at", 4, folder).returncode == 0
    assert run("--crawl", forks[0], "--at", 3, tmp_path / "fork of a fork").returncode == 0
    assert open_small(tmp_path / "fork of a fork").rows() == known[3]
    before = content(crawl.crawl.path)
    for block, folder in enumerate(forks):
        fork = open_small(folder)
        fork.seed([f"http://only-in-{folder.name}.test/"])
        turn(fork, block)
        fork.absorb_all()
        turn(fork, block)
        fork.delete()
        assert f"http://only-in-{folder.name}.test/" in fork.rows()
    assert content(crawl.crawl.path) == before
    assert crawl.rows() == known[-1]
    kept = open_small(forks[1]).rows()
    turn(crawl, 1)
    crawl.delete()
    assert open_small(forks[1]).rows() == kept


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != names.LOCK
    }


def test_files_are_links_and_open_cycles_inbox_lock_and_slots_stay_behind(grown, tmp_path):
    crawl, _ = grown
    path = crawl.crawl.path
    opened = crawl.plan(CRAWL, 1)
    crawl.schedule(opened)
    for name in (
        names.LOCK,
        names.SLOTS,
        f"{names.INBOX}/waiting.txt",
        f"{names.cycle(3)}/{names.EXTRACTOR}/of-nobody",
        f"{names.TEXT}/of-nobody.zst",
    ):
        (path / name).write_text("http://later.test/\n")
    made = run("--crawl", path, tmp_path / "fork")
    assert made.returncode == 0 and "0 copied" in made.stdout, made.stderr
    fork = tmp_path / "fork"
    files = [name.relative_to(fork) for name in fork.rglob("*") if name.is_file()]
    assert {name for name in files if not os.path.samefile(fork / name, path / name)} == {
        Path(names.CRAWL_FILE),
        Path(names.SUFFIX_LIST),
        Path(names.CONFIGURATION),
    }
    left = set(content(path)) - {str(name) for name in files}
    assert left == {
        names.SLOTS,
        f"{names.INBOX}/waiting.txt",
        f"{names.cycle(3)}/{names.EXTRACTOR}/of-nobody",
        f"{names.TEXT}/of-nobody.zst",
        *(name for name in content(path) if name.startswith(names.cycle(opened.cycle))),
    }


def test_copies_where_links_cannot_be(grown, tmp_path, small_disk):
    crawl, known = grown
    small_disk(tmp_path / "disk", 8192)
    made = run("--crawl", crawl.crawl.path, tmp_path / "disk" / "fork")
    assert made.returncode == 0 and "0 files linked" in made.stdout, made.stderr
    assert open_small(tmp_path / "disk" / "fork").rows() == known[-1]
    path = crawl.crawl.path / names.cycle(3) / names.EXTRACTOR / names.COLLECTED
    damaged = bytearray(path.read_bytes())
    damaged[40] ^= 1
    path.write_bytes(damaged)
    refused = run("--crawl", crawl.crawl.path, tmp_path / "disk" / "other")
    assert (
        refused.returncode == EX_DATAERR and names.COLLECTED in refused.stderr and "expected checksum" in refused.stderr
    )
    assert os.listdir(tmp_path / "disk") == ["fork"]


def test_a_full_disk_leaves_nothing(grown, tmp_path, small_disk):
    crawl, known = grown
    resize = small_disk(tmp_path / "disk", 300)
    full = run("--crawl", crawl.crawl.path, tmp_path / "disk" / "fork")
    assert full.returncode == EX_TEMPFAIL and "No space left" in full.stderr and "Traceback" not in full.stderr
    assert os.listdir(tmp_path / "disk") == []
    resize(8192)
    assert run("--crawl", crawl.crawl.path, tmp_path / "disk" / "fork").returncode == 0
    assert open_small(tmp_path / "disk" / "fork").rows() == known[-1]


def test_a_commit_that_is_not_kept_is_named_with_what_it_lacks(grown, tmp_path):
    crawl, known = grown
    crawl.delete(keep=1)
    listed = run("--crawl", crawl.crawl.path, "--list")
    kept = [int(line.split()[1]) for line in listed.stdout.splitlines() if line.startswith("commit ")]
    assert (
        0 in kept
        and len(known) - 1 in kept
        and 3 not in kept
        and f"{len(kept)} of {len(known)} commits" in listed.stdout
    )
    for at in {0, 3, kept[1], len(known) - 1}:
        made = run("--crawl", crawl.crawl.path, "--at", at, tmp_path / f"fork-{at}")
        assert made.returncode == (0 if at in kept else EX_USAGE), (at, made.stderr)
        if at in kept:
            assert open_small(tmp_path / f"fork-{at}").rows() == known[at]
        else:
            assert "is gone" in made.stderr and "keep_generations" in made.stderr
            assert not (tmp_path / f"fork-{at}").exists()


def test_without_a_commit_named_the_last_kept_is_taken(grown, tmp_path):
    crawl, known = grown
    shutil.rmtree(crawl.crawl.path / names.generation(0, crawl.crawl_state.log.generation(0)))
    made = run("--crawl", crawl.crawl.path, tmp_path / "fork")
    assert made.returncode == 0 and "taking commit" in made.stderr, made.stderr
    fork = open_small(tmp_path / "fork")
    assert fork.rows() == known[fork.crawl_state.log.length - 1] and fork.crawl_state.log.length < len(known)


def test_what_is_deleted_meanwhile_is_told_and_a_superseded_generation_is_left_out(grown, tmp_path):
    """As a run that works there would delete, between the look at what is kept and the links."""
    crawl, known = grown
    entries, _ = read_entries(crawl.crawl.path)
    live = names.generation(0, crawl.crawl_state.log.generation(0))
    older = next(
        names.generation(0, number)
        for number in names.numbered(crawl.crawl.path / names.GENERATIONS / "0000")
        if number != crawl.crawl_state.log.generation(0)
    )
    (crawl.crawl.path / older / "state.npy.zst").unlink()
    (tmp_path / "aside").mkdir()
    Fork(crawl.crawl, entries).make(tmp_path / "aside", len(entries) - 1)
    assert open_small(tmp_path / "aside").rows() == known[-1]
    assert not (tmp_path / "aside" / older).exists() and (tmp_path / "aside" / live).exists()
    (crawl.crawl.path / live / "state.npy.zst").unlink()
    (tmp_path / "other").mkdir()
    with pytest.raises(TryLater, match="try again"):
        Fork(crawl.crawl, entries).make(tmp_path / "other", len(entries) - 1)
    assert not (tmp_path / "other" / names.CRAWL_FILE).exists()


def test_two_forks_to_one_place_do_not_meet(grown, tmp_path):
    crawl, _ = grown
    with folder_aside(crawl.crawl, tmp_path / "new") as (aside, target):
        second = run("--crawl", crawl.crawl.path, target)
        assert second.returncode == EX_TEMPFAIL and "another fork" in second.stderr, second.stderr
        assert aside.exists()


def test_what_was_set_aside_is_known_to_be_missing(grown, tmp_path):
    crawl, _ = grown
    path = crawl.crawl.path
    (path / names.CORRUPT / "note.json").write_bytes(
        b'{"format": 4, "path": "%s", "reason": "torn"}' % f"{names.cycle(3)}/{names.EXTRACTOR}/{names.LINKS}".encode()
    )
    (path / names.cycle(3) / names.EXTRACTOR / names.LINKS).unlink()
    assert run("--crawl", path, tmp_path / "fork").returncode == 0
    (note,) = (tmp_path / "fork" / names.CORRUPT).iterdir()
    assert read_json(note)["reason"] == "torn"


@pytest.mark.parametrize("damage", ["gap", "cut"])
@pytest.mark.sampled(1)
def test_a_damaged_log_is_named_and_can_be_forked_before_the_damage(grown, tmp_path, damage):
    crawl, known = grown
    entry = crawl.crawl.path / names.LOG / names.log_entry(5)
    entry.unlink() if damage == "gap" else entry.write_bytes(b"{")
    for more in ((), ("--at", "5"), ("--at", "6")):
        refused = run("--crawl", crawl.crawl.path, *more, tmp_path / "fork")
        assert (
            refused.returncode == EX_DATAERR and "00000005.json" in refused.stderr and "Traceback" not in refused.stderr
        ), refused.stderr
    listed = run("--crawl", crawl.crawl.path, "--list")
    assert listed.returncode == EX_DATAERR and "commit        4" in listed.stdout
    assert run("--crawl", crawl.crawl.path, "--at", "4", tmp_path / "fork").returncode == 0
    assert open_small(tmp_path / "fork").rows() == known[4]


def test_wrong_command_lines(grown, tmp_path):
    crawl, known = grown
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "empty").mkdir()
    path = crawl.crawl.path
    for arguments, words in [
        (("--crawl", path, tmp_path / "full"), "not empty"),
        (("--crawl", path, tmp_path / "full" / "file"), "not empty"),
        (("--crawl", path), "NEWDIR or --list"),
        (("--crawl", path, "--at", len(known), tmp_path / "x"), "no commit"),
        (("--crawl", path, path / "inside"), "inside the crawl folder"),
        (("--crawl", path, tmp_path / "no" / "such"), "no such folder"),
        (("--crawl", path, "--at", "-1", tmp_path / "x"), "expected 0 or more"),
    ]:
        refused = run(*arguments)
        assert refused.returncode == EX_USAGE and words in refused.stderr, refused.stderr
    assert run("--crawl", path, tmp_path / "empty").returncode == 0
    assert open_small(tmp_path / "empty").rows() == known[-1]


def test_what_a_killed_fork_left_is_cleared(grown, tmp_path):
    crawl, known = grown
    leftover = tmp_path / ".aside-fork-new"
    (leftover / names.LOG).mkdir(parents=True)
    os.link(crawl.crawl.path / names.LOG / names.log_entry(0), leftover / names.LOG / names.log_entry(0))
    assert run("--crawl", crawl.crawl.path, tmp_path / "new").returncode == 0
    assert not leftover.exists() and open_small(tmp_path / "new").rows() == known[-1]


def test_keys_and_configuration_of_a_later_turn_are_the_forks_own(grown, tmp_path):
    crawl, _ = grown
    assert run("--crawl", crawl.crawl.path, tmp_path / "fork").returncode == 0
    fork = open_small(tmp_path / "fork")
    fork.config = replace(Config(), verifier=replace(Config().verifier, attempts_max=1))
    turn(fork, 1)
    turn(crawl, 1)
    numbers = [small.crawl_state.log.generation(1) for small in (fork, crawl)]
    assert numbers[0] == numbers[1], "both gave out the same number"
    manifests = [read_manifest(small.crawl.path / names.generation(1, numbers[0])) for small in (fork, crawl)]
    assert manifests[0]["config_digest"] != manifests[1]["config_digest"]
