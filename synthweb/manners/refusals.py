"""Answers that ask to come back later, with a Retry-After of every kind (RFC 9110, section 10.2.3)."""

import time
from email.utils import formatdate

from synthweb.line import Line, Request
from synthweb.manners.register import STAYS, manner, page

STATUSES = {"429": "429 Too Many Requests", "503": "503 Service Unavailable"}
VALUES = {
    "seconds": "1",
    "garbage": "soon",
    "negative": "-5",
    "huge": str(10**30),
    "past": "Sun, 06 Nov 1994 08:49:37 GMT",
    "date-bad": "Sun, 99 Nov 99999 99:99:99 GMT",
    "none": None,
}


def refuse_with(number: str, value) -> None:
    def act(line: Line, request: Request) -> bool:
        text = value() if callable(value) else value
        line.end(page(b"later", *([] if text is None else [f"Retry-After: {text}"]), status=STATUSES[number]))
        return STAYS

    return act


def in_two_seconds() -> str:
    return formatdate(time.time() + 2, usegmt=True)


for number in STATUSES:
    for name, value in (VALUES | {"date": in_two_seconds}).items():
        shown = "a date two seconds ahead" if callable(value) else f"'{value[:40]}'" if value else "nothing"
        manner(f"later-{number}-{name}", f"{number} with a Retry-After of {shown}")(refuse_with(number, value))


@manner("later-once", "503 with a Retry-After of 1 the first time, a page after that")
def later_once(line: Line, request: Request) -> bool:
    line.end(page() if request.times else page(b"later", "Retry-After: 1", status=STATUSES["503"]))
    return STAYS


@manner("fail-500", "500 always")
def fail_500(line: Line, request: Request) -> bool:
    line.end(page(b"no", status="500 Internal Server Error"))
    return STAYS


@manner("fail-once", "closes without an answer the first time, a page after that")
def fail_once(line: Line, request: Request) -> bool | None:
    if not request.times:
        return None
    line.end(page())
    return STAYS
