"""wget and the crawler, each in its own process, and what the server logged of them."""

import sys
from pathlib import Path
from typing import NamedTuple

from bench.coverage.sites import PROXY
from bench.nginx import Site
from bench.processes import Spent, run_child
from contract.url import NotCanonical, canonicalise

LIMIT_S = 600.0
WGET, CRAWLER = "wget-of-the-benchmark", "Coletor"  # how their agents' names begin


class Asked(NamedTuple):
    status: int
    type: str  # without parameters
    referer: str = ""  # the page with the link, where the request names it


def run_wget(urls: list[str], sites: list[Site], port: int, folder: Path) -> Spent:
    """wget with recursion without end, on all sites; robots.txt obeyed, as it is by default."""
    command = [
        "wget",
        "--no-config",
        "--execute",
        "use_proxy=on",
        "--execute",
        f"http_proxy=http://{PROXY}:{port}/",
        "--execute",
        "no_proxy=",
        "--recursive",
        "--level=inf",
        "--span-hosts",
        f"--domains={','.join(site.name for site in sites)}",
        "--wait=0",
        "--tries=1",
        "--timeout=20",
        "--no-verbose",
        "--no-hsts",
        f"--user-agent={WGET}",
        f"--directory-prefix={folder / 'wget'}",
        f"--output-file={folder / 'wget.log'}",
        *urls,
    ]
    # Exit code 8: an error was the answer to some URL, and documentation has broken links.
    return run_child(command, folder / "wget.errors", limit_s=LIMIT_S, codes=(0, 8))


def run_crawler(urls: list[str], sites: list[Site], hosts_file: Path, folder: Path) -> Spent:
    """A crawl from the same URLs until nothing is left to fetch, without pauses, all links kept."""
    domains = ", ".join(f'"{site.name}"' for site in sites)
    settings = (
        "blocks.first=1",
        "fetcher.contact=https://bench.test/",
        f"fetcher.agent={CRAWLER}",
        "fetcher.allow_private_addresses=true",
        f"fetcher.hosts_file={hosts_file}",
        "fetcher.delay_s=0.0",
        "fetcher.delay_response_factor=0.0",
        f"scope.accept_domains=[{domains}]",
        "extractor.keep_links=all",
        "scheduler.server_max_urls=100000",
        "verifier.prescheduled_max=100000",
    )
    crawl = ("--crawl", folder / "crawl")
    options = [word for setting in settings for word in ("--set", setting)]
    run_child([sys.executable, "-P", "-m", "supervise.seed", *urls, *crawl, *options], folder / "seed.log")
    return run_child(
        [sys.executable, "-P", "-m", "supervise.crawl", "--until-done", *crawl], folder / "crawl.log", limit_s=LIMIT_S
    )


def read_log(text: str, agent: str) -> dict[str, Asked]:
    """What an agent asked for, but robots.txt, by canonical URL; the last answer counts."""
    asked = {}
    for line in text.splitlines():
        host, path, status, kind, referer, who = line.split("\t")
        if who.startswith(agent) and path != "/robots.txt":
            asked[canonical(f"http://{host}{path}")] = Asked(
                int(status), kind.partition(";")[0].strip(), canonical(referer)
            )
    return asked


def canonical(url: str) -> str:
    """As the crawler writes it; what it takes for no URL stays as it is."""
    try:
        return canonicalise(url)
    except NotCanonical:
        return url
