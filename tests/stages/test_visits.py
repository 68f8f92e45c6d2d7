"""Visits of collected pages: real turns on real files, and the books that count them again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract import names
from contract.config import Config, Revisit
from contract.generation import SIDE_COLUMNS
from contract.log import ABANDON, CRAWL, Entry, commit
from contract.tables import FAILED, REASON_ROBOTS, REFUSED, UNKNOWN_DIGEST, URL_LIST
from examine import visit_books
from stages.verifier.__main__ import work
from stages.verifier.rebuild import rebuild_block
from storage.columns import PackedWriter, read_packed
from storage.errors import Damaged
from storage.publish import read_manifest
from storage.tables import read_table, write_table
from tests.small_crawl import NOW_MS, Page, SmallCrawl
from tests.visited_pages import find_wrong, manifests, match_manifest, sides, turn

HOUR_MS = 3_600_000
A, B, C = "http://a.test/", "http://b.test/x", "http://c.test/"
ONE, OTHER, THIRD = b"1" * 16, b"2" * 16, b"3" * 16
CONFIG = Config(revisit=Revisit(policy="uniform", interval_s=3_600.0, interval_min_s=60.0, interval_max_s=36_000.0))


def later(hours: float, digest: bytes = ONE, is_revisit: bool = False, **more) -> Page:
    content = UNKNOWN_DIGEST if is_revisit else digest
    return Page(digest=content, at_ms=NOW_MS + int(hours * HOUR_MS), is_revisit=is_revisit, **more)


@pytest.fixture
def small(tmp_path) -> SmallCrawl:
    """Three pages of one block, each collected once; two have the same content."""
    crawl = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    crawl.seed([A, B, C])
    crawl.absorb_all()
    turn(crawl, {A: later(0, links=[B, "http://new.test/"]), B: later(0), C: later(0, OTHER, is_parsed=False)})
    return crawl


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_visits_of_all_kinds(small):
    first = sides(small)
    _, report = turn(
        small, {A: later(1, is_revisit=True, is_parsed=False), B: later(1, OTHER), C: Page(FAILED, "dns", at_ms=0)}
    )
    assert {name: report[name] for name in ("revisited", "unchanged", "changed", "gone", "missed", "duplicates")} == {
        "revisited": 2,
        "unchanged": 1,
        "changed": 1,
        "gone": 0,
        "missed": 1,
        "duplicates": 1,
    }
    assert {name: report[name] for name in ("visits", "changes", "revisitable", "revisit_due_ms")} == {
        "visits": 5,
        "changes": 1,
        "revisitable": 3,
        "revisit_due_ms": NOW_MS + 2 * HOUR_MS,
    }
    now = sides(small)
    assert now[A] == {**first[A], "visits": 2, "unchanged_min": 60, "visited_at_ms": NOW_MS + HOUR_MS}
    assert now[B]["cycle"] > first[B]["cycle"] and now[B]["content_digest"] == OTHER and now[B]["changed_min"] == 60
    assert now[C] == {**first[C], "misses": 1, "visited_at_ms": NOW_MS}  # it has no time: that of the plan
    assert small.rows()[C]["attempts"] == 1 and small.rows()[C]["state"] == "collected"
    _, report = turn(small, {A: later(2, status=404, digest=THIRD), C: Page(REFUSED, REASON_ROBOTS, at_ms=NOW_MS + 1)})
    assert (report["gone"], report["changed"], report["missed"]) == (1, 1, 1)
    assert find_wrong(small) == {}


def test_books_name_a_plan_that_is_gone_and_whose_moment_they_need(small):
    """bin/check takes Damaged for a finding and continues; anything else would end it."""
    plan, _ = turn(small, {A: Page(REFUSED, REASON_ROBOTS, at_ms=0)})
    assert find_wrong(small) == {}
    (small.crawl.path / names.cycle(plan.cycle) / names.PLAN).unlink()
    entry = next(entry for entry in small.history().entries if entry and entry.cycle == plan.cycle)
    with pytest.raises(Damaged, match="plan.json: expected the plan"):
        visit_books.read_failures(small.crawl.path, entry)


def test_page_that_only_ever_had_revisit_records(small):
    """Somebody else's list: its answers refer to a record that we do not have."""
    turn(
        small, {"http://new.test/": later(1, is_revisit=True, is_parsed=False)}, foreign=frozenset(["http://new.test/"])
    )
    first = sides(small)["http://new.test/"]
    assert (first["visits"], first["parsed"], first["content_digest"]) == (1, 0, bytes(16))
    turn(small, {"http://new.test/": later(2, is_revisit=True, is_parsed=False)})
    assert sides(small)["http://new.test/"] == {
        **first,
        "visits": 2,
        "unchanged_min": 60,
        "visited_at_ms": NOW_MS + 2 * HOUR_MS,
    }
    turn(small, {"http://new.test/": later(3, OTHER)})
    last = sides(small)["http://new.test/"]
    assert last["cycle"] > first["cycle"] and (last["visits"], last["changes"], last["parsed"]) == (3, 0, 1)
    assert find_wrong(small) == {}


def test_rows_merged_agree_when_pages_are_collected_again(small):
    _, report = turn(small, {A: later(1, OTHER, links=[A, B, C]), B: later(1, links=[C])})
    sets = ("repeated", "already_collected", "collected_now", "known_uncollected", "new")
    assert report["rows_merged"] == sum(report[name] for name in sets) + report["refused_linked"] == 3
    assert report["already_collected"] == 3 and report["known"] == report["known_before"]


def test_rerun_writes_the_same_bytes(small, tmp_path):
    plan = small.plan(CRAWL, 0)
    small.schedule(plan)
    small.harvest(plan, {A: later(1, OTHER), B: later(1, is_revisit=True), C: Page(FAILED, "dns", at_ms=0)})
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        work(small.crawl, out, plan, small.crawl_state.log)
    assert files_of(outs[0]) == files_of(outs[1]) and len(files_of(outs[0])) > 10


def test_visits_of_a_cycle_that_is_void_do_not_count(small):
    before = sides(small)
    plan = small.plan(CRAWL, 0)
    small.schedule(plan)
    small.harvest(plan, {A: later(1, OTHER), C: Page(FAILED, "dns")})
    small.work(plan)  # its generation is written, and the cycle abandoned
    commit(small.crawl.path, Entry(ABANDON, plan.cycle, plan.blocks, {0: plan.generation}, reason="test"))
    small.crawl_state.refresh()
    small.absorb(0)
    assert sides(small) == before and manifests(small)[0]["visits"] == 3
    assert find_wrong(small) == {}


def test_split_and_rebuild_keep_visits_and_their_figures(small):
    turn(small, {A: later(1, OTHER), B: later(2, is_revisit=True), C: Page(FAILED, "dns", at_ms=0)})
    before, (whole,) = sides(small), manifests(small)
    small.grow(0)
    assert sides(small) == before and find_wrong(small) == {}
    for name in ("visits", "changes", "revisitable"):
        assert sum(manifest[name] for manifest in manifests(small)) == whole[name]
    assert whole["revisit_due_ms"] == min(
        manifest["revisit_due_ms"] for manifest in manifests(small) if manifest["revisit_due_ms"] is not None
    )
    folder = small.crawl.path / names.generation(0, small.crawl_state.log.generation(0))
    for path in folder.glob("collected_*"):
        path.write_bytes(b"damaged")
    assert "the same bytes" in rebuild_block(small.crawl, small.history(), 0)
    assert sides(small) == before


def test_memory_of_pieces_changes_nothing(small, tmp_path, monkeypatch):
    pages = {A: later(1, OTHER), B: later(1, is_revisit=True), C: Page(FAILED, "dns", at_ms=0)}
    other = small.copy(tmp_path / "other")
    turn(small, pages)
    monkeypatch.setattr("stages.verifier.walk.ARRIVED_ROW_BYTES", 400 << 20)
    monkeypatch.setattr("stages.verifier.walk.PARENT_ROW_BYTES", 400 << 20)
    _, report = turn(other, pages)
    assert report["pieces"] > 1 and sides(other) == sides(small)
    assert manifests(other)[0]["revisit_due_ms"] == manifests(small)[0]["revisit_due_ms"]


def test_due_figure_has_no_pages_without_revisits(tmp_path):
    crawl = SmallCrawl(tmp_path / "crawl", 1, replace(CONFIG, revisit=Revisit()))
    crawl.seed([A])
    crawl.absorb_all()
    _, report = turn(crawl, {A: later(0)})
    assert (report["revisit_due_ms"], report["revisitable"], report["visits"]) == (None, 0, 1)


def forge_side(small: SmallCrawl, name: str, value: int) -> None:
    """Another value in the first row of a column of the live generation, with a manifest to match."""
    folder = small.crawl.path / names.generation(0, small.crawl_state.log.generation(0))
    path = folder / f"collected_{name}.npy.zst"
    rows = len(np.load(folder / "collected_content_digest.npy"))
    values = np.array(read_packed(path)) if path.exists() else np.zeros(rows, SIDE_COLUMNS[name])
    values[0] = value
    path.unlink(missing_ok=True)
    writer = PackedWriter(path, SIDE_COLUMNS[name])
    writer.append(values)
    writer.close()
    match_manifest(path)


@pytest.mark.parametrize(
    "name, value, claim",
    [
        ("visits", 9, visit_books.VISITS),
        ("changes", 1, visit_books.CHANGES),
        ("row", 0, visit_books.NEWEST),
        ("fetched_at_ms", 1, visit_books.NEWEST),
        ("visited_at_ms", 1, visit_books.OTHERS),
        ("parsed", 2, visit_books.OTHERS),
        ("misses", 3, visit_books.OTHERS),
        ("changed_min", 1, visit_books.OTHERS),
    ],
)
@pytest.mark.sampled(3)
def test_books_find_a_forged_side_set(small, name, value, claim):
    turn(small, {A: later(1, is_revisit=True), B: later(1, is_revisit=True), C: later(1, is_revisit=True)})
    if name == "row":  # of the three rows only the first in order has 0
        value = 1
    forge_side(small, name, value)
    assert claim in find_wrong(small)


def test_books_find_a_pointer_at_an_older_answer(small):
    old = {url: row["cycle"] for url, row in sides(small).items()}
    turn(small, {url: later(1, THIRD) for url in (A, B, C)})
    assert find_wrong(small) == {}
    forge_side(small, "cycle", old[A])
    assert set(find_wrong(small)) == {visit_books.NEWEST}


@pytest.mark.parametrize("name", ["revisit", "counted"])
def test_books_find_a_list_that_asks_again_what_was_never_collected(small, name):
    plan, _ = turn(small, {"http://new.test/": later(1, OTHER)})
    path = small.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER / names.URL_LIST
    listed = read_table(path, URL_LIST)
    rows = listed.to_pylist()
    assert [(row["url"], row["revisit"], row["counted"]) for row in rows] == [("http://new.test/", False, False)]
    write_table(path, type(listed).from_pylist([{**rows[0], name: True}], schema=URL_LIST))
    assert set(find_wrong(small)) == {visit_books.LISTED}


def test_report_of_the_turn_is_in_its_manifest(small):
    plan, report = turn(small, {A: later(1, status=410)})
    counts = read_manifest(small.crawl.path / names.cycle(plan.cycle) / names.VERIFIER)["counts"]
    assert counts == report and counts["gone"] == 1
