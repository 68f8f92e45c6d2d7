"""bin/graph build extends the earlier graph: the result is that of a build of the whole, byte for byte."""

import random

import pytest

from graph import build as graph_build
from graph.base import Base
from graph.build import Bounds
from graph.filters import Filters
from graph.folder import open_graph
from graph.tables import CycleTables
from tests.graph_crawl import LinkCrawl, expect_graph
from tests.stages.test_graph_build import A, B, C, D, domain_of, made, random_links

FEW, MANY = Bounds(urls=50, links=64), Bounds(urls=1 << 20, links=1 << 20)
OPTIONS = [
    Filters(),
    Filters(collected=True),
    Filters(in_scope=True, nofollow=False),
    Filters(until_ms=2),
    Filters(newest=True),
    Filters(link_sources=("br,com,d1,", "br,s3)/", "br,s4)/xx")),
    Filters(link_sources=("br,s3)/",), seeds_are_sources=True),
]


@pytest.fixture
def grown_from(monkeypatch) -> list[bool]:
    """Of each build whether it extended a graph."""
    found = []
    begin = Base.__init__

    def note(self, graph, *rest):
        found.append(graph is not None)
        begin(self, graph, *rest)

    monkeypatch.setattr(Base, "__init__", note)
    return found


def add_random_cycle(crawl: LinkCrawl, links: list, chance: random.Random, at_ms: int) -> None:
    part = chance.sample(links, chance.randrange(len(links) // 3))
    urls = sorted({url for link in part for url in link})
    crawl.add(
        part,
        unknown=chance.sample(urls, len(urls) // 3),
        nofollow=[link for link in part if chance.random() < 0.2],
        at_ms=at_ms,
        targets=chance.sample(urls, len(urls) // 4) if chance.random() < 0.5 else None,
    )


def expect_same(crawl: LinkCrawl, filters: Filters, name: str) -> None:
    grown, whole = open_graph(crawl.folder / "graph"), made(crawl, filters, crawl.folder.parent / name)
    assert grown.manifest == whole.manifest
    for file in whole.manifest["files"]:
        assert (grown.folder / file).read_bytes() == (whole.folder / file).read_bytes()


@pytest.mark.parametrize("filters", OPTIONS)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_a_graph_that_grows_is_that_of_all_cycles(tmp_path, monkeypatch, grown_from, filters, seed):
    chance, crawl = random.Random(seed), LinkCrawl(tmp_path / "crawl")
    links = random_links(seed, 500)
    for cycle in range(4):
        add_random_cycle(crawl, links, chance, cycle)
        first, second = chance.sample([FEW, MANY], 2)
        monkeypatch.setattr(graph_build, "bounds_of", lambda _, bounds=first: bounds)
        made(crawl, filters)
        monkeypatch.setattr(graph_build, "bounds_of", lambda _, bounds=second: bounds)
        expect_same(crawl, filters, f"whole-{cycle}")
    assert grown_from[0::2] == [False, *[filters.can_grow] * 3] and not any(grown_from[1::2])


def test_tables_of_cycles_that_the_graph_has_are_not_read_again(tmp_path, monkeypatch):
    crawl, read = LinkCrawl(tmp_path / "crawl"), []
    crawl.add([(A, B), (B, C)], unknown=[C])
    made(crawl)
    crawl.add([(C, A), (A, D)])
    before = CycleTables.verify
    monkeypatch.setattr(CycleTables, "verify", lambda self, name: read.append(self.cycle) or before(self, name))
    expect_graph(made(crawl), {A, B, C, D}, {(A, B), (B, C), (C, A), (A, D)}, domain_of(crawl))
    assert set(read) == {1}


def test_a_graph_that_is_damaged_or_of_other_options_is_made_anew(tmp_path, grown_from):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.add([(A, B)])
    graph = made(crawl)
    (graph.folder / "pages.keys.npy").write_bytes(b"x")
    expect_graph(made(crawl), {A, B}, {(A, B)}, domain_of(crawl))
    crawl.add([(B, C)])
    expect_graph(made(crawl, Filters(collected=True)), {A, B}, {(A, B)}, domain_of(crawl))
    assert grown_from == [False, False, False]


def test_a_new_url_whose_key_is_taken_makes_the_whole_graph_anew(tmp_path, grown_from):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.forged = {D: crawl.key(B)}
    crawl.add([(A, B)])
    made(crawl)
    crawl.add([(A, D)])
    assert made(crawl).manifest["keys_shared"] == 1 and grown_from == [False, True, False]
    crawl.add([(B, C)])
    assert made(crawl).manifest["keys_shared"] == 1 and grown_from[3:] == [False]
    expect_same(crawl, Filters(), "whole")


@pytest.mark.parametrize("first", [B, D])
def test_a_key_is_taken_although_the_url_that_has_it_comes_again(tmp_path, grown_from, first):
    """Whichever of the two domains has the larger key."""
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.forged = {D: crawl.key(B)}
    crawl.add([(A, first)])
    made(crawl)
    crawl.add([(A, B), (A, D)])
    assert made(crawl).manifest["keys_shared"] == 1 and grown_from == [False, True, False]


@pytest.mark.parametrize("filters", [Filters(collected=True), Filters(in_scope=True)])
def test_of_two_urls_with_one_key_each_is_judged_by_its_own_rows(tmp_path, filters):
    """B is known of a link alone, D was answered."""
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.forged = {D: crawl.key(B)}
    crawl.add([(A, B)], unknown=[B] if filters.in_scope else [], targets=[B] if filters.in_scope else None)
    made(crawl, filters)
    crawl.add([(D, A)])
    expect_graph(made(crawl, filters), {A, D}, {(A, D), (D, A)}, domain_of(crawl))
    expect_same(crawl, filters, "whole")


def test_a_cycle_that_was_left_out_is_added_when_it_is_mended(tmp_path, grown_from):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.add([(A, B)])
    table = crawl.last / "Ligacoes.parquet"
    whole = table.read_bytes()
    crawl.add([(B, C)])
    table.write_bytes(b"x")
    assert made(crawl, allow_partial=True).is_partial
    table.write_bytes(whole)
    graph = made(crawl)
    assert not graph.is_partial and grown_from == [False, True]
    expect_graph(graph, {A, B, C}, {(A, B), (B, C)}, domain_of(crawl))


def test_link_sources_are_no_pages_and_their_links_are_counted(tmp_path):
    crawl = LinkCrawl(tmp_path / "crawl")
    crawl.add([(A, B), (A, C), (C, A), (C, C), (B, D)])
    graph = made(crawl, Filters(link_sources=("br,example,b,www:8443)/",)))
    expect_graph(graph, {A, B, D}, {(A, B), (B, D)}, domain_of(crawl))
    assert graph.manifest["counts"]["link_sources"] == 3 and graph.manifest["counts"]["no_page"] == 0
