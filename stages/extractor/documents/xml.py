"""XML of any kind, SVG included: what may be a link in a vocabulary that we do not know.

The reader takes href, src and xlink:href of any element, with the kind of link that XHTML or SVG gives it,
<?xml-stylesheet?>, and elements whose whole text is a URL. It does not take references within the document (#...),
data: URLs, xml:base below the root, srcset and style.
"""

import re
from html import unescape

from contract.url import URL_MAX_BYTES
from stages.extractor.document import (
    ALTERNATE,
    AREA,
    CANONICAL,
    DOCUMENT,
    FRAME,
    IMAGE,
    LINK,
    MEDIA,
    NEXT,
    OBJECT,
    SCRIPT,
    STYLE,
    TEXT,
    A,
    Document,
    shorten,
)
from stages.extractor.documents.markup import (
    XML_BASE,
    XML_LANGUAGE,
    Listener,
    address,
    is_xml,
    local_name,
    read_markup,
    root_of,
)

TYPES = (
    "application/xml",
    "text/xml",
    "image/svg+xml",
    "application/rdf+xml",
    "application/mathml+xml",
    "application/xslt+xml",
    "application/opensearchdescription+xml",
    "application/vnd.google-earth.kml+xml",
    "application/gpx+xml",
    "text/x-opml",
)
_XHTML, _SVG = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2000/svg}"
_HREFS = ("href", "src", "{http://www.w3.org/1999/xlink}href")
_KINDS = {
    **{
        _XHTML + name: kind
        for name, kind in (
            ("a", A),
            ("area", AREA),
            ("img", IMAGE),
            ("script", SCRIPT),
            ("link", LINK),
            ("iframe", FRAME),
            ("frame", FRAME),
            ("embed", OBJECT),
            ("audio", MEDIA),
            ("video", MEDIA),
            ("source", MEDIA),
            ("track", MEDIA),
            ("input", IMAGE),
        )
    },
    **{
        _SVG + name: kind
        for name, kind in (("a", A), ("image", IMAGE), ("feImage", IMAGE), ("use", IMAGE), ("script", SCRIPT))
    },
}
_RELATIONS = {
    "canonical": CANONICAL,
    "alternate": ALTERNATE,
    "next": NEXT,
    "prev": NEXT,
    "stylesheet": STYLE,
    "icon": IMAGE,
}
_PSEUDO_HREF = re.compile(r"""(?:^|\s)href\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")


def looks_like(start: bytes) -> bool:
    root = root_of(start)
    return root == "svg" or root != "html" and is_xml(start)


def read(content: bytes, charset: str) -> Document:
    return read_markup(content, charset, XmlListener())


def leads_away(text: str) -> bool:
    return bool(text) and not text.startswith(("#", "data:"))


class XmlListener(Listener):
    def __init__(self):
        super().__init__()
        self._has_root = False

    def start(self, tag, attributes):
        self.pieces = []  # so that only elements without elements in them have text
        if not attributes:
            self._has_root = True
            return
        if not self._has_root:
            self._has_root = True
            self.document.base = address(attributes[XML_BASE]) if XML_BASE in attributes else None
            self.document.language = (attributes.get(XML_LANGUAGE) or attributes.get("lang", "")).strip()
        for name in _HREFS:
            if name in attributes:
                self.take_link(tag, attributes, address(attributes[name]))

    def take_link(self, tag, attributes, text):
        kind = _KINDS.get(tag, DOCUMENT)
        if tag == _XHTML + "base":
            self.document.base = self.document.base or text
        elif leads_away(text):
            relations = attributes.get("rel", "").lower().split() if "rel" in attributes else ()
            if kind == LINK:
                kind = next((_RELATIONS[word] for word in relations if word in _RELATIONS), LINK)
            if kind == CANONICAL:
                self.document.canonical = self.document.canonical or text
            self.document.add(kind, text, kind in (A, AREA) and "nofollow" in relations)

    def end(self, tag):
        if self.pieces is None:
            return
        text = self.taken()
        if text.startswith(("http://", "https://")) and len(text) <= URL_MAX_BYTES and not any(map(str.isspace, text)):
            self.document.add(TEXT, text)
        elif not self.document.title and local_name(tag) == "title":
            self.document.title = shorten(text)

    def pi(self, target, data):
        if target == "xml-stylesheet" and (found := _PSEUDO_HREF.search(data or "")):
            text = unescape(found[1] or found[2] or "").strip()
            if leads_away(text):
                self.document.add(STYLE, text)
