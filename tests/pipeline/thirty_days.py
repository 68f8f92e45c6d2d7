"""Thirty days of continuous crawling with each revisit policy, on the same web and with the same requests per day.

Who is visited how often, how fresh the copies are, and what the archive shows. It takes some six minutes, mostly
waiting, so no other run has it: bin/test tests/pipeline/thirty_days.py
"""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from contract import names, warc
from contract.generation import open_generation, read_urls
from contract.log import replay
from contract.plan import read_plan
from contract.tables import EXTRACTED, PRESCHEDULED, WAITING
from contract.warc import IDENTICAL_PAYLOAD, NOT_MODIFIED
from storage.tables import read_table
from synthweb import ChangingWeb
from synthweb.changing import DAY_MS
from tests.pipeline.test_revisits import PAGES, SEED, SERVERS, SETTINGS, Seen, assert_archive_is_right
from tests.pipeline.virtual_days import VirtualCrawl
from tests.stages.test_warc_tools import Wayback, run_tool

DAYS = 30
LAST_DAYS = 3  # a URL that they bring may still wait
POLICIES = ("uniform", "proportional", "optimal")


@pytest.fixture
def live(make_once, changing_webs, libfaketime):
    """A function that gives a crawl after thirty days with a policy; lived once, for all tests of the session."""

    def open_crawl(folder: Path, state: Path, web: ChangingWeb, policy: str) -> VirtualCrawl:
        return VirtualCrawl(folder, state, web, libfaketime, DAY_MS, f"revisit.policy={policy}", *SETTINGS)

    def make(policy: str) -> VirtualCrawl:
        def fill(folder: Path) -> None:
            state, web = changing_webs(SEED, SERVERS, PAGES)
            (folder / "web").symlink_to(state)
            (folder / "port").write_text(str(web.port))
            open_crawl(folder, state, web, policy).live(DAYS)

        folder = make_once(f"days-{policy}", fill)
        web = ChangingWeb(SEED, SERVERS, PAGES, int((folder / "port").read_text()))
        return open_crawl(folder, folder / "web", web, policy)

    return make


@pytest.fixture
def seen(live):
    """What the web saw of each policy."""
    return {policy: Seen(live(policy)) for policy in POLICIES}


@pytest.mark.waits
@pytest.mark.parametrize("policy", POLICIES)
def test_the_books_agree_after_thirty_days(live, policy):
    crawl = live(policy)
    crawl.check()
    assert not urls_waiting(crawl) & urls_found(crawl, crawl.moment_ms(DAYS - LAST_DAYS)), "a URL starves"
    assert_archive_is_right(crawl)


def urls_waiting(crawl: VirtualCrawl) -> set[str]:
    log, found = replay(crawl.path, 1), set()
    for block in range(log.blocks):
        generation = open_generation(crawl.path, block, log.generation(block))
        rows = np.flatnonzero(np.isin(generation.rows["state"], (WAITING, PRESCHEDULED)))
        found |= set(read_urls(crawl.path, generation, rows))
    return found


def urls_found(crawl: VirtualCrawl, until_ms: int) -> set[str]:
    """By cycles that were planned before that moment."""
    found: set[str] = set()
    for entry in replay(crawl.path, 1).entries:
        if entry is not None and entry.fetches and read_plan(crawl.path, entry.cycle).now_ms < until_ms:
            path = crawl.path / names.cycle(entry.cycle) / names.EXTRACTOR / names.EXTRACTED
            found |= set(read_table(path, EXTRACTED, ["url"]).column("url").to_pylist())
    assert found
    return found


def test_what_changes_often_is_visited_more_often_and_nothing_is_chased(seen):
    for policy in ("proportional", "optimal"):
        assert seen[policy].mean_of("daily") > 1.5 * seen[policy].mean_of("monthly"), policy
    assert seen["optimal"].mean_of("second") < 1.3 * seen["optimal"].mean_of("daily")
    even = seen["uniform"]
    assert even.mean_of("daily") == pytest.approx(even.mean_of("monthly"), rel=0.15)
    for policy, own in seen.items():
        assert max(own.times.values()) <= DAYS, f"{policy}: more than one request per day, before interval_min_s"


def test_measured_freshness_is_highest_for_optimal_with_the_same_requests(seen):
    requests = [len(own.requests) for own in seen.values()]
    assert max(requests) < 1.1 * min(requests)
    freshness = {policy: own.freshness for policy, own in seen.items()}
    assert freshness["optimal"] > max(freshness["uniform"], freshness["proportional"]) + 0.005, freshness


def test_gone_pages_are_asked_less_and_less_and_then_dropped(seen):
    for policy, own in seen.items():
        after = defaultdict(list)
        for line in own.requests:
            if line["status"] in (404, 410):
                after[line["url"]].append(line["started_wall_ms"])
        assert len(after) >= 5, policy
        for url, moments in after.items():
            gaps = [late - early for early, late in zip(moments, moments[1:])]
            assert len(moments) <= 4, f"{policy}: {url} is asked more often than misses_max allows"
            assert gaps == sorted(gaps), f"{policy}: {url} is not asked less and less"


def test_pywb_replays_what_revisit_records_stand_for(live, tmp_path):
    """Asked for the moment of a revisit with the same bytes, it shows the page as an earlier record has it."""
    crawl = live("optimal")
    for path in crawl.page_files()[:3]:
        checked = run_tool("warcio", "check", "-v", path)
        assert checked.returncode == 0 and "digest failed" not in checked.stdout, checked.stdout + checked.stderr
    revisited: dict[str, warc.Record] = {}
    for path in crawl.page_files():
        for record in warc.PageReader(path).records():
            if record.type == "revisit" and crawl.web.truth().at(record.url, crawl.moment_of(record.get("WARC-Date"))):
                revisited[record.get("WARC-Profile")] = record
    assert revisited.keys() == {NOT_MODIFIED, IDENTICAL_PAYLOAD}
    wayback = Wayback(tmp_path, crawl.page_files())
    try:
        wayback.wait_until_ready()
        assert wayback.replay(revisited[NOT_MODIFIED])[0] == 304, "as the server said it"
        identical = revisited[IDENTICAL_PAYLOAD]
        page = crawl.web.truth().pages[identical.url]
        right = crawl.web.body(page, page.version(crawl.moment_of(identical.get("WARC-Date"))))
        assert wayback.replay(identical)[::2] == (200, right)
    finally:
        wayback.end()
