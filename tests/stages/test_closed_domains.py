"""new-domains in the verifier: a domain goes on while its pages lead to enough other domains, then it is closed."""

from dataclasses import replace

import pytest

from contract import names
from contract.config import Config, Scheduler, Scope
from contract.generation import open_generation
from contract.log import CRAWL
from contract.tables import FAILED
from stages.verifier.__main__ import work
from storage.tables import column
from tests.small_crawl import Page, SmallCrawl

CONFIG = Config(scheduler=Scheduler(policy="new-domains"))
HOME, OTHER = "http://www.home.test/", "http://shop.home.test/"
ELSEWHERE = [f"http://d{number}.test/" for number in range(9)]


@pytest.fixture
def crawl(tmp_path) -> SmallCrawl:
    crawl = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    crawl.seed([HOME])
    crawl.absorb_all()
    return crawl


def turn(crawl: SmallCrawl, pages: dict[str, Page]) -> dict:
    """A cycle in which these URLs of the block were asked, whatever a list would have."""
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    crawl.harvest(plan, pages)
    return crawl.verify(plan)


def closed(crawl: SmallCrawl) -> set[str]:
    servers = open_generation(crawl.crawl.path, 0, crawl.crawl_state.log.generation(0)).servers
    return {
        name for name, is_closed in zip(servers.column("server").to_pylist(), column(servers, "closed")) if is_closed
    }


def states(crawl: SmallCrawl) -> dict[str, str]:
    return {url: row["state"] for url, row in crawl.rows().items()}


def test_it_goes_deeper_and_then_stops(crawl):
    links = [f"{HOME}{number}" for number in range(3)]
    report = turn(crawl, {HOME: Page(links=[*links, OTHER, *ELSEWHERE[:2]])})  # 2^1 <= 2
    assert (report["domains_deeper"], report["domains_closed"]) == (1, 0)
    assert report["own_domain_links"] == {"4-7": 1}
    assert closed(crawl) == set()
    report = turn(crawl, {links[0]: Page(links=[f"{HOME}more", *ELSEWHERE[:3]])})  # 2^2 > 3
    assert (report["domains_deeper"], report["domains_closed"]) == (0, 1)
    assert report["own_domain_links"] == {"1": 1}
    assert closed(crawl) == {HOME.rstrip("/"), OTHER.rstrip("/")}
    refused = {url for url, state in states(crawl).items() if state == "refused_by_rule"}
    assert refused == {*links[1:], f"{HOME}more", OTHER}
    assert {states(crawl)[url] for url in ELSEWHERE[:3]} == {"prescheduled"}


def test_what_is_found_later_is_refused_too_under_any_policy(crawl):
    turn(crawl, {HOME: Page(links=ELSEWHERE[:1])})
    assert closed(crawl) == {HOME.rstrip("/")}
    turn(crawl, {ELSEWHERE[0]: Page(links=[f"{HOME}late", "http://new.home.test/", ELSEWHERE[1], ELSEWHERE[2]])})
    assert {"http://new.home.test", HOME.rstrip("/")} == closed(crawl)
    assert states(crawl)[f"{HOME}late"] == states(crawl)["http://new.home.test/"] == "refused_by_rule"
    crawl.seed([f"{HOME}late"])
    crawl.config = Config(scope=Scope(reject_patterns=("/never/",)))
    report = crawl.absorb(0)
    assert report["prepared"]["waiting_again"] == 0 and "domains_closed" not in report
    assert states(crawl)[f"{HOME}late"] == "refused_by_rule" and closed(crawl)


def test_only_new_pages_that_are_no_redirects_decide(crawl):
    report = turn(crawl, {HOME: Page(links=[OTHER], status=301)})
    assert (report["domains_deeper"], report["domains_closed"], closed(crawl)) == (0, 0, set())
    report = turn(crawl, {HOME: Page(is_revisit=True)})  # a visit shows nothing new
    assert (report["domains_deeper"], report["domains_closed"], report["own_domain_links"]) == (0, 0, {})
    turn(crawl, {OTHER: Page(FAILED, "timeout_connect")})
    assert closed(crawl) == set()
    report = turn(crawl, {OTHER: Page(links_other_domains=3)})  # the second page: 2^2 > 3
    assert report["domains_closed"] == 1
    assert states(crawl)[HOME] == states(crawl)[OTHER] == "collected"


def test_of_several_pages_the_most_links_count(crawl):
    turn(crawl, {HOME: Page(links=[OTHER, *ELSEWHERE])})
    report = turn(
        crawl, {OTHER: Page(links_other_domains=0), **{ELSEWHERE[n]: Page(links_other_domains=n) for n in range(3)}}
    )
    assert (report["domains_deeper"], report["domains_closed"]) == (1, 3)


def test_a_rerun_gives_the_same_bytes(crawl, tmp_path):
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    crawl.harvest(plan, {HOME: Page(links=[OTHER, ELSEWHERE[0]])})
    work(crawl.crawl, tmp_path / "again", plan, crawl.crawl_state.log)
    assert crawl.verify(plan)["domains_closed"] == 1
    for part in (names.generation(0, plan.cycle), f"{names.cycle(plan.cycle)}/{names.VERIFIER}"):
        made = sorted(path.name for path in (crawl.crawl.path / part).iterdir())
        assert made == sorted(path.name for path in (tmp_path / "again" / part).iterdir())
        for name in made:
            assert (crawl.crawl.path / part / name).read_bytes() == (tmp_path / "again" / part / name).read_bytes()


def test_domains_stay_closed_in_the_halves_of_a_block(crawl):
    turn(crawl, {HOME: Page(links=ELSEWHERE[:1])})
    crawl.config = replace(CONFIG, verifier=replace(CONFIG.verifier, prescheduled_max=20))
    crawl.grow(0)
    found = set()
    for block in (0, 1):
        servers = open_generation(crawl.crawl.path, block, crawl.crawl_state.log.generation(block)).servers
        found |= {
            name
            for name, is_closed in zip(servers.column("server").to_pylist(), column(servers, "closed"))
            if is_closed
        }
    assert found == {HOME.rstrip("/")}
