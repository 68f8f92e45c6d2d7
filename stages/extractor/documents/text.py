"""Plain text: the absolute URLs in it, cut where people would cut them.

A URL ends at white space, at a quotation mark or an angle bracket, at a bracket that it did not open, and before the
punctuation of the sentence around it; CJK and typographic marks end it too, other letters of any script are part of it.
Lists with nothing but a comma or a bracket between their URLs are taken apart.
"""

import re
from collections.abc import Iterator

from contract.url import URL_MAX_BYTES
from stages.extractor.charset import to_text
from stages.extractor.document import TEXT, Document

TYPES = tuple(
    f"text/{name}"
    for name in ("plain", "markdown", "x-markdown", "csv", "tab-separated-values", "x-rst", "troff", "uri-list")
)

_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")  # what text does not hold (MIME Sniffing standard, 3)
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_ENDS = r"\s\x00-\x1f\x7f-\x9f<>\"`\\^|“”„‟«»‹›「」『』《》〈〉【】（）［］｛｝。、，；：！？…"
# Not possessive around groups: Python's re failed on those before 3.11.5 (CPython issue 106052). A text longer than the
# bound is no URL for us.
_URL = re.compile(
    rf"[hH][tT][tT][pP][sS]?+://(?=[^\W_]|\[)(?:[^{_ENDS},;'(\[{{]++|[,;'(\[{{](?!https?://)){{1,{URL_MAX_BYTES + 1}}}"
)
_BRACKET, _CLOSING = re.compile(r"[()\[\]{}]"), re.compile(r"[)\]}]")
_OPENS = {")": "(", "]": "[", "}": "{"}
_PUNCTUATION = ".,;:!?'*"


def looks_like(start: bytes) -> bool:
    """Whether it may be text at all: asked last, when no other type claims it."""
    return bool(start) and (start.startswith(_BOMS) or not _BINARY.search(start))


def read(content: bytes, charset: str) -> Document:
    document = Document()
    for url in find_urls(to_text(content, charset)):
        document.add(TEXT, url)
    return document


def find_urls(text: str) -> Iterator[str]:
    """The http and https URLs in running text, in order, repeated ones too."""
    for found in _URL.finditer(text):
        url = found[0]
        if text[found.start() - 1 : found.start()] == "'":
            url = url.partition("'")[0]
        if _CLOSING.search(url):
            url = cut_at_bracket(url)
        url = url.rstrip(_PUNCTUATION)
        if len(url) <= URL_MAX_BYTES:
            yield url


def cut_at_bracket(url: str) -> str:
    """What stands before the first bracket that closes what the URL did not open."""
    opened: list[str] = []
    for found in _BRACKET.finditer(url):
        mark = found[0]
        if mark not in _OPENS:
            opened.append(mark)
        elif not opened or opened.pop() != _OPENS[mark]:
            return url[: found.start()]
    return url
