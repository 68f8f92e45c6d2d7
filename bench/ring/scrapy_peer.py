"""Scrapy in its own process: follows links from seeds on their hosts, appends the bodies to one file, prints how many.

    python -m bench.ring.scrapy_peer SEEDS BODIES JOBDIR CONCURRENCY

One request at a time per host, robots.txt obeyed, the queue and the set of seen URLs in JOBDIR.
"""

import sys
from pathlib import Path
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

from bench.fetcher.scrapy_peer import settings
from contract.config import Scope


class Followed(scrapy.Spider):
    name = "followed"
    stored = 0
    handle_httpstatus_list = [404]  # or the middleware drops them, with a message each

    async def start(self):
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response):
        self.bodies.write(response.body)
        Followed.stored += 1
        if isinstance(response, scrapy.http.HtmlResponse):
            for link in self.links.extract_links(response):
                yield scrapy.Request(link.url)


def main() -> None:
    seeds, bodies, job_folder, concurrency = sys.argv[1:]
    urls = Path(seeds).read_text().split()
    links = LinkExtractor(
        allow_domains=sorted({urlsplit(url).netloc for url in urls}),
        tags=("a", "area", "frame", "iframe"),
        attrs=("href", "src"),
        deny_extensions=Scope().reject_extensions,
    )
    chosen = settings("epoll", int(concurrency), "crawling") | {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "JOBDIR": job_folder,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",  # its advice for many hosts
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "USER_AGENT": "Scrapy",
    }
    with open(bodies, "ab", buffering=1 << 20) as output:
        process = CrawlerProcess(chosen)
        process.crawl(Followed, urls=urls, bodies=output, links=links)
        process.start()
    print(Followed.stored)


if __name__ == "__main__":
    main()
