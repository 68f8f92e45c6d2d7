"""Which character encoding a page is in, and its text as UTF-8.

The order of the HTML standard (13.2.3): byte order mark, HTTP header, <meta> in the first 1024 bytes. Where none of
them names an encoding that the Encoding standard knows, the page is UTF-8 if its bytes are valid UTF-8, else
windows-1252. What is declared is believed: bytes that do not fit become U+FFFD.
"""

import codecs
import re
from functools import lru_cache

UTF_8, WINDOWS_1252 = "utf-8", "windows-1252"
PRESCAN_BYTES = 1024  # where the HTML standard stops looking for a declaration
CHARACTER_MAX_BYTES = 4  # of UTF-8: a page cut off inside one is still valid

_BOMS = ((codecs.BOM_UTF8, UTF_8), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))

# Python's name of an encoding: the name of the Encoding standard, whose superset replaces the narrow ones.
_NAMES = {
    "utf-8": UTF_8, "utf-16": "utf-16le", "utf-16-le": "utf-16le", "utf-16-be": "utf-16be",
    "ascii": WINDOWS_1252, "iso8859-1": WINDOWS_1252, "cp1252": WINDOWS_1252,
    "iso8859-9": "windows-1254", "cp1254": "windows-1254",
    "iso8859-11": "windows-874", "tis-620": "windows-874", "cp874": "windows-874",
    **{f"cp{number}": f"windows-{number}" for number in (1250, 1251, 1253, 1255, 1256, 1257, 1258)},
    **{f"iso8859-{number}": f"iso-8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    "cp866": "ibm866", "koi8-r": "koi8-r", "koi8-u": "koi8-u", "mac-roman": "macintosh", "mac-cyrillic": "x-mac-cyrillic",
    "gb2312": "gbk", "gbk": "gbk", "gb18030": "gb18030", "big5": "big5", "big5hkscs": "big5", "cp950": "big5",
    "euc_jp": "euc-jp", "iso2022_jp": "iso-2022-jp", "shift_jis": "shift_jis", "cp932": "shift_jis",
    "euc_kr": "euc-kr", "cp949": "euc-kr",
}

# The codec that decodes an encoding, where Python knows the standard's name not at all or as something narrower.
_CODECS = {
    "gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "euc-kr": "cp949", "windows-874": "cp874",
    "macintosh": "mac-roman", "x-mac-cyrillic": "mac-cyrillic",
}

# Labels of the Encoding standard (4.2) that Python does not know, by a label that it knows.
_ALIASES = {
    label: known for known, labels in {
        "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
        "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff", "utf-16be": "unicodefffe",
        "iso-8859-6": "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i", "iso-8859-7": "sun_eu_greek",
        "iso-8859-8": "csiso88598e iso-8859-8-e visual csiso88598i iso-8859-8-i logical", "iso-8859-15": "csisolatin9",
        "koi8-r": "koi koi8", "koi8-u": "koi8-ru", "mac-roman": "csmacintosh mac x-mac-roman",
        "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian", "cp874": "dos-874 windows-874",
        "gbk": "csgb2312 gb_2312 gb_2312-80 x-gbk", "big5": "cn-big5 x-x-big5",
        "euc-jp": "cseucpkdfmtjapanese x-euc-jp", "cp932": "windows-31j x-sjis",
        "cp949": "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601 windows-949",
        **{f"cp{number}": f"x-cp{number}" for number in range(1250, 1259)},
        **{f"iso8859-{number}": f"iso8859{number}" for number in range(1, 17) if number != 12},
    }.items() for label in labels.split()
}

_LABEL = re.compile(r"[a-z0-9_.:-]{1,40}")  # what no label looks like is not looked up: Python remembers each one for ever
_HEADER = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"""<meta[\s/][^>]*?charset\s*=\s*["']?\s*([^\s"'/>;]+)""", re.IGNORECASE)


@lru_cache(maxsize=4096)
def encoding_of(label: str) -> str:
    """The standard's name, in lower case, of the encoding that a label means; nothing where it means none."""
    plain = label.strip().lower()
    if not _LABEL.fullmatch(plain):
        return ""
    try:
        return _NAMES.get(codecs.lookup(_ALIASES.get(plain, plain)).name, "")
    except LookupError:
        return ""


def choose_charset(body: bytes, content_type: str, *, has_markup: bool) -> str:
    """The encoding of a text, by what it and its Content-Type say; a text without markup has no <meta>."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    declared = _HEADER.search(content_type)
    if declared and (name := encoding_of(declared[1])):
        return name
    if has_markup and (name := declared_inside(body)):
        return name
    return UTF_8 if is_utf_8(body) else WINDOWS_1252


def declared_inside(body: bytes) -> str:
    for label in _META.findall(_COMMENT.sub(b"", body[:PRESCAN_BYTES])):
        if name := encoding_of(label.decode("ascii", "replace")):
            return UTF_8 if name.startswith("utf-16") else name  # a declaration that can be read is not in UTF-16
    return ""


def is_utf_8(body: bytes) -> bool:
    """Whether the bytes are valid UTF-8, but for a character that the end cuts off."""
    try:
        _, length = codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError:
        return False
    return len(body) - length < CHARACTER_MAX_BYTES


def to_utf_8(body: bytes, charset: str) -> bytes:
    """The text in UTF-8, without byte order mark."""
    if charset == UTF_8:
        body = body.removeprefix(codecs.BOM_UTF8)
        try:
            body.decode("utf-8")
        except UnicodeDecodeError:
            return body.decode("utf-8", "replace").encode("utf-8")
        return body
    text = body.decode(_CODECS.get(charset, charset), "replace")
    return text.removeprefix("\ufeff").encode("utf-8", "replace")
