"""Pages with their text, one row per visit (`pages`), and pages with their HTML in the form of UFMG's thesis (`ufmg`).

A revisit (304, or the same body as before) has a row in `pages` without text: the page is that of the earlier visit.
`ufmg` has only HTML that a visit brought.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from contract import names
from contract.body import decode_body
from contract.trouble import UNDECODED
from contract.warc import PageReader, parse_response
from examine.export.folder import Problems
from examine.export.row_files import writing_rows
from examine.page_text import HTML, decode
from examine.text_reader import PageText, TextReader

COLUMNS = ("url", "file", "offset", "fetched_at_ms", "status", "type", "charset", "title", "language", "revisit")
SCHEMA = pa.schema(
    [
        ("url", pa.string()),
        ("time", pa.timestamp("ms", "UTC")),
        ("status", pa.uint16()),
        ("type", pa.string()),
        ("charset", pa.string()),
        ("title", pa.string()),
        ("language", pa.string()),  # as the page declares it
        ("detected_language", pa.string()),  # as its text reads
        ("revisit", pa.bool_()),
        ("text", pa.string()),  # null where it was not read
        ("text_trouble", pa.string()),
    ]
)
BODY_MAX_BYTES = 64 << 20
ROWS_AT_ONCE = 1000  # of a row group, if their texts are short
BATCH_MAX_CHARACTERS = 16 << 20
Row = dict[str, Any]


def read_pages(crawl: Path, cycle: int, visits: pa.Table, problems: Problems) -> Iterator[tuple[Row, str | None]]:
    """Each chosen visit with its HTML, decoded; None for a revisit, for other types and where it cannot be decoded.

    The row gets `text_trouble`: what is wrong with its body.
    Where a record is damaged, the rest of its file is left out.
    """
    reader: PageReader | None = None
    name = lost = None  # files of pages
    for batch in visits.to_batches(ROWS_AT_ONCE):
        for row in batch.to_pylist():
            if row["file"] == lost:
                continue
            html, was_read = None, False
            with problems.noting():
                if reader is None or row["file"] != name:
                    name = row["file"]
                    reader = PageReader(crawl / names.cycle(cycle) / names.FETCHER / name)
                if row["type"] in HTML and not row["revisit"]:
                    html, row["text_trouble"] = read_html(reader, row)
                was_read = True
            if was_read:
                yield row, html
            else:
                reader, lost = None, row["file"]


def read_html(reader: PageReader, row: Row) -> tuple[str | None, str]:
    """The HTML of a page as text, and a word of contract/trouble.py."""
    record = reader.record_at(row["offset"])
    body, trouble = decode_body(parse_response(record.block), BODY_MAX_BYTES)
    if trouble == UNDECODED:
        return None, trouble
    return decode(body, row["charset"]).removeprefix("\N{BYTE ORDER MARK}"), trouble


def write_pages(
    crawl: Path, cycle: int, visits: pa.Table, texts: TextReader, file: BinaryIO, form: str, problems: Problems
) -> Counter[str]:
    counts: Counter[str] = Counter()
    with writing_rows(file, SCHEMA, form) as write:
        for rows in in_batches(texts.read_each(read_pages(crawl, cycle, visits, problems)), counts):
            write(pa.Table.from_pylist(rows, SCHEMA))
    return counts


def in_batches(found: Iterator[tuple[Row, PageText]], counts: Counter[str]) -> Iterator[list[Row]]:
    """Rows of SCHEMA, bounded by their number and the length of their texts."""
    rows: list[Row] = []
    characters = 0
    for visit, page in found:
        rows.append(
            {
                "url": visit["url"],
                "time": visit["fetched_at_ms"],
                **{name: visit[name] for name in ("status", "type", "charset", "title", "language", "revisit")},
                "detected_language": page.language,
                "text": page.text,
                "text_trouble": page.trouble or visit.get("text_trouble", ""),
            }
        )
        counts.update(
            pages=1, texts=page.text is not None, texts_not_read=page.text is None and bool(rows[-1]["text_trouble"])
        )
        characters += len(page.text or "")
        if len(rows) == ROWS_AT_ONCE or characters >= BATCH_MAX_CHARACTERS:
            yield rows
            rows, characters = [], 0
    if rows:
        yield rows


def write_ufmg(crawl: Path, cycle: int, visits: pa.Table, file: BinaryIO, problems: Problems) -> Counter[str]:
    """`||| url | html`: no other `|` is in the file, so a reader finds the next page at the next three of them."""
    counts: Counter[str] = Counter()
    for row, html in read_pages(crawl, cycle, visits, problems):
        if html is None:
            counts["others"] += 1
            continue
        url, content = row["url"].replace("|", "%7C"), html.replace("|", "")
        file.write(f"||| {url} | {content}\n".encode("utf-8", "replace"))
        counts["pages"] += 1
    return counts
