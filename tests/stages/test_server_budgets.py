"""Budgets of servers, and of rules of [[budget]]: domain_max_servers, servers_max, and URLs under a rule."""

from pathlib import Path

import pytest

from contract import names
from contract.config import Budget, Config, Verifier
from contract.generation import open_generation
from contract.log import CRAWL
from contract.tables import REFUSED_ROWS, SERVER_RULES
from contract.url import Keys
from stages.verifier import walk
from stages.verifier.__main__ import work
from stages.verifier.refusals import is_of_one_domain, limits_of
from storage.tables import column, read_table
from tests.small_crawl import Page, SmallCrawl

SEED = "http://seed.test/"
HOSTS = [f"http://h{number}.many.test/" for number in range(6)]


def make(folder: Path, blocks: int = 1, budget: tuple[Budget, ...] = (), **limits) -> SmallCrawl:
    crawl = SmallCrawl(folder, blocks, Config(verifier=Verifier(**limits), budget=budget))
    crawl.seed([SEED])
    crawl.absorb_all()
    return crawl


def turn(crawl: SmallCrawl, pages: dict[str, Page], foreign: frozenset = frozenset()) -> dict:
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    crawl.harvest(plan, pages, foreign)
    return crawl.verify(plan)


def servers(crawl: SmallCrawl, block: int = 0) -> list[str]:
    return (
        open_generation(crawl.crawl.path, block, crawl.crawl_state.log.generation(block))
        .servers.column("server")
        .to_pylist()
    )


def refused(crawl: SmallCrawl) -> dict[str, int]:
    """How many URLs each rule refused in the last cycle, by the table."""
    cycle = crawl.crawl_state.log.generation(0)
    table = read_table(crawl.crawl.path / names.cycle(cycle) / names.VERIFIER / names.REFUSED_URLS, REFUSED_ROWS)
    rules = [SERVER_RULES[code] for code in column(table, "rule").tolist()]
    return {rule: rules.count(rule) for rule in set(rules)}


def test_a_domain_gets_so_many_servers(tmp_path):
    crawl = make(tmp_path / "crawl", domain_max_servers=2)
    report = turn(crawl, {SEED: Page(links=[HOSTS[0], f"{HOSTS[0]}a", "http://other.test/"])})
    assert report["refused_by_rule"]["domain_servers"] == 0
    report = turn(crawl, {HOSTS[0]: Page(links=[url for host in HOSTS for url in (host, f"{host}b")])})
    assert report["refused_by_rule"]["domain_servers"] == 8 == refused(crawl)["domain_servers"]
    known = [name for name in servers(crawl) if name.endswith(".many.test")]
    assert len(known) == 2 and HOSTS[0].rstrip("/") in known  # refused servers take no room
    assert {url for url in crawl.rows() if ".many." in url} == {
        f"{name}/{path}" for name in known for path in ("", "b")
    } | {f"{HOSTS[0]}a"}
    assert turn(crawl, {f"{HOSTS[0]}a": Page(links=HOSTS)})["refused_by_rule"]["domain_servers"] == 4


def test_servers_nearest_to_a_seed_go_first(tmp_path):
    crawl = make(tmp_path / "crawl", servers_max=3)
    turn(crawl, {SEED: Page(links=["http://a.test/"])})
    report = turn(
        crawl,
        {
            "http://a.test/": Page(links=[f"http://far{n}.test/" for n in range(5)]),
            SEED: Page(links=["http://near.test/"]),
        },
    )
    assert report["refused_by_rule"]["servers_budget"] == 5
    assert set(servers(crawl)) == {"http://seed.test", "http://a.test", "http://near.test"}
    assert set(crawl.rows()) == {SEED, "http://a.test/", "http://near.test/"}


def test_a_page_that_another_list_brought_is_kept(tmp_path):
    crawl = make(tmp_path / "crawl", servers_max=1)
    foreign = "http://foreign.test/"
    report = turn(
        crawl, {SEED: Page(links=[foreign, f"{foreign}a", "http://b.test/"]), foreign: Page()}, frozenset([foreign])
    )
    assert report["refused_by_rule"]["servers_budget"] == 1
    assert set(crawl.rows()) == {SEED, foreign, f"{foreign}a"}


@pytest.mark.parametrize(
    "limits", [{"domain_max_servers": 2}, {"servers_max": 3}, {"domain_max_servers": 4, "servers_max": 5}]
)
@pytest.mark.sampled(1)
def test_pieces_and_reruns_change_nothing(tmp_path, monkeypatch, limits):
    found = []
    for number, row_bytes in enumerate([walk.ARRIVED_ROW_BYTES, 1 << 27]):
        monkeypatch.setattr(walk, "ARRIVED_ROW_BYTES", row_bytes)
        crawl = make(tmp_path / str(number), **limits)
        turn(crawl, {SEED: Page(links=[HOSTS[2], HOSTS[4]])})
        plan = crawl.plan(CRAWL, 0)
        crawl.schedule(plan)
        crawl.harvest(plan, {HOSTS[4]: Page(links=[*HOSTS, *(f"http://e{n}.test/" for n in range(6))])})
        work(crawl.crawl, tmp_path / f"again{number}", plan, crawl.crawl_state.log)
        report = crawl.verify(plan)
        assert (report["pieces"] > 1) == bool(number)
        folders = [root / names.generation(0, plan.cycle) for root in (crawl.crawl.path, tmp_path / f"again{number}")]
        contents = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
        assert contents[0] == contents[1]
        found.append((contents[0], report["refused_by_rule"]))
    assert found[0] == found[1]


@pytest.mark.parametrize("pieces", [1, 2])
def test_budgets_of_rules(tmp_path, monkeypatch, pieces):
    """One rule lies within a domain and holds exactly; the others have the share of the block."""
    budget = (Budget(surt="test,many,", urls=4), Budget(pattern=r"/shop/", urls=2), Budget(pattern=r"/none/", urls=0))
    crawl = make(tmp_path / "crawl", budget=budget)
    if pieces > 1:
        monkeypatch.setattr(walk, "ARRIVED_ROW_BYTES", 1 << 27)
    links = [*HOSTS, *(f"http://s{n}.test/shop/" for n in range(3)), "http://s9.test/none/", "http://s9.test/free/"]
    report = turn(crawl, {SEED: Page(links=links)})
    assert (report["pieces"] > 1) == (pieces > 1)
    assert report["refused_by_rule"]["rule_budget"] == 2 + 1 + 1 == refused(crawl)["rule_budget"]
    report = turn(crawl, {SEED: Page(links=[*links, f"{HOSTS[0]}again"])})
    assert report["refused_by_rule"]["rule_budget"] == 2 + 1 + 1 + 1
    rows = crawl.rows()
    assert sum(".many." in url for url in rows) == 4 and sum("/shop/" in url for url in rows) == 2


def test_urls_nearest_to_a_seed_go_first_under_a_rule(tmp_path):
    crawl = make(tmp_path / "crawl", budget=(Budget(pattern=r"/x", urls=3),))
    turn(crawl, {SEED: Page(links=["http://a.test/"])})
    near, far = [f"http://b.test/x{n}" for n in range(2)], [f"http://b.test/xx{n}" for n in range(5)]
    turn(crawl, {SEED: Page(links=near), "http://a.test/": Page(links=far)})
    assert set(near) < set(crawl.rows()) and len(set(crawl.rows()) & set(far)) == 1


@pytest.mark.parametrize(
    ("surt", "expected"),
    [
        ("br,ufmg,", True),
        ("br,ufmg,www,", True),
        ("br,ufmg,www:8080)/", True),
        ("br,com,", False),
        ("br,", False),
        ("br,com,uol,", True),
        ("192.0.2.1)/", True),
        ("http://(br,com,uol,)/a", True),
        ("", False),
    ],
)
def test_prefixes_within_one_registered_domain(surt, expected):
    assert is_of_one_domain(surt, Keys(17)) is expected


def test_the_share_of_a_block():
    config = Config(
        verifier=Verifier(servers_max=10),
        budget=(
            Budget(surt="br,ufmg,", urls=7),
            Budget(surt="br,", urls=9),
            Budget(pattern="x", urls=1),
            Budget(pattern="y"),
        ),
    )
    limits = limits_of(config, Keys(17), 0.25)
    assert limits.servers_max == 2 and limits.rule_max_urls == (7, 2, 1, 0)
    assert limits_of(Config(), Keys(17), 0.25).servers_max == 0
