"""The journal: what runs did and when, one JSON object per line in `journal/NNNNNNNN.jsonl`, readable by DuckDB.

It stands beside the reproducible files and decides nothing: losing it loses nothing. So no line is synced, and a line
that cannot be written is lost; the first such error is reported. Every line has all keys of FIELDS, null where a key
does not apply. docs/formats.md describes them.
"""

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from contract import names
from contract.journal_tail import SUFFIX
from contract.plan import Plan
from contract.terminal import make_plain
from storage.unsynced_files import append_line

FILE_MAX_BYTES = 16 << 20  # a longer file is followed by the next one
FILES_KEPT = 64
NOT_OURS = (errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENXIO)  # a folder, a link or a pipe has the file's name
NAMES_TRIED = 4  # one after the other, where such a thing has a name
WHY_MAX = 2_000  # characters of the text of a line: it must stay below storage.unsynced_files.LINE_MAX_BYTES
FIELDS = (
    "event",
    "run",
    "command",
    "cycle",
    "kind",
    "stage",
    "block",
    "attempt",
    "begin_ms",
    "end_ms",
    "exit_code",
    "cpu_s",
    "memory_peak_bytes",
    "read_bytes",
    "written_bytes",
    "pages",
    "bytes",
    "why",
)


def read_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Journal:
    """The lines of one run. REQUIRES: the run holds the crawl's lock."""

    def __init__(
        self,
        crawl: Path,
        run: str,
        command: str,
        clock: Callable[[], int] = read_clock_ms,
        on_trouble: Callable[[str], None] = lambda text: None,
    ):
        self._folder = crawl / names.JOURNAL
        self._about = {"run": run, "command": command}
        self._clock = clock  # epoch milliseconds
        self.on_trouble = on_trouble  # called once, with the first error
        self._is_troubled = False
        self._began_at_ms = clock()
        self._number: int | None = None  # of the present file, once known

    def begin(self) -> None:
        self._began_at_ms = self._clock()
        self._append(event="begin", begin_ms=self._began_at_ms)

    def stage(
        self,
        plan: Plan,
        stage: str,
        attempt: int,
        begin_ms: int,
        end_ms: int,
        exit_code: int,
        cpu_s: float | None = None,
        memory_peak_bytes: int | None = None,
        read_bytes: int | None = None,
        written_bytes: int | None = None,
        pages: int | None = None,
        bytes: int | None = None,
    ) -> None:
        """One attempt of a stage has ended."""
        self._append(
            event="stage",
            cycle=plan.cycle,
            kind=plan.kind,
            stage=stage,
            block=plan.block,
            attempt=attempt,
            begin_ms=begin_ms,
            end_ms=end_ms,
            exit_code=exit_code,
            cpu_s=None if cpu_s is None else round(cpu_s, 6),
            memory_peak_bytes=memory_peak_bytes,
            read_bytes=read_bytes,
            written_bytes=written_bytes,
            pages=pages,
            bytes=bytes,
        )

    def end(self, why: str) -> None:
        self._append(event="end", begin_ms=self._began_at_ms, end_ms=self._clock(), why=make_plain(why)[:WHY_MAX])

    def _append(self, **facts: object) -> None:
        line = json.dumps({**dict.fromkeys(FIELDS), **self._about, **facts}).encode() + b"\n"
        try:
            self._write(line)
        except OSError as error:
            if not self._is_troubled:
                self._is_troubled = True
                self.on_trouble(
                    f"{self._folder}: {error.strerror or error}; lines of the journal are lost, the crawl goes on"
                )

    def _write(self, line: bytes) -> None:
        if self._number is None:
            self._folder.mkdir(exist_ok=True)
            self._number = max(names.numbered(self._folder, SUFFIX), default=0)
        for tried in range(1, NAMES_TRIED + 1):
            try:
                size_bytes = append_line(self._path(self._number), line)
                break
            except FileNotFoundError:  # somebody removed the folder
                if tried == NAMES_TRIED:
                    raise
                self._folder.mkdir(exist_ok=True)
            except OSError as error:
                if error.errno not in NOT_OURS or tried == NAMES_TRIED:
                    raise
                self._number += 1
        if size_bytes > FILE_MAX_BYTES:
            self._number += 1
            self._delete_old()

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}{SUFFIX}"

    def _delete_old(self) -> None:
        for number in names.numbered(self._folder, SUFFIX)[:-FILES_KEPT]:
            try:
                os.unlink(self._path(number))
            except OSError:
                continue  # a folder, or a name with other digits
