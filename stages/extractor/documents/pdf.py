"""PDF: link annotations, URLs in the text of pages, title and text.

The reader is pdfium, which is maintained and fuzzed as a part of Chromium; no other module imports pypdfium2. A
document that it cannot open (cut off, broken beyond repair, locked by a password) counts as empty.
"""

import ctypes

import pypdfium2.raw as pdfium

from contract.trouble import BROKEN, READER_BOUND
from stages.extractor.document import DOCUMENT, TEXT, Document, shorten

TYPES = ("application/pdf", "application/x-pdf", "application/acrobat", "text/pdf")
PAGES_MAX = 1_000  # the rest of a book seldom leads elsewhere
# Of all pages: a thousand full ones. A character costs about 0.7 us, the layout of its page included.
TEXT_MAX_CHARACTERS = 4_000_000
ANNOTATIONS_MAX = 100_000  # examined, of all pages
LINKS_MAX = 10_000
LINK_MAX_BYTES = 8_000
TITLE_MAX_BYTES = 4_096
_BEFORE_HEADER = b"\xef\xbb\xbf\0\t\n\f\r "


def looks_like(start: bytes) -> bool:
    return start.lstrip(_BEFORE_HEADER).startswith(b"%PDF-")


def read(content: bytes, charset: str) -> Document:
    document = Document()
    opened = pdfium.FPDF_LoadMemDocument64(content, len(content), None)
    if not opened:
        document.mark(BROKEN)
        return document
    try:
        document.title = title_of(opened)
        Reading(opened, document).read_pages()
    finally:
        pdfium.FPDF_CloseDocument(opened)
    return document


def title_of(opened) -> str:
    buffer = ctypes.create_string_buffer(TITLE_MAX_BYTES)
    length = pdfium.FPDF_GetMetaText(opened, b"Title", buffer, TITLE_MAX_BYTES)
    return shorten(from_utf_16(buffer.raw[:length])) if length <= TITLE_MAX_BYTES else ""


class Reading:
    """One pass over the pages of an open document; every page is closed before the next is opened."""

    def __init__(self, opened, document: Document):
        self._opened = opened
        self._document = document
        self._annotations_left = ANNOTATIONS_MAX
        self._characters_left = TEXT_MAX_CHARACTERS
        self._texts: list[str] = []

    def read_pages(self) -> None:
        pages = pdfium.FPDF_GetPageCount(self._opened)
        pages_read = min(pages, PAGES_MAX)
        for number in range(pages_read):
            page = pdfium.FPDF_LoadPage(self._opened, number)
            if not page:
                self._document.mark(BROKEN)
                continue
            try:
                self._read_annotations(page)
                self._read_text(page)
            finally:
                pdfium.FPDF_ClosePage(page)
            if self._characters_left <= 0 or len(self._document.others) >= LINKS_MAX:
                pages_read = number + 1
                break
        if pages_read < pages:
            self._document.mark(READER_BOUND)
        self._document.text = "\n".join(self._texts)

    def _read_annotations(self, page) -> None:
        position, link = ctypes.c_int(0), pdfium.FPDF_LINK()
        while self._annotations_left > 0 and pdfium.FPDFLink_Enumerate(page, position, link):
            self._annotations_left -= 1
            action = pdfium.FPDFLink_GetAction(link)
            if action and pdfium.FPDFAction_GetType(action) == pdfium.PDFACTION_URI:
                self._add(DOCUMENT, self._uri_of(action))
        if self._annotations_left <= 0:
            self._document.mark(READER_BOUND)

    def _uri_of(self, action) -> str:
        """The text of the link, behind the document's own base where it declares one; pdfium joins them."""
        length = pdfium.FPDFAction_GetURIPath(self._opened, action, None, 0)
        if not 1 < length <= LINK_MAX_BYTES:
            return ""
        buffer = ctypes.create_string_buffer(length)
        pdfium.FPDFAction_GetURIPath(self._opened, action, buffer, length)
        try:
            return buffer.value.decode("utf-8")
        except UnicodeDecodeError:
            return buffer.value.decode("latin-1")

    def _read_text(self, page) -> None:
        text_page = pdfium.FPDFText_LoadPage(page)
        if not text_page:
            return
        try:
            count = pdfium.FPDFText_CountChars(text_page)
            if count <= 0:
                return
            self._characters_left -= count
            buffer = (ctypes.c_ushort * (count + 1))()
            written = pdfium.FPDFText_GetText(text_page, 0, count, buffer)
            self._texts.append(from_utf_16(bytes(buffer)[: 2 * written]))
            self._read_urls(text_page)
        finally:
            pdfium.FPDFText_ClosePage(text_page)

    def _read_urls(self, text_page) -> None:
        found = pdfium.FPDFLink_LoadWebLinks(text_page)
        if not found:
            return
        try:
            for number in range(min(pdfium.FPDFLink_CountWebLinks(found), LINKS_MAX)):
                length = pdfium.FPDFLink_GetURL(found, number, None, 0)
                if 0 < length <= LINK_MAX_BYTES:
                    buffer = (ctypes.c_ushort * length)()
                    pdfium.FPDFLink_GetURL(found, number, buffer, length)
                    url = from_utf_16(bytes(buffer))
                    self._add(TEXT, url if url.lower().startswith("http") else "")  # the others are mail addresses
        finally:
            pdfium.FPDFLink_CloseWebLinks(found)

    def _add(self, kind: int, text: str) -> None:
        if text and len(self._document.others) < LINKS_MAX:
            self._document.add(kind, text)
        elif text:
            self._document.mark(READER_BOUND)


def from_utf_16(content: bytes) -> str:
    return content.decode("utf-16-le", "ignore").rstrip("\0")
