"""The answer to the box for a URL: what bin/why says, the text of the stored page, and its source."""

from contract import names
from contract.body import decode_body
from contract.crawl_folder import CrawlFolder
from contract.errors import ColetorError
from contract.units import size
from contract.warc import PageReader, parse_response
from examine import why
from examine.dashboard.fragments import tell
from examine.page_text import HTML, decode
from examine.text_reader import explain_no_text, read_alone
from storage.errors import Damaged, UnknownFormat

PAGE_MAX_BYTES = 1 << 20  # of a stored page that are shown
URL_MAX_CHARACTERS = 8_000
TEXT_MAX_S = 3  # of processor time, for the text of a page
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
    """The body of the last full answer: the text that a reader sees, and its source; no browser reads it as HTML."""
    row, cycle = facts["page"], facts["known"]["collected"]["cycle"]
    path = crawl.path / names.cycle(cycle) / names.FETCHER / row["file"]
    try:
        record = PageReader(path).record_at(row["offset"])
        body = decode_body(parse_response(record.block), PAGE_MAX_BYTES).content
    except UNREADABLE as error:
        return f"<h2>Stored page</h2><p>{tell(error)}</p>"
    cut = f", the first {size(PAGE_MAX_BYTES)}" if len(body) >= PAGE_MAX_BYTES else ""
    head = f"<h2>Stored page</h2><p>{tell(row['type'])}, {tell(size(row['bytes']))}{cut}</p>"
    source = decode(body, row["charset"])
    if row["type"] not in HTML:
        return head + show_lines(source)
    found = read_alone(source, TEXT_MAX_S)
    text = f"<p>None: {tell(explain_no_text(found.trouble, TEXT_MAX_S))}.</p>"
    if found.text is not None:
        text = show_lines(found.text)
    return f"{head}<h3>Text</h3>{text}<h3>Source</h3>{show_lines(source)}"


def show_lines(text: str) -> str:
    lines = "\n".join(map(tell, text.splitlines()))
    return f"<pre>{lines}</pre>"
