"""Forgetting: URLs that no page has linked to for so long leave their block, and nothing else does."""

from dataclasses import replace

import numpy as np
import pytest

from contract import names
from contract.accumulators import DAY_MS
from contract.config import Config, Revisit, Scope
from contract.generation import open_generation
from contract.log import ABSORB, CRAWL, FORGET
from contract.revisits import conditional_from_ms
from contract.tables import FORGOTTEN, GIVEN_UP, REFUSED_BY_RULE, URL_LIST, WAITING
from examine.block_books import Found, check_chain, check_position
from examine.findings import Findings
from examine.forgotten import check_forgotten, forgetting
from stages.verifier.__main__ import work
from stages.verifier.figures import VisitFigures
from stages.verifier.rebuild import rebuild_block
from storage.tables import read_table
from supervise.turns import BlockView, Turn, forget_clock_ms, next_turn
from tests.small_crawl import NOW_MS, Page, SmallCrawl
from tests.visited_pages import find_wrong, sides

DAYS = 20
CONFIG = Config(
    revisit=Revisit("uniform", interval_s=DAY_MS / 1000, forget_after_days=DAYS), scope=Scope(accept_suffixes=("test",))
)
SEEDS = ["http://one.test/", "http://two.test/"]
LATE_MS = (NOW_MS // DAY_MS + DAYS + 1) * DAY_MS  # what was linked on the first day can be forgotten then
OLD = [f"http://{name}.test/old/{number}" for name in ("one", "two", "gone") for number in range(6)]
KEPT = [f"http://{name}.test/kept/{number}" for name in ("one", "two", "new") for number in range(6)]


def make_crawl(folder, blocks: int = 1, config: Config = CONFIG) -> SmallCrawl:
    """Both seeds link to all on the first day; on the last one they link to KEPT alone."""
    small = SmallCrawl(folder, blocks, config)
    small.seed(SEEDS)
    small.absorb_all()
    crawl_all(small, NOW_MS, lambda url: Page(links=OLD + KEPT if url in SEEDS else [], at_ms=NOW_MS))
    small.absorb_all()
    crawl_all(small, NOW_MS + DAY_MS, lambda url: Page(at_ms=NOW_MS + DAY_MS) if "/old/1" not in url else None)
    crawl_all(small, LATE_MS, lambda url: Page(links=KEPT, at_ms=LATE_MS) if url in SEEDS else None)
    small.absorb_all()
    return small


def crawl_all(small: SmallCrawl, now_ms: int, answer) -> dict[str, dict]:
    """A turn of each block; URLs for which `answer` has none were not reached. Returns the rows of the lists."""
    listed = {}
    for block in range(small.crawl_state.log.blocks):
        plan = small.plan(CRAWL, block, now_ms)
        urls = small.schedule(plan)
        path = small.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER / names.URL_LIST
        listed |= {row["url"]: row for row in read_table(path, URL_LIST).to_pylist()}
        small.harvest(plan, {url: page for url in urls if (page := answer(url))})
        small.verify(plan)
    return listed


def forget_all(small: SmallCrawl, now_ms: int) -> set[str]:
    """Lets each block forget that is due; returns the URLs."""
    found = set()
    for view in small.crawl_state.views():
        if view.forget_due_ms is None or view.forget_due_ms > now_ms:
            continue
        assert next_turn([view], now_ms) == Turn(FORGET, view.block)
        report = small.forget(view.block, now_ms)
        table = read_table(
            small.crawl.path / names.cycle(report["cycle"]) / names.VERIFIER / names.FORGOTTEN, FORGOTTEN
        )
        assert report["forgotten"] == len(table) > 0
        found |= set(table.column("url").to_pylist())
    return found


def assert_books_agree(small: SmallCrawl) -> None:
    findings, log = Findings(), small.history()
    check_position(small.crawl.path, log, Found(small.crawl.path), findings)
    check_chain(small.crawl.path, log, findings)
    for entry in forgetting(log):
        check_forgotten(small.crawl.path, entry, findings)
    assert findings.wrong == {} and find_wrong(small) == {}


@pytest.mark.parametrize("blocks", [1, 3])
def test_what_no_page_links_to_any_more_goes_and_all_else_stays(tmp_path, blocks):
    small = make_crawl(tmp_path / "crawl", blocks)
    before, visits = small.rows(), sides(small)
    assert set(before) == {*SEEDS, *OLD, *KEPT} and set(visits) & set(OLD)
    assert {row["state"] for url, row in before.items() if url in OLD} >= {"collected", "prescheduled"}
    assert forget_all(small, LATE_MS - 1) == set()
    assert forget_all(small, LATE_MS) == set(OLD)
    assert small.rows() == {url: row for url, row in before.items() if url not in OLD}
    assert sides(small) == {url: side for url, side in visits.items() if url not in OLD}
    assert_books_agree(small)
    assert forget_all(small, LATE_MS + (DAYS - 1) * DAY_MS) == set()


def test_a_forgotten_url_that_is_linked_again_is_new(tmp_path):
    small = make_crawl(tmp_path / "crawl", 2)
    forget_all(small, LATE_MS)
    later_ms = LATE_MS + 2 * DAY_MS
    crawl_all(
        small, later_ms, lambda url: Page(links=[*KEPT, OLD[0], OLD[1]], at_ms=later_ms) if url in SEEDS else None
    )
    small.absorb_all()
    rows = small.rows()
    assert set(rows) == {*SEEDS, *KEPT, OLD[0], OLD[1]}
    listed = crawl_all(small, later_ms + 1, lambda url: Page(at_ms=later_ms + 1))
    for url in OLD[:2]:
        assert not listed[url]["revisit"] and not listed[url]["counted"] and not listed[url]["etag"]
        assert small.rows()[url]["links_in"] == 0 and sides(small)[url]["visits"] == 1
    assert_books_agree(small)


def test_seeds_and_urls_that_nobody_linked_to_stay(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    small.seed(SEEDS)
    small.absorb_all()
    strange = "http://strange.test/"
    plan = small.plan(CRAWL, 0)
    small.schedule(plan)
    small.harvest(plan, {SEEDS[0]: Page(links=[SEEDS[1], *OLD]), strange: Page()}, foreign=frozenset([strange]))
    small.verify(plan)
    crawl_all(small, NOW_MS + DAY_MS, lambda url: Page(at_ms=NOW_MS + DAY_MS))
    assert forget_all(small, LATE_MS) == set(OLD)
    assert set(small.rows()) == {*SEEDS, strange}
    assert_books_agree(small)


def test_pages_are_asked_again_before_anything_is_forgotten_after_a_pause(tmp_path):
    """No time passes for what may be forgotten until the pages that had links have answered again."""
    small = SmallCrawl(tmp_path / "crawl", 2, CONFIG)
    small.seed(SEEDS)
    small.absorb_all()
    crawl_all(small, NOW_MS, lambda url: Page(links=OLD, at_ms=NOW_MS))
    small.absorb_all()
    views = small.crawl_state.views()
    assert all(view.forget_due_ms <= LATE_MS for view in views) and forget_clock_ms(views, LATE_MS) < LATE_MS
    assert next_turn(views, LATE_MS).kind == CRAWL
    plan = small.plan(CRAWL, 0, LATE_MS)
    small.harvest(plan, {url: Page(links=OLD, at_ms=LATE_MS) for url in small.schedule(plan)})
    small.verify(plan)
    assert next_turn(small.crawl_state.views(), LATE_MS) == Turn(CRAWL, 1), "its page may link to URLs of block 0"


def test_a_gone_page_and_one_of_a_server_that_was_given_up_hold_nothing_back(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    small.seed([*SEEDS, "http://three.test/"])
    small.absorb_all()
    crawl_all(small, NOW_MS, lambda url: Page(at_ms=NOW_MS))
    until_ms = small.crawl_state.figures(0)["forget_until_ms"]
    assert until_ms == NOW_MS + DAYS * DAY_MS
    later_ms = NOW_MS + 2 * DAY_MS
    crawl_all(small, later_ms, lambda url: Page(at_ms=later_ms) if url in SEEDS else Page(status=404, at_ms=later_ms))
    assert small.crawl_state.figures(0)["forget_until_ms"] == later_ms + DAYS * DAY_MS
    visits = VisitFigures(CONFIG)
    side = {"misses": np.array([0, 0, 1], np.uint8), "fetched_at_ms": np.array([5, 9, 1]) * DAY_MS}
    visits._take_answers(side, np.array([0, 1, 1]))
    assert visits._find_forget_until({"given_up": np.array([True, False])}) == {"forget_until_ms": (9 + DAYS) * DAY_MS}


def test_what_waits_for_a_block_is_absorbed_once_before_it_forgets():
    due = {"block": 0, "last_turn": 3, "waiting": 1, "forget_due_ms": 1, "pending": True}
    assert next_turn([BlockView(**due)], 2) == Turn(ABSORB, 0)
    assert next_turn([BlockView(**due, has_absorbed=True)], 2) == Turn(FORGET, 0), "or it may never have its turn"
    assert next_turn([BlockView(**{**due, "last_turn": -1})], 2) == Turn(CRAWL, 0)
    assert next_turn([BlockView(**due, forget_until_ms=0)], 2) == Turn(CRAWL, 0)


def test_a_link_that_waits_in_aux_keeps_its_target(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 2, CONFIG)
    small.seed(SEEDS)
    small.absorb_all()
    crawl_all(small, NOW_MS, lambda url: Page(links=OLD, at_ms=NOW_MS))
    small.absorb_all()
    crawl_all(small, NOW_MS + DAY_MS, lambda url: Page(at_ms=NOW_MS + DAY_MS))
    plan = small.plan(CRAWL, 0, LATE_MS)
    small.harvest(plan, {url: Page(links=OLD, at_ms=LATE_MS) for url in small.schedule(plan)})
    small.verify(plan)
    view = small.crawl_state.views()[1]
    assert view.pending and view.forget_due_ms <= LATE_MS and next_turn([view], LATE_MS) == Turn(ABSORB, 1)
    small.absorb(1)
    view = small.crawl_state.views()[1]
    assert view.has_absorbed and view.forget_due_ms > LATE_MS


def test_what_claims_of_a_forgotten_page_said_of_its_server_stays(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    small.seed(SEEDS)
    small.absorb_all()
    page, at_ms = OLD[0], NOW_MS
    crawl_all(small, at_ms, lambda url: Page(links=[page] if url == SEEDS[1] else [], at_ms=at_ms))
    for days in range(1, 9):
        at_ms = NOW_MS + days * DAY_MS
        claim = Page(links=[page], lastmods={page: at_ms // 1000}, at_ms=at_ms)
        found = Page(at_ms=at_ms, digest=bytes([days] * 16))
        crawl_all(small, at_ms, ({SEEDS[1]: claim} if days % 2 else {page: found}).get)
    assert small.forget(0, LATE_MS + 8 * DAY_MS)["forgotten"] == 1
    servers = open_generation(small.crawl.path, 0, small.crawl_state.log.generation(0)).servers.to_pylist()
    assert {row["server"]: row["lastmod_claims"] for row in servers} == {"http://one.test": 3, "http://two.test": 0}
    assert_books_agree(small)


def test_servers_go_with_the_last_url_of_their_domain(tmp_path):
    small = make_crawl(tmp_path / "crawl")
    forget_all(small, LATE_MS)
    servers = {row["server"] for row in small.rows().values()}
    assert servers == {"http://one.test", "http://two.test", "http://new.test"}
    table = small.crawl_state.figures(0)
    assert table["servers"] == 3 and table["known"] == 20


def test_a_rerun_writes_the_same_bytes_and_a_block_is_made_again(tmp_path):
    small = make_crawl(tmp_path / "crawl")
    plan = small.plan(FORGET, 0, LATE_MS)
    for name in ("first", "second"):
        work(small.crawl, tmp_path / name, plan, small.crawl_state.log)
    files = sorted(path.relative_to(tmp_path / "first") for path in (tmp_path / "first").rglob("*") if path.is_file())
    assert len(files) > 10
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name
    small.verify(plan)
    later_ms = LATE_MS + DAY_MS
    crawl_all(small, later_ms, lambda url: Page(links=[OLD[0]], at_ms=later_ms))
    damaged = small.crawl.path / names.generation(0, small.crawl_state.log.generation(0)) / "key.npy"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    small.delete()  # of older generations, so that it begins at nothing
    rebuild_block(small.crawl, small.history(), 0)
    assert damaged.read_bytes() == whole
    assert_books_agree(small)


def test_a_block_that_forgot_is_split(tmp_path):
    small = make_crawl(tmp_path / "crawl")
    forget_all(small, LATE_MS)
    before = set(small.rows())
    small.grow(0)
    assert set(small.rows()) == before
    assert_books_agree(small)
    dues = [small.crawl_state.figures(block)["forget_due_ms"] for block in range(2)]
    assert {due for due in dues if due} == {(LATE_MS // DAY_MS + DAYS + 1) * DAY_MS}


def test_pages_are_asked_in_full_once_in_half_of_the_time(tmp_path):
    """A 304 names no links: what such a page links to would be forgotten."""
    assert conditional_from_ms(Revisit("uniform"), NOW_MS) < 0
    assert conditional_from_ms(CONFIG.revisit, NOW_MS) == NOW_MS - DAYS // 2 * DAY_MS


def test_a_config_that_forgets_nothing_prepares_blocks_that_forget_nothing(tmp_path):
    small = make_crawl(tmp_path / "crawl")
    small.config = replace(CONFIG, revisit=replace(CONFIG.revisit, forget_after_days=0))
    assert small.forget(0, LATE_MS)["forgotten"] == 0
    assert small.crawl_state.figures(0)["forget_due_ms"] is None and forget_all(small, LATE_MS) == set()


def test_the_table_has_states_and_sums(tmp_path):
    small = make_crawl(tmp_path / "crawl")
    report = small.forget(0, LATE_MS)
    path = small.crawl.path / names.cycle(report["cycle"]) / names.VERIFIER / names.FORGOTTEN
    rows = read_table(path, FORGOTTEN).to_pylist()
    assert [(row["domain_key"], row["url_key"]) for row in rows] == sorted(
        (row["domain_key"], row["url_key"]) for row in rows
    )
    assert {row["links_in"] for row in rows} == {2} and not {WAITING, GIVEN_UP, REFUSED_BY_RULE} >= {
        row["state"] for row in rows
    }
