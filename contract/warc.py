"""WARC 1.1 records, one compressed member each: how the fetcher writes them and everybody reads them.

Extension headers tell what the fetcher did, so that these files alone are enough for the extractor:
`Coletor-Final: yes` ends a URL of the list; `Coletor-Outcome` and `Coletor-Reason` say how; `Coletor-Times` gives
milliseconds; `Coletor-Robots: yes` marks an exchange for robots.txt.
"""

import hashlib
import re
import uuid
from base64 import b32encode
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.errors import Damaged
from storage.frames import Broken, TooLong, Torn, read_member

RECORD_MAX_BYTES = (1 << 30) + (1 << 20)  # body_max_bytes may be 1 GiB; headers come on top
HTTP_RESPONSE = "application/http;msgtype=response"
HTTP_REQUEST = "application/http;msgtype=request"
FIELDS = "application/warc-fields"
FINAL, OUTCOME, REASON, TIMES, ROBOTS = (
    "Coletor-Final", "Coletor-Outcome", "Coletor-Reason", "Coletor-Times", "Coletor-Robots"
)
YES = "yes"
TIME_NAMES = ("waited", "connect", "first_byte", "total")
_VERSION = b"WARC/1.1\r\n"


class Record(NamedTuple):
    type: str
    headers: dict[str, str]  # names in lower case
    block: bytes
    offset: int  # of the member in its file
    length: int

    def get(self, name: str, default: str = "") -> str:
        return self.headers.get(name.lower(), default)

    @property
    def url(self) -> str:
        return self.get("WARC-Target-URI")


def new_id() -> str:
    return f"<urn:uuid:{uuid.uuid4()}>"


def sha1_digest(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data).digest()).decode()


def format_date(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def parse_date(text: str) -> int:
    """Milliseconds of a WARC-Date, or 0 where it is none."""
    try:
        return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return 0


def format_times(times_ms: dict[str, int]) -> str:
    return " ".join(f"{name}={times_ms.get(name, 0)}" for name in TIME_NAMES)


def parse_times(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d{1,9})\b", text) if name in TIME_NAMES}


def encode_record(kind: str, headers: list[tuple[str, str]], block: bytes) -> bytes:
    """The bytes of a record before compression. Headers are given without version, length and block digest."""
    lines = [f"WARC-Type: {kind}", *(f"{name}: {value}" for name, value in headers),
             f"WARC-Block-Digest: {sha1_digest(block)}", f"Content-Length: {len(block)}"]
    return _VERSION + "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def decode_record(data: bytes, offset: int, length: int) -> Record:
    """The record in a member's content; ValueError says what is wrong with it."""
    head, separator, rest = data.partition(b"\r\n\r\n")
    if not separator or not head.startswith(b"WARC/1."):
        raise ValueError("expected a WARC 1 record, found something else")
    headers = {}
    for line in head.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"expected a WARC header, found {line[:60]!r}")
        headers[name.strip().lower()] = value.strip()
    size = headers.get("content-length", "")
    if not size.isdigit() or len(rest) != int(size) + 4:
        raise ValueError(f"expected Content-Length {size or 'missing'}, found {len(rest) - 4} bytes")
    return Record(headers.get("warc-type", ""), headers, rest[:-4], offset, length)


def read_records(path: Path, start: int = 0) -> Iterator[Record]:
    """The records of a file from the member at `start`; Damaged where one is not whole."""
    data = map_file(path)
    while start < len(data):
        record = record_at(path, data, start)
        yield record
        start += record.length


def read_record(path: Path, offset: int) -> Record:
    return record_at(path, map_file(path), offset)


def record_at(path: Path, data: memoryview, start: int) -> Record:
    try:
        content, end = read_member(data, start, RECORD_MAX_BYTES)
        return decode_record(content, start, end - start)
    except Torn:
        raise Damaged(path, "expected a whole record, found the end of the file", start) from None
    except (Broken, TooLong, ValueError) as error:
        raise Damaged(path, str(error), start) from None


def map_file(path: Path) -> memoryview:
    try:
        return memoryview(np.memmap(path, np.uint8, "r")) if path.stat().st_size else memoryview(b"")
    except FileNotFoundError:
        raise Damaged(path, "expected a file of pages, found none") from None


class HttpMessage(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def get(self, name: str) -> str:
        """The first header of that name, or nothing."""
        return next((value for found, value in self.headers if found.lower() == name), "")


def parse_response(block: bytes) -> HttpMessage:
    """Status, headers and stored body of a response record's block; whatever a server sent, it does not raise."""
    head, _, body = block.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(None, 2)
    status = int(words[1]) if len(words) > 1 and re.fullmatch(r"[0-9]{3}", words[1]) else 0
    pairs = (line.partition(":") for line in lines)
    return HttpMessage(status, [(name.strip(), value.strip()) for name, colon, value in pairs if colon], body)
