"""Readers of documents: one module a type, chosen by media type and by how the content begins.

A reader has `TYPES`, the media types that choose it; `looks_like(start)`, whether the first START_BYTES of a content are
of its type; and `read(content, charset)`, which gives a Document (../document.py) and raises for no content whatever. To add one: write
the module, name it in READERS and, with the word that switches it on, in contract/config.py (DOCUMENTS). The more specific ones come first.

Modules that are no readers serve some: markup.py reads XML for sitemaps, feeds and the rest; start_tags.py, with the compiled tag_scan.py, and
nesting.py serve html.py; attributes.py serves it and headers; embedded_urls.py finds URLs in URLs.
"""

from types import ModuleType

from stages.extractor.documents import css, doc, feed, html, json_text, office, pdf, script, sitemap, swf, text, xml

HTML = "html"
START_BYTES = 1024
READERS: dict[str, ModuleType] = {
    HTML: html,
    "pdf": pdf,
    "office": office,
    "doc": doc,
    "swf": swf,
    "sitemap": sitemap,
    "feed": feed,
    "xml": xml,
    "json": json_text,
    "css": css,
    "script": script,
    "text": text,
}
_BY_TYPE = {kind: name for name, reader in READERS.items() for kind in reader.TYPES}
# Types that servers give to what they do not know: which readers are asked whether it is theirs.
_ANY = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/unknown",
    "application/x-download",
    "application/zip",
    "application/x-zip-compressed",
)
_TELLING = ("pdf", "office", "doc", "swf", "sitemap", "feed")
_ASKED = {
    **dict.fromkeys(_ANY, tuple(name for name in READERS if name != "text")),
    "text/plain": _TELLING,  # never HTML: a browser shows that as text
    **dict.fromkeys(("application/xml", "text/xml"), (*_TELLING, HTML)),
}


def choose_reader(kind: str, start: bytes) -> str:
    """The name of the reader for a content of that media type that begins so; nothing where there is none."""
    named = _BY_TYPE.get(kind, "") or ("xml" if kind.endswith("+xml") else "")
    if kind in _ASKED:
        default = "text" if kind == "" and text.looks_like(start) else named
        return next((name for name in _ASKED[kind] if READERS[name].looks_like(start)), default)
    if named and named != HTML and not READERS[named].looks_like(start) and html.looks_like(start):
        return HTML  # a page that says why the document is not there
    if named == "xml":  # of a more telling type
        return next((name for name in ("sitemap", "feed") if READERS[name].looks_like(start)), named)
    return named
