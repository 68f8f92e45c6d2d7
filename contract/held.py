"""Held cycles: a run whose stage kept dying leaves a note with the reason; the next run tries the cycle again."""

from pathlib import Path

from contract import names
from storage.errors import Damaged, UnknownFormat
from storage.publish import FORMAT, encode_json, put, read_json


def note_held(crawl: Path, cycle: int, reason: str) -> None:
    put(crawl / names.cycle(cycle) / names.HELD, encode_json({"format": FORMAT, "cycle": cycle, "reason": reason}))


def read_held(crawl: Path, cycle: int) -> str:
    """The reason, empty where the cycle is not held or its note cannot be read."""
    path = crawl / names.cycle(cycle) / names.HELD
    try:
        return str(read_json(path).get("reason", "")) if path.is_file() else ""
    except (OSError, Damaged, UnknownFormat):
        return ""


def forget_held(crawl: Path, cycle: int) -> None:
    (crawl / names.cycle(cycle) / names.HELD).unlink(missing_ok=True)
