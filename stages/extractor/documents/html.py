"""What an HTML page says: its title, language and base, its links by kind, and what it asks of robots.

The one place that imports selectolax. Links are those that a browser without scripts would know of, with the content of
<template> and <noscript>; a comment holds none, whatever condition it states.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from stages.extractor.directives import read_words
from stages.extractor.document import (
    A, ALTERNATE, AREA, CANONICAL, DATA, FORM, FRAME, IMAGE, LINK, MEDIA, NEXT, OBJECT, REFRESH, SCRIPT, SITEMAP, STYLE, Document, shorten,
)
from stages.extractor.documents.markup import root_of
from stages.extractor.documents.nesting import cut_tangled, find_tags, letters_of
from stages.extractor.documents.script import find_links

TYPES = ("text/html", "application/xhtml+xml")
ANCHOR_MAX_CHARACTERS = 200
LANGUAGE_MAX_CHARACTERS = 35  # RFC 5646 4.4.1: what every reader must have room for

_SOURCES: dict[str, tuple[tuple[str, int], ...]] = {  # tag: attributes that hold a link, and its kind
    "a": (("href", A), ("xlink:href", A)), "area": (("href", AREA),), "link": (("href", LINK),),
    "img": (("src", IMAGE), ("longdesc", LINK)), "script": (("src", SCRIPT),),
    "iframe": (("src", FRAME), ("longdesc", LINK)), "frame": (("src", FRAME), ("longdesc", LINK)),
    "embed": (("src", OBJECT),), "object": (("data", OBJECT),),
    "video": (("src", MEDIA), ("poster", IMAGE)), "audio": (("src", MEDIA),), "source": (("src", MEDIA),), "track": (("src", MEDIA),),
    "bgsound": (("src", MEDIA),), "input": (("src", IMAGE), ("formaction", FORM)), "button": (("formaction", FORM),),
    "form": (("action", FORM),), "blockquote": (("cite", LINK),), "q": (("cite", LINK),), "ins": (("cite", LINK),), "del": (("cite", LINK),),
    "body": (("background", IMAGE),), "table": (("background", IMAGE),), "td": (("background", IMAGE),), "th": (("background", IMAGE),),
    "image": (("href", IMAGE), ("xlink:href", IMAGE)), "use": (("href", IMAGE), ("xlink:href", IMAGE)),
}
_SETS = {"img": "srcset", "source": "srcset", "link": "imagesrcset"}  # tag: attribute that holds several images
_RELATIONS = {  # word of <link rel>: kind, the first that is found counts
    "canonical": CANONICAL, "stylesheet": STYLE, "icon": IMAGE, "apple-touch-icon": IMAGE, "mask-icon": IMAGE, "next": NEXT, "prev": NEXT,
    "previous": NEXT, "sitemap": SITEMAP, "alternate": ALTERNATE,
}
_LAZY = ("data-src", "data-href", "data-url", "data-original", "data-lazy-src", "data-lazy")
_LAZY_SETS = ("data-srcset", "data-lazy-srcset")

# Selecting costs some 5 us for each tag that is looked for, so the rarer ones are looked for only where a tag begins like them.
_ALWAYS = ("a", "link", "img", "script")
_OF_DOCUMENT = ",meta,title,base"  # what says something of the document, and nothing inside a template
_WITH_BACKGROUND = ("body", "table", "td", "th")
_RARE = tuple((letters_of(tag if len(tag) > 1 else tag + end), tag) for tag in _SOURCES if tag not in (*_ALWAYS, *_WITH_BACKGROUND)
              for end in (" \t\n\f\r/>" if len(tag) == 1 else " "))
_RARE_LETTERS = np.array([letters for letters, _ in _RARE])
_TEMPLATE = letters_of("template")

# How HTML begins, by the MIME Sniffing standard (7.1).
_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>])",
    re.IGNORECASE,
)
# The HTML standard's shared declarative refresh steps: a time, a mark or blank, then the URL with or without url= and quotes.
_REFRESH = re.compile(
    r"""\s*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;,\s])\s*+[;,]?+\s*+(?:url\s*+=\s*+)?+(?:"([^"]*+)|'([^']*+)|(.++))""",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)  # possessive: linear, whatever a page holds
# A candidate of a srcset (HTML standard 4.8.4.2.1): blanks and commas before it, its URL, and descriptors up to the next comma
# unless the URL ends with one. Blanks and commas at the end are a match too, else they would be searched from each of them on.
_CANDIDATE = re.compile(r"[\s,]*+(?:(\S++)(?:(?<=,)|(?<!,)(?:[^,(]++|\([^)]*+\)?)*+)|\Z)", re.ASCII)


class Options(NamedTuple):
    agent: str = ""  # in lower case; what <meta name=AGENT> says is for us as well
    lazy_attributes: bool = False
    inline_scripts: bool = False
    anchor_text: bool = False
    text: bool = False


def looks_like(start: bytes) -> bool:
    return _START.match(start) is not None or root_of(start) == "html"


def read(content: bytes, charset: str, options: Options = Options()) -> Document:
    """Reads a page in UTF-8. Where its markup is tangled beyond measure, only what comes before that counts."""
    tags = find_tags(content)
    # Without events: they only copy the chosen <option>, and that in quadratic time.
    parser = LexborHTMLParser(cut_tangled(content, tags), options=LexborDocumentOptions.WO_EVENTS)
    present = tags.present()
    selector = choose_selector(content, present)
    reading = Reading(options, len(content))
    reading.take(parser.css(selector + _OF_DOCUMENT))
    if present[_TEMPLATE]:
        take_templates(parser, selector, reading)
    document = reading.document
    if parser.root is not None and parser.root.tag == "html":
        attributes = parser.root.attributes
        document.language = (attributes.get("lang") or attributes.get("xml:lang") or "").strip()[:LANGUAGE_MAX_CHARACTERS]
    if options.text:
        document.text = visible_text(parser)
    return document


def choose_selector(content: bytes, present: np.ndarray) -> str:
    has_background = b"background" in content or b"BACKGROUND" in content
    return join_selector(present[_RARE_LETTERS].tobytes(), has_background)


@lru_cache(1 << 10)
def join_selector(rare: bytes, has_background: bool) -> str:
    tags = dict.fromkeys(tag for (_, tag), is_there in zip(_RARE, rare) if is_there)
    return ",".join([*_ALWAYS, *tags, *_WITH_BACKGROUND * has_background])


def take_templates(parser: LexborHTMLParser, selector: str, reading: "Reading") -> None:
    """The content of templates, also of those inside of others; it is no part of the document's own tree."""
    fragments = parser.template_fragments()
    while fragments:
        fragment = fragments.pop()
        reading.take(fragment.css(selector))
        fragments += fragment.template_fragments()


def visible_text(parser: LexborHTMLParser) -> str:
    parser.strip_tags(["script", "style", "template", "noscript"])
    return parser.body.text(separator=" ") if parser.body is not None else ""


class Reading:
    """The document that grows as its nodes are taken."""

    def __init__(self, options: Options, page_bytes: int):
        self._options = options
        self._anchors_room = 2 * page_bytes  # links that stand in each other have the same words many times
        self._robots = ("robots", options.agent)
        self.document = Document()
        self._has_title = False

    def take(self, nodes: list[LexborNode]) -> None:
        """Takes nodes in the order in which they stand, each once."""
        links = self.document.links
        for node in nodes:
            tag, attributes = node.tag, node.attributes
            if tag == "a" and (text := attributes.get("href")) is not None:  # nearly all
                link = A, text, "rel" in attributes and is_nofollow(attributes)
                links[link] = links.get(link, 0) + 1
                if self._options.anchor_text:
                    self._keep_anchor(text, node)
                if self._options.lazy_attributes:
                    self._take_lazy(tag, attributes)
            elif tag == "meta":
                self._take_meta(attributes)
            elif tag == "title":
                if not self._has_title and node.parent.tag != "svg":  # where it names a drawing
                    self._has_title, self.document.title = True, shorten(node.text())
            elif tag == "base":
                if self.document.base is None and "href" in attributes:
                    self.document.base = attributes["href"] or ""
            else:
                self._take_sources(tag, attributes, node)

    def _take_sources(self, tag: str, attributes: dict[str, str | None], node: LexborNode) -> None:
        add = self.document.add
        for name, kind in _SOURCES[tag]:
            if name not in attributes:
                continue
            text = attributes[name] or ""
            if kind in (A, AREA):
                add(kind, text, is_nofollow(attributes))  # an empty text is a link to the page itself; elsewhere it is nothing
            elif kind == FORM:
                if is_get(attributes) and text:
                    add(FORM, text)
            elif text:
                add(relation_of(attributes) if tag == "link" else kind, text, tag == "link" and is_nofollow(attributes))
        if tag == "link" and self.document.canonical is None and relation_of(attributes) == CANONICAL:
            self.document.canonical = attributes.get("href") or None
        if tag in _SETS and (text := attributes.get(_SETS[tag])):
            self._take_set(text)
        if tag == "script" and self._options.inline_scripts and "src" not in attributes:
            for text in find_links(node.text()):
                add(DATA, text)
        if self._options.lazy_attributes:
            self._take_lazy(tag, attributes)

    def _take_set(self, text: str) -> None:
        for found in _CANDIDATE.finditer(text):
            if found[1]:
                self.document.add(IMAGE, found[1].rstrip(","))

    def _take_lazy(self, tag: str, attributes: dict[str, str | None]) -> None:
        """What scripts would put in place of an attribute when the page is looked at."""
        kind = _SOURCES[tag][0][1]
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
        elif (attributes.get("name") or "").strip().lower() in self._robots:
            said = read_words(attributes.get("content") or "")
            self.document.noindex = self.document.noindex or said.noindex
            self.document.nofollow = self.document.nofollow or said.nofollow

    def _keep_anchor(self, text: str, node: LexborNode) -> None:
        if text in self.document.anchors or self._anchors_room < 0:
            return
        content = node.text()
        self._anchors_room -= len(content)
        if words := " ".join(content.split())[:ANCHOR_MAX_CHARACTERS]:
            self.document.anchors[text] = words


def is_nofollow(attributes: dict[str, str | None]) -> bool:
    rel = attributes.get("rel")
    return rel is not None and "nofollow" in rel.lower().split()


def is_get(attributes: dict[str, str | None]) -> bool:
    """Whether a form, or the button that overrules it, is sent by GET; the form that a lone button belongs to is not looked up."""
    method = attributes.get("formmethod") or attributes.get("method") or ""
    return method.lower() not in ("post", "dialog")  # what is no method means GET


def relation_of(attributes: dict[str, str | None]) -> int:
    return relation_kind(attributes.get("rel") or "")


@lru_cache(1 << 10)
def relation_kind(rel: str) -> int:
    """The kind of link that a list of relations means."""
    words = frozenset(rel.lower().split())
    return next((kind for word, kind in _RELATIONS.items() if word in words), LINK)


def refresh_target(content: str) -> str | None:
    """Where a <meta http-equiv=refresh>, or the header Refresh, leads; none where it only asks for the same page again."""
    found = _REFRESH.match(content)
    return found[found.lastindex].strip() or None if found else None
