"""The message log: `messages.log` in the crawl folder, one line per event of a run, rotated by size.

A line is: time (ISO 8601, UTC), level, cycle or -, stage or -, text. Nothing depends on the file. It is never synced; a
line that cannot be written is lost.
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from contract import names
from contract.config import Config
from contract.terminal import make_plain
from storage.unsynced_files import append_line
from supervise.events import INFO, WARNING, describe_event, describe_kept_keys

FILE_MAX_BYTES = 10 << 20
FILES_KEPT = 5  # messages.log, messages.log.1 (the newest of the older ones) and so on
TEXT_MAX = 4_000  # characters: a line must stay below storage.unsynced_files.LINE_MAX_BYTES
NONE = "-"


class Messages:
    """The message log of one crawl. REQUIRES: the run holds the crawl's lock."""

    def __init__(self, crawl: Path, config: Config | None = None, clock: Callable[[], float] = time.time):
        self._path = crawl / names.MESSAGES
        self._config = config  # of this run; resumed cycles are compared with it
        self._clock = clock  # epoch seconds
        self._slept = ""  # the last text of a sleep, which is reported again and again while it lasts

    def report(self, event: str, **facts) -> None:
        level, text = describe_event(event, facts)
        if event == "sleep" and text == self._slept:
            return
        self._slept = text if event == "sleep" else ""
        plan, stage = facts.get("plan"), facts.get("stage", "")
        cycle = None if plan is None else plan.cycle
        self.line(text, level, cycle, stage)
        if event == "resume" and self._config is not None:
            for kept in describe_kept_keys(plan, self._config):
                self.line(kept, INFO, cycle)

    def line(self, text: str, level: str = WARNING, cycle: int | None = None, stage: str = "") -> None:
        """A line that is no event, such as one of a stage's standard error: as with the display, it is a warning."""
        at = datetime.fromtimestamp(self._clock(), UTC)
        where = f"{NONE if cycle is None else cycle} {stage or NONE}"
        plain = make_plain(text)[:TEXT_MAX]
        line = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z {level} {where} {plain}\n"
        try:
            if append_line(self._path, line.encode()) > FILE_MAX_BYTES:
                self._rotate()
        except OSError:
            pass  # the line is lost: a full disk stops stages, which report it on standard error

    def _rotate(self) -> None:
        for number in range(FILES_KEPT - 1, 0, -1):
            older = self._path.with_name(f"{names.MESSAGES}.{number}")
            newer = self._path.with_name(f"{names.MESSAGES}.{number - 1}") if number > 1 else self._path
            try:
                os.replace(newer, older)
            except OSError:  # there is none yet, or a folder has the older one's name
                if newer == self._path:
                    os.unlink(newer)  # the bound on size holds in any case
