"""Retry-After (RFC 9110 10.2.3): how long a server asks to be left alone. No text makes it raise."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import ceil

STATUSES = (429, 503)
WAIT_MAX_S = 86_400  # a server that asks for more than a day gets a day
TEXT_MAX_CHARACTERS = 100  # a longer one is neither a date nor a sensible number

_SECONDS = re.compile(r"[0-9]+")


def read_wait_s(status: int, text: str, now_ms: int) -> int:
    """Seconds from `now_ms`; 0 where the answer does not ask for any."""
    if status not in STATUSES or not text or len(text) > TEXT_MAX_CHARACTERS:
        return 0
    if _SECONDS.fullmatch(text):
        return min(int(text), WAIT_MAX_S)
    try:
        moment = parsedate_to_datetime(text)
        # HTTP has no other zone than GMT (RFC 9110 5.6.7); without one, Python would take ours.
        wait_s = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now_ms / 1000
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0
    return max(0, min(ceil(wait_s), WAIT_MAX_S))
