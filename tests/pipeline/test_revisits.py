"""Continuous crawling of a changing web in virtual time: some days, with kills. thirty_days.py has the long runs."""

import random
import signal
from collections import Counter

import pytest
from warcio.archiveiterator import ArchiveIterator

from synthweb.changing import DAY_MS, START_MS, Truth
from tests.pipeline.struck import STAGE, find, has_ended, strike, wait_for
from tests.pipeline.virtual_days import VirtualCrawl
from tests.sampling import sampling

SEED, SERVERS, PAGES = 3, 4, 20  # 84 pages, and two more later per server
LIST = 28  # requests per day
LEARNED_MS = START_MS + 10 * DAY_MS  # freshness counts from here on
SETTINGS = (
    "revisit.interval_s=216000",  # two days and a half: in each third step
    "revisit.interval_min_s=43200",
    "revisit.misses_max=3",
    f"scheduler.list_max_urls={LIST}",
    "fetcher.warc_compression=gzip",
)


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


@pytest.mark.long
@pytest.mark.waits
def test_some_days_with_killed_stages(tmp_path, changing_webs, libfaketime):
    """Stages are killed in the middle, and so is the whole run; then the books agree, and the archive is right."""
    policy = "optimal"
    chance = random.Random(sampling.seed)
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
