"""The folder of an export: parts that are whole or absent, and a manifest that is created last.

Each part is written aside, synced and renamed; then a note says that it is whole. The first file, the request, fixes
the options and the length of the log. So the same command continues an export that was killed, and the result is that
of an export that was not, also where the crawl has grown meanwhile.
"""

import fcntl
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from contract.errors import Locked, Usage
from contract.units import count
from storage.errors import Damaged, UnknownFormat, naming
from storage.publish import (
    ASIDE,
    FORMAT,
    encode_json,
    is_published,
    make_folder,
    publishing,
    put,
    put_if_absent,
    read_json,
    read_manifest,
    sync_file,
)

LOCK = f"{ASIDE}lock"
REQUEST = f"{ASIDE}request.json"
NOTE = f"{ASIDE}note-"
WRITTEN = f"{ASIDE}written-"
ARCHIVE = f"{ASIDE}archive-"  # files that go into another one when all are written


class ExportFolder:
    """`request` is what fixes the result; `log_length` in it is that of the first run of the same request."""

    def __init__(self, path: Path, request: dict[str, Any]):
        self.path = path
        self.is_whole = False
        wanted = json.loads(json.dumps(request))
        if is_published(path):
            found = read_manifest(path).get("export")
            self.is_whole = isinstance(found, dict) and same_request(found, wanted)
            if not self.is_whole:
                raise Usage(f"{path} holds an export of other options, or something else: name a new folder")
            self.request: dict[str, Any] = found
            self.remove_asides()
            return
        if path.exists() and (not path.is_dir() or not (path / REQUEST).exists() and has_others(path)):
            raise Usage(f"{path} is there and is no unfinished export: name a new folder")
        make_folder(path)
        self._lock = open(path / LOCK, "a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(f"{path}: another export works here; try again when it has ended") from None
        put_if_absent(path / REQUEST, encode_json({"format": FORMAT, **wanted}))
        self.request = {name: value for name, value in read_json(path / REQUEST).items() if name != "format"}
        if not same_request(self.request, wanted):
            raise Usage(f"{path} holds an unfinished export of other options: repeat those, or remove the folder")

    def note(self, part: str) -> dict[str, Any] | None:
        """What was noted of a part that is whole."""
        path = self.path / f"{NOTE}{part}.json"
        return read_json(path)["note"] if path.exists() else None

    def is_done(self, part: str) -> bool:
        """Whether it need not be written again; what was missing may have been restored."""
        note = self.note(part)
        return note is not None and not note["missing"]

    def remove(self, part: str) -> None:
        """Removes what an earlier attempt has written of it."""
        for begin in ("", WRITTEN, ARCHIVE):
            for path in self.path.glob(f"{begin}{part}.*"):
                path.unlink()

    def finish(self, part: str, note: dict[str, Any]) -> None:
        put(self.path / f"{NOTE}{part}.json", encode_json({"format": FORMAT, "note": note}))

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """A file that gets its name when it is whole; one without content gets none."""
        aside = self.path / f"{WRITTEN}{name}"
        with naming(aside), open(aside, "wb") as file:
            yield file
            file.flush()
            is_empty = not file.tell()
        if is_empty:
            aside.unlink()
            return
        sync_file(aside)
        aside.rename(self.path / name)

    def publish(self, parts: list[str], about: dict[str, Any]) -> dict[str, Any]:
        """Adds up the notes and creates the manifest; returns it."""
        notes = [note for part in parts if (note := self.note(part)) is not None]
        counts: Counter[str] = Counter()
        for note in notes:
            counts.update(note["counts"])
        missing = [problem for note in notes for problem in note["missing"]]
        with publishing(self.path, resume=True) as manifest:
            manifest |= {"export": self.request, **about, "counts": dict(counts), "missing": missing}
            manifest |= {"is_partial": bool(missing)}
        self.remove_asides()
        return read_manifest(self.path)

    def restart(self, log_length: int) -> None:
        """Forgets all parts; the request is that of a longer log."""
        self.request["log_length"] = log_length
        for path in self.path.iterdir():
            if path.name not in (REQUEST, LOCK) and is_ours(path):
                path.unlink()
        put(self.path / REQUEST, encode_json({"format": FORMAT, **self.request}))

    def remove_asides(self) -> None:
        for path in self.path.iterdir():
            if path.name.startswith(ASIDE) and path.is_file():
                path.unlink()


def is_ours(path: Path) -> bool:
    """Whether an unfinished export has written this file: a part, or something aside."""
    return path.is_file() and (path.name.startswith(ASIDE) or path.name.partition(".")[0].isdecimal())


def has_others(path: Path) -> bool:
    return any(not found.name.startswith(ASIDE) for found in path.iterdir())


def same_request(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one.get(name) == other.get(name) for name in {*one, *other} - {"log_length"})


class Problems:
    """What is missing or damaged: an error, or with --allow-partial a line in the manifest."""

    def __init__(self, crawl: Path, allow_partial: bool):
        self._crawl, self._allow_partial = crawl, allow_partial
        self.found: list[str] = []

    @contextmanager
    def noting(self) -> Iterator[None]:
        try:
            with expecting_files():
                yield
        except (Damaged, UnknownFormat) as error:
            if not self._allow_partial:
                raise
            self.found.append(str(error).removeprefix(f"{self._crawl}/"))


@contextmanager
def expecting_files() -> Iterator[None]:
    try:
        yield
    except IsADirectoryError as error:  # a damaged table may name a folder
        raise Damaged(error.filename, "expected a file, found a folder") from None


class Progress:
    """How far the export is, on a terminal only."""

    def __init__(self, total: int, noun: str, stream: TextIO = sys.stderr):
        self._total, self._noun, self._stream = total, noun, stream
        self._is_shown = stream is not None and stream.isatty()

    def show(self, done: int) -> None:
        if self._is_shown:
            width = (os.get_terminal_size(self._stream.fileno()).columns or 80) - 1
            line = f"export: {done:,} of {count(self._total, self._noun)}"
            print("\r" + line[:width].ljust(width), end="", file=self._stream, flush=True)

    def end(self) -> None:
        if self._is_shown:
            print(file=self._stream)
