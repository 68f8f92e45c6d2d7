"""What an answer says: its type, charset and decoded content, the page in it, and where it redirects."""

import re
from typing import NamedTuple

from contract.config import Config
from contract.url import NotCanonical, canonicalise
from contract.warc import HttpMessage
from contract.body import decode_body
from stages.extractor.charset import choose_charset, to_utf_8
from stages.extractor.page import Page, read_page

TYPE_MAX_CHARACTERS = 100
HTML_TYPES = ("text/html", "application/xhtml+xml")
SNIFF_BYTES = 512
# How HTML begins, by the MIME Sniffing standard (7.1), for answers that name no type.
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>])",
    re.IGNORECASE,
)


class Answer(NamedTuple):
    type: str
    charset: str  # '' where the answer is no text
    content: bytes  # decoded, at most page_max_bytes
    page: Page | None
    location: str | None  # of a redirect, as it stands in the header
    redirect_to: str  # the same, canonical; '' where there is none


def read_answer(url: str, message: HttpMessage, config: Config) -> Answer:
    """Reads the answer to a request for a canonical URL; whatever a server sent, it does not raise."""
    content_type = message.get("content-type")
    kind = kind_of(content_type)
    content, is_decoded = decode_body(message, config.extractor.page_max_bytes)
    is_html = kind in HTML_TYPES or not kind and _HTML_START.match(content[:SNIFF_BYTES]) is not None
    charset = ""
    if is_decoded and (is_html or kind.startswith("text/")):
        charset = choose_charset(content, content_type, has_markup=is_html)
    page = None
    if is_decoded and is_html and 200 <= message.status < 300:
        page = try_page(content, charset, config.fetcher.agent)
    location = location_of(message)
    return Answer(kind, charset, content, page, location, canonical_or_nothing(location, url))


def read_head(message: HttpMessage) -> Answer:
    """What the head of an answer alone tells: of a revisit, whose body lies with an earlier record."""
    return Answer(kind_of(message.get("content-type")), "", b"", None, None, "")


def kind_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()[:TYPE_MAX_CHARACTERS]


def try_page(content: bytes, charset: str, agent: str) -> Page | None:
    try:
        return read_page(to_utf_8(content, charset), agent)
    except Exception:  # a page that a parser fails on is a page without links, not the end of a cycle
        return None


def location_of(message: HttpMessage) -> str | None:
    """The Location of a 3xx; its bytes are UTF-8 where they can be, else Latin-1."""
    text = message.get("location") if 300 <= message.status < 400 else ""
    if not text:
        return None
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return text


def canonical_or_nothing(text: str | None, base: str) -> str:
    try:
        return canonicalise(text, base) if text else ""
    except NotCanonical:
        return ""
