"""What the answer to a request for robots.txt means (RFC 9309, section 2.3.1), decided from the stored bytes alone.

So the same decision is reached again from the records when an interrupted cycle goes on.
"""

import zlib
from typing import NamedTuple

from contract.tables import ANSWERED
from contract.url import NotCanonical, canonicalise, server_of
from contract.warc import parse_response

PATH = "/robots.txt"
REDIRECTS = (301, 302, 303, 307, 308)
REDIRECTS_MAX = 5
ALLOW_ALL = b""
EITHER_WRAPPER = 47  # zlib's number for 'zlib or gzip wrapper, 32 KiB window'
NO_WRAPPER = -15  # what some servers send as deflate


class Answer(NamedTuple):
    text: bytes | None  # the rules; none while they are not known
    follow: str  # where to ask next, or nothing


UNREACHABLE = Answer(None, "")


def read_answer(url: str, redirects: int, outcome: str, block: bytes, text_max_bytes: int) -> Answer:
    """The meaning of an exchange for robots.txt that came after so many redirects; `block` is its response block."""
    if outcome != ANSWERED:
        return UNREACHABLE
    message = parse_response(block)
    if 200 <= message.status < 300:
        return Answer(decode(message.body, message.get("content-encoding"), text_max_bytes), "")
    if message.status in REDIRECTS and redirects < REDIRECTS_MAX:
        return Answer(None, target) if (target := find_target(url, message.get("location"))) else Answer(ALLOW_ALL, "")
    return Answer(ALLOW_ALL, "")


def find_target(url: str, location: str) -> str:
    """The URL that a redirect leads to if it stays on the server, else nothing."""
    try:
        target = canonicalise(location, url)
    except NotCanonical:
        return ""
    return target if location and server_of(target) == server_of(url) else ""


def decode(body: bytes, encoding: str, longest: int) -> bytes:
    """The text, as far as it can be decoded, up to `longest` bytes."""
    encoding = encoding.strip().lower()
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return body[:longest]
    for window in (EITHER_WRAPPER, NO_WRAPPER):
        try:
            return zlib.decompressobj(window).decompress(body, longest)
        except zlib.error:
            continue
    return body[:longest]  # said to be compressed, and is not
