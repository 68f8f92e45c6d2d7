"""Random crawls that forget: the books agree after turns of any kind, in any order, and blocks can be made again."""

import random

import pytest

from contract.accumulators import DAY_MS
from contract.blocks import block_to_split
from contract.config import Config, Revisit, Scheduler, Scope, Verifier
from contract.log import CRAWL
from contract.tables import FAILED
from stages.verifier.rebuild import rebuild_block
from tests.sampling import sampling
from tests.small_crawl import NOW_MS, Page, SmallCrawl
from tests.stages.test_forgetting import assert_books_agree

HOSTS = [f"http://h{number}.d{number % 7}.test/" for number in range(14)]
URLS = [f"{host}p/{number}" for host in HOSTS for number in range(12)]
DAY_S, STEPS, BLOCKS_MAX = 86_400.0, 30, 6
POLICIES = ("shortest-path", "opic", "in-links", "new-domains", "spread", "fifo")


def draw_config(chance: random.Random) -> Config:
    policy = chance.choice(("uniform", "optimal", "proportional"))
    return Config(
        revisit=Revisit(policy, DAY_S, interval_max_s=2 * DAY_S, forget_after_days=chance.choice((4, 6, 9))),
        scope=Scope(accept_suffixes=("test",)),
        scheduler=Scheduler(chance.choice(POLICIES)),
        verifier=Verifier(prefix_from_urls=chance.choice((0, 5_000)), server_max_urls=chance.choice((0, 12))),
    )


def answer(chance: random.Random, now_ms: int) -> Page:
    if chance.random() < 0.1:
        return Page(FAILED, "timeout", at_ms=now_ms)
    dates = {url: now_ms // 1000 - chance.randrange(1, 100_000) for url in chance.sample(URLS, 3)}
    links = chance.sample(URLS, chance.randrange(5))
    return Page(links=links, at_ms=now_ms, digest=bytes([chance.randrange(1, 5)] * 16), lastmods=dates)


def take_turn(small: SmallCrawl, chance: random.Random, now_ms: int) -> None:
    blocks = small.crawl_state.log.blocks
    block, kind = chance.randrange(blocks), chance.random()
    if kind < 0.08 and blocks < BLOCKS_MAX:
        small.grow(block_to_split(blocks))
    elif kind < 0.2:
        small.absorb_all()
    elif kind < 0.25:
        small.seed(chance.sample(URLS, 2))
    else:
        plan = small.plan(CRAWL, block, now_ms)
        reached = [url for url in small.schedule(plan) if chance.random() < 0.85]
        small.harvest(plan, {url: answer(chance, now_ms) for url in reached})
        small.verify(plan)


@pytest.mark.long
@pytest.mark.parametrize("number", range(2))
def test_books_agree_whatever_is_forgotten(tmp_path, number):
    chance = random.Random(f"{sampling.seed}/{number}")
    small = SmallCrawl(tmp_path / "crawl", chance.choice((1, 2, 3)), draw_config(chance))
    small.seed(HOSTS[:3])
    now_ms = NOW_MS
    for step in range(STEPS):
        now_ms += chance.choice((0, 1, 2, 2, 4)) * DAY_MS // 2
        for view in small.crawl_state.views():
            if view.forget_due_ms is not None and view.forget_due_ms <= now_ms and chance.random() < 0.8:
                assert small.forget(view.block, now_ms)["forgotten"] > 0
        take_turn(small, chance, now_ms)
        if step % 8 == 7:
            small.delete(chance.choice((0, 1)))
    assert_books_agree(small)
    for block in range(small.crawl_state.log.blocks):
        if small.crawl_state.log.generation(block) is not None:
            rebuild_block(small.crawl, small.history(), block)
