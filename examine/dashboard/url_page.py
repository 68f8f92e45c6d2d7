"""The answer to the box for a URL: what bin/why says, and the stored page as text."""

from contract import names
from contract.body import decode_body
from contract.crawl_folder import CrawlFolder
from contract.errors import ColetorError
from contract.units import size
from contract.warc import PageReader, parse_response
from examine import why
from examine.dashboard.fragments import tell
from examine.page_text import decode
from storage.errors import Damaged, UnknownFormat

PAGE_MAX_BYTES = 1 << 20  # of a stored page that are shown
URL_MAX_CHARACTERS = 8_000
UNREADABLE = (ColetorError, Damaged, UnknownFormat, OSError)


def show_url(crawl: CrawlFolder, text: str, now_ms: int) -> str:
    try:
        facts = why.gather(crawl, text[:URL_MAX_CHARACTERS], now_ms)
        lines = "\n".join(map(tell, why.describe(facts, crawl.path)))
    except UNREADABLE as error:
        return f"<h2>What became of it</h2><p>{tell(error)}</p>"
    answer = f"<h2>What became of it</h2><pre>{lines}</pre>"
    return answer + (show_stored(crawl, facts) if facts.get("page") else "")


def show_stored(crawl: CrawlFolder, facts: dict) -> str:
    """The body of the last full answer, as text: nothing of it is read as HTML."""
    row, cycle = facts["page"], facts["known"]["collected"]["cycle"]
    path = crawl.path / names.cycle(cycle) / names.FETCHER / row["file"]
    try:
        record = PageReader(path).record_at(row["offset"])
        body = decode_body(parse_response(record.block), PAGE_MAX_BYTES).content
    except UNREADABLE as error:
        return f"<h2>Stored page</h2><p>{tell(error)}</p>"
    text = "\n".join(map(tell, decode(body, row["charset"]).splitlines()))
    cut = f", the first {size(PAGE_MAX_BYTES)}" if len(body) >= PAGE_MAX_BYTES else ""
    return f"<h2>Stored page</h2><p>{tell(row['type'])}, {tell(size(row['bytes']))}{cut}</p><pre>{text}</pre>"
