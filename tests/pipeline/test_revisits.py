"""Continuous crawling of a changing web in virtual time: who is visited how often, how fresh it keeps the copies.

Thirty days with each revisit policy, on the same web and with the same number of requests per day.
"""

import json
import random
import signal
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from contract import warc
from contract.warc import IDENTICAL_PAYLOAD, NOT_MODIFIED
from synthweb import ChangingWeb
from synthweb.changing import DAY_MS, START_MS, Truth
from tests.pipeline.judge import run
from tests.pipeline.struck import STAGE, find, has_ended, strike, wait_for
from tests.pipeline.virtual_days import VirtualCrawl
from tests.sampling import sampling
from tests.stages.test_warc_tools import Wayback, run_tool

SEED, SERVERS, PAGES = 3, 4, 20  # 84 pages, and two more later per server
DAYS, LIST = 30, 28
NEW_MAX = 2  # URLs that the last days may have brought
LEARNED_MS = START_MS + 10 * DAY_MS  # freshness counts from here on
SETTINGS = (
    "revisit.interval_s=216000",  # two days and a half: in each third step
    "revisit.interval_min_s=43200",
    "revisit.misses_max=3",
    f"scheduler.list_max_urls={LIST}",
    "fetcher.warc_compression=gzip",
)
POLICIES = ("uniform", "proportional", "optimal")


class Seen:
    """What the web saw of a crawl."""

    def __init__(self, crawl: VirtualCrawl):
        self.truth: Truth = crawl.web.truth()
        self.requests = crawl.requests()
        self.times = Counter(line["url"] for line in self.requests)
        self.end_ms = crawl.moment_ms(crawl.steps)

    def mean_of(self, kind: str) -> float:
        """How often a page of a kind was asked."""
        found = [self.times[url] for url, page in self.truth.pages.items() if page.kind == kind]
        return sum(found) / len(found)

    @property
    def freshness(self) -> float:
        """Over all pages and the time since LEARNED_MS."""
        good = [(line["url"], line["started_wall_ms"]) for line in self.requests if line["status"] in (200, 304)]
        return self.truth.mean_freshness(good, LEARNED_MS, self.end_ms)


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


@pytest.mark.long
@pytest.mark.waits
@pytest.mark.parametrize("policy", POLICIES)
def test_the_books_agree_after_thirty_days(live, policy):
    crawl = live(policy)
    crawl.check()
    status = json.loads(run("status", "--crawl", crawl.path, "--json").stdout)
    assert status["waiting"] <= NEW_MAX, "pages that came later are collected, but for those of the last days"
    assert_archive_is_right(crawl)


@pytest.mark.long
def test_what_changes_often_is_visited_more_often_and_nothing_is_chased(seen):
    for policy in ("proportional", "optimal"):
        assert seen[policy].mean_of("daily") > 1.5 * seen[policy].mean_of("monthly"), policy
    assert seen["optimal"].mean_of("second") < 1.3 * seen["optimal"].mean_of("daily")
    even = seen["uniform"]
    assert even.mean_of("daily") == pytest.approx(even.mean_of("monthly"), rel=0.15)
    for policy, own in seen.items():
        assert max(own.times.values()) <= DAYS, f"{policy}: more than one request per day, before interval_min_s"


@pytest.mark.long
def test_measured_freshness_is_highest_for_optimal_with_the_same_requests(seen):
    requests = [len(own.requests) for own in seen.values()]
    assert max(requests) < 1.1 * min(requests)
    freshness = {policy: own.freshness for policy, own in seen.items()}
    assert freshness["optimal"] > max(freshness["uniform"], freshness["proportional"]) + 0.005, freshness


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("policy", POLICIES)
def test_some_days_with_killed_stages(tmp_path, changing_webs, libfaketime, policy):
    """Stages are killed in the middle, and so is the whole run; then the books agree, and the archive is right."""
    chance = random.Random(f"{sampling.seed} {policy}")
    state, web = changing_webs(SEED, 2, 10)
    crawl = VirtualCrawl(
        tmp_path / policy, state, web, libfaketime, DAY_MS, f"revisit.policy={policy}", *SETTINGS[:3], *SETTINGS[4:]
    )
    process, stages = crawl.start(6), ["fetcher", "extractor", "verifier", "scheduler"]
    for stage in chance.sample(stages, 2):
        found = wait_for(process, lambda stage=stage: crawl.steps_done() >= 3 and find(process, STAGE, stage))
        if found:
            strike(found[0])
    if wait_for(process, lambda: crawl.steps_done() >= 4) and not has_ended(process, chance.uniform(0, 0.3)):
        strike(process.pid, signal.SIGKILL)
    code = process.wait()
    assert code in (0, -signal.SIGKILL), crawl.told()
    if code:
        crawl.steps = crawl.steps_done() + 1
    crawl.live(2)
    assert "Traceback" not in crawl.told(), crawl.told()
    crawl.check()
    assert_archive_is_right(crawl)
    assert max(Seen(crawl).times.values()) > 1, "pages are visited again"


# --- the archive -------------------------------------------------------------------------------------------


def read_records(crawl: VirtualCrawl):
    """The final records of pages in the order of their moments, read by warcio."""
    records = []
    for path in crawl.page_files():
        with open(path, "rb") as stream:
            for record in ArchiveIterator(stream):
                headers, url = record.rec_headers, record.rec_headers.get_header("WARC-Target-URI")
                if record.rec_type not in ("response", "revisit") or headers.get_header("Coletor-Final") != "yes":
                    continue
                if url.endswith("/robots.txt"):
                    continue
                records.append(
                    {
                        "type": record.rec_type,
                        "url": url,
                        "date": headers.get_header("WARC-Date"),
                        "status": int(record.http_headers.get_statuscode()),
                        "body": record.content_stream().read() if record.rec_type == "response" else b"",
                    }
                )
    records.sort(key=lambda record: record["date"])
    for record in records:
        record["moment_ms"] = crawl.moment_of(record["date"])
    return records


def assert_archive_is_right(crawl: VirtualCrawl) -> None:
    """At any visit the last full record of a page has what the web had; a revisit record never hides a change."""
    truth, last = crawl.web.truth(), {}
    kinds = Counter()
    for record in read_records(crawl):
        url, page = record["url"], truth.pages[record["url"]]
        kinds[record["type"]] += 1
        if record["type"] == "response":
            last[url] = record
        shown = last[url]
        if page.exists(record["moment_ms"]):
            right = crawl.web.body(page, page.version(record["moment_ms"]))
            assert (shown["status"], shown["body"]) == (200, right), (url, record["date"])
        else:
            assert shown["status"] in (404, 410), (url, record["date"])
    assert kinds["revisit"] > 0 and kinds["response"] > len(last)
