"""Crawls whose next cycle waits for the verifier, one for each kind of work that it does."""

from dataclasses import replace
from pathlib import Path

from contract.accumulators import DAY_MS
from contract.config import Config, Revisit, Verifier
from contract.log import ABSORB, CRAWL, FORGET, GROW
from contract.plan import Plan
from contract.tables import FAILED
from stages.verifier.texts import SEGMENTS_MAX
from tests.small_crawl import NOW_MS, Page, SmallCrawl

SEEDS = [f"http://s{number}.test/" for number in range(12)]
WATCHING = Config(verifier=Verifier(prefix_from_urls=0))  # so that there is a table of prefixes
PIECES_ROW_BYTES = 60 << 20  # what a row that arrives seems to take, so that some tens of them are a piece


def seeded(folder: Path, blocks: int = 2) -> SmallCrawl:
    crawl = SmallCrawl(folder, blocks, WATCHING)
    crawl.seed(SEEDS)
    crawl.absorb_all()
    return crawl


def links_of(url: str) -> list[str]:
    return (
        [f"{url}folder/{number}/page?{number}" for number in range(3)]
        + [f"http://t{number}.test/" for number in range(6)]
        + SEEDS
    )


def harvest(crawl: SmallCrawl, block: int) -> Plan:
    """A cycle of the block with its harvest.

    Answers, some of them alike, a failure, and a robots.txt of every server.
    """
    plan = crawl.plan(CRAWL, block)
    listed = crawl.schedule(plan)
    pages = {url: Page(links=links_of(url), digest=bytes([1 + place % 3] * 16)) for place, url in enumerate(listed)}
    pages |= {url: Page(FAILED, "timeout") for url in listed[-1:]}
    servers = {
        url.split("/")[2]: {"robots": f"User-agent: *\nDisallow: /{plan.cycle}\n".encode(), "requests": 3}
        for url in listed
    }
    crawl.harvest(plan, pages, servers={f"http://{name}": seen for name, seen in servers.items()} | servers)
    return plan


def turn(crawl: SmallCrawl, block: int) -> None:
    crawl.verify(harvest(crawl, block))


def make_crawl(folder: Path) -> int:
    """A block that has been through turns, slices of AUX for it, and a harvest of its own."""
    crawl = seeded(folder)
    for block in (0, 1, 0, 1):
        turn(crawl, block)
    return harvest(crawl, 0).cycle


def make_absorb(folder: Path) -> int:
    crawl = seeded(folder)
    for block in (0, 1):
        turn(crawl, block)
    return crawl.plan(ABSORB, 0).cycle


def make_grow(folder: Path) -> int:
    crawl = seeded(folder, 1)
    turn(crawl, 0)
    return crawl.plan(GROW, 0).cycle


def make_folding(folder: Path) -> int:
    """A block with as many segments of text as it may have, robots.txt files in some."""
    crawl = SmallCrawl(folder, 1, WATCHING)
    crawl.seed(SEEDS[:2])
    crawl.absorb(0)
    turn(crawl, 0)
    for number in range(SEGMENTS_MAX - 2):
        crawl.seed([f"http://u{number}.test/"])
        crawl.absorb(0)
    return harvest(crawl, 0).cycle


def make_forget(folder: Path) -> int:
    """A block with segments of text, robots.txt files and pages, whose links are too old."""
    crawl = seeded(folder, 1)
    for _ in range(2):
        turn(crawl, 0)
    crawl.config = replace(WATCHING, revisit=Revisit("uniform", forget_after_days=30))
    crawl.absorb(0)
    return crawl.plan(FORGET, 0, NOW_MS + 40 * DAY_MS).cycle


CASES = {
    "crawl": make_crawl,
    "pieces": make_crawl,
    "absorb": make_absorb,
    "grow": make_grow,
    "folding": make_folding,
    "forget": make_forget,
}
