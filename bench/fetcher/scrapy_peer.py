"""Scrapy in its own process: fetches a list, appends the bodies to one file, prints how many.

    python -m bench.fetcher.scrapy_peer LIST BODIES REACTOR CONCURRENCY BUILD

REACTOR is asyncio or epoll, BUILD is lean or crawling. Lean, it does nothing but ask and store. Crawling, it has the
middlewares that it comes with and obeys robots.txt, as in a real crawl.
"""

import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess

REACTORS = {
    "asyncio": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "epoll": "twisted.internet.epollreactor.EPollReactor",
}


class Pages(scrapy.Spider):
    name = "pages"
    stored = 0

    async def start(self):
        for url in self.urls:
            yield scrapy.Request(url, dont_filter=True)

    def parse(self, response):
        if response.status == 200:
            self.bodies.write(response.body)
            Pages.stored += 1


def settings(reactor: str, concurrency: int, build: str) -> dict:
    shared = {
        "TWISTED_REACTOR": REACTORS[reactor],
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": concurrency,
        "DOWNLOAD_DELAY": 0,
        "LOG_ENABLED": False,
        "LOG_VERSIONS": [],
        "TELNETCONSOLE_ENABLED": False,
        "STATS_DUMP": False,
        "CONCURRENT_ITEMS": 1,  # the default, 100, makes as many tasks for every answer, half of its time
        "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 100_000_000,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }
    if build == "crawling":
        return shared | {"ROBOTSTXT_OBEY": True, "COOKIES_ENABLED": False}
    # Robots, cookies, retries, redirects, compression, statistics and the rest: all are middlewares or extensions.
    return shared | {"DOWNLOADER_MIDDLEWARES_BASE": {}, "SPIDER_MIDDLEWARES_BASE": {}, "EXTENSIONS_BASE": {}}


def main() -> None:
    listed, bodies, reactor, concurrency, build = sys.argv[1:]
    with open(bodies, "ab", buffering=1 << 20) as output:
        process = CrawlerProcess(settings(reactor, int(concurrency), build))
        process.crawl(Pages, urls=Path(listed).read_text().split(), bodies=output)
        process.start()
    print(Pages.stored)


if __name__ == "__main__":
    main()
