"""JSON: the absolute URLs in its strings.

JSON is read as text in which the escapes of slashes and characters are undone. It is not parsed: a quotation mark
ends a URL in text too, and in text nesting, damage and size do not matter.
"""

import re

from stages.extractor.charset import to_text
from stages.extractor.document import DATA, Document
from stages.extractor.documents.text import find_urls

TYPES = (
    "application/json",
    "text/json",
    "application/ld+json",
    "application/manifest+json",
    "application/feed+json",
    "application/activity+json",
    "application/geo+json",
    "application/hal+json",
    "application/problem+json",
    "application/x-ndjson",
    "application/jsonl",
    "application/x-json",
)

_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*+(?:\{\s*+["}]|\[\s*+[\[{"\]])')
_CHARACTERS = re.compile(r"(?:\\u[0-9a-fA-F]{4})++")


def looks_like(start: bytes) -> bool:
    return _START.match(start) is not None


def read(content: bytes, charset: str) -> Document:
    document = Document()
    for url in find_urls(undo_escapes(to_text(content, charset))):
        document.add(DATA, url)
    return document


def undo_escapes(text: str) -> str:
    """The text without \\/ and \\u. Other escapes, and their backslashes, end a URL."""
    plain = text.replace("\\/", "/")
    return _CHARACTERS.sub(decode_characters, plain) if "\\u" in plain else plain


def decode_characters(found: re.Match) -> str:
    """A run of \\uXXXX together, since two of them make one character beyond U+FFFF."""
    return bytes.fromhex(found[0].replace("\\u", "")).decode("utf-16-be", "replace")
