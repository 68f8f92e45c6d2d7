"""Reads what runs left for bin/status: live.json and the end of the journal.

Nothing depends on these files, and a crawl folder may hold anything under their names. Whatever is not as a run writes
it is ignored, with a note for the operator. The time to read them does not depend on the age of the crawl.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract import names
from storage.unsynced_files import read_end, read_start

LIVE_MAX_BYTES = 1 << 20
TAIL_MAX_BYTES = 4 << 20  # of the journal: about 10,000 attempts of stages, which take half a second to read
LINES_MAX = 20_000  # of it: shorter lines are not those of a run
NUMBER_MAX = 1 << 63
UNUSABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # what a value of the wrong type raises
JOURNAL_SUFFIX = ".jsonl"
STAGE_NUMBERS = ("cycle", "block", "attempt", "begin_ms", "end_ms", "exit_code")
STAGE_FIGURES = ("cpu_s", "memory_peak_bytes", "read_bytes", "written_bytes", "pages", "bytes")
CYCLE_NUMBERS = ("cycle", "block", "blocks", "attempt")
COUNTS = ("cycles", "answered", "failed", "refused", "not_reached", "bytes", "new")


@dataclass
class Live:
    """What the last run wrote about itself."""

    run: str
    command: str
    process_id: int
    began_at_ms: int
    written_at_ms: int
    ended_at_ms: int | None
    why: str
    sleeps_until_ms: int | None
    counts: dict[str, int]
    counts_committed: dict[str, int]
    rates: dict[str, float]
    cycles: list[dict]
    is_alive: bool = False  # its process exists, and has not said that the run ended


@dataclass
class Tail:
    """The newest lines of the journal, oldest first."""

    stages: list[dict] = field(default_factory=list)
    runs: list[dict] = field(default_factory=list)  # lines `begin` and `end`
    since_ms: int | None = None  # the journal is known from this moment on; none where it is empty
    notes: list[str] = field(default_factory=list)


def read_live(crawl: Path) -> tuple[Live | None, str]:
    """What live.json says, and a note where it cannot be used; neither where there is none."""
    path = crawl / names.LIVE
    try:
        content = read_start(path, LIVE_MAX_BYTES + 1)
        if len(content) > LIVE_MAX_BYTES:
            raise ValueError(f"more than {LIVE_MAX_BYTES} bytes")
        live = check_live(json.loads(content))
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"{path}: {error.strerror or error}; it is ignored"
    except UNUSABLE as error:
        return None, f"{path}: expected what a run writes there, found {str(error)[:100] or error!r}; it is ignored"
    return live, ""


def check_live(value: Any) -> Live:
    """One of UNUSABLE where a value is missing or of the wrong type."""
    ended_at_ms = value["ended_at_ms"]
    live = Live(
        run=text(value["run"]),
        command=known_command(value["command"]),
        process_id=whole(value["pid"]),
        began_at_ms=whole(value["began_at_ms"]),
        written_at_ms=whole(value["written_at_ms"]),
        ended_at_ms=None if ended_at_ms is None else whole(ended_at_ms),
        why=text(value["why"] or ""),
        sleeps_until_ms=None if value["sleeps_until_ms"] is None else whole(value["sleeps_until_ms"]),
        counts={name: whole(value["counts"][name]) for name in COUNTS},
        counts_committed={name: whole(value["counts_committed"][name]) for name in COUNTS},
        rates={name: real(value["rates"][name]) for name in ("pages_per_s", "bytes_per_s", "covers_s")},
        cycles=[check_cycle(cycle) for cycle in value["cycles"]],
    )
    ticks = value["pid_began_ticks"]
    live.is_alive = ended_at_ms is None and ticks is not None and began_ticks(live.process_id) == whole(ticks)
    return live


def check_cycle(value: Any) -> dict:
    began_at_ms, figures = value["stage_began_at_ms"], value["figures"]
    return {
        **{name: whole(value[name]) for name in CYCLE_NUMBERS},
        **{name: text(value[name]) for name in ("kind", "stage", "text")},
        "is_running": value["is_running"] is True,
        "stage_began_at_ms": None if began_at_ms is None else whole(began_at_ms),
        "memory_bytes": whole(value["memory_bytes"]),
        "share": None if value["share"] is None else real(value["share"]),
        "eta_s": None if value["eta_s"] is None else real(value["eta_s"]),
        "figures": {text(name): number for name, number in figures.items() if fits(number)},
    }


def began_ticks(process_id: int) -> int | None:
    """When a process began, in clock ticks since boot; none where there is no such process, or it is a zombie."""
    try:
        after_name = Path(f"/proc/{process_id}/stat").read_bytes().rpartition(b")")[2].split()
        return None if after_name[0] == b"Z" else int(after_name[19])  # fields 3 and 22 of proc(5)
    except (OSError, ValueError, IndexError):
        return None


def read_tail(crawl: Path, most_bytes: int = TAIL_MAX_BYTES) -> Tail:
    """The newest lines of the journal that fit into this many bytes."""
    folder, tail = crawl / names.JOURNAL, Tail()
    pieces: list[bytes] = []
    left = most_bytes
    try:
        numbers = names.numbered(folder, JOURNAL_SUFFIX)
    except OSError as error:
        return Tail(notes=[f"{folder}: {error.strerror or error}; the journal is ignored"])
    for number in reversed(numbers):
        path = folder / f"{number:08d}{JOURNAL_SUFFIX}"
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


def check_stage(value: Any) -> dict:
    stage = {name: whole(value[name], least=-255) for name in STAGE_NUMBERS}
    if stage["end_ms"] < stage["begin_ms"]:
        stage["end_ms"] = stage["begin_ms"]  # the clock was set back meanwhile
    figures = {name: None if value[name] is None else real(value[name]) for name in STAGE_FIGURES}
    return {**stage, **figures, "kind": text(value["kind"]), "stage": text(value["stage"]), "run": text(value["run"])}


def check_run(value: Any) -> dict:
    return {
        "event": text(value["event"]),
        "run": text(value["run"]),
        "command": text(value["command"]),
        "begin_ms": whole(value["begin_ms"]),
        "end_ms": None if value["end_ms"] is None else whole(value["end_ms"]),
        "why": None if value["why"] is None else text(value["why"]),
    }


def known_command(value: Any) -> str:
    """A command that makes runs: bin/status advises to run it."""
    if value not in names.RUN_COMMANDS:
        raise ValueError(f"{str(value)[:40]} where {', '.join(names.RUN_COMMANDS)} is expected")
    return text(value)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} where a text is expected")
    return value[:4_000]


def fits(value: Any) -> bool:
    """Whether a figure that a stage reported can be used; others may be of any type and size."""
    return type(value) is int and 0 <= value < NUMBER_MAX


def whole(value: Any, least: int = 0) -> int:
    return bounded(value, (int,), least)


def real(value: Any) -> float:
    return bounded(value, (int, float), 0)


def bounded(value: Any, kinds: tuple[type, ...], least: int) -> Any:
    if type(value) not in kinds or not least <= value < NUMBER_MAX:  # neither infinite nor NaN
        raise ValueError(f"{str(value)[:40]} where a number is expected")
    return value
