"""The text of a page and its language, by resiliparse, which comes from the makers of FastWARC."""

import codecs

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.lang import detect_fast

HTML = ("text/html", "application/xhtml+xml")
TEXTUAL = ("application/json", "application/javascript", "application/ecmascript", "application/xml")
TEXTUAL_ENDS = ("+xml", "+json")
CODECS = {  # Python's codecs for names of the Encoding standard that it has not, or takes for a smaller set
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
    "iso-8859-8-i": "iso8859-8",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "gbk": "gb18030",
}


def is_textual(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type in TEXTUAL or media_type.endswith(TEXTUAL_ENDS)


def decode(content: bytes, charset: str) -> str:
    """The characters of a document; bytes that its charset does not have become U+FFFD."""
    try:
        return content.decode(codecs.lookup(CODECS.get(charset, charset) or "utf-8").name, "replace")
    except (LookupError, ValueError):  # a charset that Python does not have, or a codec that is none
        return content.decode("utf-8", "replace")


def whole_text_of(html: str) -> str:
    """What a reader sees of an HTML page, without tags. Nested elements can make it slow."""
    text: str = extract_plain_text(html)
    return text


def main_text_of(html: str) -> str:
    """The text of an HTML page without what surrounds it. Takes a time that grows with the square of the nesting."""
    text: str = extract_plain_text(HTMLTree.parse(html), main_content=True, links=False)
    return text


def detect_language(text: str | None) -> str | None:
    """The likeliest language of a text, such as `pt`; none where it is unlike all that resiliparse knows."""
    language = detect_fast(text)[0] if text else "unknown"
    return None if language == "unknown" else language
