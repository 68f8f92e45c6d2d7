"""How a stage is run: under the crawl's lock, bound to its supervisor's life, telling its progress.

A supervisor passes three descriptors by environment variables: the lock (held by everyone who inherits it, so
that an orphan keeps the crawl locked while it lives), a pipe that ends when the supervisor dies (the stage then
stops), and a pipe for progress, one JSON object a line.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Collection
from pathlib import Path

from contract import names
from contract.errors import BadInput, Usage
from storage.publish import ASIDE, describe, is_published, read_manifest, verify

ALIVE_VARIABLE = "COLETOR_ALIVE"
PROGRESS_VARIABLE = "COLETOR_PROGRESS"
OTHERS_PASS_VARIABLE = "COLETOR_OTHERS_PASS"  # set for a fetcher that died before in this run, and others passed since
ORPHAN_GRACE_S = 30.0


class Progress:
    """Tells a supervisor, or a person at standard error, how far a stage is; at most twice a second."""

    def __init__(self, stage: str):
        self._stage = stage
        descriptor = os.environ.get(PROGRESS_VARIABLE, "")
        self._pipe = int(descriptor) if descriptor.isdigit() else None
        self._told_at = (
            time.monotonic() if self._pipe is None else 0.0
        )  # a supervisor shows at once that a stage is at work
        self._interval_s = 0.5 if self._pipe is not None or (sys.stderr is not None and sys.stderr.isatty()) else 10.0

    def is_due(self) -> bool:
        return time.monotonic() - self._told_at >= self._interval_s

    def tell(self, **figures) -> None:
        self._told_at = time.monotonic()
        if self._pipe is None:
            plain = " ".join(f"{name}={value}" for name, value in figures.items())
            print(f"{self._stage}: {plain}", file=sys.stderr, flush=True)
            return
        try:
            os.write(self._pipe, json.dumps({"stage": self._stage, **figures}).encode() + b"\n")
        except OSError:
            self._pipe = None  # nobody listens any more


def live_with_supervisor() -> None:
    """Ends this process, by SIGTERM and then at once, when the supervisor that started it is gone."""
    descriptor = os.environ.get(ALIVE_VARIABLE, "")
    if not descriptor.isdigit():
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C goes to the supervisor, which stops its stages in order

    def watch():
        try:
            os.read(int(descriptor), 1)
        except OSError:
            return
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_GRACE_S)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def expect_ours(folder: Path, ours: Collection[str] = ()) -> None:
    """Usage unless the folder is new, empty or holds only what an unfinished run of the stage left: the rest would be lost."""
    if is_published(folder):
        raise Usage(f"{folder} is finished already ({names.MANIFEST} is there): name another folder, or remove it")
    if folder.exists() and not folder.is_dir():
        raise Usage(f"{folder} is no folder")
    others = [path.name for path in folder.glob("*") if path.name not in ours and not path.name.startswith(ASIDE)]
    if others:
        raise Usage(f"{folder} holds other files ({others[0]}): name an empty or a new folder")


def open_inputs(folder: Path) -> dict:
    """The manifest of a stage's folder, each of its files checked; Damaged or BadInput where it is not whole."""
    manifest = read_input_manifest(folder)
    for name, description in manifest["files"].items():
        verify(folder / name, description)
    return manifest


def read_input_manifest(folder: Path) -> dict:
    """The manifest of a stage's folder, which names only files inside it; the files are not yet checked."""
    try:
        return read_manifest(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(
            f"{folder} has no {names.MANIFEST}: that stage has not finished, run it first (committed: bin/status tells)"
        ) from None


def describe_inputs(folder: Path, root: Path) -> dict:
    """What a manifest records of an input: its own manifest, which in turn names the files."""
    path = folder / names.MANIFEST
    return {path.relative_to(root).as_posix(): describe(path)}
