"""Resumes a cycle: reads the page files of earlier attempts, and cuts off their torn ends.

Up to the lengths that the marks `.aside-synced-NNNNN` name, every record must be whole: anything else is damage and
stops the stage. After them, the first thing that is not a whole exchange ends the file. The remaining records show
which URLs are done, the robots.txt texts, the failures in their order, and how long the attempts were active.
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
_MARK_NAME = re.compile(rf"{re.escape(SYNCED)}\d{{5,9}}")


class Past(NamedTuple):
    """An exchange, or an outcome without one, of an earlier attempt."""

    url: str
    robots_for: str  # of an exchange for robots.txt: the server that the rules are for, not always the one asked
    is_final: bool
    outcome: str
    reason: str
    is_asked: bool  # a server was asked, or we tried to reach it
    bytes: int
    block: bytes  # of a robots.txt answer; empty for pages
    message: str = ""

    @property
    def is_robots(self) -> bool:
        return bool(self.robots_for)


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


def read_history(folder: Path, below: int | None = None, *, cut: bool = True) -> History:
    """Reads a stage folder that is not published yet, and cuts its page files after their last whole exchange.

    A worker reads only the files with numbers `below` its attempt's own, which its parent has cut already.
    """
    pages = folder / names.PAGES
    if not pages.is_dir():
        return History([], 0, 0, 0)
    synced = {number: size for number, size in read_marks(folder).items() if below is None or number < below}
    files = {number: path for number, path in list_page_files(pages) if below is None or number < below}
    past: list[Past] = []
    spans: dict[int, tuple[int, int]] = {}
    for number, path in files.items():
        size = path.stat().st_size
        read = read_page_file(path, synced.get(number, 0))
        if cut and read.whole_bytes < size:
            cut_after(path, read.whole_bytes)
        if read.whole_bytes:
            past += read.past
            began, ended = spans.get(read.attempt, (read.began_at_ms, read.ended_at_ms))
            spans[read.attempt] = min(began, read.began_at_ms), max(ended, read.ended_at_ms)
    active_ms = sum(ended - began for began, ended in spans.values())
    # A missing file that a mark names was set aside as damaged: its number is not used again.
    return History(past, max([*files, *synced], default=-1) + 1, max(spans, default=0), active_ms)


def read_marks(folder: Path) -> dict[int, int]:
    """Page file number -> bytes that are synced, by the marks of all processes of all attempts."""
    synced: dict[int, int] = {}
    for path in sorted(folder.glob(f"{SYNCED}*")):
        if not _MARK_NAME.fullmatch(path.name):
            continue
        try:
            files = read_json(path)["files"].items()
            synced |= {int(number): int(size) for number, size in files}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Damaged(path, f"expected numbers of files and their lengths, found {error!r}") from None
    return synced


def list_page_files(pages: Path) -> list[tuple[int, Path]]:
    found = ((_FILE_NAME.fullmatch(path.name), path) for path in pages.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


def read_page_file(path: Path, safe_bytes: int) -> PageFileRead:
    """The whole exchanges of a page file; Damaged where one is not whole before `safe_bytes`."""
    past: list[Past] = []
    attempt = began_at_ms = ended_at_ms = whole = 0
    request: warc.Record | None = None
    try:
        pages = warc.PageReader(path)
        for record in pages.records():
            check_order(pages, record, request)
            if record.type == "request":
                request = record
                continue
            request, whole = None, record.offset + record.length
            ended_at_ms = max(ended_at_ms, warc.parse_date(record.get("WARC-Date")))
            if record.type == "warcinfo":
                attempt, began_at_ms = read_attempt(record.block), ended_at_ms
            else:
                past.append(to_past(record))
    except Damaged:
        if whole < safe_bytes:
            raise
    if whole < safe_bytes:
        raise Damaged(path, f"expected {safe_bytes} bytes of whole exchanges, found {whole}", whole)
    return PageFileRead(past, whole, attempt, began_at_ms, ended_at_ms)


def check_order(pages: warc.PageReader, record: warc.Record, request: warc.Record | None) -> None:
    """Damaged unless the file begins with warcinfo and a request is followed by its answer, and only so."""
    if (record.offset == pages.first_offset) != (record.type == "warcinfo"):
        raise Damaged(pages.path, f"expected warcinfo first and only there, found {record.type!r}", record.offset)
    expected = request.get("WARC-Record-ID") if request else ""
    if (record.type in warc.ANSWERS or request) and record.get("WARC-Concurrent-To") != expected:
        raise Damaged(pages.path, f"expected a request and its answer, found {record.type!r}", record.offset)


def to_past(record: warc.Record) -> Past:
    robots_for = record.get(warc.ROBOTS_FOR)
    is_answer = record.type in warc.ANSWERS
    return Past(
        record.url,
        robots_for,
        record.get(warc.FINAL) == warc.YES,
        record.get(warc.OUTCOME),
        record.get(warc.REASON),
        is_answer or bool(record.get("WARC-IP-Address")),
        len(record.block) if is_answer else 0,
        record.block if robots_for and is_answer else b"",
        warc.clean_message(record.get(warc.MESSAGE)),
    )


def read_attempt(block: bytes) -> int:
    found = re.search(rb"^attempt: (\d{1,9})\r$", block, re.MULTILINE)
    return int(found[1]) if found else 0


def cut_after(path: Path, whole_bytes: int) -> None:
    """Removes what follows the last whole exchange; the whole file where there is none."""
    if whole_bytes:
        os.truncate(path, whole_bytes)
        sync_file(path)
    else:
        path.unlink()
        sync_folder(path.parent)


def remove_asides(folder: Path) -> None:
    """Removes the marks and the remains of a crash, before the folder is published."""
    for path in folder.glob(f"{ASIDE}*"):
        path.unlink()
