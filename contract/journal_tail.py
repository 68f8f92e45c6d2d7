"""The end of the journal: its newest lines, checked. Whatever is not as a run writes it is ignored, with a note.

A folder may hold anything under this name, and nothing depends on it. The time to read does not depend on its age.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract import names
from storage.unsynced_files import read_end

TAIL_MAX_BYTES = 4 << 20  # about 10,000 attempts of stages, which take half a second to read
LINES_MAX = 20_000  # of it: shorter lines are not those of a run
NUMBER_MAX = 1 << 63
TEXT_MAX = 4_000  # characters
UNUSABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # what a value of the wrong type raises
SUFFIX = ".jsonl"
STAGE_NUMBERS = ("cycle", "block", "attempt", "begin_ms", "end_ms", "exit_code")
STAGE_FIGURES = ("cpu_s", "memory_peak_bytes", "read_bytes", "written_bytes", "pages", "bytes")


@dataclass
class Tail:
    """The newest lines of the journal, oldest first."""

    stages: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)  # lines `begin` and `end`
    since_ms: int | None = None  # the journal is known from this moment on; none where it is empty
    notes: list[str] = field(default_factory=list)


def read_tail(crawl: Path, most_bytes: int = TAIL_MAX_BYTES) -> Tail:
    """The newest lines of the journal that fit into this many bytes."""
    folder, tail = crawl / names.JOURNAL, Tail()
    pieces: list[bytes] = []
    left = most_bytes
    try:
        numbers = names.numbered(folder, SUFFIX)
    except OSError as error:
        return Tail(notes=[f"{folder}: {error.strerror or error}; the journal is ignored"])
    for number in reversed(numbers):
        path = folder / f"{number:08d}{SUFFIX}"
        try:
            piece = read_end(path, left)
            is_cut = os.stat(path).st_size > len(piece)
        except OSError as error:
            tail.notes.append(f"{path}: {error.strerror or error}; it is ignored")
            continue
        pieces.append(piece.partition(b"\n")[2] if is_cut else piece)
        left -= len(piece)
        if left <= 0:
            break
    lines = [line for piece in reversed(pieces) for line in whole_lines(piece)]
    skipped = take_lines(lines[-LINES_MAX:], tail)
    if skipped:
        tail.notes.append(f"{folder}: {skipped} lines are not as a run writes them; they are ignored")
    moments = [line["begin_ms"] for line in (*tail.runs, *tail.stages)]
    tail.since_ms = min(moments, default=None)
    return tail


def whole_lines(content: bytes) -> list[bytes]:
    """The lines that are not empty, without the last one if it is still being written."""
    *lines, unfinished = content.split(b"\n")
    return [line for line in lines if line]


def take_lines(lines: list[bytes], tail: Tail) -> int:
    """Adds the lines to the tail; returns how many it ignored."""
    ignored = 0
    for line in lines:
        try:
            value = json.loads(line)
            if value["event"] == "stage":
                tail.stages.append(check_stage(value))
            else:
                tail.runs.append(check_run(value))
        except UNUSABLE:
            ignored += 1
    return ignored


def check_stage(value: Any) -> dict[str, Any]:
    stage = {name: whole(value[name], least=-255) for name in STAGE_NUMBERS}
    if stage["end_ms"] < stage["begin_ms"]:
        stage["end_ms"] = stage["begin_ms"]  # the clock was set back meanwhile
    figures = {name: None if value[name] is None else real(value[name]) for name in STAGE_FIGURES}
    return {**stage, **figures, "kind": text(value["kind"]), "stage": text(value["stage"]), "run": text(value["run"])}


def check_run(value: Any) -> dict[str, Any]:
    return {
        "event": text(value["event"]),
        "run": text(value["run"]),
        "command": text(value["command"]),
        "begin_ms": whole(value["begin_ms"]),
        "end_ms": None if value["end_ms"] is None else whole(value["end_ms"]),
        "why": None if value["why"] is None else text(value["why"]),
    }


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} where a text is expected")
    return value[:TEXT_MAX]


def whole(value: Any, least: int = 0) -> int:
    number: int = bounded(value, (int,), least)
    return number


def real(value: Any) -> float:
    number: float = bounded(value, (int, float), 0)
    return number


def bounded(value: Any, kinds: tuple[type, ...], least: int) -> Any:
    if type(value) not in kinds or not least <= value < NUMBER_MAX:  # neither infinite nor NaN
        raise ValueError(f"{str(value)[:40]} where a number is expected")
    return value
