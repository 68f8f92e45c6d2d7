"""Readers of documents: one module per type, chosen by media type and by the first bytes of the content.

A reader has `TYPES`, the media types that choose it; `looks_like(start)`, whether the first START_BYTES of a content
are of its type; and `read(content, charset)`, which returns a Document (../document.py) and never raises, whatever
the content. To add a reader: write its module; name it in READERS, more specific ones first; add the word that
switches it on to DOCUMENTS in contract/config.py.

Some modules are no readers but serve them. html.py uses html_plain.py, html_elements.py, start_tags.py with the
compiled tag_scan.py, and nesting.py with the compiled depth_scan.py. sitemap.py, feed.py and xml.py use markup.py.
attributes.py serves html.py and headers. embedded_urls.py finds URLs in URLs.
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
# Types that servers give to files that they do not know.
_ANY = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/unknown",
    "application/x-download",
    "application/zip",
    "application/x-zip-compressed",
)
_SPECIFIC = ("pdf", "office", "doc", "swf", "sitemap", "feed")
_ASKED = {  # media type -> readers whose looks_like() decides
    **dict.fromkeys(_ANY, tuple(name for name in READERS if name != "text")),
    "text/plain": _SPECIFIC,  # never HTML: a browser shows that as text
    **dict.fromkeys(("application/xml", "text/xml"), (*_SPECIFIC, HTML)),
}


def choose_reader(kind: str, start: bytes) -> str:
    """The name of the reader for a content of this media type that begins with `start`; nothing where there is none."""
    named = _BY_TYPE.get(kind, "") or ("xml" if kind.endswith("+xml") else "")
    if kind in _ASKED:
        default = "text" if kind == "" and text.looks_like(start) else named
        return next((name for name in _ASKED[kind] if READERS[name].looks_like(start)), default)
    if named and named != HTML and not READERS[named].looks_like(start) and html.looks_like(start):
        return HTML  # a page that says why the document is missing
    if named == "xml":  # a more specific reader may fit
        return next((name for name in ("sitemap", "feed") if READERS[name].looks_like(start)), named)
    return named
