"""page: prints a stored page, of any visit.

  bin/page [--crawl DIR] URL                the body, decoded, as the server meant it
  bin/page [--crawl DIR] URL --text         its text: of HTML what a reader sees, without tags
  bin/page [--crawl DIR] URL --raw          the WARC record, as it is stored
  bin/page [--crawl DIR] URL --list         the visits of the page, oldest first; --json, --csv
  bin/page [--crawl DIR] URL --visit 2      that visit (of --list) instead of the newest one

The URL is folded as links are. A visit that brought nothing new (304, or the same body) has no body of its own: the
page is that of the last full answer before it, and standard error says so. With --raw and --visit the record of that
very visit is printed. On a terminal, text is shown in the terminal's charset and binary data is refused; elsewhere the
bytes are those of the body. At most 256 MiB of a compressed body are decoded. --text reads HTML within 10 s of
processor time and 2 GiB.

Exit 65 if no answer of the URL is stored; the message says what bin/why would. Needs no lock.

Example: bin/page --crawl demo/crawl http://s1.test:8080/ --text     (the demonstration prints its port)
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from contract import names
from contract.body import decode_body
from contract.canonical import Canonical
from contract.command import at_least, make_parser, run
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder, open_folder
from contract.errors import BadInput, Usage
from contract.lines import say
from contract.log import replay
from contract.plan import newest_plan
from contract.seeds import parse_lines
from contract.tables import METADATA
from contract.trouble import TOO_LONG, TRUNCATED, explain
from contract.units import count, moment, size
from contract.warc import PageReader, Record, parse_response
from examine import url_history, why
from examine.page_text import HTML, decode, is_textual
from examine.tables.layout import add_forms, print_rows
from examine.text_reader import PAGE_MAX_S, explain_no_text, read_alone
from examine.url_history import Subject
from storage.errors import Damaged

NAME = "page"
BODY_MAX_BYTES = 256 << 20
CONTROL = frozenset(range(32)) - set(b"\t\n\f\r\x1b")  # bytes that text does not have
LISTED = ("visit", "fetched", "status", "type", "bytes", "brought", "cycle", "file", "offset")


@dataclass
class Visits:
    """The answers of a URL that tables have, oldest first."""

    subject: Subject
    rows: list[dict] = field(default_factory=list)  # of METADATA, each with its cycle
    missing: list[Path] = field(default_factory=list)  # tables that were not kept


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("url", metavar="URL")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--raw", action="store_true", help="print the WARC record")
    what.add_argument("--text", action="store_true", help="print the text")
    what.add_argument("--list", action="store_true", help="list the visits")
    parser.add_argument("--visit", type=at_least(1), metavar="N", help="print this visit of --list")
    add_forms(parser)
    arguments = parser.parse_args()
    if arguments.form != "table" and not arguments.list:
        raise Usage(f"--{arguments.form} is for --list")
    crawl = open_folder(arguments.crawl)
    visits = find_visits(crawl, arguments.url)
    if visits.missing:
        note(f"{count(len(visits.missing), 'table')} missing, so visits may be too; the first: {visits.missing[0]}")
    if not visits.rows:
        raise BadInput(explain_absence(crawl, arguments.url))
    if arguments.list:
        print_rows(LISTED, list_visits(visits), arguments.form)
        return
    row = choose_visit(visits, arguments.visit, is_record_wanted=arguments.raw)
    reader, record = read_record(crawl.path, row, visits.subject)
    if arguments.raw:
        write(reader.content_at(row["offset"])[0], "--raw > FILE")
    elif arguments.text:
        write_text(read_body(record, row), row)
    else:
        write_body(read_body(record, row), row)


def find_visits(crawl: CrawlFolder, text: str) -> Visits:
    line = next(parse_lines([(2, text.encode("utf-8", "replace"))]), None)
    if line is None or line.problem:
        raise Usage(f"{text}: expected a URL, found {line.problem if line else 'nothing'}")
    log = replay(crawl.path, crawl.blocks_first)
    plan = newest_plan(crawl.path)
    config = plan.config if plan else read_crawl_config(crawl.path)
    visits = Visits(url_history.identify(crawl, log, Canonical(config.url).fold(line.url)))
    for entry in log.entries:
        if entry is None or not entry.fetches:
            continue
        path = crawl.path / names.cycle(entry.cycle) / names.EXTRACTOR / names.METADATA
        if not path.exists():
            visits.missing.append(path)
        elif row := url_history.find_row(path, METADATA, visits.subject):
            visits.rows.append(row | {"cycle": entry.cycle})
    return visits


def explain_absence(crawl: CrawlFolder, text: str) -> str:
    """Why no page is there, as bin/why says it."""
    facts = why.gather(crawl, text, now_ms=0)
    because = f": {facts['because']}" if facts["because"] else ""
    return f"{facts['url'] or text}: no page is stored; {facts['verdict']}{because}"


def list_visits(visits: Visits) -> Iterator[tuple]:
    for number, row in enumerate(visits.rows, 1):
        if row["revisit"]:
            brought = "nothing new: 304" if row["status"] == 304 else "the body as before"
        else:
            brought = "a full answer"
        file = f"{names.cycle(row['cycle'])}/{names.FETCHER}/{row['file']}"
        at = moment(row["fetched_at_ms"])
        yield number, at, row["status"], row["type"], row["bytes"], brought, row["cycle"], file, row["offset"]


def choose_visit(visits: Visits, number: int | None, *, is_record_wanted: bool) -> dict:
    """The row of the visit, or of the last full answer before it where that has the page."""
    if number is not None and number > len(visits.rows):
        raise BadInput(f"{visits.subject.url}: expected a visit from 1 to {len(visits.rows)}, found {number}")
    asked = number or len(visits.rows)
    if is_record_wanted and number is not None:
        return visits.rows[number - 1]
    for index in range(asked - 1, -1, -1):
        if not visits.rows[index]["revisit"]:
            if index != asked - 1:
                about = visits.rows[asked - 1]
                note(
                    f"visit {asked} ({moment(about['fetched_at_ms'])}, status {about['status']}) brought nothing new; "
                    f"this is the page of visit {index + 1} ({moment(visits.rows[index]['fetched_at_ms'])})"
                )
            return visits.rows[index]
    raise BadInput(
        f"{visits.subject.url}: no full answer is stored before visit {asked}; --raw --visit {asked} prints its record"
    )


def read_record(crawl: Path, row: dict, subject: Subject) -> tuple[PageReader, Record]:
    path = crawl / names.cycle(row["cycle"]) / names.FETCHER / row["file"]
    reader = PageReader(path)
    record = reader.record_at(row["offset"])
    if record.url != subject.url:
        raise Damaged(path, f"expected a record of {subject.url}, found one of {record.url}", row["offset"])
    return reader, record


def read_body(record: Record, row: dict) -> bytes:
    decoded = decode_body(parse_response(record.block), BODY_MAX_BYTES)
    if TRUNCATED in row["trouble"].split():
        note(explain(TRUNCATED))
    if decoded.trouble == TOO_LONG:
        note(f"only the first {size(BODY_MAX_BYTES)} of the body are printed; --raw has all")
    elif decoded.trouble:
        note(explain(decoded.trouble))
    return decoded.content


def write_text(body: bytes, row: dict, page_max_s: int = PAGE_MAX_S) -> None:
    if row["type"] not in HTML and not is_textual(row["type"]):
        raise BadInput(f"{row['url']}: a body of type {row['type'] or 'unknown'} has no text here; leave out --text")
    text = decode(body, row["charset"])
    if row["type"] in HTML:
        found = read_alone(text, page_max_s)
        if found.text is None:
            why = explain_no_text(found.trouble, page_max_s)
            raise BadInput(f"{row['url']}: its text cannot be read: {why}; leave out --text")
        text = found.text
    sys.stdout.write(text.rstrip("\n") + "\n")


def write_body(body: bytes, row: dict) -> None:
    """The bytes; on a terminal the characters of what is text by its type."""
    if sys.stdout.isatty() and is_textual(row["type"]):
        body = decode(body, row["charset"]).encode()
    write(body, "> FILE, or --text")


def write(content: bytes, instead: str) -> None:
    if sys.stdout.isatty() and not CONTROL.isdisjoint(content):
        raise Usage(f"expected text for a terminal, found binary data of {count(len(content), 'byte')}: use {instead}")
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def note(text: str) -> None:
    say(f"{NAME}: {text}", sys.stderr)


if __name__ == "__main__":
    run(main, NAME)
