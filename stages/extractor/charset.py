"""Which character encoding a text is in, the text itself, and links written in it.

The order of the HTML standard (13.2.3): byte order mark, HTTP header, what the text declares (<meta>, an XML
declaration, @charset of CSS). Where none of them names an encoding that the Encoding standard knows, it is UTF-8 if
its bytes are valid UTF-8, else what chardet finds in a sample, else windows-1252. What is declared is believed: bytes
that do not fit become U+FFFD.
"""

import codecs
import re
from functools import lru_cache

import chardet

from stages.extractor.encodings import decoders, encoders
from stages.extractor.encodings.indexes import ISO_2022_JP, MULTI_BYTE

UTF_8, UTF_16LE, UTF_16BE, WINDOWS_1252, REPLACEMENT = "utf-8", "utf-16le", "utf-16be", "windows-1252", "replacement"
X_USER_DEFINED = "x-user-defined"
PRESCAN_BYTES = 1024  # where the HTML standard stops looking for a declaration
CHARACTER_MAX_BYTES = 4  # of UTF-8: a page cut off inside one is still valid
SAMPLE_BYTES = 4096  # of text, for detection: about 1 ms; more than 600 bytes changed no answer on 30 languages
SAMPLE_MARKUP_BYTES = 64 << 10  # from which the sample is taken
HIGH_BYTES_MIN = 4  # fewer say too little, and windows-1252 is the likeliest

# All labels of the Encoding standard (4.2), by name in lower case. One of its names is not ours: iso-8859-8-i is
# iso-8859-8 (it differs only in the direction of lines). 'replacement', which stands for encodings that hide markup, is
# read as nothing but one U+FFFD, as browsers do.
LABELS = {
    UTF_8: "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "ibm866": "866 cp866 csibm866 ibm866",
    "iso-8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso-8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso-8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e"
    " iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso-8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7"
    " iso_8859-7:1987 sun_eu_greek",
    "iso-8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8"
    " iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical",
    "iso-8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso-8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso-8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "macintosh": "csmacintosh mac macintosh x-mac-roman",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    **{
        f"windows-{number}": f"cp{number} windows-{number} x-cp{number}"
        for number in (1250, 1251, 1253, 1255, 1256, 1257, 1258)
    },
    WINDOWS_1252: "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591"
    " iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
    "windows-1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5"
    " windows-1254 x-cp1254",
    "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gb18030": "gb18030",
    "gbk": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "big5": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "iso-2022-jp": "csiso2022jp iso-2022-jp",
    "shift_jis": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "euc-kr": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601"
    " windows-949",
    X_USER_DEFINED: X_USER_DEFINED,
    REPLACEMENT: "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement",
    UTF_16BE: "unicodefffe utf-16be",
    UTF_16LE: "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
}
_NAMES = {label: name for name, labels in LABELS.items() for label in labels.split()}

_CODECS_OF_UNICODE = {UTF_8: "utf-8", UTF_16LE: "utf-16-le", UTF_16BE: "utf-16-be"}
# Their output encoding (4.3) is UTF-8, which is what the URL parser writes.
_WITHOUT_QUERY = (UTF_8, UTF_16LE, UTF_16BE, REPLACEMENT)

# Names of Python's codecs with one byte per character that differ, and bytes that the standard decodes otherwise.
_CODECS = {"windows-874": "cp874", "macintosh": "mac-roman", "x-mac-cyrillic": "mac-cyrillic"}
_DIFFERENCES = {"koi8-u": {0xAE: "ў", 0xBE: "Ў"}, "windows-1255": {0xCA: "\u05ba"}}

# What chardet may answer, by its names: the encodings that browsers detect. Where non-ASCII bytes stand alone among
# ASCII letters the script is Latin, and only _LATIN may be answered: else chardet takes Italian for Cyrillic.
_LATIN = {
    "cp1252": WINDOWS_1252,
    "cp1250": "windows-1250",
    "cp1254": "windows-1254",
    "cp1257": "windows-1257",
    "cp1258": "windows-1258",
    "iso8859-2": "iso-8859-2",
}
_ANY = {
    **_LATIN,
    "cp1251": "windows-1251",
    "cp1253": "windows-1253",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp874": "windows-874",
    "cp866": "ibm866",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "iso8859-5": "iso-8859-5",
    "iso8859-6": "iso-8859-6",
    "iso8859-7": "iso-8859-7",
    "iso8859-8": "iso-8859-8",
    "cp932": "shift_jis",
    "shift_jis_2004": "shift_jis",
    "euc_jis_2004": "euc-jp",
    "cp949": "euc-kr",
    "gb18030": "gb18030",
    "big5hkscs": "big5",
}

_BOMS = ((codecs.BOM_UTF8, UTF_8), (codecs.BOM_UTF16_LE, UTF_16LE), (codecs.BOM_UTF16_BE, UTF_16BE))
_HEADER = re.compile(r"""charset\s*+=\s*+["']?([^\s"';,]++)""", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"""<meta[\s/][^>]*?charset\s*=\s*["']?\s*([^\s"'/>;]+)""", re.IGNORECASE)
_XML = re.compile(rb"""\s*+<\?xml\s[^>]*?encoding\s*+=\s*+["']\s*+([^\s"'>]++)""")
_CSS = re.compile(rb'@charset "([^"]*+)";')
_HIGH = re.compile(rb"[\x80-\xff]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]{3,}+")
_TAG = re.compile(rb"<[^<>]*+>")
_ASCII = bytes(range(0x80))
_NON_ASCII = re.compile(r"[^\x00-\x7f]++")
_BREAKS = str.maketrans("", "", "\t\n\r")  # which the URL parser drops, as it drops the following at the end
_BLANKS = bytes(range(0x21)).decode("ascii")
_IN_QUERY = re.compile(rb"[^!$-&(-;=?-~]")  # the query percent-encode set of special schemes (URL standard 1.3)


def encoding_of(label: str) -> str:
    """The standard's name, in lower case, of the encoding that a label means; nothing where it means none."""
    return _NAMES.get(label.strip("\t\n\f\r ").lower(), "")


def choose_charset(body: bytes, content_type: str, *, has_markup: bool) -> str:
    """The encoding of a text, by what it and its Content-Type say; only HTML and XML have markup that declares one."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    declared = _HEADER.search(content_type)
    if declared and (name := encoding_of(declared[1])):
        return name
    kind = content_type.partition(";")[0].strip().lower()
    says_inside = has_markup or kind.endswith("xml") or kind == "text/css"
    if says_inside and (name := declared_inside(body, kind)):
        return name
    return UTF_8 if is_utf_8(body) else detect_charset(body)


def declared_inside(body: bytes, kind: str = "") -> str:
    """What a text declares of itself, nothing where it does not; an XML declaration goes before <meta> only in XML."""
    start = body[:PRESCAN_BYTES]
    if start.startswith((b"<\0?\0x\0", b"\0<\0?\0x")):
        return UTF_16LE if start.startswith(b"<") else UTF_16BE  # as the HTML standard does
    if kind == "text/css":
        return first_encoding(_CSS.findall(start)[:1]) if start.startswith(b"@charset") else ""
    if kind.endswith("xml"):
        return declared_by_xml(start) or declared_by_meta(start)
    return declared_by_meta(start) or declared_by_xml(start)


def declared_by_xml(start: bytes) -> str:
    return first_encoding(_XML.findall(start[: start.find(b">") + 1]))


def declared_by_meta(start: bytes) -> str:
    if b"charset" not in start.lower():
        return ""
    name = first_encoding(_META.findall(_COMMENT.sub(b"", start) if b"<!--" in start else start))
    return WINDOWS_1252 if name == X_USER_DEFINED else name  # as the HTML standard wants it in <meta>


def first_encoding(labels: list[bytes]) -> str:
    """The encoding of the first label that means one, or nothing. A readable declaration is never in UTF-16."""
    for label in labels:
        if name := encoding_of(label.decode("ascii", "replace")):
            return UTF_8 if name.startswith("utf-16") else name
    return ""


def is_utf_8(body: bytes) -> bool:
    """Whether the bytes are valid UTF-8, except for a character that the end cuts off."""
    try:
        _, length = codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError:
        return False
    return len(body) - length < CHARACTER_MAX_BYTES


def detect_charset(body: bytes) -> str:
    """The likeliest legacy encoding of bytes that are not UTF-8, by the first text among them that is not ASCII."""
    first = _HIGH.search(body)
    if not first:
        return WINDOWS_1252
    window = body[first.start() : first.start() + SAMPLE_MARKUP_BYTES]
    sample = _TAG.sub(b" ", window)[:SAMPLE_BYTES]
    high_bytes = len(sample.translate(None, _ASCII))
    if high_bytes < HIGH_BYTES_MIN:
        return WINDOWS_1252
    is_latin = 2 * sum(map(len, _HIGH_RUN.findall(sample))) < high_bytes
    candidates = _LATIN if is_latin else _ANY
    try:
        answer = chardet.detect(sample, compat_names=False, include_encodings=candidates)["encoding"]
    except Exception:  # its answers are guesses: where it fails, it counts as having none
        answer = None
    return candidates.get(answer, WINDOWS_1252)


def to_text(body: bytes, charset: str) -> str:
    """The text of an encoding that encoding_of names, without byte order mark."""
    if charset == REPLACEMENT:
        return "\ufffd" if body else ""
    if charset in MULTI_BYTE:
        return decoders.decode(body, charset).decode("utf-8")
    if codec := _CODECS_OF_UNICODE.get(charset):
        return body.decode(codec, "replace").removeprefix("\ufeff")
    return codecs.charmap_decode(body, "strict", table_of(charset))[0]


def to_utf_8(body: bytes, charset: str) -> bytes:
    """The text in UTF-8, without byte order mark."""
    if charset == UTF_8 and is_whole_utf_8(body):
        return body.removeprefix(codecs.BOM_UTF8)
    if charset in MULTI_BYTE:
        return decoders.decode(body, charset)
    return to_text(body, charset).encode("utf-8", "replace")


def is_whole_utf_8(body: bytes) -> bool:
    if body.isascii():
        return True
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@lru_cache(maxsize=64)
def table_of(charset: str) -> str:
    """The characters of the 256 bytes, with U+FFFD where there is none: so no byte causes a slow error."""
    if charset == X_USER_DEFINED:
        return "".join(map(chr, (*range(0x80), *range(0xF780, 0xF800))))
    try:
        characters = list(bytes(range(0x100)).decode(_CODECS.get(charset, charset), "replace"))
    except LookupError:
        return table_of(WINDOWS_1252)
    if charset.startswith("windows-"):
        for byte in range(0x80, 0xA0):  # the standard has C1 controls where Windows has nothing
            characters[byte] = chr(byte) if characters[byte] == "\ufffd" else characters[byte]
    for byte, character in _DIFFERENCES.get(charset, {}).items():
        characters[byte] = character
    return "".join(characters)


@lru_cache(maxsize=64)
def bytes_of(charset: str) -> dict[str, bytes]:
    return {character: bytes((byte,)) for byte, character in enumerate(table_of(charset)) if character != "\ufffd"}


def to_page_query(text: str, charset: str) -> str:
    """The text of a link with its query percent-encoded in the page's encoding; the rest is unchanged.

    The URL parser knows only UTF-8, and does not change what is percent-encoded.
    """
    if text.isascii() or charset in _WITHOUT_QUERY:
        return text
    address, mark, fragment = text.partition("#")
    path, question, query = (address if mark else address.rstrip(_BLANKS)).partition("?")
    return f"{path}{question}{encode_query(query, charset)}{mark}{fragment}" if question else text


def encode_query(query: str, charset: str) -> str:
    """Non-ASCII characters by the URL standard's 'percent-encode after encoding'.

    A character that the charset lacks becomes %26%23NNN%3B.
    """
    if query.isascii():
        return query  # the URL parser escapes what is left
    if charset == ISO_2022_JP:  # in which a character may change how those after it are written
        return escape_query(encode(query.translate(_BREAKS), charset))
    return _NON_ASCII.sub(lambda found: escape_query(encode(found[0], charset)), query)


def encode(text: str, charset: str) -> bytes:
    if charset in MULTI_BYTE:
        return encoders.encode(text, charset, mark_character)
    known = bytes_of(charset)
    return b"".join(known.get(character) or mark_character(character) for character in text)


def mark_character(character: str) -> bytes:
    return b"%%26%%23%d%%3B" % ord(character)


def escape_query(data: bytes) -> str:
    return _IN_QUERY.sub(lambda byte: b"%%%02X" % byte[0][0], data).decode("ascii")
