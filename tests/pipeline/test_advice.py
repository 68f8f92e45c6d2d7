"""Every command that a message advises works: after each kind of damage, and after each command that names another."""

import re
import shlex
import subprocess

import pytest

from contract import names
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import open_folder
from contract.log import CRAWL, replay
from storage.publish import read_manifest
from supervise.crawl_state import CrawlState
from supervise.inbox import take_inbox
from supervise.seed import leave
from tests.pipeline.judge import ROOT
from tests.pipeline.test_supervisor import Crawl, flip_a_byte

COMMAND = re.compile(r"(?:run: |next: |^ {6})(bin/.+)$", re.M)


@pytest.fixture
def crawl(crawled) -> Crawl:
    return crawled


def follow(text: str) -> list[str]:
    """Runs every command that the text advises; returns them."""
    advised = COMMAND.findall(text)
    for line in advised:
        words = [ROOT / word if word.startswith("bin/") else word for word in shlex.split(line)]
        if words[0] == ROOT / "bin/crawl":
            words += ["--cycles", "1"]  # without a limit it waits for seeds
        ran = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert ran.returncode == 0 and "Traceback" not in ran.stderr, (line, ran.stdout, ran.stderr)
    return advised


def live_generation(crawl: Crawl):
    block, number = max(replay(crawl.path, 2).live.items(), key=lambda item: item[1])
    return crawl.path / names.generation(block, number), number


def commit_inbox(crawl: Crawl) -> int:
    """Takes files of inbox/ in and turns nothing; the cycle of the last one."""
    take_inbox(CrawlState(open_folder(crawl.path)), read_crawl_config(crawl.path))
    return replay(crawl.path, 2).entries[-1].cycle


def damage_generation(crawl: Crawl) -> None:
    flip_a_byte(live_generation(crawl)[0] / "key.npy")


def lose_manifest_of_generation(crawl: Crawl) -> None:
    (live_generation(crawl)[0] / names.MANIFEST).unlink()


def damage_text(crawl: Crawl) -> None:
    flip_a_byte(crawl.path / names.TEXT / names.segment(live_generation(crawl)[1]))


def damage_generation_and_the_one_before(crawl: Crawl) -> None:
    """So that only --rebuild helps."""
    assert crawl.run("crawl", "--cycles", "3").returncode == 0
    folder, number = live_generation(crawl)
    for generation in folder.parent.iterdir():
        flip_a_byte(generation / "key.npy")


def damage_pending_seeds(crawl: Crawl) -> None:
    leave(crawl.path, crawl.web.seeds())
    flip_a_byte(crawl.path / names.cycle(commit_inbox(crawl)) / names.VERIFIER / names.AUX)


def lose_manifest_of_pending_seeds(crawl: Crawl) -> None:
    leave(crawl.path, crawl.web.seeds())
    (crawl.path / names.cycle(commit_inbox(crawl)) / names.VERIFIER / names.MANIFEST).unlink()


def damage_pending_decision(crawl: Crawl) -> None:
    shown = crawl.run("show", live_generation(crawl)[0], "--limit", "0").stdout
    url = next(re.search(r"http://\S+", line)[0] for line in shown.splitlines() if "prescheduled" in line)
    assert crawl.run("reconsider", url).returncode == 0
    flip_a_byte(crawl.path / names.cycle(commit_inbox(crawl)) / names.VERIFIER / names.RECONSIDERED)


def damage_pending_aux(crawl: Crawl) -> None:
    for _ in range(8):  # until a cycle finds URLs of the other block, which HASH_SEED makes sure of
        cycle = next(entry.cycle for entry in reversed(replay(crawl.path, 2).entries) if entry.kind == CRAWL)
        folder = crawl.path / names.cycle(cycle) / names.VERIFIER
        if (folder / names.AUX).exists() and read_manifest(folder)["aux"]["rows"]:
            break
        assert crawl.run("run-cycle").returncode == 0
    flip_a_byte(folder / names.AUX)


@pytest.mark.parametrize(
    "damage",
    [
        damage_generation,
        lose_manifest_of_generation,
        damage_text,
        damage_generation_and_the_one_before,
        damage_pending_seeds,
        lose_manifest_of_pending_seeds,
        damage_pending_decision,
        damage_pending_aux,
    ],
    ids=lambda damage: damage.__name__,
)
@pytest.mark.sampled(1)
def test_what_status_advises_after_damage_works(crawl, damage):
    damage(crawl)
    for _ in range(3):  # a repair may bring to light what else is damaged
        ran = crawl.run("crawl", "--cycles", "2")
        assert ran.returncode in (0, 65) and "Traceback" not in ran.stderr, ran.stderr
        if ran.returncode == 0:
            break
        status = crawl.run("status")
        assert status.returncode == 65, status.stdout
        assert follow(status.stdout), status.stdout
    assert ran.returncode == 0, ran.stderr
    assert crawl.run("status").returncode == 0
    checked = crawl.run("check")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.long
def test_what_commands_advise_next_works(crawl, tmp_path):
    fork = tmp_path / "fork"
    commands = [
        ("seed", *crawl.web.seeds()),
        ("run-cycle",),
        ("crawl", "--cycles", "1"),
        ("fork", fork),
        ("run-cycle", "--stop-after", names.SCHEDULER),
    ]
    for name, *more in commands:
        ran = crawl.run(name, *more)
        assert ran.returncode == 0, ran.stderr
        assert follow(ran.stdout), f"bin/{name} advises nothing:\n{ran.stdout}"
