"""Repositorio_de_Paginas: WARC files that grow by whole exchanges, rotate at a size and are synced in a thread.

An exchange is one write: request record and response record next to each other, or one metadata record where no answer
came. After each sync the file `.aside-synced` says up to where the records are safe; resume.py trusts them up to
there and cuts what is torn behind.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import trio

from contract import names, warc
from contract.config import Fetcher
from stages.fetcher.exchange import Exchange
from storage.frames import Gzip, Zstd
from storage.publish import ASIDE, FORMAT, encode_json, make_folder, put, sync_folder

SYNCED = f"{ASIDE}synced"
COMPRESSIONS = {"zstd": Zstd, "gzip": Gzip}


def file_name(number: int, suffix: str) -> str:
    return f"{number:05d}.warc{suffix}"


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
    def __init__(self, folder: Path, first_number: int, about: About):
        self._pages = folder / names.PAGES
        self._synced_path = folder / SYNCED
        self._about = about
        self._config = about.config
        self._compressor = COMPRESSIONS[about.config.warc_compression]()
        self._next_number = first_number
        self._files: list[PageFile] = []  # those not yet synced and closed; the last one is written to
        self._unsynced_pages = 0
        self._unsynced_since_ms = 0
        self._turn = trio.Lock()
        self._limiter = trio.CapacityLimiter(1)  # a thread of its own, not one behind slow name look-ups
        self._is_syncing = False
        make_folder(self._pages)

    def open_file(self, now_ms: int) -> None:
        """Opens the next file with its warcinfo record."""
        path = self._pages / file_name(self._next_number, self._compressor.suffix)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._files.append(PageFile(self._next_number, path, descriptor))
        self._next_number += 1
        headers = [
            ("WARC-Record-ID", warc.new_id()), ("WARC-Date", warc.format_date(now_ms)), ("WARC-Filename", path.name),
            ("Content-Type", warc.FIELDS),
        ]
        self._append(self._compressor.compress(warc.encode_record("warcinfo", headers, self._about.block())), now_ms)

    def write_exchange(self, exchange: Exchange, now_ms: int) -> int:
        """Appends the records of an exchange that has ended, final unless it is for robots.txt; bytes of the answer."""
        if not exchange.has_answer:
            self.write_outcome(exchange.url, exchange.outcome, exchange.reason, exchange.started_at_ms, now_ms,
                               is_robots=exchange.is_robots, address=exchange.address, times_ms=exchange.times_ms)
            return 0
        request_id, block = warc.new_id(), exchange.response_block()
        shared = [
            ("WARC-Date", warc.format_date(exchange.started_at_ms)), ("WARC-Target-URI", exchange.url),
            ("WARC-IP-Address", exchange.address), *[("WARC-Protocol", "h2")] * exchange.is_http2,
            *[(warc.ROBOTS, warc.YES)] * exchange.is_robots,
        ]
        request = warc.encode_record("request", [
            ("WARC-Record-ID", request_id), *shared, ("Content-Type", warc.HTTP_REQUEST),
        ], exchange.request_block())
        response = warc.encode_record("response", [
            ("WARC-Record-ID", warc.new_id()), *shared, ("Content-Type", warc.HTTP_RESPONSE),
            ("WARC-Concurrent-To", request_id), ("WARC-Payload-Digest", warc.sha1_digest(exchange.body())),
            *[("WARC-Truncated", exchange.truncated)] * bool(exchange.truncated),
            *outcome_headers(exchange.outcome, exchange.reason, exchange.times_ms, not exchange.is_robots),
        ], block)
        self._write(self._compressor.compress(request) + self._compressor.compress(response), now_ms)
        return len(block)

    def write_outcome(self, url: str, outcome: str, reason: str, at_ms: int, now_ms: int, *, is_robots: bool = False,
                      address: str = "", times_ms: dict[str, int] | None = None) -> None:
        """Appends the record of a URL that got no answer."""
        headers = [
            ("WARC-Record-ID", warc.new_id()), ("WARC-Date", warc.format_date(at_ms)), ("WARC-Target-URI", url),
            *[("WARC-IP-Address", address)] * bool(address), *[(warc.ROBOTS, warc.YES)] * is_robots,
            ("Content-Type", warc.FIELDS), *outcome_headers(outcome, reason, times_ms or {}, not is_robots),
        ]
        block = f"outcome: {outcome}\r\nreason: {reason}\r\n".encode()
        self._write(self._compressor.compress(warc.encode_record("metadata", headers, block)), now_ms)

    def _write(self, data: bytes, now_ms: int) -> None:
        if not self._files or self._files[-1].is_full:
            self.open_file(now_ms)
        self._append(data, now_ms)
        self._files[-1].is_full = self._files[-1].size_bytes >= self._config.warc_file_max_bytes
        self._unsynced_pages += 1

    def _append(self, data: bytes, now_ms: int) -> None:
        file, left = self._files[-1], memoryview(data)
        if not self._is_dirty():
            self._unsynced_since_ms = now_ms
        try:
            while left:
                left = left[os.write(file.descriptor, left):]
        except OSError as error:
            try:
                os.ftruncate(file.descriptor, file.size_bytes)  # else the next attempt cuts the torn member
            except OSError:
                pass
            raise OSError(error.errno, error.strerror, str(file.path)) from None
        file.size_bytes += len(data)

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
        """In order, so that what `.aside-synced` names comes after all that it vouches for. Runs in a thread."""
        for file, size_bytes in sizes:
            os.fsync(file.descriptor)
            if not file.synced_bytes:
                sync_folder(self._pages)
            file.synced_bytes = size_bytes
        if sizes:
            file, size_bytes = sizes[-1]
            put(self._synced_path, encode_json({"format": FORMAT, "file": file.number, "bytes": size_bytes}))

    def _close_full(self) -> None:
        for file in self._files[:]:
            if file.is_full and file.synced_bytes == file.size_bytes:
                os.close(file.descriptor)
                self._files.remove(file)

    def close(self) -> None:
        for file in self._files:
            os.close(file.descriptor)
        self._files = []


def outcome_headers(outcome: str, reason: str, times_ms: dict[str, int], is_final: bool) -> list[tuple[str, str]]:
    return [
        *[(warc.FINAL, warc.YES)] * is_final, (warc.OUTCOME, outcome), *[(warc.REASON, reason)] * bool(reason),
        (warc.TIMES, warc.format_times(times_ms)),
    ]
