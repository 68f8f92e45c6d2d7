"""Office documents that are zip files of XML: DOCX, PPTX, XLSX, ODT, ODP, ODS, EPUB; their hyperlinks, title and text.

The module reads them with zipfile and expat of the standard library. It trusts no size that the file states: unpacked
bytes, elements and depth have their own bounds. It refuses a document type with its own declarations, and entities,
because these make small XML large. It does not resolve namespaces, because that copies a long name for every element;
the prefixes are those that all programs write. A file that was cut off has lost its directory: then the module reads
it by the headers of its entries.
"""

import re
import zipfile
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice
from xml.parsers import expat

from contract.trouble import BROKEN, READER_BOUND
from stages.extractor.document import DOCUMENT, Document, shorten

_OPEN_XML = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
TYPES = (
    *(
        _OPEN_XML + name
        for name in (
            "wordprocessingml.document",
            "wordprocessingml.template",
            "presentationml.presentation",
            "presentationml.slideshow",
            "presentationml.template",
            "spreadsheetml.sheet",
            "spreadsheetml.template",
        )
    ),
    "application/vnd.ms-word.document.macroenabled.12",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    "application/vnd.ms-excel.sheet.macroenabled.12",
    *(_OPEN_DOCUMENT + name for name in ("text", "text-template", "presentation", "spreadsheet", "graphics")),
    "application/epub+zip",
)

UNPACKED_MAX_BYTES = 64 << 20
ENTRIES_MAX = 10_000  # in the file; a book has hundreds
ELEMENTS_MAX = 1_000_000  # about a second
DEPTH_MAX = 1_000
LINKS_MAX = 10_000
LINK_MAX_CHARACTERS = 8_000
TEXT_MAX_CHARACTERS = 1 << 20

NAME_MAX_BYTES = 300  # of an entry
PIECE_BYTES = 16 << 10  # unpacks to 16 MB at most: deflate gives 1,032 bytes for one

_ENTRY, _DIRECTORY_ENTRY = b"PK\x03\x04", b"PK\x01\x02"
_ENTRY_SIGNATURE = re.compile(re.escape(_ENTRY))
_ENTRY_HEADER_BYTES = 30  # before its name (APPNOTE 4.3.7)
_FIRST_NAMES = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"word/", b"ppt/", b"xl/", b"META-INF/container.xml")
_FIRST_TYPES = (_OPEN_DOCUMENT.encode(), b"application/epub+zip")  # what an entry named mimetype holds
_LINKS_AND_TITLE = re.compile(r".*\.(?:rels|opf)|docProps/core\.xml|meta\.xml")
_BODY = re.compile(r"content\.xml|word/document\.xml|ppt/slides/slide[0-9]+\.xml|xl/sharedStrings\.xml|.*\.x?html?")

# Elements whose xlink:href a click follows.
_LINKING = {"a", "area-rectangle", "area-circle", "area-polygon", "event-listener"}
_BODIES = {"office:body", "body"}  # of ODF and XHTML; Office Open XML has its text in elements named t
_BREAKS = {"br", "dd", "div", "dt", "h", "h1", "h2", "h3", "h4", "li", "p", "s", "si", "tab", "td", "th", "title", "tr"}
_WEB = ("http://", "https://")
_FIELD = re.compile(r'HYPERLINK\s++"([^"]++)"')


def looks_like(start: bytes) -> bool:
    """By the name of the first entry, or the type that ODF and EPUB put there unpacked."""
    first = start[_ENTRY_HEADER_BYTES:]
    return start.startswith(_ENTRY) and (
        first.startswith(_FIRST_NAMES)
        or first.startswith(b"mimetype")
        and any(kind in first[:100] for kind in _FIRST_TYPES)
    )


def read(content: bytes, charset: str) -> Document:
    document = Document()
    reader = PartReader(document)
    if content.count(_DIRECTORY_ENTRY) <= ENTRIES_MAX:
        for part in unpack_parts(content, document.mark):
            if not reader.read_part(part):
                break
    else:
        document.mark(READER_BOUND)
    document.text = reader.text()
    return document


def unpack_parts(content: bytes, mark: Callable[[str], None]) -> Iterator[bytes]:
    """The parts that hold links, title or text, those with links first; at most UNPACKED_MAX_BYTES of them.

    `mark` gets the trouble where some are left out.
    """
    try:
        file = zipfile.ZipFile(BytesIO(content))
    except Exception:  # zipfile raises many kinds of exceptions where there is no zip file
        mark(BROKEN)
        yield from inflate_parts(content, mark)
        return
    unpacked_left, packed_left = UNPACKED_MAX_BYTES, len(content)
    with file:
        for info in in_order([(info.filename, info) for info in file.infolist()]):
            packed_left -= info.compress_size  # below 0: entries overlap, so that bytes would be unpacked repeatedly
            if unpacked_left <= 0 or packed_left < 0:
                mark(READER_BOUND)
                return
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                mark(READER_BOUND)
                continue  # cannot be unpacked in small pieces, and no such document uses it
            try:
                with file.open(info) as opened:
                    part = opened.read(unpacked_left)
            except Exception:  # the other parts may be whole
                mark(BROKEN)
                continue
            if len(part) < info.file_size:
                mark(READER_BOUND)
            unpacked_left -= len(part)
            yield part


def inflate_parts(content: bytes, mark: Callable[[str], None]) -> Iterator[bytes]:
    """The same for a file that was cut off: finds entries by their own headers; the last one may be incomplete."""
    offsets = [found.start() for found in islice(_ENTRY_SIGNATURE.finditer(content), ENTRIES_MAX)]
    unpacked_left, packed_left = UNPACKED_MAX_BYTES, len(content)
    for offset in in_order([(name_at(content, offset), offset) for offset in offsets]):
        inflater, pieces = zlib.decompressobj(-zlib.MAX_WBITS), []
        start = offset + _ENTRY_HEADER_BYTES + number_at(content, offset + 26) + number_at(content, offset + 28)
        while not inflater.eof and start < len(content) and unpacked_left > 0 and packed_left > 0:
            packed = content[start : start + PIECE_BYTES]
            try:
                pieces.append(inflater.decompress(packed))
            except zlib.error:  # not packed, or no entry
                break
            start += PIECE_BYTES
            packed_left -= len(packed) - len(inflater.unused_data)
            unpacked_left -= len(pieces[-1])
        if not inflater.eof and start < len(content) and min(unpacked_left, packed_left) <= 0:
            mark(READER_BOUND)
        yield b"".join(pieces)


def in_order(entries: list[tuple[str, object]]) -> list:
    return [entry for pattern in (_LINKS_AND_TITLE, _BODY) for name, entry in entries if pattern.fullmatch(name)]


def name_at(content: bytes, offset: int) -> str:
    start = offset + _ENTRY_HEADER_BYTES
    return content[start : start + min(number_at(content, offset + 26), NAME_MAX_BYTES)].decode("utf-8", "replace")


def number_at(content: bytes, offset: int) -> int:
    return int.from_bytes(content[offset : offset + 2], "little")


class Stop(Exception):
    """A bound is passed, or the XML is of a kind that is refused."""


class PartReader:
    """Reads XML parts of one document; the bounds hold for all of them together."""

    def __init__(self, document: Document):
        self._document = document
        self._elements_left = ELEMENTS_MAX
        self._characters_left = TEXT_MAX_CHARACTERS
        self._texts: list[str] = []
        self._depth = self._in_text = 0
        self._in_field = False
        self._field: list[str] = []  # pieces of an instruction of Word, which may be cut into several elements
        self._title: list[str] | None = None  # pieces of the open dc:title

    def text(self) -> str:
        return " ".join("".join(self._texts).split())

    def read_part(self, part: bytes) -> bool:
        """Reads as far as the XML is well-formed. False: a bound is passed, and no more parts are wanted."""
        self._depth = self._in_text = 0
        self._title = None
        # The part's own declaration is ignored: Python would look for a codec of any name.
        parser = expat.ParserCreate("utf-16" if part.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = refuse_declarations
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._take
        try:
            parser.Parse(part, True)
        except Stop:
            self._document.mark(READER_BOUND)
        except (expat.ExpatError, ValueError):
            self._document.mark(BROKEN)
        self._close_field()
        return self._elements_left > 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements_left -= 1
        self._depth += 1
        if self._elements_left <= 0 or self._depth > DEPTH_MAX:
            raise Stop
        local = name.rpartition(":")[2]
        if local in _LINKING:
            self._add_href(attributes.get("xlink:href"), attributes.get("href"))
        elif local == "Relationship":
            if attributes.get("TargetMode") == "External" and attributes.get("Type", "").endswith("/hyperlink"):
                self._add(attributes.get("Target", ""))
        elif local == "t" or name in _BODIES:
            self._in_text += 1
        elif local == "instrText":
            self._in_field = True
        elif local == "fldChar":
            self._close_field()
        elif local == "fldSimple":
            self._field.append(attributes.get("w:instr", ""))
            self._close_field()
        elif name == "dc:title" and not self._document.title:
            self._title = []

    def _end(self, name: str) -> None:
        self._depth -= 1
        local = name.rpartition(":")[2]
        if local in _BREAKS:
            self._texts.append(" ")
        if local == "t" or name in _BODIES:
            self._in_text -= 1
        elif local == "instrText":
            self._in_field = False
        elif name == "dc:title" and self._title is not None:
            self._document.title = shorten("".join(self._title))
            self._title = None

    def _take(self, text: str) -> None:
        if self._in_text and self._characters_left > 0:
            self._texts.append(text[: self._characters_left])
            self._characters_left -= len(text)
            if self._characters_left < 0:
                self._document.mark(READER_BOUND)
        elif self._in_field:
            self._field.append(text)
        elif self._title is not None:
            self._title.append(text)

    def _close_field(self) -> None:
        for text in _FIELD.findall("".join(self._field)):
            self._add(text)
        self._field.clear()
        self._in_field = False

    def _add_href(self, of_open_document: str | None, of_book: str | None) -> None:
        if of_open_document is not None:
            # To its relative links an ODF file is a folder (ODF 1.2 part 3, 3.7): '../' leads to files beside it.
            self._add(of_open_document.removeprefix("../"))
        elif of_book is not None and of_book.startswith(_WEB):  # other links lead to chapters of the same book
            self._add(of_book)

    def _add(self, text: str) -> None:
        if not text or text.startswith("#") or len(text) > LINK_MAX_CHARACTERS:
            return
        if len(self._document.others) < LINKS_MAX:
            self._document.add(DOCUMENT, text)
        else:
            self._document.mark(READER_BOUND)


def refuse_declarations(name: str, system_id: str | None, public_id: str | None, has_internal_subset: int) -> None:
    if has_internal_subset:
        raise Stop
