"""The scheduler on real files: lists with revisits and their validators, policies across servers, damaged files."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from contract import names
from contract.config import Config, Fetcher, Priority, Revisit, Scheduler
from contract.log import CRAWL
from contract.plan import Plan, read_plan
from contract.policy_files import adopt
from contract.tables import METADATA, URL_LIST
from storage.publish import read_manifest
from storage.tables import read_table, write_table
from tests.small_crawl import NOW_MS, Page, SmallCrawl

ROOT = Path(__file__).resolve().parent.parent.parent
HOUR_MS = 3_600_000
REVISIT = Revisit(policy="uniform", interval_s=3_600.0, interval_min_s=60.0, interval_max_s=360_000.0)
CONFIG = Config(revisit=REVISIT, scheduler=Scheduler(policy="opic"))
PAGES = {"http://a.test/": 1, "http://b.test/": 2, "http://c.test/": 3}


@pytest.fixture
def small(tmp_path) -> SmallCrawl:
    """One block: pages of three servers, collected in three cycles; each leads to a URL that waits."""
    crawl = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    crawl.seed([*PAGES, "http://c.test/next"])
    crawl.absorb_all()
    for url, hours in PAGES.items():
        plan = crawl.plan(CRAWL, 0, NOW_MS + hours)
        crawl.schedule(plan)
        page = Page(digest=bytes([hours]) * 16, at_ms=NOW_MS + hours * HOUR_MS, links=[f"{url}next"] * (hours != 3))
        crawl.harvest(plan, {url: replace(page, is_parsed=hours != 3)})
        crawl.verify(plan)
        give_validators(crawl, plan)
    return crawl


def give_validators(small: SmallCrawl, plan: Plan) -> None:
    path = metadata_of(small, plan.cycle)
    rows = read_table(path, METADATA).to_pylist()
    for row in rows:
        row |= {"etag": f'"{row["url"]}"', "last_modified": "Wed, 01 Jan 2025 00:00:00 GMT", "payload_digest": "A" * 32}
    write_table(path, pa.Table.from_pylist(rows, schema=METADATA))


def metadata_of(small: SmallCrawl, cycle: int) -> Path:
    return small.crawl.path / names.cycle(cycle) / names.EXTRACTOR / names.METADATA


def list_of(small: SmallCrawl, config: Config = CONFIG, hours: float = 10) -> list[dict]:
    """The list of a cycle that begins so many hours later, by the command; its rows in their order."""
    small.config = config
    plan = small.plan(CRAWL, 0, NOW_MS + int(hours * HOUR_MS))
    done = run_scheduler(small, plan.cycle)
    assert done.returncode == 0, done.stderr
    folder = small.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER
    rows = read_table(folder / names.URL_LIST, URL_LIST).to_pylist()
    counts = read_manifest(folder)["counts"]
    assert counts["listed"] == len(rows) == counts["new"] + counts["revisits"]
    assert counts["revisits"] == sum(row["revisit"] for row in rows)
    assert [row["order"] for row in rows] == list(range(len(rows)))
    return rows


def run_scheduler(small: SmallCrawl, cycle: int, *more) -> subprocess.CompletedProcess:
    command = [ROOT / "bin" / "scheduler", "--crawl", small.crawl.path, "--cycle", str(cycle), *more]
    return subprocess.run(command, capture_output=True, text=True)


def test_due_pages_come_with_their_validators_and_give_cash_once(small):
    again = {row["url"]: row for row in list_of(small) if row["revisit"]}
    assert again.keys() == PAGES.keys()
    for url, row in again.items():
        assert (
            row["etag"] == f'"{url}"' and row["last_modified"].startswith("Wed") and row["payload_digest"] == "A" * 32
        )
        assert row["fetched_at_ms"] == NOW_MS + PAGES[url] * HOUR_MS
        assert row["counted"] == (PAGES[url] != 3)
        assert (row["cash_taken"] > 0) == (not row["counted"])
        assert 0 < row["vrank"] < 1


def test_pages_are_listed_from_the_moment_on_at_which_they_are_due(small):
    listed = [{row["url"] for row in list_of(small, hours=hours) if row["revisit"]} for hours in (1.99, 2, 3.5, 4)]
    a, b, c = PAGES
    assert listed == [set(), {a}, {a, b}, {a, b, c}]


def test_without_revisits_no_page_is_listed(small):
    rows = list_of(small, replace(CONFIG, revisit=Revisit()))
    assert [row["url"] for row in rows if row["revisit"]] == [] and len(rows) == 3
    assert all(row["vrank"] > 0 and row["etag"] == "" and row["fetched_at_ms"] == 0 for row in rows)


def test_a_server_that_is_not_due_gives_neither_urls_nor_pages(small):
    plan = small.plan(CRAWL, 0)
    small.schedule(plan)
    small.harvest(plan, {}, servers={"http://a.test": {"ready_at_ms": NOW_MS + 20 * HOUR_MS}})
    small.verify(plan)
    assert not any(row["url"].startswith("http://a.test") for row in list_of(small))
    assert any(row["url"].startswith("http://a.test") for row in list_of(small, hours=21))


@pytest.mark.parametrize("damage", ["missing", "cut", "other", "foreign"])
@pytest.mark.sampled(1)
def test_a_table_that_is_lost_costs_the_validators_only(small, damage):
    first = next(
        cycle
        for cycle in names.numbered(small.crawl.path / names.CYCLES)
        if metadata_of(small, cycle).exists() and read_plan(small.crawl.path, cycle).now_ms == NOW_MS + 1
    )
    path = metadata_of(small, first)
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "other":
        write_table(path, pa.table({"a": [1]}))
    else:  # the row is not that of the page
        rows = read_table(path, METADATA).to_pylist()
        write_table(path, pa.Table.from_pylist([{**row, "url_key": 1} for row in rows], schema=METADATA))
    again = {row["url"]: row for row in list_of(small) if row["revisit"]}
    a, b, _ = PAGES
    assert [again[a][name] for name in ("etag", "last_modified", "payload_digest")] == ["", "", ""]
    assert again[a]["fetched_at_ms"] == NOW_MS + HOUR_MS
    assert again[b]["etag"] == f'"{b}"'


def test_revisits_take_their_share_while_urls_wait(small):
    config = replace(CONFIG, scheduler=replace(CONFIG.scheduler, list_max_urls=2))
    assert sorted(row["revisit"] for row in list_of(small, config)) == [False, True]  # one by spread_share
    none = replace(config, revisit=replace(REVISIT, share_max=0.0))
    assert [row["revisit"] for row in list_of(small, none)] == [False, False]
    wide = replace(CONFIG, revisit=replace(REVISIT, share_max=0.0), scheduler=Scheduler("opic", list_max_urls=5))
    assert sum(row["revisit"] for row in list_of(small, wide)) == 2  # nothing else is there for these places


def test_the_best_of_all_servers_come_first_and_the_weights_of_rules_before_them(tmp_path):
    links = [f"http://a.test/{'x/' * levels}" for levels in (1, 2, 3, 4)] + [
        "http://b.test/1/2/3/4/5/",
        "http://b.test/1/",
    ]
    small = SmallCrawl(tmp_path / "crawl", 1, Config(scheduler=Scheduler("shortest-path", list_max_urls=3)))
    small.seed(links)
    small.absorb_all()
    plan = small.plan(CRAWL, 0)
    chosen = small.schedule(plan)
    assert set(chosen) == {links[0], links[1], links[5]}  # not the deep one of b.test, though b.test has one only
    assert {chosen[0], chosen[1]} == {links[0], links[5]}, "each server's first before any second"
    small.config = replace(small.config, priority=(Priority(pattern="/5/$", weight=9.0),))
    rows = list_of(small, replace(small.config, scheduler=Scheduler("shortest-path", list_max_urls=1)))
    assert len(rows) == 1


def test_a_gated_policy_takes_one_url_per_registered_domain(small):
    config = replace(CONFIG, scheduler=Scheduler("new-domains"))
    rows = list_of(small, config)
    assert len(rows) == len({row["domain_key"] for row in rows}) == 3


def test_a_rerun_writes_the_same_bytes(small, tmp_path):
    list_of(small)
    cycle = max(names.numbered(small.crawl.path / names.CYCLES))
    out = tmp_path / "again"
    assert run_scheduler(small, cycle, "--out", out).returncode == 0
    folder = small.crawl.path / names.cycle(cycle) / names.SCHEDULER
    for name in (names.URL_LIST, names.SERVERS):
        assert (out / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.sampled(1)
def test_a_damaged_file_of_a_policy_is_named_and_ends_the_stage_with_65(small, tmp_path, is_there):
    ranks = tmp_path / "ranks"
    ranks.write_text("http://a.test 0.5\n")
    config = replace(CONFIG, scheduler=Scheduler("pagerank", ranks_file=str(ranks)), fetcher=Fetcher())
    small.config = adopt(small.crawl, config)
    plan = small.plan(CRAWL, 0)
    copy = Path(small.config.scheduler.ranks_file)
    content = copy.read_bytes()
    copy.unlink()
    if is_there:
        copy.write_bytes(content[:-1] + b"!")
    done = run_scheduler(small, plan.cycle)
    assert done.returncode == 65 and copy.name in done.stderr
    assert not (small.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER / names.MANIFEST).exists()
