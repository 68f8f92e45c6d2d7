"""WARC files for every existing tool: gzip, one member per record, whatever compression the crawl has.

Records are copied as they are: IDs, dates, digests and blocks do not change. Only the warcinfo record, which comes
first, is ours. The index of what was written grows along.
"""

import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from contract import names
from contract.warc import (
    ANSWERS,
    FIELDS,
    ROBOTS_FOR,
    PageReader,
    Record,
    encode_record,
    format_date,
    parse_date,
    parse_response,
    write_headers,
)
from examine.export.cdxj import encode_line
from examine.export.folder import Problems
from examine.export.selection import page_files
from storage.errors import Damaged
from storage.frames import Gzip
from storage.tables import column

COLUMNS = ("file", "offset", "length")
SUFFIX = ".warc.gz"
TakesRobots = Callable[[str, int], bool]  # (server, time in ms) -> whether an exchange for its robots.txt is wanted
NAMESPACE = uuid.UUID("3e6d5f0e-6f5c-5a53-9d0c-1f6a0f0d7a2b")  # of the IDs of warcinfo records, which must not vary


class WarcWriter:
    """Writes one part. `lines` are its lines of the index, not sorted."""

    def __init__(self, file: BinaryIO, name: str, crawl_id: str, cycle: int, at_ms: int):
        self.lines: list[bytes] = []
        self.counts: Counter[str] = Counter()
        self._file, self._name, self._gzip = file, name, Gzip()
        self._opening = describe_file(name, crawl_id, cycle, at_ms)

    def write(self, content: bytes) -> tuple[int, int]:
        """Offset and length of the member."""
        if self._opening:
            self._file.write(self._gzip.compress(self._opening))
            self._opening = b""
        offset = self._file.tell()
        return offset, self._file.write(self._gzip.compress(content))

    def write_exchange(self, request: bytes, answer: bytes, record: Record) -> None:
        if request:
            self.write(request)
            self.counts["requests"] += 1
        offset, length = self.write(answer)
        message = parse_response(record.block)
        self.lines.append(
            encode_line(
                record.url,
                parse_date(record.get("WARC-Date")),
                status=message.status,
                type=message.get("content-type").partition(";")[0].strip().lower(),
                digest=record.get("WARC-Payload-Digest"),
                is_revisit=record.type == "revisit",
                file=self._name,
                offset=offset,
                length=length,
            )
        )
        self.counts[f"{record.type}s"] += 1
        self.counts["robots"] += bool(record.get(ROBOTS_FOR))


def describe_file(name: str, crawl_id: str, cycle: int, at_ms: int) -> bytes:
    """The warcinfo record; the same export makes the same bytes."""
    fields = [
        ("software", "Coletor, bin/export"),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
        ("isPartOf", f"crawl {crawl_id}, cycle {cycle}"),
    ]
    headers = [
        ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid5(NAMESPACE, f'{crawl_id}/{cycle}/{name}')}>"),
        ("WARC-Date", format_date(at_ms)),
        ("WARC-Filename", name),
        ("Content-Type", FIELDS),
    ]
    return encode_record("warcinfo", headers, write_headers(fields).encode())


def copy_cycle(
    crawl: Path, cycle: int, visits: pa.Table, takes_robots: TakesRobots, writer: WarcWriter, problems: Problems
) -> None:
    """Copies the exchanges of the chosen visits, and those for robots.txt that are wanted."""
    folder = crawl / names.cycle(cycle) / names.FETCHER
    wanted: dict[str, set[int]] = {path.relative_to(folder).as_posix(): set() for path in page_files(crawl, cycle)}
    for name, offset in zip(visits.column("file").to_pylist(), column(visits, "offset").tolist()):
        wanted.setdefault(name, set()).add(offset)
    for name, offsets in wanted.items():
        with problems.noting():
            copy_file(folder / name, offsets, takes_robots, writer)


def copy_file(path: Path, wanted: set[int], takes_robots: TakesRobots, writer: WarcWriter) -> None:
    """An exchange is a request and the answer next to it."""
    reader = PageReader(path)
    request, request_id, position = b"", "", reader.first_offset
    while (position := reader.pass_extensions(position)) < reader.size_bytes:
        content, length = reader.content_at(position)
        record = reader.decode(content, position, length)
        if record.type == "request":
            request, request_id = content, record.get("WARC-Record-ID")
        elif record.type in ANSWERS and (position in wanted or is_wanted_robots(record, takes_robots)):
            belongs = request_id and record.get("WARC-Concurrent-To") == request_id
            writer.write_exchange(request if belongs else b"", content, record)
            wanted.discard(position)
        position += length
    if wanted:
        raise Damaged(path, "expected the answer that the table of the cycle names, found none", min(wanted))


def is_wanted_robots(record: Record, takes_robots: TakesRobots) -> bool:
    server = record.get(ROBOTS_FOR)
    return bool(server) and takes_robots(server, parse_date(record.get("WARC-Date")))
