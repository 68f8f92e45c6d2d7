"""WARC 1.1 records, one compressed member each: how the fetcher writes them and all programs read them.

Extension headers record what the fetcher did, so that these files alone are enough for the extractor:
`Coletor-Final: yes` ends a URL of the list; `Coletor-Outcome` and `Coletor-Reason` say how, `Coletor-Message` why in
words; `Coletor-Times` gives milliseconds; `Coletor-Robots` marks an exchange for robots.txt and names the server that
its rules are for.
"""

import hashlib
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.errors import Damaged
from storage.frames import Broken, Members, TooLong, Torn

RECORD_MAX_BYTES = (1 << 30) + (1 << 20)  # body_max_bytes may be 1 GiB; headers come on top
HEAD_MAX_BYTES = 1 << 20  # holds the headers of a record and of the answer in it: header_max_bytes is 64 KiB by default
HTTP_RESPONSE = "application/http;msgtype=response"
HTTP_REQUEST = "application/http;msgtype=request"
FIELDS = "application/warc-fields"
FINAL, OUTCOME, REASON, MESSAGE, TIMES, ROBOTS_FOR = (
    "Coletor-Final",
    "Coletor-Outcome",
    "Coletor-Reason",
    "Coletor-Message",
    "Coletor-Times",
    "Coletor-Robots",
)
MESSAGE_MAX_CHARACTERS = 300
YES = "yes"
TIME_NAMES = ("waited", "dns", "connect", "first_byte", "total")
ANSWERS = ("response", "revisit")  # records that hold what a server answered
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
IDENTICAL_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
RECORD_END = b"\r\n\r\n"
REQUEST_BEGIN = b"WARC/1.1\r\nWARC-Type: request\r\n"  # how ours begin: a reader of answers can stop there
_BASE32 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)
DIGEST_LETTERS = 32  # for 160 bits

_TIMES = re.compile(r"(\w+)=(\d{1,9})\b")
_LENGTH = re.compile(r"[0-9]{1,40}")


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
    """A random UUID (RFC 9562 5.4). The module `uuid` would take longer than all the rest of a small record."""
    digits = random.randbytes(16).hex()  # a forked process has a seed of its own
    return f"<urn:uuid:{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}>"


def sha1_digest(data: bytes) -> str:
    return write_digests([hashlib.sha1(data).digest()])[0]


def write_digests(digests: list[bytes]) -> list[str]:
    """SHA-1 digests as in WARC headers, in Base32 (RFC 4648 6); many at once: base64.b32encode takes 10 us each."""
    fives = np.unpackbits(np.frombuffer(b"".join(digests), np.uint8)).reshape(-1, 5)
    letters = _BASE32[np.packbits(fives, axis=1)[:, 0] >> 3].tobytes().decode("ascii")
    return ["sha1:" + letters[start : start + DIGEST_LETTERS] for start in range(0, len(letters), DIGEST_LETTERS)]


@lru_cache(4)
def format_second(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%S}"


def format_date(at_ms: int) -> str:
    return f"{format_second(at_ms // 1000)}.{at_ms % 1000:03d}Z"


def parse_date(text: str) -> int:
    """Milliseconds of a WARC-Date; 0 for any other text."""
    try:
        return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return 0


def format_times(times_ms: dict[str, int]) -> str:
    return " ".join([f"{name}={times_ms.get(name, 0)}" for name in TIME_NAMES])


def parse_times(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in _TIMES.findall(text) if name in TIME_NAMES}


def clean_message(text: str) -> str:
    """The text as one bounded line without control characters; it may hold what a server sent."""
    plain = "".join([c if c.isprintable() else " " for c in text[: 4 * MESSAGE_MAX_CHARACTERS]])
    return " ".join(plain.split())[:MESSAGE_MAX_CHARACTERS].rstrip()


def write_headers(headers: list[tuple[str, str]]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers])


def write_head(kind: str, headers: str, block_digest: str, block_bytes: int) -> bytes:
    """What precedes the block of a record; RECORD_END follows it. `headers` lack version, length and block digest."""
    return (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\n{headers}"
        f"WARC-Block-Digest: {block_digest}\r\nContent-Length: {block_bytes}\r\n\r\n"
    ).encode()


def encode_record(kind: str, headers: list[tuple[str, str]], block: bytes) -> bytes:
    """The bytes of a record before compression."""
    return write_head(kind, write_headers(headers), sha1_digest(block), len(block)) + block + RECORD_END


def decode_record(data: bytes, offset: int, length: int, *, is_cut: bool = False) -> Record:
    """The record in a member's content; where that `is_cut`, as much as there is. ValueError says what is wrong."""
    end = data.find(RECORD_END)  # which ends headers too
    if end < 0 or not data.startswith(b"WARC/1."):
        raise ValueError("expected a WARC 1 record, found something else")
    start, lines = end + len(RECORD_END), data[:end].decode("utf-8", "replace").split("\r\n")[1:]
    parts = [line.partition(":") for line in lines]
    if bad := [name for name, colon, _ in parts if not colon]:
        raise ValueError(f"expected a WARC header, found {bad[0][:60]!r}")
    headers = {name.strip().lower(): value.strip() for name, _, value in parts}
    size = headers.get("content-length", "")
    found = len(data) - start - len(RECORD_END)
    if not _LENGTH.fullmatch(size) or found != int(size) and not is_cut:
        raise ValueError(f"expected Content-Length {size[:40] or 'missing'}, found {found} bytes")
    return Record(headers.get("warc-type", ""), headers, data[start : start + int(size)], offset, length)


class PageReader:
    """A file of pages open for reading: its bytes, mapped, and the decoder that its dictionary needs.

    Damaged, with path and offset, where the file is missing, or its dictionary or a record is not whole.
    """

    def __init__(self, path: Path):
        self.path = path
        self._data = map_file(path)
        try:
            self._members = Members(self._data)
        except Torn:
            raise Damaged(path, "expected a whole dictionary, found the end of the file", 0) from None
        except Broken as error:
            raise Damaged(path, str(error), 0) from None

    @property
    def size_bytes(self) -> int:
        return len(self._data)

    @property
    def first_offset(self) -> int:
        """Of the first record: 0, or the end of the dictionary."""
        return self._members.first

    def records(self, start: int | None = None, end: int | None = None) -> Iterator[Record]:
        """The records from the member at `start`, or the first, up to the one that ends at `end`, or the last."""
        position = self.first_offset if start is None else start
        end = self.size_bytes if end is None else end
        while (position := self.pass_extensions(position)) < end:
            record = self.record_at(position)
            yield record
            position += record.length

    def heads(self) -> Iterator[Record]:
        """All records as head_at() gives them."""
        position = self.first_offset
        while (position := self.pass_extensions(position)) < self.size_bytes:
            head = self.head_at(position)
            yield head
            position += head.length

    def member_ends(self) -> Iterator[int]:
        """The end of each member, which is read only if needed; Damaged where the members end before the file does."""
        position = self.first_offset
        while (position := self.pass_extensions(position)) < self.size_bytes:
            try:
                position = self._members.pass_member(position, RECORD_MAX_BYTES)
            except (Torn, Broken, TooLong) as error:
                raise self._damaged(error, position) from None
            yield position

    def record_at(self, offset: int) -> Record:
        content, length = self.content_at(offset)
        return self.decode(content, offset, length)

    def decode(self, content: bytes, offset: int, length: int) -> Record:
        """The record in what content_at() gave."""
        try:
            return decode_record(content, offset, length)
        except ValueError as error:
            raise self._damaged(error, offset) from None

    def head_at(self, offset: int) -> Record:
        """The record at `offset`, its block cut after the first HEAD_MAX_BYTES: for records too large to be read."""
        try:
            content = self._members.read_start(offset, HEAD_MAX_BYTES)
            return decode_record(
                content, offset, self._members.pass_member(offset, RECORD_MAX_BYTES) - offset, is_cut=True
            )
        except (Torn, Broken, TooLong, ValueError) as error:
            raise self._damaged(error, offset) from None

    def content_at(self, offset: int) -> tuple[bytes, int]:
        """The bytes of a record as they were before compression, and the length of its member."""
        try:
            content, end = self._members.read(offset, RECORD_MAX_BYTES)
        except (Torn, Broken, TooLong) as error:
            raise self._damaged(error, offset) from None
        return content, end - offset

    def _damaged(self, error: Exception, offset: int) -> Damaged:
        return Damaged(self.path, str(error) or "expected a whole record, found the end of the file", offset)

    def pass_extensions(self, offset: int) -> int:
        """The offset of the next record, after any skippable frames at `offset`."""
        try:
            return self._members.pass_extensions(offset)
        except (Torn, Broken) as error:
            raise Damaged(
                self.path, str(error) or "expected a whole frame, found the end of the file", offset
            ) from None


def map_file(path: Path) -> memoryview:
    try:
        return np.memmap(path, np.uint8, "r").data if path.stat().st_size else memoryview(b"")
    except FileNotFoundError:
        raise Damaged(path, "expected a file of pages, found none") from None


class HttpMessage(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def get(self, name: str) -> str:
        """The first header of that name, or nothing."""
        return next(iter(self.values(name)), "")

    def values(self, name: str) -> list[str]:
        """The headers of a name, given in lower case, in their order."""
        return [value for found, value in self.headers if len(found) == len(name) and found.lower() == name]

    def by_name(self) -> dict[str, list[str]]:
        """All headers: name in lower case -> values in their order."""
        found: dict[str, list[str]] = {}
        for name, value in self.headers:
            found.setdefault(name.lower(), []).append(value)
        return found


def parse_response(block: bytes) -> HttpMessage:
    """Status, headers and stored body of a response record's block. No bytes make it raise."""
    head, _, body = block.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(None, 2)
    status = int(words[1]) if len(words) > 1 and re.fullmatch(r"[0-9]{3}", words[1]) else 0
    pairs = (line.partition(":") for line in lines)
    return HttpMessage(status, [(name.strip(), value.strip()) for name, colon, value in pairs if colon], body)
