"""A small crawl with all that a report reads, whose texts are as hostile as those of the web."""

from pathlib import Path

import pyarrow as pa

from contract import names
from contract.log import CRAWL
from contract.plan import Plan
from contract.tables import FAILED, METADATA
from storage.publish import describe, encode_json, publishing, put, read_manifest
from storage.tables import read_table, write_table
from tests.small_crawl import Page, SmallCrawl

BODY_BYTES = 1_500


def make_crawl(folder: Path, pages: dict[str, Page], text: str = "text/html") -> SmallCrawl:
    """One cycle over these URLs, all of them seeds; their answers have `text` as type, charset and language."""
    crawl = SmallCrawl(folder, blocks=1)
    crawl.seed(list(pages))
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    publish_pages(crawl, plan, pages)
    crawl.harvest(plan, pages)
    complete_tables(crawl, plan, pages, text)
    crawl.verify(plan)
    return crawl


def publish_pages(crawl: SmallCrawl, plan: Plan, pages: dict[str, Page]) -> None:
    """The fetcher's folder: its counts, without WARC files."""
    failed = sum(page.outcome == FAILED for page in pages.values())
    answered = len(pages) - failed
    counts = {"listed": len(pages), "answered": answered, "failed": failed, "refused": 0, "not_reached": 0}
    with publishing(crawl.crawl.path / names.cycle(plan.cycle) / names.FETCHER) as manifest:
        manifest |= {"counts": counts | {"bytes": answered * BODY_BYTES}}


def complete_tables(crawl: SmallCrawl, plan: Plan, pages: dict[str, Page], text: str) -> None:
    folder = crawl.crawl.path / names.cycle(plan.cycle) / names.EXTRACTOR
    rows = read_table(folder / names.METADATA, METADATA).to_pylist()
    about = {"type": text, "charset": text, "language": text, "title": text, "bytes": BODY_BYTES, "waited_ms": 300}
    (folder / names.METADATA).unlink()
    write_table(folder / names.METADATA, pa.Table.from_pylist([row | about for row in rows], schema=METADATA))
    reasons = {page.reason: 1 for page in pages.values() if page.reason}
    counts = {"bytes_decoded": 2 * BODY_BYTES * len(rows), "reasons": reasons}
    manifest = read_manifest(folder)
    manifest["files"][names.METADATA] = describe(folder / names.METADATA)
    put(folder / names.MANIFEST, encode_json(manifest | {"counts": counts}))
