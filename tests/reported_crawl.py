"""A small crawl with all that a report reads, texts as hostile as those of the web, and what pages are made of."""

from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa

from contract import names
from contract.config import Config
from contract.log import CRAWL
from contract.plan import Plan
from contract.tables import FAILED, METADATA
from storage.publish import describe, encode_json, publishing, put, read_manifest
from storage.tables import read_table, write_table
from tests.small_crawl import Page, SmallCrawl

BODY_BYTES = 1_500
EVIL = (
    "\"'><img id=evil src=http://127.0.0.1:{port}/evil onerror=alert(1)>"
    "<script>document.title='evil'</script>\x1b[2J\u202e"
)


class Structure(HTMLParser):
    """The elements of a page, the rows of each table by the id of its part, and all addresses."""

    def __init__(self, page: str):
        super().__init__()
        self.tags, self.addresses, self.handlers = set(), [], []
        self.sections, self.rows, self.pictures = [], {}, 0
        self.part = self.cell = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        values = dict(attributes)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "xlink:href", "action")]
        self.handlers += [name for name in values if name.startswith("on")]
        self.pictures += tag == "svg"
        if tag == "section":
            self.sections.append(values["id"])
        if tag == "div" and values.get("id", "").startswith("part-"):
            self.part = values["id"].removeprefix("part-")
            self.rows[self.part] = []
        if tag == "tr":
            self.rows.setdefault(self.part, []).append([])
        if tag in ("td", "th"):
            self.rows[self.part][-1].append("")
            self.cell = self.rows[self.part][-1]

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[-1] += data


def make_crawl(folder: Path, pages: dict[str, Page], text: str = "text/html", config: Config = Config()) -> SmallCrawl:
    """One cycle over these URLs, all of them seeds; their answers have `text` as type, charset and language."""
    crawl = SmallCrawl(folder, blocks=1, config=config)
    add_cycle(crawl, pages, text)
    return crawl


def add_cycle(crawl: SmallCrawl, pages: dict[str, Page], text: str) -> None:
    crawl.seed(list(pages))
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    publish_pages(crawl, plan, pages)
    crawl.harvest(plan, pages)
    complete_tables(crawl, plan, pages, text)
    crawl.verify(plan)


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
