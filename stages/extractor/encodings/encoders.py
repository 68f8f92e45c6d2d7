"""Encodes queries of links in encodings with more than one byte per character, as the Encoding standard says."""

import unicodedata
from collections.abc import Callable
from functools import cache

from stages.extractor.encodings.indexes import BIG5, EUC_JP, GB18030, GBK, ISO_2022_JP, SHIFT_JIS, index_of

# Private characters that GB 18030 had before 2022, by their first sequence: encoded as before, no longer decoded.
_PRIVATE = {
    "a6d9": "\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793",
    "a6ec": "\ue794\ue795",
    "a6f3": "\ue796",
    "fe59": "\ue81e",
    "fe61": "\ue826",
    "fe66": "\ue82b\ue82c",
    "fe6d": "\ue832",
    "fe7e": "\ue843",
    "fe90": "\ue854",
    "fea0": "\ue864",
}
_BIG5_FIRST = b"\xa1\x40"  # sequences before it, those of Hong Kong, are only decoded
_BIG5_LAST = "═╞╡╪十卅"  # characters whose last sequence counts; of all others it is the first
# Leads in Shift_JIS that are only decoded: the second sequences of some characters, and private characters.
_SHIFT_JIS_DECODED = (0xED, 0xEE, *range(0xF0, 0xFA))
_HALF_WIDTH = range(0xFF61, 0xFFA0)
_FULL_WIDTH = unicodedata.normalize("NFKC", "".join(map(chr, _HALF_WIDTH[:-2]))) + "\u309b\u309c"
_ESCAPES = _ASCII, _ROMAN, _KANJI = b"\x1b(B", b"\x1b(J", b"\x1b$B"


def encode(text: str, charset: str, mark: Callable[[str], bytes]) -> bytes:
    """The bytes of a text, with a mark for each character that the charset, one of MULTI_BYTE, lacks."""
    if charset == ISO_2022_JP:
        return encode_iso_2022_jp(text, mark)
    known = sequences_of(charset)
    return b"".join(
        character.encode()
        if character.isascii()
        else known.get(character) or encode_four_bytes(character, charset) or mark(character)
        for character in text
    )


def encode_four_bytes(character: str, charset: str) -> bytes:
    """The four bytes of a character that has no two in GB 18030; no bytes in other encodings."""
    if charset != GB18030 or character == "\ue5e5" or "\ud800" <= character <= "\udfff":
        return b""
    return b"\x81\x35\xf4\x37" if character == "\ue7c7" else character.encode("gb18030")


@cache
def sequences_of(charset: str) -> dict[str, bytes]:
    """The bytes of every character beyond ASCII, except those of four bytes."""
    known: dict[str, bytes] = {}
    for sequence, character in index_of(GB18030 if charset == GBK else charset).items():
        if is_encoded(sequence, charset) and (character not in known or charset == BIG5 and character in _BIG5_LAST):
            known[character] = sequence
    if charset in (GBK, GB18030):
        known |= {
            character: (int(first, 16) + index).to_bytes(2, "big")
            for first, characters in _PRIVATE.items()
            for index, character in enumerate(characters)
        }
    if charset == GBK:
        known["€"] = b"\x80"
    if charset in (EUC_JP, SHIFT_JIS):
        before = b"\x8e" if charset == EUC_JP else b""
        known |= {chr(code): before + bytes((code - _HALF_WIDTH[0] + 0xA1,)) for code in _HALF_WIDTH}
        known |= {"¥": b"\\", "‾": b"~", "\u2212": known["\uff0d"]}
    if charset == SHIFT_JIS:
        known["\x80"] = b"\x80"
    return known


def is_encoded(sequence: bytes, charset: str) -> bool:
    """Whether a sequence of the index is used when characters are encoded."""
    if charset == BIG5:
        return sequence >= _BIG5_FIRST
    return charset != SHIFT_JIS or sequence[0] not in _SHIFT_JIS_DECODED


def encode_iso_2022_jp(text: str, mark: Callable[[str], bytes]) -> bytes:
    """Escapes choose what the bytes mean. The text begins and ends in ASCII."""
    known, state, parts = sequences_of(EUC_JP), _ASCII, []
    for character in text:
        wanted = state_of(character, state, known)
        if wanted != state:
            parts.append(wanted)
            state = wanted
        if character in "\x0e\x0f\x1b":
            parts.append(mark("\ufffd"))
        elif state == _KANJI:
            parts.append(bytes(byte & 0x7F for byte in known[full_width(character)]))
        elif character in "¥‾":
            parts.append(known[character])
        else:
            parts.append(character.encode() if character.isascii() else mark(character))
    return b"".join(parts) + (_ASCII if state != _ASCII else b"")


def state_of(character: str, state: bytes, known: dict[str, bytes]) -> bytes:
    """The escape of the state in which a character, or its mark, is written."""
    if character in "¥‾":
        return _ROMAN
    if not character.isascii() and full_width(character) in known:
        return _KANJI
    return _ROMAN if state == _ROMAN and character not in "\\~" else _ASCII


def full_width(character: str) -> str:
    code = ord(character)
    return _FULL_WIDTH[code - _HALF_WIDTH[0]] if code in _HALF_WIDTH else character
