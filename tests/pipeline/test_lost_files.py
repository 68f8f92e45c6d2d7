"""Files that are lost, changed or not what they seem.

Each is named, nothing published is deleted, the crawl goes on.
"""

import json
import os

import pytest

from contract import names
from contract.crawl_folder import create, notes_of_damage
from contract.log import ABANDON, CRAWL, replay
from storage.publish import is_published
from supervise.lost_plans import close_notes, set_cycle_aside
from supervise.seed import leave
from tests.pipeline.test_supervisor import Crawl, flip_a_byte
from tests.small_crawl import Page, SmallCrawl


@pytest.fixture
def crawl(tmp_path, small_web) -> Crawl:
    return Crawl(tmp_path, *small_web, servers=4)


@pytest.mark.parametrize("lost", ["removed", "damaged", "a folder"])
@pytest.mark.sampled(1)
def test_an_open_cycle_without_its_plan_is_set_aside_and_its_id_is_used_up(crawl, lost):
    assert crawl.run("run-cycle", "--stop-after", names.EXTRACTOR).returncode == 0
    cycle = crawl.open_cycle()
    folder = crawl.path / names.cycle(cycle)
    if lost == "damaged":
        flip_a_byte(folder / names.PLAN)
    else:
        (folder / names.PLAN).unlink()
    if lost == "a folder":
        (folder / names.PLAN).mkdir()
    shown, checked = crawl.run("status"), crawl.run("check")
    assert shown.returncode == 65 and f"cycle {cycle} has no plan.json that can be read" in shown.stdout, shown.stderr
    assert checked.returncode == 65 and f"{folder / names.PLAN}" in checked.stdout, checked.stderr
    turn = crawl.run("run-cycle")
    assert (
        turn.returncode == 65 and f"cycle {cycle} set aside as" in turn.stderr and "no URL is charged" in turn.stderr
    ), turn.stderr
    aside = crawl.path / names.CORRUPT / f"cycles-{cycle:08d}"
    assert all(is_published(aside / stage) for stage in (names.SCHEDULER, names.FETCHER, names.EXTRACTOR)), (
        "published work is kept"
    )
    log = replay(crawl.path, 2)
    assert log.entries[log.cycles[cycle]].kind == ABANDON and not folder.exists()
    assert [entry.cycle for entry in log.entries if entry.kind == CRAWL] == [cycle + 1], "the id is not used again"
    shown = crawl.run("status")
    assert (
        shown.returncode == 0
        and f"cycles/{cycle:08d}" in shown.stdout
        and "the crawl goes on without it" in shown.stdout
    )
    again = crawl.run("run-cycle")
    assert again.returncode == 0 and "set aside" not in again.stderr, "said once"
    shown, checked = crawl.run("status"), crawl.run("check")
    assert shown.returncode == checked.returncode == 0
    assert f"cycles/{cycle:08d}" not in shown.stdout + checked.stdout and aside.is_dir(), "nothing is to be done"
    crawl.goes_on()


def test_what_a_cycle_without_plan_made_of_a_generation_is_set_aside_with_it(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1)
    small.seed(["http://one.test/"])
    small.absorb_all()
    plan = small.plan(CRAWL, 0)
    small.harvest(plan, {url: Page(links=["http://two.test/"]) for url in small.schedule(plan)})
    small.work(plan)  # all but the commit
    made = names.generation(0, plan.cycle)
    assert is_published(small.crawl.path / made)
    (small.crawl.path / names.cycle(plan.cycle) / names.PLAN).unlink()
    aside = set_cycle_aside(small.crawl_state, plan.cycle, "plan.json is lost")
    assert is_published(aside / "-".join(made.split("/"))) and (aside / f"R-text-{names.segment(plan.cycle)}").exists()
    assert not (small.crawl.path / made).exists() and small.crawl_state.log.is_closed(plan.cycle)
    other = {"path": "cycles/00000099", "reason": "not of this log"}
    (small.crawl.path / names.CORRUPT / "other.json").write_text(json.dumps(other))
    assert {note["path"] for note in notes_of_damage(small.crawl.path)} == {names.cycle(plan.cycle), other["path"]}
    close_notes(small.crawl_state)
    assert notes_of_damage(small.crawl.path) == [other] and aside.is_dir()


def test_a_file_that_was_set_aside_is_not_set_aside_again(crawled):
    crawl = crawled
    log = replay(crawl.path, 2)
    block, generation = max(log.live.items(), key=lambda item: item[1])
    flip_a_byte(crawl.path / names.generation(block, generation) / "key.npy")
    first, second = crawl.run("crawl", "--cycles", "2"), crawl.run("crawl", "--cycles", "2")
    assert first.returncode == second.returncode == 65
    assert (
        "set aside as" in first.stderr
        and "set aside as" not in second.stderr
        and "it was set aside before" in second.stderr
    ), second.stderr


@pytest.mark.long
def test_symbolic_links_are_removed_and_never_followed(crawl, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("keep me")
    assert crawl.run("run-cycle", "--stop-after", names.SCHEDULER).returncode == 0
    (crawl.path / names.cycle(crawl.open_cycle()) / names.EXTRACTOR).symlink_to(outside)
    (crawl.path / names.CYCLES / "00000077").symlink_to(tmp_path / "nowhere")
    (crawl.path / "coletor-repair-x").symlink_to(outside)
    (crawl.path / names.GENERATIONS / "0000").mkdir(exist_ok=True)
    (crawl.path / names.GENERATIONS / "0000" / "00000078").symlink_to(outside)
    turn = crawl.run("run-cycle")
    assert turn.returncode == 0 and "rmtree" not in turn.stderr, turn.stderr
    assert (outside / "precious").read_text() == "keep me" and [path.name for path in outside.iterdir()] == ["precious"]
    crawl.goes_on()


@pytest.mark.long
def test_folders_of_strange_numbers_and_hostile_notes_stop_nothing(crawled):
    crawl = crawled
    (crawl.path / names.CYCLES / "20261118120000" / names.FETCHER).mkdir(parents=True)
    for number, path in enumerate(("R/x", "R/0000/x", "cycles/x/verifier/y", "..")):
        (crawl.path / names.CORRUPT / f"{number}.json").write_text(json.dumps({"path": path, "reason": "none"}))
    (first, *_) = [entry.cycle for entry in replay(crawl.path, 2).entries if entry.kind == CRAWL]
    flip_a_byte(crawl.path / names.cycle(first) / names.FETCHER / names.MANIFEST)
    (crawl.path / names.LOG_SUMMARY).unlink()  # which has the sums of past cycles
    shown = crawl.run("status")
    assert "Traceback" not in shown.stderr and "cannot be read" in shown.stdout and "block" in shown.stdout, (
        shown.stderr
    )
    turn = crawl.run("run-cycle")
    assert turn.returncode == 0, turn.stderr


@pytest.mark.parametrize("change", ["one byte", "zeros", "empty", "gone", "folder"])
@pytest.mark.sampled(1)
def test_another_suffix_list_than_the_crawl_began_with_is_refused(tmp_path, change):
    path = tmp_path / "crawl"
    create(path, 2)
    leave(path, ["http://one.test/"])
    suffixes = path / names.SUFFIX_LIST
    content = suffixes.read_bytes()
    suffixes.unlink()
    if change == "folder":
        suffixes.mkdir()
    elif change != "gone":
        suffixes.write_bytes({"one byte": b"?" + content[1:], "zeros": bytes(len(content)), "empty": b""}[change])
    tools = Crawl.__new__(Crawl)
    tools.path, tools.settings = path, os.devnull
    for name, more in (
        ("status", ()),
        ("check", ()),
        ("run-cycle", ("--set", "fetcher.contact=mailto:x@localhost")),
        ("why", ("http://one.test/",)),
        ("fork", ("--list",)),
        ("verifier", ("--cycle", "0")),
        ("reconsider", ("--given-up",)),
    ):
        run = tools.run(name, *more)
        assert run.returncode == 65 and names.SUFFIX_LIST in run.stderr and "copy of the crawl folder" in run.stderr, (
            name,
            run.stderr,
        )
        assert "Traceback" not in run.stderr
    assert json.loads((path / names.CRAWL_FILE).read_bytes())["suffix_list"]["bytes"] == len(content)
