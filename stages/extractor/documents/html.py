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
    AREA,
    CANONICAL,
    DATA,
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
    shorten,
    without_fragment,
)
from stages.extractor.documents import css
from stages.extractor.documents.attributes import is_get, is_nofollow, language_of, refresh_target, relation_of
from stages.extractor.documents.markup import root_of
from stages.extractor.documents.nesting import cut_tangled, find_tags, letters_of
from stages.extractor.documents.script import find_links
from stages.extractor.documents.start_tags import NotPlain, PlainPage, decode_text, read_attributes, read_plain

TYPES = ("text/html", "application/xhtml+xml")
ANCHOR_MAX_CHARACTERS = 200
TAGS_REMEMBERED, TAG_REMEMBERED_MAX_BYTES = 1 << 12, 500

_SOURCES: dict[str, tuple[tuple[str, int], ...]] = {  # tag: attributes that hold a link, and its kind
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
# Elements of drawings and formulas that hold HTML: integration points (HTML standard 13.2.6).
_HTML_AGAIN = {"svg": ("foreignobject", "desc", "title"), "math": ("mi", "mo", "mn", "ms", "mtext")}
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
    (letters_of(letters), selector + _APART)
    for letters, selector in (
        ("fo", "form[action]"),
        ("ob", "object[data]"),
        ("bu", "button[formaction]"),
        ("in", "input[formaction]"),
        ("vi", "video[poster]"),
        ("bl", "blockquote[cite]"),
        *((f"q{end}", "q[cite]") for end in " \t\n\f\r/>"),
        ("in", "ins[cite]"),
        ("de", "del[cite]"),
        ("im", "img[srcset]"),
        ("so", "source[srcset]"),
    )
)
# The same for tags that were found without a tree: attributes of any tag, and of one.
_LINKS = frozenset(("href", "src", "srcset", "imagesrcset", "background"))
_RARE_LINKS = {"form": "action", "object": "data", "input": "formaction", "video": "poster"}
_RARE_LETTERS = np.array([letters for letters, _ in _RARE])
_STYLED = "style,[style*='url(' i]"
_LOADS = re.compile(rb"url\(|@import", re.IGNORECASE)  # what a style that loads something holds
_TEMPLATE, _META = letters_of("template"), letters_of("meta")

# How HTML begins, by the MIME Sniffing standard (7.1).
_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>])",
    re.IGNORECASE,
)
# A candidate of a srcset (HTML standard 4.8.4.2.1): blanks and commas before it, its URL, and descriptors up to the next comma
# unless the URL ends with one. Blanks and commas at the end are a match too, else they would be searched from each of them on.
_CANDIDATE = re.compile(r"[ \t\n\f\r,]*+(?:([^ \t\n\f\r]++)(?:(?<=,)|(?<!,)(?:[^,(]++|\([^)]*+\)?)*+)|\Z)", re.ASCII)


class Options(NamedTuple):
    agent: str = ""  # in lower case; what <meta name=AGENT> says is for us as well
    lazy_attributes: bool = False
    inline_scripts: bool = False
    anchor_text: bool = False
    text: bool = False
    inline_styles: bool = False


def looks_like(start: bytes) -> bool:
    return _START.match(start) is not None or root_of(start) == "html"


def read(content: bytes, charset: str, options: Options = Options()) -> Document:
    """Reads a page in UTF-8."""
    has_styles = options.inline_styles and _LOADS.search(content)
    if not (options.lazy_attributes or options.inline_scripts or options.anchor_text or options.text or has_styles):
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
    is_one_link = (
        has_link
        and list(said.others.values()) == [1]
        and said.base is None
        and said.canonical is None
        and not (said.noindex or said.nofollow)
    )
    return Saying(next(iter(said.others)) if is_one_link else None, said, not has_link)


def may_ask(source: bytes, agent: str) -> bool:
    """Whether attributes may be those of a <meta> that asks something of us, by their source."""
    plain = source.lower()
    return b"&" in plain or b"refresh" in plain or b"robots" in plain or agent.encode() in plain


def read_tree(content: bytes, options: Options = Options()) -> Document:
    """The same by the page's tree. Where its markup is tangled beyond measure, only what comes before that counts."""
    tags = find_tags(content)
    # Without events: they only copy the chosen <option>, and that in quadratic time.
    page, trouble = cut_tangled(content, tags)
    parser = LexborHTMLParser(page, options=LexborDocumentOptions.WO_EVENTS)
    present = tags.present()
    selector = join_selector(present[_RARE_LETTERS].tobytes(), options)
    reading = Reading(options, len(content))
    reading.take_anchors(parser.css(_ANCHORS))
    reading.take(parser.css(selector))
    reading.take(select_of_document(parser, np.count_nonzero(tags.letters == _META)))
    reading.take_styles(parser)
    if present[_TEMPLATE]:
        take_templates(parser, selector, reading)
    document = reading.document
    document.mark(trouble)
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
        reading.take_styles(fragment)
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
        self._vocabularies: dict[int, str] = {}

    def take_anchors(self, nodes: list[LexborNode]) -> None:
        """Takes <a href>, which nearly all links are."""
        found = [node.attributes for node in nodes]
        texts = [
            (attributes["href"] if "href" in attributes else attributes["xlink:href"]) or "" for attributes in found
        ]
        add_anchors(
            self.document,
            list(map(without_fragment, texts)),
            ["rel" in attributes and is_nofollow(attributes) for attributes in found],
        )
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
            if tag in ("title", "base", "link") and vocabulary_in(node.parent, self._vocabularies):
                continue  # names of HTML that mean other things in a drawing
            if tag == "title":
                if not self._has_title:
                    self._has_title, self.document.title = True, shorten(node.text())
            else:
                self.take_element(tag, node.attributes)
                if tag == "script" and self._options.inline_scripts and "src" not in node.attributes:
                    for text in find_links(node.text()):
                        self.document.add(DATA, text)

    def take_styles(self, tree: LexborHTMLParser | LexborNode) -> None:
        """Takes what <style> elements and style attributes load, where that is asked for."""
        for node in tree.css(_STYLED) if self._options.inline_styles else ():
            source = node.text(deep=False) if node.tag == "style" else node.attributes["style"] or ""
            for kind, text in css.find_links(source):
                self.document.add(kind, text)

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
                add(
                    kind, text, is_nofollow(attributes)
                )  # an empty text is a link to the page itself; elsewhere it is nothing
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
        elif (
            name := attributes.get("name") or ""
        ).isascii() and name.strip().lower() in self._robots:  # letters of ASCII are alike, no others
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


def vocabulary_in(node: LexborNode | None, known: dict[int, str]) -> str:
    """What elements right below a node belong to: HTML (''), a drawing ('svg') or a formula ('math').

    `known` has it of nodes by their addresses, so that each is looked at once, however deep it stands.
    """
    path = []
    while node is not None and node.mem_id not in known:
        path.append(node)
        node = node.parent
    vocabulary = known[node.mem_id] if node is not None else ""
    for inner in reversed(path):
        known[inner.mem_id] = vocabulary = enter(inner, vocabulary)
    return vocabulary


def enter(node: LexborNode, around: str) -> str:
    """The same of a node that stands among elements of a vocabulary."""
    tag = (node.tag or "").lower()
    if not around:
        return tag if tag in _HTML_AGAIN else ""
    if tag in _HTML_AGAIN[around]:
        return ""
    if around == "math" and tag == "annotation-xml":
        return "" if (node.attributes.get("encoding") or "").lower() in TYPES else around
    if around == "math" and tag == "svg" and (node.parent.tag or "").lower() == "annotation-xml":
        return "svg"
    return around
