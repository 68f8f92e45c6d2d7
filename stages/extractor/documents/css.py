"""Style sheets: @import, and url(...) of images and fonts.

A regular expression knows the tokens of CSS Syntax (4) that matter here: comments, strings, url() and @import.
tinycss2 is right in more rare cases, but makes one object per token: a 10 MB sheet of commas takes it 20 s and 1 GB, an
ordinary one 7 s. This module reads both in half a second.
"""

import re
from collections.abc import Iterator

from stages.extractor.charset import to_text
from stages.extractor.document import IMAGE, STYLE, Document

TYPES = ("text/css",)

_COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?"
# A string that is not closed ends with its line.
_STRING = r""""(?:[^"\\\n]|\\.)*+(?:"|(?=\n)|\Z)|'(?:[^'\\\n]|\\.)*+(?:'|(?=\n)|\Z)"""
_ADDRESS = rf"""url\(\s*+({_STRING}|(?:[^"'()\\\s]|\\.)++(?=\s*+(?:\)|\Z)))"""
_TOKEN = re.compile(
    rf"{_COMMENT}|(?<![\w-]){_ADDRESS}|@import(?![\w-])(?:\s|{_COMMENT})*+(?:{_ADDRESS}|({_STRING}))"
    rf"|@namespace[^;{{}}]*+|(?<![\w-])url\([^)]*+\)?|{_STRING}|\\.",  # the second: an address that is none, to its end
    re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6}+)(?:\r\n|[ \t\r\n\f])?|(\r\n|.))", re.DOTALL)
_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*+(?:@charset "|@import\s*+(?:url\(|["\']))')


def looks_like(start: bytes) -> bool:
    """Whether it begins with a rule that nothing else begins with: CSS has no magic number."""
    return _START.match(start) is not None


def read(content: bytes, charset: str) -> Document:
    document = Document()
    for kind, text in find_links(to_text(content, charset)):
        document.add(kind, text)
    return document


def find_links(source: str) -> Iterator[tuple[int, str]]:
    """Kind and text of what a style sheet loads, without data: URLs and references within a page (#...)."""
    for found in _TOKEN.finditer(source):
        image, sheet_address, sheet = found.groups()
        if token := image or sheet_address or sheet:
            text = unquote(token)
            if text and not text.startswith(("#", "data:")):
                yield IMAGE if image else STYLE, text


def unquote(token: str) -> str:
    quote = token[0] if token[0] in "\"'" else ""
    text = token.removeprefix(quote).removesuffix(quote)
    return (_ESCAPE.sub(unescape, text) if "\\" in text else text).strip()


def unescape(found: re.Match) -> str:
    if not found[1]:
        return "" if found[2] in "\r\n\f" else found[2]  # the string continues after an escaped end of line
    number = int(found[1], 16)
    return chr(number) if 0 < number < 0xD800 or 0xDFFF < number <= 0x10FFFF else "\ufffd"
