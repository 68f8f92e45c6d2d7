"""Sitemaps of a changing web in virtual time: true dates bring visits sooner, false ones lose their weight."""

from collections import defaultdict

import pytest

from contract.crawl_folder import open_folder
from contract.generation import open_generation
from contract.log import replay
from synthweb.changing import DAY_MS
from tests.pipeline.virtual_days import VirtualCrawl

SEED, SERVERS, PAGES = 3, 3, 12  # the third server lies
STEPS = 11
INTERVAL_MIN_S = 36 * 3_600  # in each second step
SETTINGS = (
    "revisit.policy=uniform",
    "revisit.interval_s=648000",  # seven days and a half: in each eighth step
    f"revisit.interval_min_s={INTERVAL_MIN_S}",
    "fetcher.warc_compression=gzip",
)
RULES = """
[[priority]]
pattern = '/sitemap\\.xml$'
weight = 2.0
interval_s = 43_200.0
"""


class Seen:
    """When a crawl asked for each page, and what it thinks of its servers in the end."""

    def __init__(self, crawl: VirtualCrawl):
        self.web, self.times_ms = crawl.web, defaultdict(list)
        for line in crawl.requests():
            if line["url"] in crawl.web.truth().pages:
                self.times_ms[line["url"]].append(line["started_wall_ms"])
        self.end_ms = crawl.moment_ms(crawl.steps)
        folder = open_folder(crawl.path)
        generation = open_generation(crawl.path, 0, replay(crawl.path, folder.blocks_first).generation(0))
        self.servers = {row["server"]: row for row in generation.servers.to_pylist()}

    def pages(self, lying: bool):
        """Those but the homes, whose dates are never believed."""
        for url, page in self.web.truth().pages.items():
            if page.url.path != "/" and self.web.lies(page.url.host) == lying:
                yield url, page

    def mean_wait_d(self) -> float:
        """Of honest servers' pages: how many days after a change that came after the first visit the next one came."""
        waits_ms = []
        for url, page in self.pages(lying=False):
            for seen_ms, next_ms in zip(self.times_ms[url], [*self.times_ms[url][1:], self.end_ms]):
                if page.fresh_until_ms(seen_ms) < next_ms:
                    waits_ms.append(next_ms - page.fresh_until_ms(seen_ms))
        return sum(waits_ms) / len(waits_ms) / DAY_MS

    def claims(self, lying: bool) -> tuple[int, int]:
        """(tested ones, true ones) over the servers that lie or do not."""
        rows = [
            self.servers[f"http://{host}:{self.web.port}"] for host in self.web.hosts() if self.web.lies(host) == lying
        ]
        return sum(row["lastmod_claims"] for row in rows), sum(row["lastmod_true"] for row in rows)


@pytest.mark.long
@pytest.mark.waits
def test_true_dates_bring_visits_sooner_and_false_ones_lose_weight(tmp_path, changing_webs, libfaketime):
    crawls = []
    for has_sitemaps in (True, False):
        state, web = changing_webs(SEED, SERVERS, PAGES, has_sitemaps)
        folder = tmp_path / ("dated" if has_sitemaps else "plain")
        crawls.append(VirtualCrawl(folder, state, web, libfaketime, DAY_MS, *SETTINGS, rules=RULES))
    processes = [crawl.start(STEPS) for crawl in crawls]  # beside each other: their steps mostly wait
    for crawl, process in zip(crawls, processes):
        assert process.wait() == 0 and "Traceback" not in crawl.told(), crawl.told()
        crawl.check()
    dated, plain = map(Seen, crawls)
    assert dated.mean_wait_d() < 0.7 * plain.mean_wait_d()
    assert plain.claims(lying=False) == plain.claims(lying=True) == (0, 0)
    tested, true = dated.claims(lying=False)
    assert tested == true > 5, "honest servers' claims are true"
    tested_of_liar, true_of_liar = dated.claims(lying=True)
    assert tested_of_liar > 5 and true_of_liar < 0.9 * tested_of_liar
    for url, _ in dated.pages(lying=True):
        times_ms = dated.times_ms[url]
        assert all(later - before >= INTERVAL_MIN_S * 1000 for before, later in zip(times_ms, times_ms[1:])), url
