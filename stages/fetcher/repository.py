"""Repositorio_de_Paginas: WARC files that grow by whole exchanges, rotate at a size and are synced in a thread.

An exchange is one write: request record and response record next to each other, or one metadata record where no answer
came. After each sync the file `.aside-synced-NNNNN` says up to where the records are safe; resume.py trusts them up to
there and cuts what is torn behind. Several processes may write into one folder, each its own files with its own mark.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import trio

from contract import names, warc
from contract.config import Fetcher
from contract.tables import ANSWERED
from stages.fetcher.exchange import Exchange
from stages.fetcher.revisit import Revisit
from storage.frames import Gzip, Zstd
from storage.publish import ASIDE, FORMAT, encode_json, make_folder, put, sync_folder

SYNCED = f"{ASIDE}synced-"  # and the number of the first file that it is about
JOINED_MAX_BYTES = 1 << 20  # members up to this are written in one call; larger ones are not copied for that
NOT_MODIFIED_STATUS = 304


def file_name(number: int, suffix: str) -> str:
    return f"{number:05d}.warc{suffix}"


def mark_name(first_number: int) -> str:
    return f"{SYNCED}{first_number:05d}"


@dataclass(frozen=True)
class About:
    """What the warcinfo record of every file says."""
    software: str
    part_of: str  # crawl id and cycle, or the list's name
    attempt: int  # how often this folder has been worked on, this time included
    config: Fetcher

    def block(self) -> bytes:
        fields = {
            "software": self.software, "format": "WARC File Format 1.1",
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "isPartOf": self.part_of, "attempt": self.attempt, "robots": "obey",
            "config": json.dumps(asdict(self.config), sort_keys=True),
        }
        return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()


@dataclass
class PageFile:
    number: int
    path: Path
    descriptor: int
    size_bytes: int = 0
    synced_bytes: int = 0
    is_full: bool = False


class Repository:
    """Writes the files first_number, first_number + step, ... of a folder; others may write those between."""

    def __init__(self, folder: Path, first_number: int, about: About, step: int = 1, dictionary: bytes | None = None):
        self._pages = folder / names.PAGES
        self._mark_path = folder / mark_name(first_number)
        self._mark: dict[str, int] = {}  # bytes that are synced, of all files
        self._about = about
        self._config = about.config
        self._compressor = Gzip() if about.config.warc_compression == "gzip" else Zstd(dictionary=dictionary)
        self._next_number = first_number
        self._step = step
        self._files: list[PageFile] = []  # those not yet synced and closed; the last one is written to
        self._unsynced_pages = 0
        self._unsynced_since_ms = 0
        self._turn = trio.Lock()
        self._limiter = trio.CapacityLimiter(1)  # a thread of its own, not one behind slow name look-ups
        self._is_syncing = False
        make_folder(self._pages)

    def open_file(self, now_ms: int) -> None:
        """Opens the next file: its dictionary, where there is one, and its warcinfo record."""
        path = self._pages / file_name(self._next_number, self._compressor.suffix)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._files.append(PageFile(self._next_number, path, descriptor))
        self._next_number += self._step
        headers = [
            ("WARC-Record-ID", warc.new_id()), ("WARC-Date", warc.format_date(now_ms)), ("WARC-Filename", path.name),
            ("Content-Type", warc.FIELDS),
        ]
        record = self._compressor.compress(warc.encode_record("warcinfo", headers, self._about.block()))
        self._append(now_ms, self._compressor.opening + record)

    def write_exchange(self, exchange: Exchange, now_ms: int, *, is_final: bool, earlier: Revisit | None = None) -> int:
        """Appends the records of an exchange that has ended; bytes of the answer.

        `is_final` says that it ends its URL, which one for robots.txt never does. `earlier` is what is stored of the URL already: an answer that says no more than that is written as a revisit.
        """
        if not exchange.has_answer:
            self.write_outcome(exchange.url, exchange.outcome, exchange.reason, exchange.started_at_ms, now_ms, is_final=is_final,
                               robots_for=exchange.robots_for, address=exchange.address, times_ms=exchange.times_ms)
            return 0
        request_id = warc.new_id()
        shared = [("WARC-Date", warc.format_date(exchange.started_at_ms)), ("WARC-Target-URI", exchange.url)]
        if exchange.address:
            shared.append(("WARC-IP-Address", exchange.address))
        if exchange.is_http2:
            shared.append(("WARC-Protocol", "h2"))
        if exchange.robots_for:
            shared.append((warc.ROBOTS, exchange.robots_for))
        asked = exchange.request_block()
        headers = [("WARC-Record-ID", request_id), *shared, ("Content-Type", warc.HTTP_REQUEST)]
        request = self._compressor.compress(
            warc.encode_head("request", headers, warc.sha1_digest(asked), len(asked)), asked, warc.RECORD_END)
        head, body = exchange.response_head(), memoryview(exchange.body.view())
        answer_bytes = len(head) + len(body)
        payload_digest, profile = warc.sha1_digest(body), ""
        if earlier is not None and exchange.outcome == ANSWERED:
            profile = profile_of(exchange, payload_digest, earlier)
        headers = [
            ("WARC-Record-ID", warc.new_id()), *shared, ("Content-Type", warc.HTTP_RESPONSE), ("WARC-Concurrent-To", request_id),
            *(revisit_headers(profile, exchange, payload_digest, earlier) if profile else plain_headers(exchange, payload_digest)),
            *outcome_headers(exchange.outcome, exchange.reason, exchange.times_ms, is_final),
        ]
        block = (head,) if profile else (head, body)
        answer = warc.encode_head("revisit" if profile else "response", headers, warc.sha1_digest(*block), sum(map(len, block)))
        self._write(now_ms, request, self._compressor.compress(answer, *block, warc.RECORD_END))
        return answer_bytes

    def write_outcome(self, url: str, outcome: str, reason: str, at_ms: int, now_ms: int, *, is_final: bool,
                      robots_for: str = "", address: str = "", times_ms: dict[str, int] | None = None) -> None:
        """Appends the record of a URL that got no answer."""
        headers = [
            ("WARC-Record-ID", warc.new_id()), ("WARC-Date", warc.format_date(at_ms)), ("WARC-Target-URI", url),
            *[("WARC-IP-Address", address)] * bool(address), *[(warc.ROBOTS, robots_for)] * bool(robots_for),
            ("Content-Type", warc.FIELDS), *outcome_headers(outcome, reason, times_ms or {}, is_final),
        ]
        block = f"outcome: {outcome}\r\nreason: {reason}\r\n".encode()
        self._write(now_ms, self._compressor.compress(warc.encode_record("metadata", headers, block)))

    def _write(self, now_ms: int, *members: bytes) -> None:
        if not self._files or self._files[-1].is_full:
            self.open_file(now_ms)
        self._append(now_ms, *members)
        self._files[-1].is_full = self._files[-1].size_bytes >= self._config.warc_file_max_bytes
        self._unsynced_pages += 1

    def _append(self, now_ms: int, *members: bytes) -> None:
        file, size = self._files[-1], sum(map(len, members))
        if not self._is_dirty():
            self._unsynced_since_ms = now_ms
        try:
            for data in members if size > JOINED_MAX_BYTES else [b"".join(members)]:
                left = memoryview(data)
                while left:
                    left = left[os.write(file.descriptor, left):]
        except OSError as error:
            try:
                os.ftruncate(file.descriptor, file.size_bytes)  # else the next attempt cuts the torn member
            except OSError:
                pass
            raise OSError(error.errno, error.strerror, str(file.path)) from None
        file.size_bytes += size

    def _is_dirty(self) -> bool:
        return any(file.synced_bytes < file.size_bytes for file in self._files)

    def sync_due_in_s(self, now_ms: int) -> float | None:
        """Seconds until the next sync is due (0 or less: now), or none where there is nothing to do or one is running."""
        if self._is_syncing or not self._is_dirty():
            return None
        if self._unsynced_pages >= self._config.sync_every_pages:
            return 0.0
        return self._config.sync_every_s - (now_ms - self._unsynced_since_ms) / 1000

    async def sync(self, now_ms: int) -> None:
        """Makes durable what has been written up to now."""
        self._is_syncing = True
        async with self._turn:
            pages = self._unsynced_pages
            sizes = [(file, file.size_bytes) for file in self._files]
            await trio.to_thread.run_sync(self._sync_files, sizes, limiter=self._limiter)
            self._close_full()
            self._unsynced_pages -= pages
            self._unsynced_since_ms = now_ms
        self._is_syncing = False

    def _sync_files(self, sizes: list[tuple[PageFile, int]]) -> None:
        """The files first, then the mark that vouches for them. Runs in a thread."""
        for file, size_bytes in sizes:
            os.fsync(file.descriptor)
            if not file.synced_bytes:
                sync_folder(self._pages)
            file.synced_bytes = size_bytes
            self._mark[f"{file.number:05d}"] = size_bytes
        if sizes:
            put(self._mark_path, encode_json({"format": FORMAT, "files": self._mark}))

    def _close_full(self) -> None:
        for file in self._files[:]:
            if file.is_full and file.synced_bytes == file.size_bytes:
                os.close(file.descriptor)
                self._files.remove(file)

    def close(self) -> None:
        for file in self._files:
            os.close(file.descriptor)
        self._files = []


def profile_of(exchange: Exchange, payload_digest: str, earlier: Revisit) -> str:
    """The profile of a revisit record (WARC 1.1 section 6.7) that says all of an answer, or nothing."""
    if exchange.status == NOT_MODIFIED_STATUS:
        return warc.NOT_MODIFIED
    # What a redirect says is in its head, and its body is often empty: the same digest does not make it the same answer.
    is_redirect = 300 <= exchange.status < 400
    return warc.IDENTICAL_PAYLOAD if payload_digest == earlier.payload_digest and not is_redirect else ""


def revisit_headers(profile: str, exchange: Exchange, payload_digest: str, earlier: Revisit) -> list[tuple[str, str]]:
    """The payload of a revisit is that of the earlier record, whatever the server sent with a 304."""
    is_identical = profile == warc.IDENTICAL_PAYLOAD
    digest = payload_digest if is_identical else earlier.payload_digest
    return [
        ("WARC-Profile", profile), ("WARC-Refers-To-Target-URI", exchange.url),
        *[("WARC-Refers-To-Date", warc.format_date(earlier.fetched_at_ms))] * bool(earlier.fetched_at_ms),
        *[("WARC-Payload-Digest", digest)] * bool(digest), *[("WARC-Truncated", "length")] * is_identical,
    ]


def plain_headers(exchange: Exchange, payload_digest: str) -> list[tuple[str, str]]:
    return [("WARC-Payload-Digest", payload_digest), *[("WARC-Truncated", exchange.truncated)] * bool(exchange.truncated)]


def outcome_headers(outcome: str, reason: str, times_ms: dict[str, int], is_final: bool) -> list[tuple[str, str]]:
    return [
        *[(warc.FINAL, warc.YES)] * is_final, (warc.OUTCOME, outcome), *[(warc.REASON, reason)] * bool(reason),
        (warc.TIMES, warc.format_times(times_ms)),
    ]
