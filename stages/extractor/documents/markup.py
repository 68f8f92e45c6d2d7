"""Reads XML as a stream of events, however broken or hostile; no other module imports lxml.

The parser calls a Listener and builds no tree: a million nested tags cost what a million tags cost. It loads nothing,
expands no entity in text, and continues after errors as long as libxml2 can; what it read before counts. Two errors are
so common that they are mended first: an '&' that begins no reference is taken as part of a URL, and the references of
HTML (&nbsp;, &eacute;), which RSS 0.91 has from a DTD that is not loaded, become their characters.
"""

import re
from functools import lru_cache
from html import escape
from html.entities import html5

from lxml import etree

from contract.trouble import BROKEN, READER_BOUND
from stages.extractor.charset import to_utf_8
from stages.extractor.document import Document

XML_BASE, XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}base", "{http://www.w3.org/XML/1998/namespace}lang"
STEP_BYTES = 1 << 16  # fed at once
LINKS_MAX = 500_000  # ten times what a sitemap may list; a reader of more would only meet page_max_s
MENDS_MAX = 300_000  # CDATA sections seen and references mended: each costs some 100 bytes until the last is done

_OPTIONS = {
    "recover": True,
    "resolve_entities": False,
    "no_network": True,
    "huge_tree": False,
    "load_dtd": False,
    "remove_comments": True,
    "encoding": "utf-8",
}
_AMPERSAND = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)"
    rb"|&(?!(?:amp|lt|gt|quot|apos|#[0-9]++|#[xX][0-9a-fA-F]++);)(?:([A-Za-z_][\w.:-]*+);)?",
    re.DOTALL,
)
_PREAMBLE = re.compile(
    rb"(?:\s++|\xef\xbb\xbf|\xff\xfe|\xfe\xff|<\?[^?]*+(?:\?(?!>)[^?]*+)*\?>|<!--[^-]*+(?:-(?!->)[^-]*+)*-->"
    rb"|<!DOCTYPE[^>\[]*+(?:\[[^\]]*+\]\s*+)?>)*",
    re.DOTALL,
)
_ROOT = re.compile(rb"<(?:[\w.-]++:)?([\w.-]++)")
_XML = re.compile(rb"(?:[\s\0]++|\xef\xbb\xbf|\xff\xfe|\xfe\xff)*<\0?\?\0?x\0?m\0?l")


class Listener:
    """Gets tags, text and instructions in the order of the document, and keeps what they say in `document`.

    `pieces` gathers text while a reader wants it; a reader ends that with taken().
    """

    def __init__(self):
        self.document = Document()
        self.pieces: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Gets a tag as '{namespace}name', or as its name alone if its prefix was not declared; attributes likewise."""

    def data(self, text: str) -> None:
        if self.pieces is not None:
            self.pieces.append(text)

    def end(self, tag: str) -> None:
        pass

    def close(self) -> None:
        pass

    def taken(self) -> str:
        """The text gathered, without white space around it; gathers no more."""
        text = "".join(self.pieces or ()).strip()
        self.pieces = None
        return text


def read_markup(content: bytes, charset: str, listener: Listener) -> Document:
    """The document that the listener made. Never raises, and stops at LINKS_MAX links."""
    text = mend(to_utf_8(content, charset).lstrip(b" \t\r\n\f\v\0"))
    document = listener.document
    try:
        parser = etree.XMLParser(target=listener, **_OPTIONS)
        for start in range(0, len(text), STEP_BYTES):
            parser.feed(text[start : start + STEP_BYTES])
            if len(document.others) >= LINKS_MAX:
                document.mark(READER_BOUND if start + STEP_BYTES < len(text) else "")
                break
        parser.close()
        is_damaged = bool(parser.feed_error_log.filter_from_fatals())
    except (etree.LxmlError, UnicodeDecodeError):  # the second comes from a reference to half a character
        is_damaged = True
    if is_damaged and not document.trouble:
        document.mark(BROKEN)
    return document


def mend(text: bytes) -> bytes:
    return _AMPERSAND.sub(mend_reference, text, count=MENDS_MAX) if b"&" in text else text


def mend_reference(found: re.Match) -> bytes:
    if not found[0].startswith(b"&"):
        return found[0]
    if not found[1]:
        return b"&amp;"
    character = html5.get(found[1].decode("utf-8", "replace") + ";")
    return escape(character).encode() if character else found[0]


@lru_cache(maxsize=4096)  # called for every tag, and documents have few names
def local_name(tag: str) -> str:
    return tag.rpartition("}")[2]


def address(text: str) -> str:
    """The value of an attribute. If entities are not expanded, libxml2 gives '&' as a reference."""
    return text.replace("&#38;", "&").strip() if "&#38;" in text else text.strip()


def root_of(start: bytes) -> str:
    """The name of the first element, without prefix, in lower case; nothing where there is none. UTF-16 works too."""
    plain = start.replace(b"\0", b"")
    found = _ROOT.match(plain, _PREAMBLE.match(plain).end())
    return found[1].decode("ascii", "replace").lower() if found else ""


def is_xml(start: bytes) -> bool:
    """Whether it begins with an XML declaration."""
    return _XML.match(start) is not None
