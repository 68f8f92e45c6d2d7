"""Rules about a whole server through real turns.

What is counted, what is written, what R holds, and what is granted whatever it is.
"""

from collections import Counter
from dataclasses import replace

import pytest

from contract import names
from contract.config import Config, Verifier
from contract.generation import open_generation
from contract.log import CRAWL
from contract.tables import FAILED, REFUSED_ROWS, SERVER_RULES
from examine.why import gather
from stages.verifier import walk
from storage.tables import read_table
from tests.small_crawl import NOW_MS, Page, SmallCrawl

SEED = "http://www.a.test/"
OFF = Verifier(prefix_from_urls=0, prefix_max_urls=0, query_max_urls=0)
CASES = {  # limits, what a page links to, the rule, how many of these are granted
    "server": (replace(OFF, server_max_urls=10), [f"{SEED}{number}" for number in range(30)], "server_budget", 9),
    "domain": (
        replace(OFF, domain_max_urls=12),
        [f"http://{host}.a.test/{number}" for host in "xyz" for number in range(10)],
        "domain_budget",
        11,
    ),
    "prefix": (replace(OFF, prefix_max_urls=7), [f"{SEED}folder/{number}" for number in range(30)], "path_prefix", 7),
    "query": (replace(OFF, query_max_urls=5), [f"{SEED}find?{number}" for number in range(30)], "query", 5),
}


@pytest.fixture(params=[400, 100 << 20], ids=["whole", "in pieces"])
def cut(request, monkeypatch):
    monkeypatch.setattr(walk, "ARRIVED_ROW_BYTES", request.param)


def begin(folder, limits: Verifier) -> SmallCrawl:
    crawl = SmallCrawl(folder, 1, Config(verifier=limits))
    crawl.seed([SEED])
    crawl.absorb_all()
    return crawl


def turn(crawl: SmallCrawl, pages: dict[str, Page], foreign=frozenset()) -> tuple[dict, list[dict]]:
    """The report, and the rows of UrlsRecusadas."""
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    crawl.harvest(plan, pages, frozenset(foreign))
    report = crawl.verify(plan)
    return report, read_table(
        crawl.crawl.path / names.cycle(plan.cycle) / names.VERIFIER / names.REFUSED_URLS, REFUSED_ROWS
    ).to_pylist()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(4)
def test_what_a_rule_refuses(tmp_path, cut, case):
    limits, links, rule, granted = CASES[case]
    crawl = begin(tmp_path / "crawl", limits)
    for number in range(3):  # what was refused is judged anew, and there is no more room than before
        report, refused = turn(crawl, {SEED: Page(links=links)})
        assert report["new"] == (granted if not number else 0)
        assert {name: count for name, count in report["refused_by_rule"].items() if count} == {
            rule: len(links) - granted
        }
        assert report["refused_linked"] == len(links) - granted
        assert Counter(SERVER_RULES[row["rule"]] for row in refused) == {rule: len(links) - granted} and {
            row["links_in"] for row in refused
        } == {1}
        known = crawl.rows()
        assert len(known) == granted + 1 == report["known"]
        missing = set(links) - set(known)
        assert {(row["domain_key"], row["url_key"]) for row in refused} == {
            (crawl.keyed(url)["domain_key"], crawl.keyed(url)["url_key"]) for url in missing
        }
    told = gather(crawl.crawl, sorted(missing)[0], NOW_MS)
    assert told["verdict"] == "refused by rule" and rule in told["because"]


@pytest.mark.parametrize("is_linked", [False, True], ids=["not linked", "linked"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(5)
def test_what_somebody_else_collected_enters(tmp_path, cut, case, is_linked):
    """A foreign list brings answers to more URLs than the rule has room for, whether a link leads to them too or not; a
    failure is no answer.
    """
    limits, links, rule, granted = CASES[case]
    crawl = begin(tmp_path / "crawl", limits)
    *answered, failed = links
    pages = {
        SEED: Page(links=links if is_linked else []),
        **{url: Page() for url in answered},
        failed: Page(FAILED, "timeout"),
    }
    report, refused = turn(crawl, pages, links)
    known = crawl.rows()
    assert {url for url in answered if known.get(url, {}).get("state") == "collected"} == set(answered)
    assert len(refused) == sum(report["refused_by_rule"].values()) == (failed not in known)
    assert report["new"] + report["foreign_new"] == len(known) - 1
    if case in ("prefix", "query"):
        generation = open_generation(crawl.crawl.path, 0, crawl.crawl_state.log.generation(0))
        assert max(generation.prefixes.column("count").to_pylist()) == len(known) - 1, (
            "the table counts what entered, never too low"
        )


def test_those_nearest_to_a_seed_go_first(tmp_path):
    limits, links, _, granted = CASES["server"]
    crawl = begin(tmp_path / "crawl", limits)
    turn(crawl, {SEED: Page(links=links[:4])})
    near, far = links[10:13], links[13:]
    report, _ = turn(crawl, {SEED: Page(links=near), links[0]: Page(links=far)})
    assert set(near) <= set(crawl.rows()) and report["new"] == granted - 4


def test_a_budget_holds_across_a_split(tmp_path):
    """What a server knows goes along with its half, and so does its table of prefixes."""
    for case in CASES:
        limits, links, rule, granted = CASES[case]
        crawl = begin(tmp_path / case, limits)
        turn(crawl, {SEED: Page(links=links)})
        crawl.grow(0)
        block = crawl.rows()[SEED]["block"]
        plan = crawl.plan(CRAWL, block)
        crawl.schedule(plan)
        crawl.harvest(plan, {SEED: Page(links=[*links, *(f"{url}0" for url in links)])})
        report = crawl.verify(plan)
        assert report["new"] == 0 and report["refused_by_rule"][rule] == len(
            {*links, *(f"{url}0" for url in links)} - set(crawl.rows())
        )
        assert len(crawl.rows()) == granted + 1
