"""Feeds: RSS 0.9x, 1.0 and 2.0, and Atom.

The reader takes the links of items and of the feed, enclosures and other media, targets of <atom:link>, title and
language. It does not read the escaped HTML or CDATA of an item, which is text to XML: the page that the item links to
has the same content. Only the root's xml:base counts.
"""

from stages.extractor.document import ALTERNATE, CANONICAL, FEED, IMAGE, LINK, MEDIA, NEXT, A, Document, shorten
from stages.extractor.documents.markup import (
    XML_BASE,
    XML_LANGUAGE,
    Listener,
    address,
    local_name,
    read_markup,
    root_of,
)

TYPES = (
    "application/rss+xml",
    "application/atom+xml",
    "application/rss",
    "application/atom",
    "application/x-rss+xml",
    "text/rss+xml",
    "text/rss",
    "text/atom+xml",
)
# RSS 1.0, 1.1 and 0.90.
_RDF_FEEDS = (b"http://purl.org/rss/", b"http://purl.org/net/rss", b"http://my.netscape.com/rdf/")
_WEB = ("http://", "https://")

_ITEMS = frozenset(("item", "entry"))
_TEXTS = {  # elements whose text is a link, by its kind
    "link": FEED,
    "guid": FEED,
    "comments": FEED,
    "commentRss": FEED,
    "origLink": FEED,
    "url": IMAGE,
    "icon": IMAGE,
    "logo": IMAGE,
    "docs": LINK,
    "uri": LINK,
}
_CAPTURED = frozenset((*_TEXTS, "title", "language"))
_ATTRIBUTES = {  # elements whose attributes are links, by their kinds
    "enclosure": (("url", MEDIA),),
    "content": (("url", MEDIA), ("src", FEED)),
    "player": (("url", MEDIA),),
    "thumbnail": (("url", IMAGE),),
    "image": (("href", IMAGE),),
    "source": (("url", LINK),),
    "a": (("href", A),),
    "img": (("src", IMAGE),),
}
_RELATIONS = {  # of <atom:link> (RFC 4287 4.2.7, RFC 5005); others, like hub and replies, are LINK
    "enclosure": MEDIA,
    "icon": IMAGE,
    **dict.fromkeys(("next", "prev", "previous", "first", "last", "current", "next-archive", "prev-archive"), NEXT),
}


def looks_like(start: bytes) -> bool:
    root = root_of(start)
    if root == "rdf":
        plain = start.replace(b"\0", b"")
        return any(name in plain for name in _RDF_FEEDS)
    return root in ("rss", "feed", "entry")


def read(content: bytes, charset: str) -> Document:
    return read_markup(content, charset, FeedListener())


class FeedListener(Listener):
    def __init__(self):
        super().__init__()
        self._has_root = self._in_item = False
        self._is_permalink = True

    def start(self, tag, attributes):
        name = local_name(tag)
        if not self._has_root:
            self.take_root(attributes)
        if name in _ITEMS:
            self._in_item = True
        elif name == "link" and "href" in attributes:
            self.take_relation(attributes)
        elif name in _CAPTURED:
            self.pieces = []
            self._is_permalink = name != "guid" or attributes.get("isPermaLink", "").strip().lower() != "false"
        if attributes and name in _ATTRIBUTES:
            for attribute, kind in _ATTRIBUTES[name]:
                if text := address(attributes.get(attribute, "")):
                    self.document.add(kind, text)

    def take_root(self, attributes):
        self._has_root = True
        self.document.base = address(attributes[XML_BASE]) if XML_BASE in attributes else None
        self.document.language = attributes.get(XML_LANGUAGE, "").strip()

    def take_relation(self, attributes):
        text = address(attributes["href"])
        relation = attributes.get("rel", "alternate").strip().lower()
        if relation == "alternate":
            kind = FEED if self._in_item else ALTERNATE
        elif relation == "self" and not self._in_item:
            kind = CANONICAL
            self.document.canonical = self.document.canonical or text or None
        else:
            kind = _RELATIONS.get(relation, LINK)
        if text:
            self.document.add(kind, text)

    def end(self, tag):
        name = local_name(tag)
        if name in _ITEMS:
            self._in_item = False
        if self.pieces is None or name not in _CAPTURED:
            return
        text = self.taken()
        if name == "title":
            if not self._in_item:
                self.document.title = self.document.title or shorten(text)
        elif name == "language":
            self.document.language = self.document.language or text
        # An identifier is an address only where it looks like one: most feeds forget to say that theirs is none.
        elif text and (name != "guid" or self._is_permalink and text.startswith(_WEB)):
            self.document.add(_TEXTS[name], text)
