"""How a stage runs: under the crawl's lock, ending with its supervisor, reporting its progress.

A supervisor passes three descriptors by environment variables: the lock (every process that inherits it holds it, so
that an orphan keeps the crawl locked while it lives), a pipe that ends when the supervisor dies (the stage then
stops), and a pipe for progress, one JSON object per line.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from contract import names
from contract.errors import BadInput, Usage
from storage.publish import ASIDE, describe, is_published, read_manifest, verify

ALIVE_VARIABLE = "COLETOR_ALIVE"
PROGRESS_VARIABLE = "COLETOR_PROGRESS"
OTHERS_PASS_VARIABLE = "COLETOR_OTHERS_PASS"  # set for a fetcher that died before in this run, and others passed since
SHARES_VARIABLE = "COLETOR_SHARES"  # how many fetchers of the crawl may run at the same time; each gets its share
ORPHAN_GRACE_S = 30.0


class Progress:
    """Reports the progress of a stage to its supervisor, or on standard error; at most twice per second."""

    def __init__(self, stage: str):
        self._stage = stage
        descriptor = os.environ.get(PROGRESS_VARIABLE, "")
        self._pipe = int(descriptor) if descriptor.isdigit() else None
        # A supervisor gets the first report at once: it shows that the stage is at work.
        self._reported_at = time.monotonic() if self._pipe is None else 0.0
        self._interval_s = 0.5 if self._pipe is not None or (sys.stderr is not None and sys.stderr.isatty()) else 10.0

    def is_due(self) -> bool:
        return time.monotonic() - self._reported_at >= self._interval_s

    def report(self, **figures: object) -> None:
        self._reported_at = time.monotonic()
        if self._pipe is None:
            plain = " ".join(f"{name}={value}" for name, value in figures.items())
            print(f"{self._stage}: {plain}", file=sys.stderr, flush=True)
            return
        try:
            os.write(self._pipe, json.dumps({"stage": self._stage, **figures}).encode() + b"\n")
        except OSError:
            self._pipe = None  # the supervisor has closed its end


def live_with_supervisor() -> None:
    """Ends this process when its supervisor dies: by SIGTERM, and after a grace period by force."""
    descriptor = os.environ.get(ALIVE_VARIABLE, "")
    if not descriptor.isdigit():
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the supervisor stops its stages in order

    def watch() -> None:
        try:
            os.read(int(descriptor), 1)
        except OSError:
            return
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_GRACE_S)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def fetchers_at_once() -> int:
    """How many fetchers of the crawl the supervisor may run at the same time; 1 without a supervisor."""
    shares = os.environ.get(SHARES_VARIABLE, "")
    return max(1, int(shares)) if shares.isdigit() else 1


def expect_ours(folder: Path, ours: Collection[str] = ()) -> None:
    """Usage unless the folder is new, empty, or left by an unfinished run of the stage: other files would be lost."""
    if is_published(folder):
        raise Usage(f"{folder} is finished already (it has {names.MANIFEST}): name another folder, or remove it")
    if folder.exists() and not folder.is_dir():
        raise Usage(f"{folder} is no folder")
    others = [path.name for path in folder.glob("*") if path.name not in ours and not path.name.startswith(ASIDE)]
    if others:
        raise Usage(f"{folder} holds other files ({others[0]}): name an empty or a new folder")


def open_inputs(folder: Path) -> dict[str, Any]:
    """The manifest of a stage's folder, after a check of each of its files; Damaged or BadInput where one fails."""
    manifest = read_input_manifest(folder)
    for name, description in manifest["files"].items():
        verify(folder / name, description)
    return manifest


def read_input_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a stage's folder, which names only files inside it; the files are not checked."""
    try:
        return read_manifest(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(
            f"{folder} has no {names.MANIFEST}: that stage has not finished, run it first "
            "(if its cycle is committed: bin/status says what is damaged)"
        ) from None


def describe_inputs(folder: Path, root: Path) -> dict[str, Any]:
    """What a manifest records about an input: the manifest of that input, which in turn names its files."""
    path = folder / names.MANIFEST
    return {path.relative_to(root).as_posix(): describe(path)}
