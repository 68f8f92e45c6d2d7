"""Numbers for people: counts with a noun, sizes, durations, and moments with a time zone."""

from datetime import datetime, timedelta

UNITS_OF_TIME = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 page`, `2 pages`, `12,345 pages`; give the plural where it is not the noun plus s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(number_bytes: float) -> str:
    """`600 B`, `5.2 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if number_bytes < (1000 if unit == "B" else 999.95):  # a larger number would be printed as 1000.0
            return f"{number_bytes:.0f} {unit}" if unit == "B" else f"{number_bytes:.1f} {unit}"
        number_bytes /= 1000
    return f"{number_bytes:,.1f} TB"


def duration(seconds: float) -> str:
    """`0.25 s`, `38 s`, `1 min 38 s`, `1 h 38 min`, `3 d 4 h`: the two largest units."""
    if seconds < 9.995:
        return f"{round(seconds, 2):g} s"
    left = round(seconds)
    parts: list[str] = []
    for unit, length in UNITS_OF_TIME:
        if left >= length or parts:
            parts.append(f"{left // length} {unit}")
            left %= length
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def moment(at_ms: int) -> str:
    """`2026-11-18 00:22:16 UTC` or, with the offset of the local time zone, `2026-11-17 21:22:16 -03:00`."""
    try:
        at = datetime.fromtimestamp(at_ms / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
    offset = f"{at:%z}"
    return f"{at:%Y-%m-%d %H:%M:%S} " + ("UTC" if at.utcoffset() == timedelta() else f"{offset[:3]}:{offset[3:5]}")
