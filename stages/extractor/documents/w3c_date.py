"""Dates as sitemaps write them (W3C, Date and Time Formats, 1997): from a year alone up to a time with its zone."""

import re
from datetime import UTC, datetime, timedelta

SECONDS_MAX = 0xFFFF_FFFF  # of a column of u32: the year 2106
TEXT_MAX_CHARACTERS = 64
_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.[0-9]{1,9})?)?"
    r" ?(?P<zone>[Zz]|(?P<sign>[+-])(?P<ahead_h>[0-9]{2}):?(?P<ahead_min>[0-9]{2}))?)?)?)?"
)


def read_w3c_date(text: str) -> int:
    """Its first second, since 1970; 0 where it is no date, or none that a u32 holds. No zone counts as UTC."""
    found = _DATE.fullmatch(text) if len(text) <= TEXT_MAX_CHARACTERS else None
    if found is None:
        return 0
    year, month, day, hour, minute, second = (
        int(found[name] or least)
        for name, least in (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))
    )
    ahead = timedelta(hours=int(found["ahead_h"] or 0), minutes=int(found["ahead_min"] or 0))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        seconds = int((moment + (ahead if found["sign"] == "-" else -ahead)).timestamp())
    except (ValueError, OverflowError):
        return 0
    return seconds if 0 < seconds <= SECONDS_MAX else 0
