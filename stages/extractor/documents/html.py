"""HTML: what a page says of itself (title, language, base, canonical, robots), and its links by kind.

Most pages are in plain markup, and html_plain.py reads them. This module builds the tree of the others; no other module
imports selectolax. The links are those that a browser without scripts finds, with the content of <template> and
<noscript>. A comment holds no links, whatever condition it states.
"""

import re
from collections import Counter
from functools import lru_cache

import numpy as np
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from stages.extractor.document import DATA, Document, shorten, without_fragment
from stages.extractor.documents import css
from stages.extractor.documents.attributes import is_nofollow, language_of
from stages.extractor.documents.html_elements import SOURCES, ElementReading, Options, add_anchors
from stages.extractor.documents.html_plain import take_plain
from stages.extractor.documents.markup import root_of
from stages.extractor.documents.nesting import cut_tangled, find_tags, letters_of
from stages.extractor.documents.script import find_links
from stages.extractor.documents.start_tags import NotPlain, read_plain

TYPES = ("text/html", "application/xhtml+xml")
ANCHOR_MAX_CHARACTERS = 200

# Elements of drawings and formulas that hold HTML: integration points (HTML standard 13.2.6).
_HTML_AGAIN = {"svg": ("foreignobject", "desc", "title"), "math": ("mi", "mo", "mn", "ms", "mtext")}

# Selectors that find no element twice. Each alternative costs some 5 us per page, one by attribute less than one by
# tag. So the rare ones are used only where the page has a tag that begins with their first two letters.
_APART = ":not([href]):not([src])"
_ANCHORS = "a[href]"
_LINKED = f"[href]:not(a),[src]:not([href]),link[imagesrcset]{_APART},:is(body,table,td,th)[background]{_APART}"
# Elements about the document. They mean nothing inside a template, and mostly stand in the head.
_OF_DOCUMENT = f"meta{_APART},title{_APART}"
_WITHIN_DOCUMENT = frozenset(("meta", "title", "base"))  # those with href too
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
_RARE_LETTERS = np.array([letters for letters, _ in _RARE])
_STYLED = "style,[style*='url(' i]"
_LOADS = re.compile(rb"url\(|@import", re.IGNORECASE)  # what a style that loads something holds
_TEMPLATE, _META = letters_of("template"), letters_of("meta")

# How HTML begins, by the MIME Sniffing standard (7.1).
_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+<"
    rb"(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>])",
    re.IGNORECASE,
)


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


def read_tree(content: bytes, options: Options = Options()) -> Document:
    """The same by the page's tree. Where the nesting passes its bounds, only what stands before that counts."""
    tags = find_tags(content)
    # Without events: they only copy the chosen <option>, and that in quadratic time.
    page, trouble = cut_tangled(content, tags)
    parser = LexborHTMLParser(page, options=LexborDocumentOptions.WO_EVENTS)
    present = tags.present()
    selector = join_selector(present[_RARE_LETTERS].tobytes(), options)
    reading = TreeReading(options, len(content))
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
    """<meta> and <title>. The whole page is searched only if its head lacks a <meta> or has no <title>."""
    nodes = parser.head.css(_OF_DOCUMENT) if parser.head is not None else []
    found = Counter([node.tag for node in nodes])
    return nodes if found["meta"] >= metas and found["title"] else parser.css(_OF_DOCUMENT)


@lru_cache(1 << 10)
def join_selector(rare: bytes, options: Options) -> str:
    """The selector for a page that has some of the rare tags."""
    wanted = [selector for (_, selector), is_there in zip(_RARE, rare) if is_there]
    if options.lazy_attributes:  # any element that may have a link
        return ",".join(["[href]:not(a)", "[src]:not([href])", *(tag + _APART for tag in SOURCES)])
    elif options.inline_scripts:
        wanted.append("script" + _APART)
    return ",".join(dict.fromkeys([_LINKED, *wanted]))


def take_templates(parser: LexborHTMLParser, selector: str, reading: "TreeReading") -> None:
    """Takes the content of templates, which is not in the document's own tree; templates may hold templates."""
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


class TreeReading(ElementReading):
    """The document that grows as the nodes of its tree are taken."""

    def __init__(self, options: Options, page_bytes: int):
        super().__init__(options)
        self._anchors_room = 2 * page_bytes  # nested links would hold the same words many times
        self._has_title = False
        self._vocabularies: dict[int, str] = {}

    def take_anchors(self, nodes: list[LexborNode]) -> None:
        """Takes <a href>: nearly all links."""
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
                self.take_lazy("a", attributes)

    def take(self, nodes: list[LexborNode]) -> None:
        """Takes other nodes, each once."""
        for node in nodes:
            tag = node.tag
            if tag in ("title", "base", "link") and vocabulary_in(node.parent, self._vocabularies):
                continue  # in a drawing these names mean other things
            if tag == "title":
                if not self._has_title:
                    self._has_title, self.document.title = True, shorten(node.text())
            else:
                self.take_element(tag, node.attributes)
                if tag == "script" and self._options.inline_scripts and "src" not in node.attributes:
                    for text in find_links(node.text()):
                        self.document.add(DATA, text)

    def take_styles(self, tree: LexborHTMLParser | LexborNode) -> None:
        """Takes what <style> elements and style attributes load, if the option is on."""
        for node in tree.css(_STYLED) if self._options.inline_styles else ():
            source = node.text(deep=False) if node.tag == "style" else node.attributes["style"] or ""
            for kind, text in css.find_links(source):
                self.document.add(kind, text)

    def _keep_anchor(self, text: str, node: LexborNode) -> None:
        if text in self.document.anchors or self._anchors_room < 0:
            return
        content = node.text()
        self._anchors_room -= len(content)
        if words := " ".join(content.split())[:ANCHOR_MAX_CHARACTERS]:
            self.document.anchors[text] = words


def vocabulary_in(node: LexborNode | None, known: dict[int, str]) -> str:
    """The vocabulary of a node's children: HTML (''), drawings ('svg') or formulas ('math').

    `known` remembers it by the node's memory address, so that each node is examined once, however deep it stands.
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
    """The vocabulary of the children of a node that itself stands in the vocabulary `around`."""
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
