"""Sitemaps (sitemaps.org): lists of a site's pages and of other sitemaps, plain or gzip.

The reader takes <loc> with its <lastmod>, alternates in other languages (<xhtml:link>), images and videos. Sitemaps in
plain text, one URL per line, are read as text.
"""

from contract.body import decompress_members
from contract.trouble import BROKEN, READER_BOUND
from stages.extractor.charset import choose_charset
from stages.extractor.document import ALTERNATE, IMAGE, MEDIA, SITEMAP, Document
from stages.extractor.documents.markup import Listener, address, local_name, read_markup, root_of
from stages.extractor.documents.w3c_date import read_w3c_date

TYPES = ("application/gzip", "application/x-gzip", "application/gzip-compressed", "application/sitemap+xml")
ROOTS = ("urlset", "sitemapindex")
CONTENT_MAX_BYTES = 50 << 20  # what the protocol allows, not compressed
START_BYTES = 1024
_GZIP, _GZIP_MAGIC = 31, b"\x1f\x8b\x08"  # zlib's number for 'gzip wrapper'
# Kinds of elements whose text is a link.
_LASTMOD, _ENTRIES = "lastmod", ("url", "sitemap")
_KINDS = {"loc": SITEMAP, "content_loc": MEDIA, "player_loc": MEDIA, "thumbnail_loc": IMAGE}


def looks_like(start: bytes) -> bool:
    return root_of(start_of(start)) in ROOTS


def read(content: bytes, charset: str) -> Document:
    """The links of a sitemap; an empty document for a gzip file that holds no sitemap."""
    trouble = ""
    if content.startswith(_GZIP_MAGIC):
        if not looks_like(content[:START_BYTES]):
            return Document()
        unpacked = decompress_members(content, _GZIP, CONTENT_MAX_BYTES + 1)
        content = unpacked.content[:CONTENT_MAX_BYTES]
        trouble = READER_BOUND if len(unpacked.content) > CONTENT_MAX_BYTES else "" if unpacked.is_whole else BROKEN
        charset = choose_charset(content, "application/xml", has_markup=True)
    document = read_markup(content, charset, SitemapListener())
    document.mark(trouble)
    return document


def start_of(content: bytes) -> bytes:
    unpacked = decompress_members(content, _GZIP, START_BYTES) if content.startswith(_GZIP_MAGIC) else None
    return unpacked.content if unpacked else content[:START_BYTES]


class SitemapListener(Listener):
    def __init__(self):
        super().__init__()
        self._loc, self._lastmod_s = "", 0  # of the entry that is being read
        self._in_image = False  # by its name and not by its namespace, which many forget to declare

    def start(self, tag, attributes):
        name = local_name(tag)
        if name in _KINDS or name == _LASTMOD:
            self.pieces = []
        elif name in _ENTRIES:
            self._loc, self._lastmod_s = "", 0
        elif name == "image":
            self._in_image = True
        elif name == "link" and (text := address(attributes.get("href", ""))):
            self.document.add(ALTERNATE, text)

    def end(self, tag):
        name = local_name(tag)
        if name == "image":
            self._in_image = False
        elif name in _ENTRIES:
            if self._loc and self._lastmod_s:
                self.document.lastmods[self._loc] = self._lastmod_s
        elif self.pieces is not None and name == _LASTMOD:
            self._lastmod_s = read_w3c_date(self.taken())
        elif self.pieces is not None and name in _KINDS and (text := self.taken()):
            kind = IMAGE if self._in_image else _KINDS[name]
            self.document.add(kind, text)
            if kind == SITEMAP:
                self._loc = text
