"""What links bring is added up exactly once, in the block and through AUX; what a page hands on is taken from it."""

import pytest

from contract.accumulators import ACCUMULATORS, SEED_CASH
from contract.config import Config, Scheduler
from contract.generation import COLUMNS
from contract.log import ABANDON, CRAWL, Entry, commit
from contract.tables import EXTRACTED, FAILED, REASON_ROBOTS, REFUSED, TAKEN, URL_LIST
from tests.small_crawl import Page, SmallCrawl

SEEDS = ["http://one.test/", "http://two.test/", "http://three.test/", "http://four.test/"]
CONFIG = Config(scheduler=Scheduler("opic"))


def test_every_accumulator_travels_in_every_table():
    for accumulator in ACCUMULATORS:
        assert accumulator.name in EXTRACTED.names and COLUMNS[accumulator.name] == accumulator.dtype
    assert set(TAKEN) <= set(URL_LIST.names)


def turn_all(small: SmallCrawl, pages: dict[str, Page]) -> list[str]:
    """A turn of each block; URLs without a page are answered without links."""
    asked = []
    for block in range(small.crawl_state.log.blocks):
        plan = small.plan(CRAWL, block)
        listed = small.schedule(plan)
        asked += listed
        small.harvest(plan, {url: pages.get(url, Page()) for url in listed})
        small.verify(plan)
    return asked


@pytest.mark.parametrize("blocks", [1, 2, 5])
@pytest.mark.sampled(1)
def test_cash_is_neither_lost_nor_made(tmp_path, blocks):
    small = SmallCrawl(tmp_path / "crawl", blocks, CONFIG)
    small.seed(SEEDS)
    small.absorb_all()
    targets = [f"http://{name}.test/{path}" for name in ("one", "two", "five") for path in ("a", "b/c")]
    turn_all(
        small,
        {
            SEEDS[0]: Page(links=targets),
            SEEDS[1]: Page(links=targets[:3]),
            SEEDS[2]: Page(outcome=FAILED, reason="timeout"),
        },
    )
    small.absorb_all()
    rows = small.rows()
    assert sum(row["cash"] for row in rows.values()) == len(SEEDS) * SEED_CASH
    assert (
        rows[SEEDS[0]]["cash"] == SEED_CASH % 6 and rows[SEEDS[1]]["cash"] == SEED_CASH % 3
    )  # the rest of the division stays
    assert rows[SEEDS[2]]["cash"] == rows[SEEDS[3]]["cash"] == SEED_CASH  # failed; without links
    assert rows[targets[0]]["cash"] == SEED_CASH // 6 + SEED_CASH // 3 and rows[targets[5]]["cash"] == SEED_CASH // 6
    assert rows[targets[0]]["links_in"] == 2 and rows[targets[0]]["depth"] == 1


def test_the_richest_is_asked_first(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    small.seed(SEEDS[:2])
    small.absorb_all()
    poor, rich = "http://five.test/poor", "http://five.test/rich"
    turn_all(small, {SEEDS[0]: Page(links=[poor, rich]), SEEDS[1]: Page(links=[rich])})
    assert turn_all(small, {}) == [rich, poor]


def test_a_merge_that_is_repeated_counts_once(tmp_path):
    """A rerun of the same plan, as after a kill, gives the same sums; only one entry of the log counts."""
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    small.seed(SEEDS[:1])
    small.absorb_all()
    plan = small.plan(CRAWL, 0)
    small.harvest(plan, {url: Page(links=SEEDS[1:3]) for url in small.schedule(plan)})
    small.verify(plan)
    small.verify(plan)
    assert {url: row["cash"] for url, row in small.rows().items()} == {
        SEEDS[0]: 0,
        SEEDS[1]: SEED_CASH // 2,
        SEEDS[2]: SEED_CASH // 2,
    }


def test_an_abandoned_list_charges_nobody_and_its_urls_hand_on_once(tmp_path):
    """It comes to the same merge twice, as failed and as asked.

    What the cycle was told counts, and what it gave is taken from it.
    """
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    small.seed(SEEDS[:2])
    small.absorb_all()
    abandoned = small.plan(CRAWL, 0)
    assert sorted(small.schedule(abandoned)) == sorted(SEEDS[:2])
    commit(small.crawl.path, Entry(ABANDON, abandoned.cycle, 1, {0: abandoned.generation}, reason="kept dying"))
    small.crawl_state.refresh()
    turn_all(
        small,
        {
            SEEDS[0]: Page(links=["http://five.test/", "http://six.test/"]),
            SEEDS[1]: Page(outcome=REFUSED, reason=REASON_ROBOTS),
        },
    )
    rows = small.rows()
    assert sum(row["cash"] for row in rows.values()) == 2 * SEED_CASH and rows[SEEDS[0]]["cash"] == 0
    assert rows[SEEDS[1]]["state"] == "refused_by_robots" and rows[SEEDS[1]]["attempts"] == 0
