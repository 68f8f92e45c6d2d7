"""The indexes of the Encoding standard (section 5): the characters of the sequences of two and more bytes.

Python's codecs hold nearly all of them; this module holds the differences. To find them, every sequence was decoded
with the codec that `index_of` names for it, and looked up in the standard's index, as the npm package @exodus/bytes
1.16.0 holds it (the standard since it follows GB 18030-2022). tests/stages/test_encodings_chromium.py compares with
Chromium.

The indexes are Copyright WHATWG (Apple, Google, Mozilla, Microsoft). As a part of source code they are under the BSD
3-Clause License: LICENSE-whatwg.txt in this folder.
"""

from functools import cache

GB18030, GBK, BIG5, EUC_JP, SHIFT_JIS = "gb18030", "gbk", "big5", "euc-jp", "shift_jis"
EUC_KR, ISO_2022_JP = "euc-kr", "iso-2022-jp"
MULTI_BYTE = frozenset({GB18030, GBK, BIG5, EUC_JP, SHIFT_JIS, EUC_KR, ISO_2022_JP})
JIS_0212 = "jis0212"  # no encoding: the index of the two bytes after 8F in EUC-JP

# The bytes of a sequence: its character, and those of the sequences that follow it in the index.
_GB18030_DIFFERENCES = {
    "a3a0": "\u3000",
    "a6d9": "︐︒︑︓︔︕︖",
    "a6ec": "︗︘",
    "a6f3": "︙",
    "a8bc": "ḿ",
    "fe59": "龴",
    "fe61": "龵",
    "fe66": "龶龷",
    "fe6d": "龸",
    "fe7e": "龹",
    "fe90": "龺",
    "fea0": "龻",
}
_BIG5_DIFFERENCES = {
    "877a": "㡵𡵓𣚞𦀡㻬𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐稲晠権袝瑌篅枂稬剏遆"
    "㓦珄𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏䚮𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋",
    "8e69": "箸",
    "8e6f": "簆",
    "8e7e": "糎",
    "8eab": "緒",
    "8eb4": "縝",
    "8ecd": "者",
    "8ed0": "耨",
    "8f57": "菁",
    "8f69": "蒨",
    "8f6e": "萏",
    "8fcb": "覦覩",
    "8ffe": "起",
    "906d": "都",
    "907a": "銹",
    "90dc": "靜",
    "90f1": "響",
    "91bf": "鼖",
    "9244": "蔃",
    "92af": "兙兛兝兞",
    "92c8": "鍮",
    "92d1": "瑹",
    "9447": "浧",
    "94ca": "禛",
    "95d9": "邗",
    "9644": "靝",
    "96ed": "瀞",
    "96fc": "嬨",
    "9b76": "爁",
    "9b78": "矗",
    "9b7b": "纇",
    "9bc6": "駖",
    "9bde": "釔",
    "9bec": "惞",
    "9bf6": "澶",
    "9c42": "輶",
    "9c53": "侻",
    "9c62": "營",
    "9c68": "鄄",
    "9c6b": "鷰",
    "9c77": "菏",
    "9cbc": "尐秣",
    "9cd0": "婧",
    "9d57": "輋",
    "9d5a": "筑",
    "9dc4": "拐",
    "9ea9": "恢",
    "9eef": "痹",
    "9efd": "汊",
    "9f60": "鬮",
    "9f66": "鼗",
    "9fcb": "僭",
    "9fd8": "弌",
    "a063": "蠏",
    "a077": "拎",
    "a0d5": "瑨",
    "a0df": "煢",
    "a0e4": "牐",
    "a145": "‧",
    "a14e": "﹑",
    "a1c2": "¯",
    "a1e3": "～",
    "a1f2": "⊕⊙",
    "a241": "∕﹨",
    "a244": "￥",
    "a246": "￠￡",
    "a3c0": "␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟␡€",
    "c6cf": "廴",
    "c6d3": "无",
    "c6d5": "癶",
    "c6d7": "隶",
    "c6de": "〃仝",
    "fa5f": "倩",
    "fa66": "偽",
    "fabd": "包",
    "fac5": "卄",
    "fad5": "卿",
    "fb48": "嘅",
    "fbb8": "婷",
    "fbf3": "幵",
    "fbf9": "廐",
    "fc4f": "彘",
    "fc6c": "悤",
    "fcb9": "撐",
    "fce2": "晴",
    "fcf1": "杞",
    "fdb7": "沜渝",
    "fdbb": "港",
    "fdf1": "煮",
    "fe52": "猪",
    "fe6f": "瑜",
    "feaa": "瓩",
    "fedd": "砉",
}
_JIS_0212_DIFFERENCES = {"a2b7": "～"}


def span(first: int, last: int) -> bytes:
    """The bytes from the first to the last."""
    return bytes(range(first, last + 1))


_ROW = span(0xA1, 0xFE)  # the 94 bytes of EUC-JP's sequences

# Which bytes begin a sequence of two, and which may follow.
LEADS = {
    GB18030: span(0x81, 0xFE),
    BIG5: span(0x81, 0xFE),
    EUC_JP: b"\x8e\x8f" + _ROW,
    JIS_0212: _ROW,
    SHIFT_JIS: span(0x81, 0x9F) + span(0xE0, 0xFC),
    EUC_KR: span(0x81, 0xFE),
}
_TRAILS = {
    GB18030: span(0x40, 0x7E) + span(0x80, 0xFE),
    BIG5: span(0x40, 0x7E) + _ROW,
    SHIFT_JIS: span(0x40, 0x7E) + span(0x80, 0xFC),
    EUC_KR: span(0x41, 0xFE),
}
FOUR_BYTES_BMP = 39_420  # number of GB 18030's pointers of four bytes that stand for characters below U+10000


@cache
def index_of(charset: str) -> dict[bytes, str]:
    """The character of each sequence of two bytes, in the order of the index's pointers."""
    if charset == EUC_JP:  # the index is that of Shift_JIS; Python's codec of EUC-JP lacks the characters of vendors
        characters = read_codec("cp932", pairs_of(SHIFT_JIS))
        return {pair: character for pair, character in zip(pairs(_ROW, _ROW), characters) if character}
    if charset == JIS_0212:
        return read_index(pairs(_ROW, _ROW), "euc_jp", _JIS_0212_DIFFERENCES, b"\x8f")
    codec, differences = {
        GB18030: ("gb18030", _GB18030_DIFFERENCES),
        BIG5: ("big5hkscs", _BIG5_DIFFERENCES),
        SHIFT_JIS: ("cp932", {}),
        EUC_KR: ("cp949", {}),
    }[charset]
    return read_index(pairs_of(charset), codec, differences)


def read_index(
    sequences: list[bytes], codec: str, differences: dict[str, str], before: bytes = b""
) -> dict[bytes, str]:
    """The index of a codec, with our differences; `before` stands before each sequence."""
    index = dict(zip(sequences, read_codec(codec, [before + sequence for sequence in sequences])))
    for first, characters in differences.items():
        begin = sequences.index(bytes.fromhex(first))
        index |= zip(sequences[begin : begin + len(characters)], characters)
    return {sequence: character for sequence, character in index.items() if character}


def read_codec(codec: str, sequences: list[bytes]) -> list[str]:
    """The character that Python's codec has for each sequence, or an empty text."""
    return [text if "\ufffd" not in text else "" for text in b"\n".join(sequences).decode(codec, "replace").split("\n")]


def pairs(leads: bytes, trails: bytes) -> list[bytes]:
    return [bytes((lead, trail)) for lead in leads for trail in trails]


def pairs_of(charset: str) -> list[bytes]:
    return pairs(LEADS[charset], _TRAILS[charset])


def read_four_bytes() -> str:
    """The characters below U+10000 for which GB 18030 has four bytes, by pointer."""
    halves = pairs(LEADS[GB18030], b"0123456789")
    sequences = [first + second for first in halves[:40] for second in halves]
    characters = list(b"".join(sequences[:FOUR_BYTES_BMP]).decode("gb18030"))
    characters[7457] = "\ue7c7"  # Python has U+1E3F here, for which the standard has two bytes
    return "".join(characters)
