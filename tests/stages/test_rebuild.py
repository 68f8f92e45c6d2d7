"""bin/verifier --rebuild.

A block whose generations or texts are lost is made again, the same bytes, from the tables of its cycles.
"""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from contract import names
from contract.config import Config
from contract.crawl_folder import hold_lock, notes_of_damage, open_folder, set_aside
from contract.errors import EX_DATAERR, EX_TEMPFAIL, EX_USAGE
from contract.log import ABANDON, CRAWL, Entry, commit
from contract.tables import FAILED
from examine.damage_advice import Adviser
from storage.publish import encode_json, read_json, read_manifest
from tests.small_crawl import NOW_MS, Page, SmallCrawl

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS = [f"http://s{number}.test/" for number in range(14)]
FOREIGN = [f"http://foreign{number}.test/" for number in range(6)]


def turn(crawl: SmallCrawl, block: int) -> None:
    """A turn with answers, failures, pages of somebody else's list, and robots.txt files that change."""
    plan = crawl.plan(CRAWL, block, NOW_MS + 10_000_000 * crawl.crawl_state.log.length)
    listed = crawl.schedule(plan)
    pages = {url: Page(links=[f"{url}{plan.cycle}-{number}" for number in range(3)] + SEEDS) for url in listed[::2]}
    pages |= {url: Page(FAILED, "timeout") for url in listed[1::2]}
    foreign = [url for url in FOREIGN if url not in crawl.rows()][:2]
    servers = {url.rstrip("/"): {"robots": f"User-agent: *\nDisallow: /{plan.cycle}\n".encode()} for url in SEEDS[::3]}
    failed = {
        "failures": 1,
        "last_failure_reason": "timeout",
        "last_failure_message": f"cycle {plan.cycle}",
        "last_failure_at_ms": plan.now_ms,
    }
    servers |= {url.rstrip("/"): failed for url in SEEDS[1::3]}
    crawl.harvest(plan, {**pages, **{url: Page() for url in foreign}}, frozenset(foreign), servers)
    crawl.verify(plan)


def abandon(crawl: SmallCrawl, block: int) -> None:
    plan = crawl.plan(CRAWL, block)
    crawl.schedule(plan)
    commit(crawl.crawl.path, Entry(ABANDON, plan.cycle, plan.blocks, {block: plan.generation}, reason="kept dying"))
    crawl.crawl_state.refresh()


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> SmallCrawl:
    """Three blocks, one of them split off, and nothing kept but what the crawl needs to go on."""
    config = replace(Config(), verifier=replace(Config().verifier, attempts_max=2))
    crawl = SmallCrawl(tmp_path_factory.mktemp("finished") / "crawl", 2, config)
    crawl.seed(SEEDS)
    crawl.absorb_all()
    for block in (0, 1, 0):
        turn(crawl, block)
    abandon(crawl, 1)
    crawl.delete(1)
    crawl.absorb_all()
    crawl.seed(["http://late.test/", "http://later.test/"])
    crawl.grow(0)
    for block in (2, 1, 0, 2):
        turn(crawl, block)
        crawl.delete(1)
    crawl.absorb_all()
    crawl.delete(0)
    assert all(crawl.crawl_state.log.generation(block) is not None for block in range(3))
    return crawl


@pytest.fixture
def crawl(finished, tmp_path) -> Path:
    shutil.copytree(finished.crawl.path, tmp_path / "crawl")
    return tmp_path / "crawl"


def verifier(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "bin/verifier", *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def content(folder: Path) -> dict[str, bytes]:
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    return {
        str(name): (folder / name).read_bytes() for name in files if name.parts[0] not in (names.CORRUPT, names.LOCK)
    }


def live(finished: SmallCrawl, block: int) -> str:
    return names.generation(block, finished.crawl_state.log.generation(block))


def flip(path: Path) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 0x10
    path.write_bytes(damaged)


@pytest.mark.parametrize(
    "block, damage",
    [
        (0, "flipped column"),
        (1, "lost column"),
        (0, "lost folder"),
        (1, "lost folder"),
        (2, "lost folder"),
        (2, "damaged manifest"),
        (2, "lost texts"),
        (0, "damaged texts"),
        (2, "all of R"),
        (1, "none"),
    ],
)
@pytest.mark.sampled(2)
def test_the_same_bytes_come_back(finished, crawl, block, damage):
    before = content(crawl)
    folder, texts = crawl / live(finished, block), read_manifest(crawl / live(finished, block))["texts"]
    if damage == "flipped column":
        flip(folder / "state.npy.zst")
    elif damage == "lost column":
        (folder / "key.npy").unlink()
    elif damage == "lost folder":
        shutil.rmtree(folder)
    elif damage == "damaged manifest":
        flip(folder / names.MANIFEST)
        flip(folder / "servers.parquet")
    elif damage == "lost texts":
        for name in texts:
            (crawl / names.TEXT / name).unlink()
    elif damage == "damaged texts":
        flip(crawl / names.TEXT / sorted(texts)[0])
    elif damage == "all of R":
        shutil.rmtree(crawl / names.GENERATIONS)
    rebuilt = verifier("--crawl", crawl, "--rebuild", block)
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert ("not known whether" in rebuilt.stdout) == (damage in ("lost folder", "damaged manifest", "all of R"))
    if damage == "all of R":
        for other in {0, 1, 2} - {block}:
            again = verifier("--crawl", crawl, "--rebuild", other)
            assert again.returncode == 0, again.stderr
    assert content(crawl) == before
    aside = [
        path
        for path in (crawl / names.CORRUPT).iterdir()
        if not path.name.endswith(".json.json") and path.with_name(path.name + ".json").exists()
    ]
    assert len(aside) == {"flipped column": 1, "damaged manifest": 2, "damaged texts": 1}.get(damage, 0)
    assert notes_of_damage(crawl) == [] and not list(crawl.glob("coletor-*"))


def test_it_begins_at_the_newest_whole_generation(tmp_path):
    crawl = SmallCrawl(tmp_path / "crawl", 1)
    crawl.seed(SEEDS)
    crawl.absorb_all()
    for _ in range(4):
        turn(crawl, 0)
    before = content(crawl.crawl.path)
    numbers = names.numbered(crawl.crawl.path / names.GENERATIONS / "0000")
    for number in numbers[2:]:
        flip(crawl.crawl.path / names.generation(0, number) / "key.npy")
    rebuilt = verifier("--crawl", crawl.crawl.path, "--rebuild", 0)
    assert (
        rebuilt.returncode == 0
        and f"made again from generation {numbers[1]} of block 0 by {len(numbers) - 2} turns" in rebuilt.stdout
    ), rebuilt.stderr
    name = names.generation(0, numbers[-1])
    after = content(crawl.crawl.path)
    assert {key: value for key, value in after.items() if key.startswith(name)} == {
        key: value for key, value in before.items() if key.startswith(name)
    }


def lose(crawl: Path, name: str) -> None:
    shutil.rmtree(crawl / names.GENERATIONS)
    (crawl / name).unlink()


@pytest.mark.parametrize(
    "name",
    [
        f"{names.cycle(3)}/{names.EXTRACTOR}/{names.SERVERS}",
        f"{names.cycle(3)}/{names.EXTRACTOR}/{names.MANIFEST}",
        f"{names.cycle(3)}/{names.PLAN}",
        f"{names.cycle(4)}/{names.EXTRACTOR}/{names.EXTRACTED}",
        f"{names.cycle(0)}/{names.VERIFIER}/{names.AUX}",
    ],
)
@pytest.mark.sampled(1)
def test_a_table_that_was_not_kept_is_named(finished, crawl, name):
    """Cycle 3 is a turn of block 0, cycle 4 one of block 1 whose AUX block 0 absorbed."""
    log = finished.history()
    assert [next(iter(log.entries[log.cycles[cycle]].parents)) for cycle in (3, 4)] == [0, 1]
    assert not (crawl / names.cycle(4) / names.VERIFIER / names.AUX).exists(), (
        "the AUX was not deleted: the test tests nothing"
    )
    lose(crawl, name)
    before = content(crawl)
    refused = verifier("--crawl", crawl, "--rebuild", 0)
    assert refused.returncode == EX_DATAERR and name in refused.stderr and "Traceback" not in refused.stderr, (
        refused.stderr
    )
    assert content(crawl) == before and not list(crawl.glob("coletor-*"))


@pytest.mark.parametrize(
    "name",
    [f"{names.cycle(3)}/{names.EXTRACTOR}/{names.COLLECTED}", f"{names.cycle(4)}/{names.EXTRACTOR}/{names.EXTRACTED}"],
)
@pytest.mark.sampled(1)
def test_a_damaged_table_is_named_and_stays_where_it_is(crawl, name):
    shutil.rmtree(crawl / names.GENERATIONS)
    flip(crawl / name)
    before = content(crawl)
    refused = verifier("--crawl", crawl, "--rebuild", 0)
    assert refused.returncode == EX_DATAERR and f"{crawl / name}: expected" in refused.stderr, refused.stderr
    assert content(crawl) == before


def test_lost_manifests_of_aux_are_made_up_for(finished, crawl):
    before = content(crawl)
    shutil.rmtree(crawl / live(finished, 0))
    (crawl / names.cycle(4) / names.VERIFIER / names.MANIFEST).unlink()
    assert verifier("--crawl", crawl, "--rebuild", 0).returncode == 0
    (crawl / names.cycle(4) / names.VERIFIER / names.MANIFEST).write_bytes(
        before[f"{names.cycle(4)}/{names.VERIFIER}/{names.MANIFEST}"]
    )
    assert content(crawl) == before


def test_other_bytes_are_refused(finished, crawl):
    """A plan with another setting makes another generation.

    That must not take the place of the one that the manifest tells.
    """
    plan = crawl / names.cycle(finished.crawl_state.log.generation(0)) / names.PLAN
    value = read_json(plan)
    value["config"]["verifier"]["attempts_max"] = 1
    plan.write_bytes(encode_json(value))
    flip(crawl / live(finished, 0) / "key.npy")
    before = content(crawl)
    refused = verifier("--crawl", crawl, "--rebuild", 0)
    assert refused.returncode == EX_DATAERR and "nothing was changed" in refused.stderr, refused.stderr
    assert content(crawl) == before


def test_what_the_disk_cannot_read_back_is_replaced(finished, crawl, needs):
    before = content(crawl)
    column = crawl / live(finished, 0) / "state.npy.zst"
    command = [sys.executable, "-P", "-m", "stages.verifier", "--crawl", crawl, "--rebuild", "0"]
    mended = subprocess.run(
        [
            needs("strace"),
            "-f",
            "-o",
            "/dev/null",
            "-P",
            column,
            "-e",
            "trace=read",
            "-e",
            "inject=read:error=EIO",
            *command,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert mended.returncode == 0 and "1 file put back" in mended.stdout, mended.stderr
    assert content(crawl) == before
    (note,) = (crawl / names.CORRUPT).glob("*.json")
    assert "Input/output error" in read_json(note)["reason"]


def test_a_repair_that_lacks_the_generation_before_tells_of_rebuild(finished, crawl):
    refused = verifier("--crawl", crawl, "--cycle", finished.crawl_state.log.generation(1), "--repair")
    assert refused.returncode == EX_DATAERR and "--rebuild 1" in refused.stderr, refused.stderr
    assert verifier("--crawl", crawl, "--rebuild", 1).returncode == 0


@pytest.mark.parametrize("name", ["column", "text"])
@pytest.mark.sampled(1)
def test_status_tells_to_rebuild_where_a_repair_cannot_do(finished, crawl, name):
    before = content(crawl)
    texts = read_manifest(crawl / live(finished, 2))["texts"]
    damaged = crawl / live(finished, 2) / "key.npy" if name == "column" else crawl / names.TEXT / sorted(texts)[-1]
    flip(damaged)
    set_aside(crawl, damaged, "a bit was flipped")
    (note,) = notes_of_damage(crawl)
    advice = Adviser(open_folder(crawl), finished.crawl_state.log).advise(note["path"]).split()
    assert "--rebuild" in advice
    rebuilt = subprocess.run([ROOT / advice[0], *advice[1:]], capture_output=True, text=True)
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert content(crawl) == before
    assert notes_of_damage(crawl) == []


def test_advice_reads_each_live_manifest_once_and_nothing_else(finished, crawl, monkeypatch):
    """However many notes there are, and however long the log is."""
    log, folder = finished.crawl_state.log, open_folder(crawl)
    lives = [live(finished, block) for block in range(log.blocks)]
    texts = sorted(path.name for path in (crawl / names.TEXT).iterdir())
    read, open_file = [], Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, *more, **options: (read.append(path), open_file(path, *more, **options))[1]
    )
    monkeypatch.setattr("storage.publish.checksum", lambda path: pytest.fail(f"{path} was read"))
    adviser = Adviser(folder, log)
    for _ in range(3):
        for block, generation in enumerate(lives):
            assert adviser.advise(f"{generation}/key.npy").endswith(f"--rebuild {block}")
        assert all("--rebuild" in adviser.advise(f"{names.TEXT}/{name}") for name in texts)
    assert sorted(read) == sorted(crawl / generation / names.MANIFEST for generation in lives)
    assert adviser.advise("R/0000/00099999/key.npy").endswith("--cycle 99999 --repair")
    assert adviser.advise("cycles/00000003/verifier/AUX.parquet").endswith("--cycle 3 --repair")
    assert adviser.advise("R/x") == adviser.advise("..") == adviser.advise("cycles/00000003") == ""


def test_wrong_command_lines(crawl):
    for arguments in (
        (),
        ("--cycle", 3, "--rebuild", 0),
        ("--rebuild", 0, "--repair"),
        ("--rebuild", 3),
        ("--rebuild", -1),
    ):
        refused = verifier("--crawl", crawl, *arguments)
        assert refused.returncode == EX_USAGE and refused.stderr, refused.stderr
    empty = SmallCrawl(crawl.parent / "empty", 2)
    assert verifier("--crawl", empty.crawl.path, "--rebuild", 1).returncode == EX_USAGE
    lock = hold_lock(empty.crawl)
    assert verifier("--crawl", empty.crawl.path, "--rebuild", 1).returncode == EX_TEMPFAIL
    os.close(lock)


@pytest.mark.parametrize(
    "calls, number",
    [
        ("fsync", 20),
        ("fsync", 90),
        ("rename,renameat,renameat2", 6),
        ("rename,renameat,renameat2", 12),
        ("symlink,symlinkat", 9),
    ],
)
@pytest.mark.sampled(1)
def test_killed_midway_and_run_again(finished, crawl, needs, calls, number):
    before = content(crawl)
    shutil.rmtree(crawl / live(finished, 2))
    for name in (crawl / names.TEXT).iterdir():
        flip(name)
    command = [sys.executable, "-P", "-m", "stages.verifier", "--crawl", crawl, "--rebuild", "2"]
    killed = subprocess.run(
        [
            needs("strace"),
            "-f",
            "-o",
            "/dev/null",
            "-e",
            f"trace={calls}",
            "-e",
            f"inject={calls}:signal=SIGKILL:when={number}",
            *command,
        ],
        cwd=ROOT,
        capture_output=True,
    )
    assert killed.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    for block in range(3):
        again = verifier("--crawl", crawl, "--rebuild", block)
        assert again.returncode == 0, again.stderr
    assert content(crawl) == before and not list(crawl.glob("coletor-*"))
