"""Repositorio_de_Paginas: WARC files that grow by whole exchanges and rotate at a size; threads write and sync them.

Records are queued as exchanges end, then compressed and written together, in their order. An exchange is a request
record followed by a response record, or one metadata record where no answer came. The mark `.aside-synced-NNNNN` says
up to which length the records are safe: resume.py trusts them up to there, and cuts what is torn after it. Several
processes may write into one folder, each its own files with its own mark.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import trio

from contract import names, warc
from contract.config import Fetcher
from stages.fetcher.exchange import Exchange
from stages.fetcher.records import Draft, encode_exchanges, encode_outcome
from stages.fetcher.revisit import Revisit
from storage.errors import naming
from storage.frames import AT_ONCE_BYTES, Gzip, Zstd
from storage.publish import ASIDE, FORMAT, encode_json, make_folder, put, sync_folder

SYNCED = f"{ASIDE}synced-"  # followed by the number of the first file that the mark covers
BATCH_MAX = 512  # exchanges that are written together ...
BATCH_MAX_BYTES = (
    8 << 20
)  # ... or bodies of this size: while they are written they are in memory, mapped and compressed
MARK_EVERY_MS = 1_000  # a mark takes three syncs of small files, so not every sync of pages writes one
JOINED_MAX_BYTES = 4 << 20  # members up to this are written in one call; larger ones would have to be copied


def file_name(number: int, suffix: str) -> str:
    return f"{number:05d}.warc{suffix}"


def mark_name(first_number: int) -> str:
    return f"{SYNCED}{first_number:05d}"


@dataclass(frozen=True)
class About:
    """What the warcinfo record of every file says."""

    software: str
    part_of: str  # crawl id and cycle, or the list's name
    attempt: int  # runs on this folder so far, this one included
    config: Fetcher

    def block(self) -> bytes:
        fields = {
            "software": self.software,
            "format": "WARC File Format 1.1",
            "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "isPartOf": self.part_of,
            "attempt": self.attempt,
            "robots": "obey",
            "config": json.dumps(asdict(self.config), sort_keys=True),
        }
        lines = (f"{name}: {value}".encode("utf-8", "backslashreplace") for name, value in fields.items())
        return b"".join(b" ".join(line.splitlines()) + b"\r\n" for line in lines)  # a list's name may contain anything


@dataclass
class PageFile:
    number: int
    path: Path
    descriptor: int
    size_bytes: int = 0
    synced_bytes: int = 0
    is_full: bool = False


class Repository:
    """Writes the files first_number, first_number + step, ... of a folder; other processes may write those between."""

    def __init__(
        self,
        folder: Path,
        first_number: int,
        about: About,
        step: int = 1,
        dictionary: bytes | None = None,
        on_written: Callable[[list[Draft]], None] = lambda drafts: None,
    ):
        self._pages = folder / names.PAGES
        self._mark_path = folder / mark_name(first_number)
        self._mark: dict[str, int] = {}  # bytes that are synced, of all files
        self._about = about
        self._config = about.config
        self._compressor = Gzip() if about.config.warc_compression == "gzip" else Zstd(dictionary=dictionary)
        self._on_written = on_written
        self._next_number = first_number
        self._step = step
        self._files: list[PageFile] = []  # those not yet synced and closed; the last one is written to
        self._unsynced_pages = 0
        self._unsynced_since_ms = 0
        self._marked_at_ms = 0
        self._queue: list[Draft | list[tuple]] = []  # exchanges and encoded records, in order
        self._pen, self._turn = trio.Lock(), trio.Lock()
        self._writers, self._syncers = trio.CapacityLimiter(1), trio.CapacityLimiter(1)  # a thread each
        self._is_writing = False
        self._is_syncing = False
        make_folder(self._pages)

    def open_file(self, now_ms: int) -> None:
        """Opens the next file: its dictionary, where there is one, and its warcinfo record."""
        path = self._pages / file_name(self._next_number, self._compressor.suffix)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._files.append(PageFile(self._next_number, path, descriptor))
        self._next_number += self._step
        headers = [
            ("WARC-Record-ID", warc.new_id()),
            ("WARC-Date", warc.format_date(now_ms)),
            ("WARC-Filename", path.name),
            ("Content-Type", warc.FIELDS),
        ]
        record = self._compressor.compress(warc.encode_record("warcinfo", headers, self._about.block()))
        self._append_to_last([self._compressor.opening + record], now_ms)

    def write_exchange(self, exchange: Exchange, *, is_final: bool, earlier: Revisit | None = None) -> int:
        """Queues the records of an exchange that has ended; its body is released when they are written. Returns the
        bytes of the answer."""
        self._queue.append(Draft(exchange, is_final, earlier))
        return len(exchange.response_head()) + exchange.body.size_bytes if exchange.has_answer else 0

    def write_outcome(
        self,
        url: str,
        outcome: str,
        reason: str,
        at_ms: int,
        *,
        is_final: bool,
        robots_for: str = "",
        message: str = "",
    ) -> None:
        """Queues the record of a URL that was not asked for."""
        self._queue.append(encode_outcome(url, outcome, reason, at_ms, is_final, robots_for, message=message))

    @property
    def queued(self) -> int:
        return len(self._queue)

    @property
    def may_write(self) -> bool:
        return bool(self._queue) and not self._is_writing

    async def write(self, now_ms: int) -> None:
        """Writes what is queued. Digests are computed here; compression, which frees the interpreter, in a thread."""
        self._is_writing = True
        async with self._pen:
            while self._queue:
                batch = self._take_batch()
                drafts = [entry for entry in batch if isinstance(entry, Draft)]
                encoded = iter(encode_exchanges(drafts))
                exchanges = [next(encoded) if isinstance(entry, Draft) else entry for entry in batch]
                await trio.to_thread.run_sync(self._append_batch, exchanges, now_ms, limiter=self._writers)
                self._unsynced_pages += len(batch)
                for draft in drafts:
                    draft.exchange.body.release()
                self._on_written(drafts)
        self._is_writing = False

    def _take_batch(self) -> list[Draft | list[tuple]]:
        count = size_bytes = 0
        while count < min(BATCH_MAX, len(self._queue)) and size_bytes < BATCH_MAX_BYTES:
            entry = self._queue[count]
            size_bytes += entry.exchange.body.size_bytes if isinstance(entry, Draft) else 0
            count += 1
        batch, self._queue = self._queue[:count], self._queue[count:]
        return batch

    def _append_batch(self, exchanges: list[list[tuple]], now_ms: int) -> None:
        """Appends the records of exchanges, given as their pieces. Runs in a thread."""
        whole = [b"".join(pieces) if is_small(pieces) else None for records in exchanges for pieces in records]
        frames = iter(self._compressor.compress_each([record for record in whole if record is not None]))
        waiting, waiting_bytes = [], 0
        for records in exchanges:
            for pieces in records:
                waiting.append(next(frames) if is_small(pieces) else self._compressor.compress(*pieces))
                waiting_bytes += len(waiting[-1])
            if waiting_bytes >= self._room_bytes:
                self._append(waiting, now_ms)
                waiting, waiting_bytes = [], 0
        self._append(waiting, now_ms)

    @property
    def _room_bytes(self) -> int:
        """Bytes up to the size at which the file is closed."""
        file = self._files[-1] if self._files and not self._files[-1].is_full else None
        return self._config.warc_file_max_bytes - (file.size_bytes if file else 0)

    def _append(self, members: list[bytes], now_ms: int) -> None:
        if not members:
            return
        if not self._files or self._files[-1].is_full:
            self.open_file(now_ms)
        self._append_to_last(members, now_ms)
        self._files[-1].is_full = self._files[-1].size_bytes >= self._config.warc_file_max_bytes

    def _append_to_last(self, members: list[bytes], now_ms: int) -> None:
        file, size = self._files[-1], sum(map(len, members))
        if not self._is_dirty():
            self._unsynced_since_ms = now_ms
        try:
            for data in members if size > JOINED_MAX_BYTES else [b"".join(members)]:
                left = memoryview(data)
                while left:
                    left = left[os.write(file.descriptor, left) :]
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
        """Seconds until the next sync is due (0 or less: now); None where there is nothing to do or one is running."""
        if self._is_syncing or not self._is_dirty():
            return None
        if self._unsynced_pages >= self._config.sync_every_pages:
            return 0.0
        return self._config.sync_every_s - (now_ms - self._unsynced_since_ms) / 1000

    async def sync(self, now_ms: int, *, is_last: bool = False) -> None:
        """Makes durable what has been written so far. The mark may lag: it promises that all before it is whole."""
        self._is_syncing = True
        is_marked = is_last or now_ms - self._marked_at_ms >= MARK_EVERY_MS
        async with self._turn:
            pages = self._unsynced_pages
            sizes = [(file, file.size_bytes) for file in self._files]
            await trio.to_thread.run_sync(self._sync_files, sizes, is_marked, limiter=self._syncers)
            self._close_full()
            self._unsynced_pages -= pages
            self._unsynced_since_ms = now_ms
            if is_marked:
                self._marked_at_ms = now_ms
        self._is_syncing = False

    def _sync_files(self, sizes: list[tuple[PageFile, int]], is_marked: bool) -> None:
        """Syncs the files first, then the mark that covers them. Runs in a thread."""
        for file, size_bytes in sizes:
            with naming(file.path):
                os.fdatasync(file.descriptor)
            if not file.synced_bytes:
                sync_folder(self._pages)
            file.synced_bytes = size_bytes
            self._mark[f"{file.number:05d}"] = size_bytes
        if sizes and is_marked:
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


def is_small(pieces: tuple) -> bool:
    return sum(map(len, pieces)) <= AT_ONCE_BYTES
