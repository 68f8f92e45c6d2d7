"""Reads what the present run, or the last one, left for bin/status: live.json.

Nothing depends on these files, and a crawl folder may hold anything under their names. Whatever is not as a run writes
it is ignored, with a note for the operator. The time to read them does not depend on the age of the crawl.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract import names
from contract.journal_tail import NUMBER_MAX, UNUSABLE, real, text, whole
from storage.unsynced_files import read_start

LIVE_MAX_BYTES = 1 << 20
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


def known_command(value: Any) -> str:
    """A command that makes runs: bin/status advises to run it."""
    if value not in names.RUN_COMMANDS:
        raise ValueError(f"{str(value)[:40]} where {', '.join(names.RUN_COMMANDS)} is expected")
    return text(value)


def fits(value: Any) -> bool:
    """Whether a figure that a stage reported can be used; others may be of any type and size."""
    return type(value) is int and 0 <= value < NUMBER_MAX
