"""A deletion beside cycles in flight: it removes what its snapshot knew, and nothing of what came later."""

from dataclasses import replace

import pytest

from contract import names
from contract.log import ABSORB, CRAWL
from storage.errors import Damaged
from storage.publish import ASIDE, is_published, make_folder
from supervise import deletion
from supervise.crawl_state import CrawlState
from supervise.deletion import delete, delete_superseded, remove_garbage, take_snapshot
from tests.small_crawl import Page, SmallCrawl

SEEDS = [f"http://s{number}.test/" for number in range(20)]


@pytest.fixture
def crawl(tmp_path) -> SmallCrawl:
    crawl = SmallCrawl(tmp_path / "crawl", 2)
    crawl.seed(SEEDS)
    crawl.absorb_all()
    crawl.delete(0)
    return crawl


def more(crawl: SmallCrawl) -> None:
    crawl.seed([f"{url}{crawl.crawl_state.log.length}" for url in SEEDS])


def fetch(crawl: SmallCrawl, block: int) -> int:
    """A cycle that fetches, and finds a page of every server; its number."""
    plan = crawl.plan(CRAWL, block)
    listed = crawl.schedule(plan)
    crawl.harvest(plan, {url: Page(links=[f"{seed}{plan.cycle}" for seed in SEEDS]) for url in listed})
    crawl.verify(plan)
    return plan.cycle


def files(crawl: SmallCrawl, *folders: str) -> set[str]:
    paths = (path for folder in folders for path in (crawl.crawl.path / folder).rglob("*") if path.is_file())
    return {path.relative_to(crawl.crawl.path).as_posix() for path in paths}


def aux(cycle: int) -> str:
    return f"{names.cycle(cycle)}/{names.VERIFIER}/{names.AUX}"


def test_what_is_committed_after_the_snapshot_stays(crawl):
    more(crawl)
    crawl.absorb_all()
    snapshot = take_snapshot(crawl.crawl_state, 0)
    more(crawl)
    crawl.absorb_all()
    later = files(crawl, *(names.generation(block, crawl.crawl_state.log.generation(block)) for block in (0, 1)))
    superseded = {(block, snapshot.live[block]) for block in (0, 1)}
    deleted = delete(snapshot)
    assert later <= files(crawl, names.GENERATIONS)
    assert all(is_published(crawl.crawl.path / names.generation(*one)) for one in superseded), "live at the snapshot"
    crawl.crawl_state.note_deleted(deleted)
    delete_superseded(crawl.crawl_state, 0)
    assert not any((crawl.crawl.path / names.generation(*one)).exists() for one in superseded)
    assert files(crawl, names.GENERATIONS) == later | {f"{names.TEXT}/{name}" for name in texts(crawl)}
    assert len(crawl.rows()) == 3 * len(SEEDS)


def texts(crawl: SmallCrawl) -> set[str]:
    return {name for block in range(crawl.crawl_state.log.blocks) for name in crawl.crawl_state.figures(block)["texts"]}


def test_a_cycle_in_flight_may_write_while_it_runs(crawl, monkeypatch):
    """The verifier of a cycle that was open at the snapshot publishes everything in the middle of the deletion."""
    more(crawl)
    crawl.absorb(0)
    plan = crawl.plan(ABSORB, 1)
    fresh = CrawlState(crawl.crawl)  # its first deletion looks at all text
    snapshot = take_snapshot(fresh, 0)
    aside = crawl.crawl.path / names.TEXT / f"{ASIDE}7-{names.segment(plan.cycle)}"

    def work_meanwhile(path):
        monkeypatch.undo()
        crawl.work(plan)
        aside.touch()

    monkeypatch.setattr(deletion, "sync_folder", work_meanwhile)
    made = {f"{names.generation(1, plan.cycle)}/{names.MANIFEST}", f"{names.TEXT}/{names.segment(plan.cycle)}"}
    delete(snapshot)
    assert made <= files(crawl, names.GENERATIONS) and aside.exists()
    crawl.verify(plan)
    assert len(crawl.rows()) == 2 * len(SEEDS)


def test_a_damaged_manifest_of_a_superseded_generation_holds_deletion_up_for_some_turns_only(crawl):
    older = crawl.crawl_state.log.generation(0)
    fetch(crawl, 0)
    (crawl.crawl.path / names.generation(0, older) / names.MANIFEST).write_bytes(b"{}")
    again = CrawlState(crawl.crawl)
    before = files(crawl, names.GENERATIONS)
    delete_superseded(again, 1)
    assert files(crawl, names.GENERATIONS) == before
    fetch(crawl, 0)
    delete_superseded(CrawlState(crawl.crawl), 1)
    assert not (crawl.crawl.path / names.generation(0, older)).exists()


def test_what_lies_in_the_folder_of_a_block_without_a_live_generation_stays(crawl):
    snapshot = take_snapshot(CrawlState(crawl.crawl), 0)
    before = files(crawl, names.GENERATIONS)
    delete(replace(snapshot, live={}, generations={0: (), 1: ()}, kept={}))
    assert {path for path in before if not path.startswith(names.TEXT)} <= files(crawl, names.GENERATIONS)


def test_aux_goes_once_every_kept_generation_has_absorbed_it(crawl):
    cycle = fetch(crawl, 0)
    delete_superseded(crawl.crawl_state, 1)
    assert aux(cycle) in files(crawl, names.CYCLES) and crawl.crawl_state.is_pending(1)
    crawl.absorb(1)
    delete_superseded(crawl.crawl_state, 1)
    assert aux(cycle) in files(crawl, names.CYCLES), "the generation before that is kept lacks it"
    assert not crawl.crawl_state.is_pending(1)
    fetch(crawl, 1)
    crawl.absorb(0)
    fetch(crawl, 0)
    delete_superseded(crawl.crawl_state, 1)
    assert aux(cycle) not in files(crawl, names.CYCLES)
    again = CrawlState(crawl.crawl)
    assert [again.is_pending(block) for block in (0, 1)] == [crawl.crawl_state.is_pending(block) for block in (0, 1)]


def test_a_deletion_that_was_killed_anywhere_is_finished_by_the_next_run(crawl, tmp_path, monkeypatch):
    for block in (0, 1, 0):
        fetch(crawl, block)
    crawl.absorb_all()
    whole = crawl.copy(tmp_path / "whole")
    delete_superseded(whole.crawl_state, 0)
    expected = files(whole, names.GENERATIONS, names.CYCLES)
    for steps in range(60):
        killed = crawl.copy(tmp_path / f"killed-{steps}")
        if die_after(killed, steps, monkeypatch):
            break
        again = CrawlState(killed.crawl)
        remove_garbage(again)
        delete_superseded(again, 0)
        assert files(killed, names.GENERATIONS, names.CYCLES) == expected, steps
        killed.crawl_state = again
        assert killed.rows() == whole.rows()
    assert 5 < steps < 59, "it was killed at each of its steps, and at last it came to its end"


class Killed(BaseException):
    pass


def die_after(crawl: SmallCrawl, steps: int, monkeypatch) -> bool:
    """Whether a deletion came to its end; it is killed after so many files and folders that it removed."""
    left = steps

    def count_down() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    with monkeypatch.context() as patch:
        for target in ("pathlib.Path.unlink", "storage.publish.remove_tree", "supervise.deletion.unpublish"):
            patch.setattr(target, wrap(target, count_down))
        try:
            delete_superseded(crawl.crawl_state, 0)
            return True
        except Killed:
            return False


def wrap(target: str, before):
    module, _, name = target.rpartition(".")
    owner = __import__(module.rpartition(".")[0] if name == "unlink" else module, fromlist=["x"])
    real = getattr(owner.Path if name == "unlink" else owner, name)

    def wrapped(*arguments, **options):
        before()
        return real(*arguments, **options)

    return wrapped


def test_text_that_a_killed_deletion_left_goes_with_the_first_deletion_of_a_run(crawl):
    orphan = crawl.crawl.path / names.TEXT / names.segment(0)
    orphan.touch()
    delete_superseded(crawl.crawl_state, 0)
    assert orphan.exists(), "later ones look only at the text of what they delete"
    before = files(crawl, names.TEXT) - {f"{names.TEXT}/{orphan.name}"}
    delete_superseded(CrawlState(crawl.crawl), 0)
    assert files(crawl, names.TEXT) == before == {f"{names.TEXT}/{name}" for name in texts(crawl)}


def test_nothing_is_deleted_while_a_live_generation_is_damaged(crawl):
    more(crawl)
    crawl.absorb_all()
    live = crawl.crawl_state.log.generation(1)
    (crawl.crawl.path / names.generation(1, live) / names.MANIFEST).unlink()
    before = files(crawl, names.GENERATIONS, names.CYCLES)
    delete_superseded(crawl.crawl_state, 0)
    assert files(crawl, names.GENERATIONS, names.CYCLES) == before
    with pytest.raises(Damaged):
        crawl.crawl_state.figures(1)


def test_start_up_looks_at_open_and_recent_cycles_only(crawl, monkeypatch):
    crawl.crawl_state.settle()
    crawl.crawl_state.write_summary()
    more(crawl)
    plan = crawl.plan(ABSORB, 0)
    crawl.crawl_state.write_summary()
    made = [crawl.crawl.path / names.cycle(cycle) / f"{ASIDE}1-x" for cycle in (0, plan.cycle - 1, plan.cycle)]
    made += [crawl.crawl.path / f"{ASIDE}1-{names.log_entry(3)}", crawl.crawl.path / names.TEXT / f"{ASIDE}1-x"]
    empty = crawl.crawl.path / names.cycle(plan.cycle + 1)
    make_folder(empty)
    for path in made:
        path.touch()
    state = CrawlState(crawl.crawl)
    assert not state.is_rebuilt and state.next_cycle() == plan.cycle + 2
    remove_garbage(state)
    assert [path.exists() for path in made] == [True, False, False, False, False] and not empty.exists()
    (crawl.crawl.path / names.LOG_SUMMARY).unlink()
    remove_garbage(CrawlState(crawl.crawl))
    assert not made[0].exists(), "all cycles, where there was no summary"


def test_views_of_a_thousand_blocks_read_each_manifest_once(tmp_path, monkeypatch):
    crawl = SmallCrawl(tmp_path / "crawl", 1000)
    crawl.seed(SEEDS)
    pending = [view.block for view in crawl.crawl_state.views() if view.pending]
    assert 0 < len(pending) <= len(SEEDS)
    for block in pending:
        crawl.absorb(block)
    views = crawl.crawl_state.views({pending[0]})
    assert not any(view.pending for view in views)
    assert [view.block for view in views if not view.free] == pending[:1]
    assert sum(view.waiting for view in views) == len(SEEDS)
    monkeypatch.setattr("supervise.crawl_state.read_generation_manifest", None)
    monkeypatch.setattr("supervise.crawl_state.read_manifest", None)
    assert crawl.crawl_state.views({pending[0]}) == views and crawl.crawl_state.views() != views
