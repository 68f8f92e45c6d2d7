"""What earlier attempts at a cycle left: reads the page files back, and cuts what a crash tore at their ends.

Up to the point that `.aside-synced` names, every record must be whole: anything else is damage and stops the stage.
Behind it, the first thing that is not a whole exchange ends the file. The records that remain tell which URLs are done,
the robots.txt texts, the failures in their order, and how long the attempts were active.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from contract import names, warc
from stages.fetcher.repository import SYNCED
from storage.errors import Damaged
from storage.publish import ASIDE, read_json, sync_file, sync_folder

_FILE_NAME = re.compile(r"(\d{5,9})\.warc\.(?:zst|gz)")


class Past(NamedTuple):
    """An exchange, or an outcome without one, of an earlier attempt."""
    url: str
    is_robots: bool
    is_final: bool
    outcome: str
    reason: str
    bytes: int
    block: bytes  # of a robots.txt answer; not kept of pages


class History(NamedTuple):
    past: list[Past]
    next_number: int  # of the next page file
    attempts: int
    active_ms: int


class PageFileRead(NamedTuple):
    past: list[Past]
    whole_bytes: int  # up to the end of the last whole exchange
    attempt: int
    began_at_ms: int
    ended_at_ms: int


def read_history(folder: Path) -> History:
    """Reads a stage folder that is not published yet, and cuts its page files after their last whole exchange."""
    pages = folder / names.PAGES
    if not pages.is_dir():
        return History([], 0, 0, 0)
    synced_number, synced_bytes = read_synced(folder)
    past: list[Past] = []
    spans: dict[int, tuple[int, int]] = {}
    numbers = []
    for number, path in list_page_files(pages):
        numbers.append(number)
        size = path.stat().st_size
        safe_bytes = size if number < synced_number else synced_bytes if number == synced_number else 0
        read = read_page_file(path, safe_bytes)
        if read.whole_bytes < size:
            cut(path, read.whole_bytes)
        if read.whole_bytes:
            past += read.past
            began, ended = spans.get(read.attempt, (read.began_at_ms, read.ended_at_ms))
            spans[read.attempt] = min(began, read.began_at_ms), max(ended, read.ended_at_ms)
    active_ms = sum(ended - began for began, ended in spans.values())
    return History(past, max(numbers, default=-1) + 1, max(spans, default=0), active_ms)


def read_synced(folder: Path) -> tuple[int, int]:
    """The page file, and its length, up to which all is safe; no file at all where nothing was synced."""
    path = folder / SYNCED
    if not path.exists():
        return -1, 0
    value = read_json(path)
    try:
        return int(value["file"]), int(value["bytes"])
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(path, f"expected a file number and a length, found {error!r}") from None


def list_page_files(pages: Path) -> list[tuple[int, Path]]:
    found = ((_FILE_NAME.fullmatch(path.name), path) for path in pages.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


def read_page_file(path: Path, safe_bytes: int) -> PageFileRead:
    """The whole exchanges of a page file; Damaged where one is not whole before `safe_bytes`."""
    data = warc.map_file(path)
    past: list[Past] = []
    attempt = began_at_ms = ended_at_ms = position = whole = 0
    request: warc.Record | None = None
    while position < len(data):
        try:
            record = warc.record_at(path, data, position)
            check_order(path, record, request)
        except Damaged:
            if whole < safe_bytes:
                raise
            break
        position += record.length
        if record.type == "request":
            request = record
            continue
        request, whole = None, position
        ended_at_ms = max(ended_at_ms, warc.parse_date(record.get("WARC-Date")))
        if record.type == "warcinfo":
            attempt, began_at_ms = read_attempt(record.block), ended_at_ms
        else:
            past.append(to_past(record))
    if whole < safe_bytes:
        raise Damaged(path, f"expected {safe_bytes} bytes of whole exchanges, found {whole}", whole)
    return PageFileRead(past, whole, attempt, began_at_ms, ended_at_ms)


def check_order(path: Path, record: warc.Record, request: warc.Record | None) -> None:
    """Damaged unless the file begins with warcinfo and a request is followed by its response, and only so."""
    if (record.offset == 0) != (record.type == "warcinfo"):
        raise Damaged(path, f"expected warcinfo first and only there, found {record.type!r}", record.offset)
    expected = request.get("WARC-Record-ID") if request else ""
    if (record.type == "response" or request) and record.get("WARC-Concurrent-To") != expected:
        raise Damaged(path, f"expected a request and its response, found {record.type!r}", record.offset)


def to_past(record: warc.Record) -> Past:
    is_robots = record.get(warc.ROBOTS) == warc.YES
    is_answer = record.type == "response"
    return Past(
        record.url, is_robots, record.get(warc.FINAL) == warc.YES, record.get(warc.OUTCOME), record.get(warc.REASON),
        len(record.block) if is_answer else 0, record.block if is_robots and is_answer else b"",
    )


def read_attempt(block: bytes) -> int:
    found = re.search(rb"^attempt: (\d{1,9})\r$", block, re.MULTILINE)
    return int(found[1]) if found else 0


def cut(path: Path, whole_bytes: int) -> None:
    """Removes what follows the last whole exchange; the file itself where nothing is whole."""
    if whole_bytes:
        os.truncate(path, whole_bytes)
        sync_file(path)
    else:
        path.unlink()
        sync_folder(path.parent)


def remove_asides(folder: Path) -> None:
    """Removes `.aside-synced` and what a crash left beside it, before the folder is published."""
    for path in folder.glob(f"{ASIDE}*"):
        path.unlink()
