"""What is kept of superseded generations, around a split: what was split counts for both of its halves."""

import os
import time

import pytest

from contract import names
from storage.publish import ASIDE
from supervise.deletion import INBOX_ASIDE_MAX_S, remove_garbage
from tests.small_crawl import SmallCrawl

SEEDS = [f"http://s{number}.test/" for number in range(20)]


@pytest.fixture
def crawl(tmp_path) -> SmallCrawl:
    crawl = SmallCrawl(tmp_path / "crawl", 1)
    crawl.seed(SEEDS)
    crawl.absorb(0)
    return crawl


def generations(crawl: SmallCrawl, block: int) -> list[int]:
    return names.numbered((crawl.crawl.path / names.generation(block, 0)).parent)


def absorb_more(crawl: SmallCrawl, block: int) -> int:
    """A turn of the block, and its number."""
    crawl.seed([f"http://s{number}.test/{crawl.crawl_state.log.length}" for number in range(20)])
    return crawl.absorb(block)["cycle"]


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("keep", [1, 2])
def test_what_was_split_goes_once_one_half_has_had_as_many_turns(crawl, half, keep):
    (parent,) = generations(crawl, 0)
    split = crawl.grow(0)["cycle"]
    turns = []
    for _ in range(keep):
        crawl.delete(keep)
        assert parent in generations(crawl, 0) and generations(crawl, 0)[-1] == max(
            [split, *(turns if half == 0 else [])]
        )
        turns.append(absorb_more(crawl, half))
    crawl.delete(keep)
    assert parent not in generations(crawl, 0)
    assert generations(crawl, half) == [split, *turns] and generations(crawl, 1 - half) == [split]
    assert len(crawl.rows()) >= len(SEEDS)


def test_where_nothing_is_kept_it_goes_at_once(crawl):
    (parent,) = generations(crawl, 0)
    split = crawl.grow(0)["cycle"]
    crawl.delete(0)
    assert generations(crawl, 0) == generations(crawl, 1) == [split] != [parent]


def test_a_block_that_was_split_before_it_had_anything(tmp_path):
    crawl = SmallCrawl(tmp_path / "crawl", 1)
    crawl.grow(0)
    crawl.delete(1)
    crawl.seed(SEEDS)
    turns = [[crawl.absorb(block)["cycle"], absorb_more(crawl, block)] for block in (0, 1)]
    crawl.delete(1)
    assert [generations(crawl, block) for block in (0, 1)] == turns


def test_start_up_removes_what_a_killed_seed_or_reconsider_left_in_the_inbox(crawl):
    inbox = crawl.crawl.path / names.INBOX
    left = {name: inbox / name for name in (f"{ASIDE}7-old.txt", f"{ASIDE}old.parquet", f"{ASIDE}new.txt", "seeds.txt")}
    for name, path in left.items():
        path.write_text("http://a.test/\n")
        age_s = INBOX_ASIDE_MAX_S + 60 if "new" not in name else INBOX_ASIDE_MAX_S - 60
        os.utime(path, (time.time() - age_s,) * 2)
    remove_garbage(crawl.crawl_state)
    assert sorted(path.name for path in inbox.iterdir()) == [f"{ASIDE}new.txt", "seeds.txt"], "it may be written now"
