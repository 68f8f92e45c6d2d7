"""What policies do in turns of the real verifier and scheduler: amounts handed on, budgets, visits in scores."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract.accumulators import DAY_MS, NEARNESS_STEP, SEED_NEARNESS
from contract.config import Config, Revisit, Scheduler
from contract.log import CRAWL
from contract.policies.history import LARGEST_UNITS
from contract.policy_files import adopt
from tests.small_crawl import NOW_MS, Page, SmallCrawl

SEED, CHILDREN = "http://seed.test/", [f"http://seed.test/{name}" for name in "abcd"]
GRANDCHILDREN = [f"http://seed.test/b{number}" for number in range(8)]


def make(folder: Path, revisit: Revisit = Revisit(), **settings) -> SmallCrawl:
    small = SmallCrawl(folder, 1, replace(Config(), scheduler=Scheduler(**settings), revisit=revisit))
    small.config = adopt(small.crawl, small.config)
    small.seed([SEED])
    small.absorb_all()
    return small


def turn(small: SmallCrawl, pages: dict[str, Page], now_ms: int = NOW_MS) -> list[str]:
    """A cycle; returns its list."""
    plan = small.plan(CRAWL, 0, now_ms)
    listed = small.schedule(plan)
    small.harvest(plan, {url: page for url, page in pages.items() if url in listed})
    small.verify(plan)
    return listed


def next_list(small: SmallCrawl, now_ms: int = NOW_MS) -> list[str]:
    return small.schedule(small.plan(CRAWL, 0, now_ms))


def test_history_a_page_gives_its_rank_divided_and_what_a_child_inherited_goes_on(tmp_path):
    (tmp_path / "ranks").write_text(f"{SEED} 4\n{CHILDREN[3]} 1\n")
    small = make(tmp_path / "crawl", policy="history", ranks_file=str(tmp_path / "ranks"))
    turn(small, {SEED: Page(links=CHILDREN)})
    rows = small.rows()
    assert [rows[url]["inherited"] for url in CHILDREN] == [LARGEST_UNITS / 4] * 4
    assert turn(small, {CHILDREN[1]: Page(links=[CHILDREN[0], *GRANDCHILDREN[:7]])})[-1] in CHILDREN
    rows = small.rows()
    assert rows[CHILDREN[0]]["inherited"] == LARGEST_UNITS / 4 * (1 + 1 / 8)
    assert [rows[url]["inherited"] for url in GRANDCHILDREN[:7]] == [LARGEST_UNITS / 4 / 8] * 7
    assert rows[CHILDREN[1]]["inherited"] == LARGEST_UNITS / 4, "the parent keeps what it has"
    assert next_list(small)[:3] == [CHILDREN[0], *sorted(CHILDREN[2:], key=small.keys.of)]


def test_fica_the_nearest_way_counts(tmp_path):
    small = make(tmp_path / "crawl", policy="fica")
    turn(small, {SEED: Page(links=CHILDREN)})
    turn(small, {CHILDREN[0]: Page(links=[GRANDCHILDREN[0]]), CHILDREN[1]: Page(links=GRANDCHILDREN)})
    nearness = {url: row["nearness"] for url, row in small.rows().items()}
    assert nearness[CHILDREN[0]] == nearness[GRANDCHILDREN[0]] == SEED_NEARNESS - 2 * NEARNESS_STEP
    assert {nearness[url] for url in GRANDCHILDREN[1:]} == {SEED_NEARNESS - 5 * NEARNESS_STEP}
    assert set(next_list(small)[:3]) == {GRANDCHILDREN[0], *CHILDREN[2:]}


def test_focused_pages_on_the_topic_bring_their_targets_forward(tmp_path):
    (tmp_path / "terms").write_text("water\n")
    small = make(tmp_path / "crawl", policy="focused", terms_file=str(tmp_path / "terms"))
    turn(small, {SEED: Page(links=[*CHILDREN, "http://seed.test/x/y/water"])})
    turn(small, {CHILDREN[1]: Page(links=GRANDCHILDREN[:4], relevance=3), CHILDREN[2]: Page(links=GRANDCHILDREN[3:])})
    rows = small.rows()
    assert [rows[url]["relevance"] for url in GRANDCHILDREN] == [3, 3, 3, 3, 0, 0, 0, 0]
    listed = next_list(small)
    assert listed[0] == "http://seed.test/x/y/water"
    assert set(listed[1:4]) == set(GRANDCHILDREN[:3]) and listed[4] == GRANDCHILDREN[3], "a mean of 3, then of 1.5"


def test_common_crawl_a_domain_keeps_the_urls_of_its_budget(tmp_path):
    (tmp_path / "centralities").write_text("seed.test 2\nmany.test 1\n")
    limits = {"centrality_urls_max": 10, "centrality_urls_min": 3}
    small = make(tmp_path / "crawl", policy="common-crawl", centralities_file=str(tmp_path / "centralities"), **limits)
    links = [f"http://{host}.test/{number}" for host in ("seed", "many", "unknown") for number in range(20)]
    turn(small, {SEED: Page(links=links)})
    assert np.unique([url.split("/")[2] for url in small.rows()], return_counts=True)[1].tolist() == [7, 10, 3]
    turn(small, {url: Page(links=[f"{url}/more"]) for url in links})
    assert len(small.rows()) == 20


@pytest.mark.parametrize("first, second", [CHILDREN[:2], CHILDREN[1::-1]])
def test_common_crawl_pages_that_were_not_seen_for_long_come_first(tmp_path, first, second):
    """Visits after 1,400 hours are worth the same: the score decides, by 9 days more."""
    revisit = Revisit(policy="uniform", interval_s=3600.0, interval_min_s=3600.0, share_max=1.0, spread_share=0.0)
    small = make(tmp_path / "crawl", revisit, policy="common-crawl")
    turn(small, {SEED: Page(links=CHILDREN[:2])})
    for url, day in ((first, 1), (second, 10)):
        now_ms = NOW_MS + day * DAY_MS
        turn(small, {url: Page(at_ms=now_ms)}, now_ms)
    listed = next_list(small, NOW_MS + 60 * DAY_MS)
    assert set(listed) == {SEED, first, second} and listed.index(first) < listed.index(second)
