"""Flash (SWF): where its buttons and scripts lead, and URLs in the constants of its scripts.

No library for this format is maintained any more, so this module reads it (SWF File Format Specification 19): a header,
then tags, compressed or not. In tags with actions it takes the targets of GetURL actions and the URLs among the
constants. In tags with ActionScript 3 it takes the URLs among the strings of the constant pool.
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
# Commands and names of namespaces.
_NO_LINKS = ("fscommand:", "javascript:", "http://adobe.com/as3/", "http://www.adobe.com/2006/")


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
    """What follows the header, unpacked, and the trouble; where the data ends early or is broken, what came before."""
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
    """The unpacked data and the trouble. `length` is what the header states: not all streams have an end mark."""
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
    """Tags that may hold links, with their codes; tags inside of sprites too.

    Marks the document where it has more than TAGS_MAX tags, or ends inside of one.
    """
    # The size of the stage: 5 bits that say how many bits each of 4 numbers has; then rate and count of frames.
    offset = (5 + 4 * (body[0] >> 3) + 7) // 8 + 4 if body else 0
    for _ in range(TAGS_MAX):
        if offset + 2 > len(body):
            if offset > len(body) and not document.trouble:
                document.mark(BROKEN)
            return
        head = int.from_bytes(body[offset : offset + 2], "little")
        code, length = head >> 6, head & 0x3F
        offset += 2
        if length == 0x3F:
            length = number_at(body, offset)
            offset += 4
        if code == _SPRITE:
            offset += _SPRITE_HEADER_BYTES
            continue
        if code in _WITH_ACTIONS or code in _WITH_STRINGS:
            yield code, body[offset : offset + length]
        offset += length
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


def length_before(tag: bytes, offset: int) -> int | None:
    """The length that stands before a string, 7 bits per byte, low bits first; none where there is no length."""
    before = tag[max(offset - 2, 0) : offset].rjust(2, b"\0")
    length = before[0] & 0x7F | before[1] << 7 if before[0] >= 0x80 else before[1]
    return length if len(b"http://a") <= length < 1 << 14 and before[1] not in _INSIDE_STRINGS else None


def number_at(content: bytes, offset: int) -> int:
    return int.from_bytes(content[offset : offset + 4], "little")
