"""What elements of an HTML page say, each given by its tag and its attributes; html.py and html_plain.py find them."""

import re
from typing import NamedTuple

from stages.extractor.directives import read_words
from stages.extractor.document import (
    AREA,
    CANONICAL,
    FORM,
    FRAME,
    IMAGE,
    LINK,
    MEDIA,
    OBJECT,
    REFRESH,
    SCRIPT,
    A,
    Document,
)
from stages.extractor.documents.attributes import is_get, is_nofollow, refresh_target, relation_of

SOURCES: dict[str, tuple[tuple[str, int], ...]] = {  # tag: attributes that hold a link, and its kind
    "a": (("href", A), ("xlink:href", A)),
    "area": (("href", AREA),),
    "link": (("href", LINK),),
    "img": (("src", IMAGE), ("longdesc", LINK)),
    "script": (("src", SCRIPT),),
    "iframe": (("src", FRAME), ("longdesc", LINK)),
    "frame": (("src", FRAME), ("longdesc", LINK)),
    "embed": (("src", OBJECT),),
    "object": (("data", OBJECT),),
    "video": (("src", MEDIA), ("poster", IMAGE)),
    "audio": (("src", MEDIA),),
    "source": (("src", MEDIA),),
    "track": (("src", MEDIA),),
    "bgsound": (("src", MEDIA),),
    "input": (("src", IMAGE), ("formaction", FORM)),
    "button": (("formaction", FORM),),
    "form": (("action", FORM),),
    "blockquote": (("cite", LINK),),
    "q": (("cite", LINK),),
    "ins": (("cite", LINK),),
    "del": (("cite", LINK),),
    "body": (("background", IMAGE),),
    "table": (("background", IMAGE),),
    "td": (("background", IMAGE),),
    "th": (("background", IMAGE),),
    "image": (("href", IMAGE), ("xlink:href", IMAGE)),
    "use": (("href", IMAGE), ("xlink:href", IMAGE)),
}
_SETS = {"img": "srcset", "source": "srcset", "link": "imagesrcset"}  # tag: attribute that holds several images
_LAZY = ("data-src", "data-href", "data-url", "data-original", "data-lazy-src", "data-lazy")
_LAZY_SETS = ("data-srcset", "data-lazy-srcset")

# A candidate of a srcset (HTML standard 4.8.4.2.1): blanks and commas before it, its URL, and descriptors up to the
# next comma unless the URL ends with one. Blanks and commas at the end match too: else each would begin a search.
_CANDIDATE = re.compile(r"[ \t\n\f\r,]*+(?:([^ \t\n\f\r]++)(?:(?<=,)|(?<!,)(?:[^,(]++|\([^)]*+\)?)*+)|\Z)", re.ASCII)


class Options(NamedTuple):
    agent: str = ""  # in lower case; <meta name=AGENT> counts like <meta name=robots>
    lazy_attributes: bool = False
    inline_scripts: bool = False
    anchor_text: bool = False
    text: bool = False
    inline_styles: bool = False


class ElementReading:
    """The document that grows as elements are taken, in their order."""

    def __init__(self, options: Options):
        self._options = options
        self._robots = ("robots", options.agent)
        self.document = Document()

    def take_element(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag == "meta":
            self._take_meta(attributes)
        elif tag != "base":
            self._take_sources(tag, attributes)
        elif self.document.base is None and "href" in attributes:
            self.document.base = attributes["href"] or ""

    def _take_sources(self, tag: str, attributes: dict[str, str | None]) -> None:
        add = self.document.add
        for name, kind in SOURCES.get(tag, ()):
            if name not in attributes:
                continue
            text = attributes[name] or ""
            if kind in (A, AREA):
                add(kind, text, is_nofollow(attributes))  # an empty text leads to the page itself; elsewhere nowhere
            elif kind == FORM:
                if is_get(attributes) and text:
                    add(FORM, text)
            elif text and not (kind == IMAGE and text[0] == "#"):  # a drawing within the page
                add(relation_of(attributes) if tag == "link" else kind, text, tag == "link" and is_nofollow(attributes))
        if tag == "link" and self.document.canonical is None and relation_of(attributes) == CANONICAL:
            self.document.canonical = attributes.get("href") or None
        if tag in _SETS and (text := attributes.get(_SETS[tag])):
            self._take_set(text)
        if self._options.lazy_attributes:
            self.take_lazy(tag, attributes)

    def _take_set(self, text: str) -> None:
        for found in _CANDIDATE.finditer(text):
            if found[1]:
                self.document.add(IMAGE, found[1].rstrip(","))

    def take_lazy(self, tag: str, attributes: dict[str, str | None]) -> None:
        """Takes attributes that scripts copy to src or href when a person looks at the page."""
        kind = SOURCES[tag][0][1] if tag in SOURCES else A
        for name in _LAZY:
            if text := attributes.get(name):
                self.document.add(kind, text)
        for name in _LAZY_SETS:
            if text := attributes.get(name):
                self._take_set(text)

    def _take_meta(self, attributes: dict[str, str | None]) -> None:
        if (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            if (text := refresh_target(attributes.get("content") or "")) is not None:
                self.document.add(REFRESH, text)
            return
        name = attributes.get("name") or ""
        if name.isascii() and name.strip().lower() in self._robots:  # lower() turns the Kelvin sign into k
            said = read_words(attributes.get("content") or "")
            self.document.noindex = self.document.noindex or said.noindex
            self.document.nofollow = self.document.nofollow or said.nofollow


def add_anchors(document: Document, texts: list[str], nofollow: list[bool]) -> None:
    """Adds <a href> links, to `hrefs` where that keeps the order of the document's links."""
    if document.others or True in nofollow:
        for text, marked in zip(texts, nofollow):
            document.add(A, text, marked)
    else:
        document.hrefs += texts
