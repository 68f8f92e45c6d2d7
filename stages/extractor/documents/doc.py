"""Word 97-2003, and Excel, PowerPoint and others of the compound file format: HYPERLINK fields, URLs in text, title.

olefile joins the streams; it reads the format as its many writers write it, and no other module imports it. It trusts
numbers that a hostile file may set to billions, so this module checks them first. It unpacks vectors of properties
without a bound, so this module reads the properties itself. If the streams cannot be found (the file was cut off, its
tables are broken), the whole file is searched: most of its text is in one piece.
"""

import codecs
import re
import struct
from collections.abc import Iterator
from io import BytesIO

import olefile

from contract.trouble import BROKEN, READER_BOUND
from stages.extractor.document import DOCUMENT, TEXT, Document, shorten
from stages.extractor.documents.text import find_urls

TYPES = (
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/x-ole-storage",
    "application/vnd.visio",
    "application/vnd.ms-project",
    "application/vnd.ms-works",
    "application/vnd.ms-publisher",
)

STREAMS_MAX = 100  # those at the root: the text is there; inner ones are objects and macros
STREAMS_MAX_BYTES = 64 << 20  # of them together: hostile ones may all be the same sectors
PROPERTIES_MAX = 100
LINKS_MAX = 10_000

_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SECTOR_BITS = {(9, 6), (12, 6)}  # of sectors and of the small ones (MS-CFB 2.2)
_SUMMARY = "\x05SummaryInformation"
_CODEPAGE, _TITLE = 1, 2  # properties of the summary (MS-OLEPS 3.1)
_SHORT, _BYTES, _UTF_16 = 2, 30, 31  # types of properties: VT_I2, VT_LPSTR, VT_LPWSTR
# In the XML of pictures.
_NAMES_OF_SCHEMAS = ("http://schemas.", "http://purl.", "http://ns.adobe.com/", "http://www.w3.org/")


def _wide(text: bytes) -> bytes:
    """A pattern for ASCII text in UTF-16LE."""
    return b"".join(re.escape(text[at : at + 1]) + rb"\x00" for at in range(len(text)))


# The instruction of a field: HYPERLINK "target". With a switch before the text (\l) the target is in the same document.
_FIELD = re.compile(rb'HYPERLINK[ ]{1,9}+"([^"\x00-\x1f]{1,4000}+)"')
_WIDE_FIELD = re.compile(
    _wide(b"HYPERLINK") + rb'(?:[ ]\x00){1,9}"\x00((?:(?!["\x00-\x1f]\x00)[\x00-\xff]{2}){1,4000})"\x00'
)
_URL = re.compile(rb"https?://[^\x00-\x20\x7f-\xff\"<>\\^`{|}]{1,4000}+")
_WIDE_URL = re.compile(
    _wide(b"http") + rb"(?:s\x00)?" + _wide(b"://") + rb"(?:[^\x00-\x20\x7f-\xff\"<>\\^`{|}]\x00){1,4000}"
)


def looks_like(start: bytes) -> bool:
    return start.startswith(_MAGIC)


def read(content: bytes, charset: str) -> Document:
    document = Document()
    try:
        streams = dict(read_streams(content, document)) if is_sound(content) else {}
    except Exception:  # olefile raises many kinds of exceptions on broken tables
        streams = {}
    if not streams:
        document.mark(BROKEN)
    document.title = title_of(streams.pop(_SUMMARY, b""))
    for stream in streams.values() or (content,):
        add_links(document, stream)
    return document


def is_sound(content: bytes) -> bool:
    """Whether the header's numbers fit the length of the file."""
    if not content.startswith(_MAGIC) or len(content) < 512:
        return False
    counts = [
        struct.unpack_from("<I", content, offset)[0] for offset in (44, 64, 72)
    ]  # sectors of FAT, mini FAT, DIFAT
    return struct.unpack_from("<HH", content, 30) in _SECTOR_BITS and max(counts) <= len(content) // 512


class CompoundFile(olefile.OleFileIO):
    def _check_duplicate_stream(self, first_sect: int, minifat: bool = False) -> None:
        """Overrides a check that is quadratic in the number of streams and only used to raise a clear error."""


def read_streams(content: bytes, document: Document) -> Iterator[tuple[str, bytes]]:
    """The streams at the root, by name. Marks the document if some are left out."""
    left = STREAMS_MAX_BYTES
    with CompoundFile(BytesIO(content)) as file:
        if file.root.size > len(content):
            return
        if len(file.root.kids) > STREAMS_MAX:
            document.mark(READER_BOUND)
        for entry in file.root.kids[:STREAMS_MAX]:
            if entry.entry_type != olefile.STGTY_STREAM or not entry.size:
                continue
            if entry.size > min(left, len(content)):
                document.mark(READER_BOUND)
                continue
            left -= entry.size
            yield entry.name, file.openstream([entry.name]).read()


def add_links(document: Document, stream: bytes) -> None:
    for pattern, encoding in ((_FIELD, "cp1252"), (_WIDE_FIELD, "utf-16-le")):
        for found in find_links(document, pattern, stream):
            add(document, DOCUMENT, found[1].decode(encoding, "replace"))
        stream = pattern.sub(b"\0\0", stream)  # or their URLs would be found once more
    for pattern, encoding in ((_URL, "ascii"), (_WIDE_URL, "utf-16-le")):
        for found in find_links(document, pattern, stream):
            text = next(find_urls(found[0].decode(encoding, "replace")), "")
            if not text.startswith(_NAMES_OF_SCHEMAS):
                add(document, TEXT, text)


def find_links(document: Document, pattern: re.Pattern, stream: bytes) -> Iterator[re.Match]:
    for number, found in enumerate(pattern.finditer(stream)):
        if number == LINKS_MAX:
            document.mark(READER_BOUND)
            return
        yield found


def add(document: Document, kind: int, text: str) -> None:
    if text and len(document.others) < LINKS_MAX:
        document.add(kind, text)
    elif text:
        document.mark(READER_BOUND)


def title_of(summary: bytes) -> str:
    """The title in a stream of properties (MS-OLEPS 2.21: one set after a header of 48 bytes)."""
    try:
        start = struct.unpack_from("<I", summary, 44)[0]
        count = struct.unpack_from("<I", summary, start + 4)[0]
        offsets = dict(
            struct.unpack_from("<II", summary, start + 8 + 8 * number) for number in range(min(count, PROPERTIES_MAX))
        )
        codec = codec_of(summary, start + offsets[_CODEPAGE]) if _CODEPAGE in offsets else "cp1252"
        kind, length = struct.unpack_from("<II", summary, start + offsets[_TITLE])
    except (struct.error, KeyError):
        return ""
    text = start + offsets[_TITLE] + 8
    if kind == _UTF_16:
        return clean(summary[text : text + 2 * length].decode("utf-16-le", "replace"))
    return clean(summary[text : text + length].decode(codec, "replace")) if kind == _BYTES else ""


def codec_of(summary: bytes, offset: int) -> str:
    kind, number = struct.unpack_from("<IH", summary, offset)
    name = (
        {65001: "utf-8", 1200: "utf-16-le", 10000: "mac-roman"}.get(number, f"cp{number}")
        if kind == _SHORT
        else "cp1252"
    )
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def clean(title: str) -> str:
    return shorten(title.partition("\0")[0])
