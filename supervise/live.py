"""`live.json`: what the present run is doing, for bin/status; replaced every two seconds, never synced.

Losing it loses nothing. After a run that was killed it stays, so it names the process and the moment when that process
began: a reader can tell whether the run is alive.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

from storage.unsynced_files import replace_file
from supervise.flight_view import Views, count_all
from supervise.flights import Flights
from supervise.pace import Pace

VERSION = 1  # of the format of live.json
EVERY_S = 2.0


class Live:
    """Describes one run again and again; remembers what its rates need."""

    def __init__(self, run: str, command: str, process_id: int | None = None):
        self._about = {"version": VERSION, "run": run, "command": command, **describe_process(process_id)}
        self._views = Views()
        self._pace = Pace()

    def describe(
        self, flights: Flights, now_s: float, now_ms: int, memory_of: Callable[[int], int] = lambda process_id: 0
    ) -> dict:
        """`now_s` is a moment of time.monotonic(), `now_ms` the same in epoch milliseconds."""
        total = count_all(flights)
        self._pace.note(now_s, total.answered, total.bytes)
        pages_per_s, bytes_per_s = self._pace.per_s()
        rates = {"pages_per_s": pages_per_s, "bytes_per_s": bytes_per_s, "covers_s": self._pace.covers_s}
        return describe_live(flights, self._about, self._views, rates, now_s, now_ms, memory_of)


def describe_live(
    flights: Flights,
    about: dict,
    views: Views,
    rates: dict[str, float],
    now_s: float,
    now_ms: int,
    memory_of: Callable[[int], int],
) -> dict:
    """The content of live.json. `rates` are those of the last minute, or of the shorter time that `covers_s` gives."""
    seen = {view.cycle: view for view in views.look(flights, now_s)}
    cycles = []
    for flight in list(flights.flights.values()):
        view = seen.get(flight.plan.cycle)
        if view is None:
            continue
        cycles.append(
            {
                "cycle": flight.plan.cycle,
                "kind": flight.plan.kind,
                "block": flight.plan.block,
                "blocks": flight.plan.blocks,
                "stage": flight.stage,
                "is_running": flight.is_running,
                "attempt": flight.attempt,
                "stage_began_at_ms": now_ms - round((now_s - flight.stage_began) * 1000)
                if flight.stage_began
                else None,
                "figures": flight.figures,
                "memory_bytes": memory_of(flight.process_id) if flight.is_running and flight.process_id else 0,
                "share": None if view.share is None else round(view.share, 4),
                "eta_s": None if view.eta_s is None else round(view.eta_s, 1),
                "text": view.describe(),
            }
        )
    return {
        **about,
        "began_at_ms": flights.began_at_ms,
        "written_at_ms": now_ms,
        "cycles": cycles,
        "counts": vars(count_all(flights)),
        "counts_committed": vars(flights.counts),
        "sleeps_until_ms": flights.sleeps_until_ms,
        "rates": {name: round(value, 3) for name, value in rates.items()},
        "ended_at_ms": None,
        "why": None,
    }


def describe_end(live: dict, now_ms: int, why: str) -> dict:
    """The same at the end of the run."""
    return {**live, "written_at_ms": now_ms, "ended_at_ms": now_ms, "why": why}


def describe_process(process_id: int | None = None) -> dict:
    """The process of the run, and when it began, in clock ticks since boot: its number alone may be used again."""
    process_id = os.getpid() if process_id is None else process_id
    try:
        after_name = Path(f"/proc/{process_id}/stat").read_bytes().rpartition(b")")[2].split()
        return {"pid": process_id, "pid_began_ticks": int(after_name[19])}  # field 22 of proc(5)
    except (OSError, ValueError, IndexError):
        return {"pid": process_id, "pid_began_ticks": None}


def write_live(path: Path, live: dict) -> str:
    """Replaces the file; returns what is wrong, empty where nothing is. Never raises OSError."""
    try:
        replace_file(path, json.dumps(live).encode() + b"\n")
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return ""
