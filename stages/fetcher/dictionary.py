"""The dictionary that compresses page files: read from the crawl folder, or trained once on the pages of the crawl.

Samples are whole records as they will be compressed, taken in turn from the servers of the newest cycles, so that no
large site dominates the dictionary. Records read, samples and their bytes are all bounded.
"""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from contract import names, warc
from contract.dictionary import encode_dictionary, read_dictionary
from contract.tables import ANSWERED
from stages.fetcher.stopping import say
from storage.errors import Damaged, UnknownFormat
from storage.frames import train_dictionary
from storage.publish import is_published, put_if_absent, read_manifest

DICTIONARY_BYTES = 112_640  # zstd's own default: larger ones gain little and cost each reader more
PAGES_MIN = 500
SAMPLES_MAX, SAMPLES_MAX_BYTES = 2_000, 32 << 20
SAMPLE_MAX_BYTES = 64 << 10  # a dictionary helps with the beginning of a record
READ_MAX = 20_000  # records: some seconds
REQUEST_EVERY = 10  # one in so many samples is a request record: small records gain most


class Position(NamedTuple):
    """The path and offset of a record."""

    path: Path
    offset: int


class Page(NamedTuple):
    server: str
    request: Position | None
    response: Position


def find_or_train(crawl: Path) -> bytes | None:
    """The dictionary of the crawl, trained now if there is none yet; None where too few pages are stored."""
    path = crawl / names.DICTIONARY
    if not path.exists():
        dictionary = train(crawl)
        if dictionary is None:
            return None
        put_if_absent(path, encode_dictionary(dictionary))
    return find(crawl)


def find(crawl: Path) -> bytes | None:
    """The dictionary in the crawl folder; a damaged one is reported and not used, because pages can do without."""
    path = crawl / names.DICTIONARY
    try:
        return read_dictionary(path) if path.exists() else None
    except (Damaged, UnknownFormat) as error:
        say(f"{error}; pages are compressed without a dictionary. Remove the file, and another one is trained")
        return None


def train(crawl: Path) -> bytes | None:
    pages = list(look_at_pages(crawl))
    if len(pages) < PAGES_MIN:
        return None
    return train_dictionary(list(read_samples(take_in_turn(pages))), DICTIONARY_BYTES)


def look_at_pages(crawl: Path) -> Iterator[Page]:
    """The answered pages of earlier cycles, the newest cycle first, until enough records were read."""
    left = READ_MAX
    for path in find_page_files(crawl):
        request: warc.Record | None = None
        try:
            for record in warc.PageReader(path).records():
                left -= 1
                if not left:
                    return
                if (
                    record.type == "response"
                    and record.get(warc.OUTCOME) == ANSWERED
                    and not record.get(warc.ROBOTS_FOR)
                ):
                    yield Page(
                        "/".join(record.url.split("/", 3)[:3]),
                        request and Position(path, request.offset),
                        Position(path, record.offset),
                    )
                request = record if record.type == "request" else None
        except Damaged:
            continue  # the stage that needs the file will report it


def find_page_files(crawl: Path) -> Iterator[Path]:
    for cycle in reversed(names.numbered(crawl / names.CYCLES)):
        folder = crawl / names.cycle(cycle) / names.FETCHER
        try:
            files = read_manifest(folder)["files"] if is_published(folder) else {}
        except (Damaged, UnknownFormat):
            continue
        yield from (folder / name for name in sorted(files) if name.startswith(names.PAGES))


def take_in_turn(pages: list[Page]) -> Iterator[Page]:
    """One page of each server, then a second one of each, and so on."""
    by_server: dict[str, list[Page]] = {}
    for page in pages:
        by_server.setdefault(page.server, []).append(page)
    for turn in zip_longest(*by_server.values()):
        yield from (page for page in turn if page is not None)


def read_samples(pages: Iterator[Page]) -> Iterator[bytes]:
    readers: dict[Path, warc.PageReader] = {}
    number = size = 0
    for page in pages:
        for position in (page.response, page.request if number % REQUEST_EVERY == 0 else None):
            if position is None:
                continue
            if position.path not in readers:
                readers[position.path] = warc.PageReader(position.path)
            sample = readers[position.path].content_at(position.offset)[0][:SAMPLE_MAX_BYTES]
            number += 1
            size += len(sample)
            if number > SAMPLES_MAX or size > SAMPLES_MAX_BYTES:
                return
            yield sample
