"""Flash (SWF): where its buttons and scripts lead, and URLs in the constants of its scripts.

No library for it is kept any more, so the format is read here (SWF File Format Specification 19): a header, packed or not,
then tags. Of tags with actions the GetURL actions are taken, which name their target outright, and URLs among the
constants; of tags with ActionScript 3 the URLs among the strings of its constant pool.
"""

import lzma
import re
import zlib
from collections.abc import Iterator

from contract.trouble import BROKEN, READER_BOUND
from stages.extractor.document import DATA, Document

TYPES = ("application/x-shockwave-flash", "application/vnd.adobe.flash.movie")

UNPACKED_MAX_BYTES = 16 << 20
PIECE_BYTES = 64 << 10
TAGS_MAX = 200_000
LINKS_MAX = 10_000

_HEADER_BYTES = 8  # signature, version, length
_LENGTH_MAX = 1 << 28  # text that begins like a signature has letters here
_LZMA_SIZE_BYTES, _LZMA_DATA = 4, 9  # between them five bytes of properties
_LZMA_MEMORY_MAX_BYTES = 64 << 20
_SPRITE = 39  # holds tags of its own behind its number and its count of frames
_SPRITE_HEADER_BYTES = 4
_WITH_ACTIONS = {7, 12, 26, 34, 37, 59, 70}  # buttons, DoAction, placed clips, text fields with HTML, DoInitAction
_WITH_STRINGS = {72, 82}  # DoABC

# ActionGetURL: its code, the length of the two texts, then the URL and the window, each with a zero behind it.
_GET_URL = re.compile(rb"\x83([\x00-\xff][\x00-\x0f])(?=[!-~])")
_URL = re.compile(rb"https?://[^\x00-\x20\x7f\"'<>\\^`{|}]{1,4000}+")
_INSIDE_STRINGS = b" \"'=(>"  # before a URL that is not the whole string
_NO_LINKS = (
    "fscommand:",
    "javascript:",
    "http://adobe.com/as3/",
    "http://www.adobe.com/2006/",
)  # commands and names of namespaces


def looks_like(start: bytes) -> bool:
    has_header = len(start) >= _HEADER_BYTES and start[:3] in (b"FWS", b"CWS", b"ZWS")
    return has_header and 0 < start[3] < 64 and number_at(start, 4) < _LENGTH_MAX


def read(content: bytes, charset: str) -> Document:
    body, trouble = unpack(content)
    document = Document(trouble=trouble)
    for code, tag in iterate_tags(body, document):
        for text in urls_of(code, tag):
            try:
                url = text.decode("utf-8")
            except UnicodeDecodeError:
                url = text.decode("latin-1")
            if len(document.others) >= LINKS_MAX:
                document.mark(READER_BOUND)
                return document
            if not url.lower().startswith(_NO_LINKS):
                document.add(DATA, url)
    return document


def unpack(content: bytes) -> tuple[bytes, str]:
    """What follows the header; where the packed data breaks off or is broken, what came before, and that trouble."""
    packed, length = content[_HEADER_BYTES:], number_at(content, 4) - _HEADER_BYTES
    if content.startswith(b"CWS"):
        return inflate(zlib.decompressobj(), packed, length)
    if content.startswith(b"ZWS"):
        # As the older LZMA format has it: properties, an unknown length, data.
        properties, data = packed[_LZMA_SIZE_BYTES:_LZMA_DATA], packed[_LZMA_DATA:]
        decompressor = lzma.LZMADecompressor(lzma.FORMAT_ALONE, _LZMA_MEMORY_MAX_BYTES)
        return inflate(decompressor, properties + b"\xff" * 8 + data, length)
    return packed[:UNPACKED_MAX_BYTES], READER_BOUND if len(packed) > UNPACKED_MAX_BYTES else ""


def inflate(decompressor, packed: bytes, length: int) -> tuple[bytes, str]:
    """What the packed data hold, which the header says is so long: not all have a mark at their end."""
    pieces, left = [], UNPACKED_MAX_BYTES
    for start in range(0, len(packed), PIECE_BYTES):
        try:
            pieces.append(decompressor.decompress(packed[start : start + PIECE_BYTES], left))
        except (zlib.error, lzma.LZMAError):
            break
        left -= len(pieces[-1])
        if left <= 0 or decompressor.eof:
            break
    is_whole = decompressor.eof or UNPACKED_MAX_BYTES - left >= length
    return b"".join(pieces), "" if is_whole else READER_BOUND if left <= 0 else BROKEN


def iterate_tags(body: bytes, document: Document) -> Iterator[tuple[int, bytes]]:
    """Tags that may hold links, with their codes; those inside of sprites too.

    The document is marked where it has more tags, or ends inside of one.
    """
    # The size of the stage: 5 bits that say how many bits each of 4 numbers has; then rate and count of frames.
    place = (5 + 4 * (body[0] >> 3) + 7) // 8 + 4 if body else 0
    for _ in range(TAGS_MAX):
        if place + 2 > len(body):
            if place > len(body) and not document.trouble:
                document.mark(BROKEN)
            return
        head = int.from_bytes(body[place : place + 2], "little")
        code, length = head >> 6, head & 0x3F
        place += 2
        if length == 0x3F:
            length = number_at(body, place)
            place += 4
        if code == _SPRITE:
            place += _SPRITE_HEADER_BYTES
            continue
        if code in _WITH_ACTIONS or code in _WITH_STRINGS:
            yield code, body[place : place + length]
        place += length
    document.mark(READER_BOUND)


def urls_of(code: int, tag: bytes) -> Iterator[bytes]:
    if code in _WITH_STRINGS:
        for found in _URL.finditer(tag):
            yield found[0][: length_before(tag, found.start())]
        return
    taken = set()
    for found in _GET_URL.finditer(tag):
        end = found.end() + int.from_bytes(found[1], "little")
        texts = tag[found.end() : end] if tag[end - 1 : end] == b"\0" else b""
        if texts.count(b"\0") == 2:
            taken.add(found.end())
            yield texts.partition(b"\0")[0]
    for found in _URL.finditer(tag):
        if found.start() not in taken:
            yield found[0]


def length_before(tag: bytes, place: int) -> int | None:
    """The length before a string, 7 bits a byte, low ones first: what follows it is the next one's; none where there is none."""
    before = tag[max(place - 2, 0) : place].rjust(2, b"\0")
    length = before[0] & 0x7F | before[1] << 7 if before[0] >= 0x80 else before[1]
    return length if len(b"http://a") <= length < 1 << 14 and before[1] not in _INSIDE_STRINGS else None


def number_at(content: bytes, place: int) -> int:
    return int.from_bytes(content[place : place + 4], "little")
