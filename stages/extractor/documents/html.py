"""What an HTML page says: its title, language and base, its links by kind, and what it asks of robots.

The one place that imports selectolax. Links are those that a browser without scripts would know of, with the content of
<template> and <noscript>; a comment holds none, whatever condition it states.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from stages.extractor.directives import read_words
from stages.extractor.document import (
    A, ALTERNATE, AREA, CANONICAL, DATA, FORM, FRAME, IMAGE, LINK, MEDIA, NEXT, OBJECT, REFRESH, SCRIPT, SITEMAP, STYLE, Document, shorten, without_fragment,
)
from stages.extractor.documents.markup import root_of
from stages.extractor.documents.nesting import cut_tangled, find_tags, letters_of
from stages.extractor.documents.script import find_links
from stages.extractor.documents.start_tags import NotPlain, PlainPage, decode_text, read_attributes, read_plain

TYPES = ("text/html", "application/xhtml+xml")
ANCHOR_MAX_CHARACTERS = 200
TAGS_REMEMBERED, TAG_REMEMBERED_MAX_BYTES = 1 << 12, 500
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

# What is looked for, so that no element is found twice. Each alternative costs some 5 us a page, and by attribute less than by tag: so the
# rarer ones are looked for only where a tag begins like theirs.
_APART = ":not([href]):not([src])"
_ANCHORS = "a[href]"
_LINKED = f"[href]:not(a),[src]:not([href]),link[imagesrcset]{_APART},:is(body,table,td,th)[background]{_APART}"
_OF_DOCUMENT = f"meta{_APART},title{_APART}"  # what says something of the document, and nothing inside a template; mostly in its head
_WITHIN_DOCUMENT = frozenset(("meta", "title", "base"))  # with href too
_RARE = tuple(
    (letters_of(letters), selector + _APART) for letters, selector in (
        ("fo", "form[action]"), ("ob", "object[data]"), ("bu", "button[formaction]"), ("in", "input[formaction]"), ("vi", "video[poster]"),
        ("bl", "blockquote[cite]"), *((f"q{end}", "q[cite]") for end in " \t\n\f\r/>"), ("in", "ins[cite]"), ("de", "del[cite]"),
        ("im", "img[srcset]"), ("so", "source[srcset]"),
    )
)
# The same for tags that were found without a tree: attributes of any tag, and of one.
_LINKS = frozenset(("href", "src", "srcset", "imagesrcset", "background"))
_RARE_LINKS = {"form": "action", "object": "data", "input": "formaction", "video": "poster"}
_RARE_LETTERS = np.array([letters for letters, _ in _RARE])
_TEMPLATE, _META = letters_of("template"), letters_of("meta")

# How HTML begins, by the MIME Sniffing standard (7.1).
_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>])",
    re.IGNORECASE,
)
# The HTML standard's shared declarative refresh steps: a time, a mark or blank, then the URL with or without url= and quotes.
_REFRESH = re.compile(
    r"""\s*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;,\s])\s*+[;,]?+\s*+(?:url\s*+=\s*+|(?!url\s*+=))(?:"([^"]*+)|'([^']*+)|(.++))""",
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
    """Reads a page in UTF-8."""
    if not (options.lazy_attributes or options.inline_scripts or options.anchor_text or options.text):
        try:
            return take_plain(read_plain(content), options)
        except NotPlain:
            pass
    return read_tree(content, options)


def take_plain(page: PlainPage, options: Options) -> Document:
    """What a page in plain markup says: the same that its tree would; NotPlain where that is not sure."""
    say, document = sayings(options), Document(title=shorten(decode_text(page.title)))
    add_anchors(document, page.hrefs, page.nofollow)
    late, others = [], document.others
    for name, source in page.tags:
        if name == b"meta" and not may_ask(source, options.agent):
            continue  # most say what differs from page to page, and nothing to us
        said = say(name, source) if len(source) <= TAG_REMEMBERED_MAX_BYTES else read_tag(options, name, source)
        if said is None:
            continue
        if said.link is not None:
            others[said.link] = others.get(said.link, 0) + 1
        elif said.is_late:
            late.append(said.document)
        elif said.document.canonical is not None and document.canonical is not None:
            raise NotPlain  # tables may change the order in which they stand
        else:
            document.join(said.document)
    for said_late in late:
        document.join(said_late)
    return document


class Saying(NamedTuple):
    """What one tag of a page says: one link and nothing else, as most do, or a document."""

    link: tuple[int, str, bool] | None
    document: Document
    is_late: bool  # comes after what others say, as select_of_document() has it


@lru_cache(1)
def sayings(options: Options) -> Callable[[bytes, bytes], Saying | None]:
    """What tags say, found once: they repeat over the pages of a site."""
    return lru_cache(TAGS_REMEMBERED)(partial(read_tag, options))


def read_tag(options: Options, name: bytes, source: bytes) -> Saying | None:
    """What a tag says by its name and the source of its attributes; none where it is nothing."""
    tag, attributes = name.decode(), read_attributes(source)
    if tag == "html":
        return Saying(None, Document(language=language_of(attributes)), False)
    has_link = not _LINKS.isdisjoint(attributes) or _RARE_LINKS.get(tag) in attributes
    if not has_link and tag != "meta":
        return None
    reading = Reading(options, 0)
    reading.take_element(tag, attributes)
    said = reading.document
    is_one_link = has_link and list(said.others.values()) == [1] and said.base is None and said.canonical is None and not (said.noindex or said.nofollow)
    return Saying(next(iter(said.others)) if is_one_link else None, said, not has_link)


def may_ask(source: bytes, agent: str) -> bool:
    """Whether attributes may be those of a <meta> that asks something of us, by their source."""
    plain = source.lower()
    return b"&" in plain or b"refresh" in plain or b"robots" in plain or agent.encode() in plain


def read_tree(content: bytes, options: Options = Options()) -> Document:
    """The same by the page's tree. Where its markup is tangled beyond measure, only what comes before that counts."""
    tags = find_tags(content)
    # Without events: they only copy the chosen <option>, and that in quadratic time.
    parser = LexborHTMLParser(cut_tangled(content, tags), options=LexborDocumentOptions.WO_EVENTS)
    present = tags.present()
    selector = join_selector(present[_RARE_LETTERS].tobytes(), options)
    reading = Reading(options, len(content))
    reading.take_anchors(parser.css(_ANCHORS))
    reading.take(parser.css(selector))
    reading.take(select_of_document(parser, np.count_nonzero(tags.letters == _META)))
    if present[_TEMPLATE]:
        take_templates(parser, selector, reading)
    document = reading.document
    if parser.root is not None and parser.root.tag == "html":
        document.language = language_of(parser.root.attributes)
    if options.text:
        document.text = visible_text(parser)
    return document


def select_of_document(parser: LexborHTMLParser, metas: int) -> list[LexborNode]:
    """<meta> and <title>; the whole page is searched only where not all of the first, or none of the second, are in its head."""
    nodes = parser.head.css(_OF_DOCUMENT) if parser.head is not None else []
    found = Counter([node.tag for node in nodes])
    return nodes if found["meta"] >= metas and found["title"] else parser.css(_OF_DOCUMENT)


@lru_cache(1 << 10)
def join_selector(rare: bytes, options: Options) -> str:
    """What is looked for in a page that has some of the rare tags."""
    wanted = [selector for (_, selector), is_there in zip(_RARE, rare) if is_there]
    if options.lazy_attributes:  # any element that may have a link, whether it has one or not
        return ",".join(["[href]:not(a)", "[src]:not([href])", *(tag + _APART for tag in _SOURCES)])
    elif options.inline_scripts:
        wanted.append("script" + _APART)
    return ",".join(dict.fromkeys([_LINKED, *wanted]))


def take_templates(parser: LexborHTMLParser, selector: str, reading: "Reading") -> None:
    """The content of templates, also of those inside of others; it is no part of the document's own tree."""
    fragments = parser.template_fragments()
    while fragments:
        fragment = fragments.pop()
        reading.take_anchors(fragment.css(_ANCHORS))
        reading.take([node for node in fragment.css(selector) if node.tag not in _WITHIN_DOCUMENT])
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

    def take_anchors(self, nodes: list[LexborNode]) -> None:
        """Takes <a href>, which nearly all links are."""
        found = [node.attributes for node in nodes]
        texts = [(attributes["href"] if "href" in attributes else attributes["xlink:href"]) or "" for attributes in found]
        add_anchors(self.document, list(map(without_fragment, texts)), ["rel" in attributes and is_nofollow(attributes) for attributes in found])
        if self._options.anchor_text:
            for attributes, node in zip(found, nodes):
                self._keep_anchor(without_fragment(attributes.get("href") or ""), node)
        if self._options.lazy_attributes:
            for attributes in found:
                self._take_lazy("a", attributes)

    def take(self, nodes: list[LexborNode]) -> None:
        """Takes other nodes, each once."""
        for node in nodes:
            tag = node.tag
            if tag in ("title", "base", "link") and is_drawn(node):
                continue
            if tag == "title":
                if not self._has_title:
                    self._has_title, self.document.title = True, shorten(node.text())
            else:
                self.take_element(tag, node.attributes)
                if tag == "script" and self._options.inline_scripts and "src" not in node.attributes:
                    for text in find_links(node.text()):
                        self.document.add(DATA, text)

    def take_element(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag == "meta":
            self._take_meta(attributes)
        elif tag != "base":
            self._take_sources(tag, attributes)
        elif self.document.base is None and "href" in attributes:
            self.document.base = attributes["href"] or ""

    def _take_sources(self, tag: str, attributes: dict[str, str | None]) -> None:
        add = self.document.add
        for name, kind in _SOURCES.get(tag, ()):
            if name not in attributes:
                continue
            text = attributes[name] or ""
            if kind in (A, AREA):
                add(kind, text, is_nofollow(attributes))  # an empty text is a link to the page itself; elsewhere it is nothing
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
            self._take_lazy(tag, attributes)

    def _take_set(self, text: str) -> None:
        for found in _CANDIDATE.finditer(text):
            if found[1]:
                self.document.add(IMAGE, found[1].rstrip(","))

    def _take_lazy(self, tag: str, attributes: dict[str, str | None]) -> None:
        """What scripts would put in place of an attribute when the page is looked at."""
        kind = _SOURCES[tag][0][1] if tag in _SOURCES else A
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
        elif (name := attributes.get("name") or "").isascii() and name.strip().lower() in self._robots:  # letters of ASCII are alike, no others
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


def add_anchors(document: Document, texts: list[str], nofollow: list[bool]) -> None:
    if document.others or True in nofollow:  # no order but that of the document
        for text, marked in zip(texts, nofollow):
            document.add(A, text, marked)
    else:
        document.hrefs += texts


def is_drawn(node: LexborNode) -> bool:
    """Whether an element stands in a drawing or a formula, where names that HTML has mean other things."""
    while (node := node.parent) is not None and (node.tag or "").lower() != "foreignobject":
        if node.tag in ("svg", "math"):
            return True
    return False


def is_nofollow(attributes: dict[str, str | None]) -> bool:
    rel = attributes.get("rel")
    return rel is not None and "nofollow" in rel.lower().split()


def is_get(attributes: dict[str, str | None]) -> bool:
    """Whether a form, or the button that overrules it, is sent by GET; the form that a lone button belongs to is not looked up."""
    method = attributes.get("formmethod") or attributes.get("method") or ""
    return method.lower() not in ("post", "dialog")  # what is no method means GET


def language_of(attributes: dict[str, str | None]) -> str:
    return (attributes.get("lang") or attributes.get("xml:lang") or "").strip()[:LANGUAGE_MAX_CHARACTERS]


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
