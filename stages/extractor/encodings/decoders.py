"""Decodes the encodings with more than one byte per character as the Encoding standard says (sections 10 to 13).

All but ISO-2022-JP share one compiled loop, driven by a table. The table has an entry for every two bytes: the UTF-8
that they give, and how many of them are taken. An error gives U+FFFD. It takes both bytes, or only the first one where
the second is ASCII, so that an error never hides markup; Python's codecs take other numbers of bytes.
"""

from functools import cache

import numpy as np

from stages.extractor.encodings.indexes import (
    EUC_JP,
    GB18030,
    GBK,
    ISO_2022_JP,
    JIS_0212,
    LEADS,
    SHIFT_JIS,
    index_of,
    read_four_bytes,
)
from storage.compiled import compiled

OUT_MAX_BYTES = 3  # of UTF-8 per byte that is read: U+FFFD
PLAIN_MAX_BYTES = 1 << 20  # of UTF-8 that Python writes in the time of importing numba
STORED_BYTES = 4  # that `put` stores per entry; it counts only those that belong to it
# An entry, from its lowest bit on: the UTF-8, first byte lowest; the length of the UTF-8; the number of bytes taken.
_LENGTH, _TAKEN = 32, 40


def entry_of(text: str, taken: int) -> int:
    encoded = text.encode()
    return int.from_bytes(encoded, "little") | len(encoded) << _LENGTH | taken << _TAKEN


_FOUR_BYTES_ASTRAL = 189_000  # GB 18030's pointer of U+10000
_ONE = 1 << _TAKEN
_MORE = 0  # the entry of two bytes that begin a longer sequence
_ERROR = entry_of("\ufffd", 0)
_YEN, _OVERLINE = entry_of("¥", 1), entry_of("‾", 1)
_ASCII, _ROMAN, _KATAKANA, _KANJI, _NONE = range(5)
_ESCAPE, _BACKSLASH, _TILDE, _OPEN, _DOLLAR, _AT, _B, _I, _J = b"\x1b\\~($@BIJ"


def decode(data: bytes, charset: str) -> bytes:
    """The text in UTF-8; the charset is one of MULTI_BYTE."""
    read = np.frombuffer(data, np.uint8)
    written = np.empty(OUT_MAX_BYTES * len(read) + STORED_BYTES, np.uint8)
    if charset == ISO_2022_JP:
        length = decode_iso_2022_jp(read, table_of(EUC_JP), written)
    else:
        charset = GB18030 if charset == GBK else charset
        length = decode_pairs(read, table_of(charset), longer_of(charset), int(charset == GB18030), written)
    return written[:length].tobytes()


@cache
def table_of(charset: str) -> np.ndarray:
    """The entry of every two bytes."""
    table = np.full((0x100, 0x100), _ERROR + _ONE)
    table[list(LEADS[charset]), 0x80:] = _ERROR + 2 * _ONE
    leads, trails = np.frombuffer(b"".join(index_of(charset)), np.uint8).reshape(-1, 2).T
    table[leads, trails] = [entry_of(character, 2) for character in index_of(charset).values()]
    if charset == GB18030:
        table[0x80] = entry_of("€", 1)
        table[0x81:0xFF, 0x30:0x3A] = _MORE
    elif charset == EUC_JP:
        table[0x8E, 0xA1:0xE0] = [entry_of(chr(0xFF61 + index), 2) for index in range(0xE0 - 0xA1)]
        table[0x8F, 0xA1:0xFF] = _MORE
    elif charset == SHIFT_JIS:
        table[0x80] = entry_of("\x80", 1)
        table[0xA1:0xE0] = [[entry_of(chr(0xFF61 + index), 1)] for index in range(0xE0 - 0xA1)]
    return table.reshape(-1)


@cache
def longer_of(charset: str) -> np.ndarray:
    """The entries of longer sequences: of the two bytes after 8F in EUC-JP, or of pointers in GB 18030."""
    if charset == EUC_JP:
        return table_of(JIS_0212)
    characters = read_four_bytes() if charset == GB18030 else ""
    return np.array([entry_of(character, 4) for character in characters], np.int64)


@compiled("u1[] i8[] i8[] i8 -> u1[]", PLAIN_MAX_BYTES)
def decode_pairs(data, table, longer, has_four_bytes, out):
    """Decodes all encodings but ISO-2022-JP; returns the number of bytes written."""
    at, to, stop = 0, 0, len(data)
    while at < stop:
        lead = int(data[at])
        if lead < 0x80:
            out[to] = lead
            at += 1
            to += 1
            continue
        trail = int(data[at + 1]) if at + 1 < stop else 0  # the end is an error, like an ASCII byte that fits nowhere
        entry = table[lead << 8 | trail]
        if entry == _MORE:
            entry = read_four(data, at, longer) if has_four_bytes else read_three(data, at, longer)
        to = put(out, to, entry)
        at += entry >> _TAKEN
    return to


@compiled()
def put(out, to, entry):
    for index in range(STORED_BYTES):
        out[to + index] = entry >> 8 * index & 0xFF
    return to + (entry >> _LENGTH & 0xFF)


@compiled()
def read_three(data, at, longer):
    """The entry of 8F and two bytes."""
    if at + 2 == len(data):
        return _ERROR + 2 * _ONE
    return longer[int(data[at + 1]) << 8 | int(data[at + 2])] + _ONE


@compiled()
def read_four(data, at, longer):
    """The entry of four bytes. An error takes the first byte only; at the end of the text it takes all that is left."""
    stop = len(data)
    if at + 2 < stop and not 0x81 <= data[at + 2] <= 0xFE or at + 3 < stop and not 0x30 <= data[at + 3] <= 0x39:
        return _ERROR + _ONE
    if at + 4 > stop:
        return _ERROR + (stop - at) * _ONE
    pointer = (int(data[at]) - 0x81) * 10 + int(data[at + 1]) - 0x30
    pointer = pointer * 1260 + (int(data[at + 2]) - 0x81) * 10 + int(data[at + 3]) - 0x30
    if pointer < len(longer):
        return longer[pointer]
    code = pointer - _FOUR_BYTES_ASTRAL + 0x10000
    if not 0x10000 <= code <= 0x10FFFF:
        return _ERROR + 4 * _ONE
    encoded = 0x8080_80F0 | code >> 18 | (code >> 12 & 0x3F) << 8 | (code >> 6 & 0x3F) << 16 | (code & 0x3F) << 24
    return encoded | 4 << _LENGTH | 4 * _ONE


@compiled("u1[] i8[] -> u1[]", PLAIN_MAX_BYTES)
def decode_iso_2022_jp(data, table, out):
    """Escapes choose what bytes mean. The table is that of EUC-JP, whose bytes are the same with the top bit set."""
    at, to, stop, state, was_escape = 0, 0, len(data), _ASCII, False
    while at < stop:
        byte = int(data[at])
        if byte == _ESCAPE:
            chosen = choose_state(data, at)
            if chosen == _NONE or was_escape:  # of two escapes in a row one is an error
                to = put(out, to, _ERROR)
            was_escape = chosen != _NONE
            state = chosen if was_escape else state
            at += 3 if was_escape else 1
            continue
        was_escape = False
        entry = _ERROR + _ONE
        if state == _KANJI:
            if 0x21 <= byte <= 0x7E and at + 1 < stop and data[at + 1] != _ESCAPE:
                second = int(data[at + 1])
                entry = table[(byte | 0x80) << 8 | second | 0x80] if 0x21 <= second <= 0x7E else _ERROR + 2 * _ONE
        elif state == _KATAKANA:
            if 0x21 <= byte <= 0x5F:
                entry = table[0x8E << 8 | byte | 0x80] - _ONE
        elif state == _ROMAN and byte == _BACKSLASH:
            entry = _YEN
        elif state == _ROMAN and byte == _TILDE:
            entry = _OVERLINE
        elif byte < 0x80 and byte != 0x0E and byte != 0x0F:
            entry = byte | 1 << _LENGTH | _ONE
        to = put(out, to, entry)
        at += entry >> _TAKEN
    return to


@compiled()
def choose_state(data, at):
    """What an escape sequence stands for."""
    if at + 2 >= len(data):
        return _NONE
    first, second = data[at + 1], data[at + 2]
    if first == _DOLLAR and (second == _AT or second == _B):
        return _KANJI
    if first == _OPEN:
        return _ASCII if second == _B else _ROMAN if second == _J else _KATAKANA if second == _I else _NONE
    return _NONE
