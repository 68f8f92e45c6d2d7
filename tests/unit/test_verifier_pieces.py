"""Turns in many pieces.

One server that is larger than a piece, keys at both ends, and turns that nothing arrives in.
"""

from pathlib import Path

import numpy as np
import pytest

from contract import names
from contract.config import Config, Verifier
from contract.generation import open_generation, read_urls
from contract.log import CRAWL
from stages.verifier import walk
from storage.publish import read_manifest
from storage.tables import column
from tests.small_crawl import Page, SmallCrawl

URLS, BATCH, TURNS = 50_000, 25_000, 3
GIANT, SEED = "http://giant.test", "http://giant.test/0"
KEY_MAX = (1 << 64) - 1
EDGES = [f"http://{host}.edge.test/{end}" for host in ("first", "last") for end in ("least", "most")]
CONFIG = Config(verifier=Verifier(prefix_max_urls=0, query_max_urls=0))


class Giant(SmallCrawl):
    """Keys are drawn at once and not hashed one by one; some stand at the ends of their range."""

    def __init__(self, folder: Path):
        super().__init__(folder, 1, CONFIG)
        urls = [f"{GIANT}/{number}" for number in range(URLS)]
        keys = np.random.default_rng(1).permutation(
            np.unique(np.random.default_rng(2).integers(0, KEY_MAX, URLS + 100, np.uint64))[:URLS]
        )
        keys[1], keys[2] = 0, KEY_MAX
        server = super().keyed(SEED)
        self.table = {url: {**server, "url_key": int(key), "url": url} for url, key in zip(urls, keys)}
        self.table[SEED] = server
        for url in EDGES:
            end = KEY_MAX if "last." in url else 0
            self.table[url] = {
                "domain_key": end,
                "server_key": end,
                "url_key": KEY_MAX if url.endswith("most") else 0,
                "url": url,
            }

    def keyed(self, url: str) -> dict:
        return self.table[url]

    def turn(self, links: list[str]) -> dict:
        plan = self.plan(CRAWL, 0)
        self.schedule(plan)
        self.harvest(plan, {SEED: Page(links=links)})
        return self.verify(plan)


def play(folder: Path) -> tuple[Giant, list[dict], dict[str, int]]:
    """Turns with batches that overlap; the pages that link to each URL, counted by a dictionary."""
    crawl = Giant(folder)
    crawl.seed([SEED])
    crawl.absorb_all()
    numbers, linked, reports = np.random.default_rng(3), {SEED: 0}, []
    for _ in range(TURNS):
        links = [f"{GIANT}/{number}" for number in numbers.choice(URLS, BATCH, replace=False)] + EDGES
        links += [f"{GIANT}/{number}" for number in (1, 2) if f"{GIANT}/{number}" not in links]
        reports.append({**crawl.turn(links), "expected_new": len(set(links) - set(linked))})
        for url in set(links):
            linked[url] = linked.get(url, 0) + 1
    return crawl, reports, linked


@pytest.fixture(scope="module")
def in_pieces(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "ARRIVED_ROW_BYTES", 1 << 20)
        return play(tmp_path_factory.mktemp("pieces") / "crawl")


def test_one_giant_server_in_dozens_of_pieces(in_pieces):
    crawl, reports, linked = in_pieces
    for report in reports:
        assert report["pieces"] >= 24 and report["new"] == report["expected_new"]
    generation = open_generation(crawl.crawl.path, 0, crawl.crawl_state.log.generation(0))
    urls = read_urls(crawl.crawl.path, generation, np.arange(len(generation)))
    assert len(urls) == len(set(urls)) and set(urls) == set(linked)
    assert dict(zip(urls, generation.rows["links_in"].tolist())) == linked
    domains = column(generation.servers, "domain_key")[generation.server_index].tolist()
    pairs = list(zip(domains, generation.rows["key"].tolist()))
    assert pairs == [(crawl.table[url]["domain_key"], crawl.table[url]["url_key"]) for url in urls]
    assert pairs == sorted(set(pairs)) and pairs[0] == (0, 0) and pairs[-1] == (KEY_MAX, KEY_MAX)
    assert sorted(column(generation.servers, "server")) == ["http://first.edge.test", GIANT, "http://last.edge.test"]


def test_pieces_change_no_byte(in_pieces, tmp_path):
    crawl, reports, _ = in_pieces
    whole, others, _ = play(tmp_path / "crawl")
    assert [report["pieces"] for report in others] == [1] * TURNS
    assert [{**report, "pieces": 0} for report in others] == [{**report, "pieces": 0} for report in reports]
    number = crawl.crawl_state.log.generation(0)
    manifests = [read_manifest(each.crawl.path / names.generation(0, number)) for each in (crawl, whole)]
    assert manifests[0]["files"] == manifests[1]["files"] and manifests[0]["texts"] == manifests[1]["texts"]


@pytest.mark.parametrize("row_bytes", [400, 400 << 20])
def test_turns_that_nothing_arrives_in(tmp_path, monkeypatch, row_bytes):
    """Of a block that knows nothing and of one that does.

    An absorb turn with nothing pending, a harvest without a row.
    """
    monkeypatch.setattr(walk, "ARRIVED_ROW_BYTES", row_bytes)
    crawl = SmallCrawl(tmp_path / "crawl", 1)
    for _ in range(2):
        assert crawl.absorb(0)["known"] == 0
    crawl.seed(["http://a.test/", "http://b.test/x"])
    crawl.absorb_all()
    before = crawl.rows()
    report = crawl.absorb(0)
    assert report["rows_merged"] == report["new"] == 0 and report["known"] == 2
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    crawl.harvest(plan, {})
    assert crawl.verify(plan)["known"] == 2
    assert crawl.rows() == before
    crawl.grow(0)
    for block in (0, 1):
        crawl.absorb(block)
    assert {url: {**row, "block": 0} for url, row in crawl.rows().items()} == before
