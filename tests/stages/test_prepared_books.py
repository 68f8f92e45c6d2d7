"""The books of features and of the table of servers find what no other book sees."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from contract import names
from contract.config import Config, Priority, Scheduler
from contract.generation import BLOCK_SERVERS, COLUMNS, SERVERS_FILE
from examine import prepared_books
from storage.columns import PackedWriter, read_packed
from storage.tables import read_table, write_table
from tests.small_crawl import Page, SmallCrawl
from tests.visited_pages import find_wrong, match_manifest, turn

A, B = "http://a.test/", "http://b.test/x"
CONFIG = Config(scheduler=Scheduler(policy="new-domains"), priority=(Priority(pattern="/x", weight=2.0),))


@pytest.fixture
def small(tmp_path) -> SmallCrawl:
    """One page that leads to two other domains, so that its own stays open."""
    crawl = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    crawl.seed([A, B])
    crawl.absorb_all()
    links = ["http://a.test/y/z", "http://c.test/1", "http://d.test/"]
    turn(crawl, {A: Page(links=links), B: Page(links=[A])})
    assert find_wrong(crawl) == {}
    return crawl


def live(small: SmallCrawl) -> Path:
    return small.crawl.path / names.generation(0, small.crawl_state.log.generation(0))


@pytest.mark.parametrize("name", ["promise", "rule", "levels"])
def test_books_find_a_feature_that_is_not_that_of_the_text(small, name):
    """`levels` belongs to no policy of this crawl: it is zero."""
    path = live(small) / f"{name}.npy.zst"
    rows = len(np.load(live(small) / "key.npy"))
    values = np.array(read_packed(path)) if path.exists() else np.zeros(rows, COLUMNS[name])
    values[-1] ^= 1
    path.unlink(missing_ok=True)
    writer = PackedWriter(path, COLUMNS[name])
    writer.append(values)
    writer.close()
    match_manifest(path)
    assert list(find_wrong(small)) == [prepared_books.FEATURES_CLAIM]


@pytest.mark.parametrize("name", ["collected", "waiting", "prescheduled", "mentions"])
def test_books_find_a_server_that_counts_other_rows(small, name):
    forge_servers(small, name, lambda value, _: value + 1)
    assert list(find_wrong(small)) == [prepared_books.SERVERS]


def test_books_find_a_closed_domain_of_which_something_waits(small):
    forge_servers(small, "closed", lambda value, server: value or server["waiting"] > 0)
    assert list(find_wrong(small)) == [prepared_books.CLOSED]


def forge_servers(small: SmallCrawl, name: str, change) -> None:
    path = live(small) / SERVERS_FILE
    rows = read_table(path, BLOCK_SERVERS).to_pylist()
    rows = [{**row, name: change(row[name], row)} for row in rows]
    write_table(path, pa.Table.from_pylist(rows, schema=BLOCK_SERVERS))
    match_manifest(path)
