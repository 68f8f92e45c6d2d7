"""The simulation beside a plain one that is written again here; what its measures are; which orders it can run."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from contract.accumulators import SEED_CASH
from contract.config import Config
from contract.errors import BadConfiguration
from contract.policies.new_domains import close_domains
from contract.rank_files import read_ranks
from contract.tables import COLLECTED_STATE
from study.collection import Collection, collect
from study.contestants import OMNISCIENT, check_names, enter
from study.domains import count_before, times_of
from study.graphs import breadth_first
from study.measures import course_of, levels_of, mean_of, tau_of
from study.orders import draw_seeds
from study.pagerank import pagerank
from study.simulation import Simulation
from study.synthetic import make_web

PAGES, LISTED, PER_SERVER, PRESCHEDULED, REFILL = 1_200, 40, 4, 3, 2


@pytest.fixture(scope="module")
def collection() -> Collection:
    web = make_web(PAGES, 3)
    return collect(web, pagerank(web), 5)


def configure(policy: str = "in-links") -> Config:
    config = Config()
    return replace(
        config,
        scheduler=replace(config.scheduler, policy=policy, list_max_urls=LISTED, server_max_urls=PER_SERVER),
        verifier=replace(config.verifier, prescheduled_max=PRESCHEDULED, prescheduled_refill=REFILL),
    )


def lists_of(simulation: Simulation, pages: int = PAGES) -> list[list[int]]:
    return [listed.tolist() for listed in simulation.lists(pages)]


class PlainCrawl:
    """in-links as docs/ordering.md has it, page by page, without arrays: the judge."""

    def __init__(self, collection: Collection, blocks: int):
        self.collection, self.is_heap = collection, not blocks
        edges = collection.edges_of_blocks(max(blocks, 1)).tolist()
        self.blocks = [range(low, high) for low, high in zip(edges, edges[1:])]
        self.links_in: Counter[int] = Counter()
        self.known: set[int] = set()
        self.fetched: set[int] = set()
        self.may_list: set[int] = set()
        self.arriving: list[tuple[int, int]] = [(int(seed), 0) for seed in collection.graph.seeds]

    def best_first(self, rows: set[int]) -> list[int]:
        return sorted(rows, key=lambda row: (-self.links_in[row], int(self.collection.key[row])))

    def cut(self, rows: list[int], most: int) -> list[int]:
        """At most so many of each server."""
        counts: Counter[int] = Counter()
        server = self.collection.server_key.tolist()
        return [row for row in rows if counts.update([server[row]]) or counts[server[row]] <= most]

    def turn(self, block: range) -> list[int]:
        waiting = {row for row in self.known - self.fetched if row in block}
        listed = self.cut(self.best_first(waiting if self.is_heap else waiting & self.may_list), PER_SERVER)[:LISTED]
        self.fetched |= set(listed)
        for row in listed:
            _, targets = self.collection.graph.links_of(np.array([row]))
            self.arriving += [(target, 1) for target in targets.tolist()]
        for row, links in [arrival for arrival in self.arriving if arrival[0] in block]:
            self.known.add(row)
            self.links_in[row] += links
        self.arriving = [arrival for arrival in self.arriving if arrival[0] not in block]
        waiting = {row for row in self.known - self.fetched if row in block}
        by_rows = sorted(waiting, key=lambda row: (-self.links_in[row], row))  # equal scores in the order of rows
        self.may_list = self.may_list - set(block) | set(self.cut(by_rows, PRESCHEDULED))
        return listed


@pytest.mark.parametrize("blocks", [0, 1, 4, 7])
def test_lists_are_those_of_a_plain_crawl(collection, blocks):
    plain = PlainCrawl(collection, blocks)
    simulation = Simulation(collection, collection.graph.seeds, configure(), blocks)
    expected = [plain.turn(plain.blocks[turn % len(plain.blocks)]) for turn in range(60)]
    found = simulation.lists(PAGES)
    for listed in expected:
        if listed:
            assert set(next(found).tolist()) == set(listed)
    assert len(plain.fetched) > PAGES // 6


@pytest.mark.parametrize("policy", ["fifo", "breadth-first", "shortest-path", "random", "opic", "server-size",
                                    "response-time", "spread", "0.7*in-links + 0.3*opic"])  # fmt: skip
@pytest.mark.parametrize("blocks", [0, 4])
def test_every_page_that_can_be_reached_is_fetched_once_under_the_caps(collection, policy, blocks):
    simulation = Simulation(collection, collection.graph.seeds, configure(policy), blocks)
    lists = lists_of(simulation)
    reached = breadth_first(collection.graph, collection.graph.seeds, PAGES).tolist()
    assert sorted(row for listed in lists for row in listed) == sorted(reached)
    assert (simulation.state == COLLECTED_STATE).sum() == len(reached)
    edges = collection.edges_of_blocks(max(blocks, 1))
    for listed in lists:
        assert len(listed) <= LISTED and len(np.unique(np.searchsorted(edges, listed, "right"))) == 1
        assert max(Counter(collection.server_key[listed].tolist()).values()) <= PER_SERVER


def test_cash_is_neither_made_nor_lost(collection):
    simulation = Simulation(collection, collection.graph.seeds, configure("opic"), 0)
    list(simulation.lists(400))
    assert int(simulation.columns["cash"].sum()) == SEED_CASH * len(collection.graph.seeds)
    assert np.count_nonzero(simulation.columns["cash"]) > 400


def test_columns_hold_what_links_brought(collection):
    simulation = Simulation(collection, collection.graph.seeds, configure("in-links"), 3)
    fetched = np.concatenate(list(simulation.lists(PAGES + 1)))  # until nothing waits in AUX either
    index, targets = collection.graph.links_of(fetched)
    assert simulation.columns["links_in"].tolist() == np.bincount(targets, minlength=PAGES).tolist()
    other = collection.domain_key[fetched][index] != collection.domain_key[targets]
    assert simulation.columns["mentions"].tolist() == np.bincount(targets[other], minlength=PAGES).tolist()


def test_new_domains_takes_one_page_per_domain_and_closes_it(collection):
    simulation = Simulation(collection, collection.graph.seeds, configure("new-domains"), 0)
    visited: Counter[int] = Counter()
    closed: set[int] = set()
    for listed in simulation.lists(PAGES):
        for row in listed.tolist():
            domain = int(collection.domain_key[row])
            assert domain not in closed
            visited[domain] += 1
            _, targets = collection.graph.links_of(np.array([row]))
            others = np.count_nonzero(collection.domain_key[targets] != domain)
            closed |= {domain} if close_domains(np.array([visited[domain]]), np.array([others]))[0] else set()
        assert len(np.unique(collection.domain_key[listed])) == len(listed)
    assert closed and visited.total() > len(closed)


def test_who_knows_the_ranks_fetches_more_of_them(collection, tmp_path):
    shares = {}
    for name in (OMNISCIENT, "in-links", "random"):
        contestant = enter(name, collection, configure(), tmp_path, 1)
        simulation = Simulation(collection, collection.graph.seeds, contestant.config, 0, contestant.files)
        shares[name] = collection.ranks[np.concatenate(list(simulation.lists(300)))].sum()
    assert shares[OMNISCIENT] > shares["in-links"] > shares["random"]


def test_a_graph_without_urls_runs_what_needs_none(collection, tmp_path):
    bare = collect(replace(collection.graph, urls=None), collection.ranks, 1)
    assert len(np.unique(bare.server_key)) == 3 and len(np.unique(bare.key)) == PAGES
    assert enter("spread", bare, configure(), tmp_path, 1) is None
    assert enter("0.5*in-links + 0.5*spread", bare, configure(), tmp_path, 1) is None
    contestant = enter(OMNISCIENT, bare, configure(), tmp_path, 1)
    seeds = draw_seeds(bare.graph, 1)
    assert len(np.concatenate(lists_of(Simulation(bare, seeds, contestant.config, 2, contestant.files), 50))) == 50


@pytest.mark.parametrize("name", ["no-such-order", "0.7*in-links +", "0.7*in-links + x*opic"])
def test_an_order_that_is_none_is_named(name):
    with pytest.raises(BadConfiguration, match="omniscient"):
        check_names([name], Config())


def test_a_course_has_means_and_shares_until_the_order_ended(collection):
    rows = np.arange(0, 60)
    course = course_of(collection, levels_of(collection.ranks), rows, 100)
    assert course.fetched.tolist() == list(range(4, 101, 4))
    assert course.share[14] == course.end[2] == pytest.approx(collection.ranks[:60].sum())
    assert course.end[:2] == (60, pytest.approx(levels_of(collection.ranks)[:60].mean()))
    assert course.level[1] == pytest.approx(levels_of(collection.ranks)[:8].mean())
    assert np.isnan(course.level[15:]).all()


def test_the_whole_graph_ranks_itself_rightly(collection):
    assert tau_of(collection, np.arange(PAGES)) > 0.999
    assert tau_of(collection, np.arange(0, PAGES, 4)) < 0.9


def test_an_interval_is_that_of_student():
    mean = mean_of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (float(mean.value), float(mean.half)) == (3.0, pytest.approx(2.776 * np.sqrt(2.5 / 5), rel=1e-3))
    assert (f"{mean:.1f}", f"{mean_of([2.0]):.1f}", f"{mean_of([np.nan]):.1f}") == ("3.0 ± 2.0", "2.0", "–")


def test_domains_rest_between_two_pages(collection):
    assert count_before(np.array([5, 7, 5, 5, 7], np.uint64)).tolist() == [0, 0, 1, 2, 1]
    domain = collection.domain_key
    twice = np.array([0, 1]) if domain[0] == domain[1] else np.flatnonzero(domain == domain[len(domain) // 2])[:2]
    other = int(np.flatnonzero(domain != domain[twice[0]])[0])
    times = times_of(collection, np.array([*twice, other]), np.array([0.0, 3_000.0, 9_000.0]), 2.0)
    assert (times.pages[[0, 23, 47]].tolist(), times.domains[[0, 23, 47]].tolist()) == ([1, 2, 2], [1, 1, 1])


@pytest.mark.parametrize("rule", ["parent", "zero", "drawn", "oracle"])
def test_an_earlier_crawl_knows_the_part_that_it_fetched(collection, tmp_path, rule):
    config = configure()
    config = replace(config, scheduler=replace(config.scheduler, unknown_rank=rule))
    contestant = enter("history", collection, config, tmp_path, 1, 0.25)
    ranks = read_ranks(contestant.files["scheduler.ranks_file"])
    fetched = breadth_first(collection.graph, collection.graph.seeds, PAGES // 4)
    assert ranks["key"].tolist() == sorted(collection.key[fetched].tolist())
    assert ranks["rank"].mean() == pytest.approx(1, rel=1e-5)
    assert ("scheduler.oracle_file" in contestant.files) == (rule == "oracle")
    simulation = Simulation(collection, collection.graph.seeds, contestant.config, 0, contestant.files)
    assert len(np.concatenate(list(simulation.lists(PAGES)))) == PAGES
