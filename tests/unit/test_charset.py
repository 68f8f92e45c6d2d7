"""Charsets.

The labels of the Encoding standard, what is declared and what is detected, and links in a page's charset.
"""

import time

import pytest

from stages.extractor.charset import (
    LABELS,
    choose_charset,
    detect_charset,
    encoding_of,
    to_page_query,
    to_text,
    to_utf_8,
)

# The table of the Encoding standard (4.2): name: labels, in its order.
STANDARD = """
utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8
ibm866: 866 cp866 csibm866 ibm866
iso-8859-2: csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3: csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4: csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5: csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6: arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i \
iso-ir-127
  iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7: csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7
  iso_8859-7:1987 sun_eu_greek
iso-8859-8: csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8
  iso_8859-8:1988 visual
iso-8859-8-i: csiso88598i iso-8859-8-i logical
iso-8859-10: csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13: iso-8859-13 iso8859-13 iso885913
iso-8859-14: iso-8859-14 iso8859-14 iso885914
iso-8859-15: csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16: iso-8859-16
koi8-r: cskoi8r koi koi8 koi8-r koi8_r
koi8-u: koi8-ru koi8-u
macintosh: csmacintosh mac macintosh x-mac-roman
windows-874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874
windows-1250: cp1250 windows-1250 x-cp1250
windows-1251: cp1251 windows-1251 x-cp1251
windows-1252: ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1
  iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252
windows-1253: cp1253 windows-1253 x-cp1253
windows-1254: cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 \
windows-1254
  x-cp1254
windows-1255: cp1255 windows-1255 x-cp1255
windows-1256: cp1256 windows-1256 x-cp1256
windows-1257: cp1257 windows-1257 x-cp1257
windows-1258: cp1258 windows-1258 x-cp1258
x-mac-cyrillic: x-mac-cyrillic x-mac-ukrainian
gbk: chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk
gb18030: gb18030
big5: big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp: cseucpkdfmtjapanese euc-jp x-euc-jp
iso-2022-jp: csiso2022jp iso-2022-jp
shift_jis: csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis
euc-kr: cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
replacement: csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement
utf-16be: unicodefffe utf-16be
utf-16le: csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le
x-user-defined: x-user-defined
"""
ROWS = dict(line.split(": ", 1) for line in STANDARD.replace("\n  ", " ").strip().splitlines())
OURS = {"iso-8859-8-i": "iso-8859-8"}  # names that we do not keep apart; see LABELS

PORTUGUESE = "A ação de graças começou às três: não há exceção, irmã, só corações. "
ITALIAN = "La città è più bella perché c'è il sole; così è la realtà, però già finirà. "
RUSSIAN = "Привет, мир! Это страница на русском языке, кодировка не указана. "
POLISH = "Zażółć gęślą jaźń. Następna strona, wszystkie ogłoszenia, również później. "
TURKISH = "Güneş ışığı çok güzel, değil mi? Şimdi öğrenci olmayan kişiler için başlıyor. "
GREEK = "Άλλα άρθρα: αυτή είναι μια ελληνική ιστοσελίδα χωρίς δηλωμένη κωδικοποίηση. "
HEBREW = "זהו דף אינטרנט בעברית ללא קידוד מוצהר. ברוכים הבאים לאתר שלנו. "
ARABIC = "هذه صفحة ويب باللغة العربية بدون ترميز معلن. مرحبا بكم في موقعنا. "
THAI = "นี่คือหน้าเว็บภาษาไทยที่ไม่ได้ระบุรหัสอักขระ ยินดีต้อนรับ "
JAPANESE = "これは日本語のページです。文字コードは指定されていません。"
KOREAN = "이것은 한국어 웹페이지입니다. 문자 인코딩이 지정되지 않았습니다. "
CHINESE = "这是一个中文网页，没有指定字符编码。欢迎光临我们的网站。"
TAIWANESE = "這是一個中文網頁，沒有指定字元編碼。歡迎光臨我們的網站。"
LANGUAGES = [
    (PORTUGUESE, "windows-1252"),
    (ITALIAN, "windows-1252"),
    (RUSSIAN, "windows-1251"),
    (RUSSIAN, "koi8-r"),
    (RUSSIAN, "ibm866"),
    (RUSSIAN, "iso-8859-5"),
    (POLISH, "iso-8859-2"),
    (POLISH, "windows-1250"),
    (TURKISH, "windows-1254"),
    (GREEK, "windows-1253"),
    (HEBREW, "windows-1255"),
    (ARABIC, "windows-1256"),
    (THAI, "windows-874"),
    (JAPANESE, "shift_jis"),
    (JAPANESE, "euc-jp"),
    (KOREAN, "euc-kr"),
    (CHINESE, "gb18030"),
    (TAIWANESE, "big5"),
]
CODECS = {"ibm866": "cp866", "windows-874": "cp874", "shift_jis": "cp932", "euc-kr": "cp949"}
DETECTION_MAX_S = 0.1  # about 2 ms are expected


@pytest.mark.parametrize("name", ROWS)
def test_every_label_of_the_standard(name):
    for label in ROWS[name].split():
        assert encoding_of(label) == encoding_of(f"\t{label.upper()}\n") == OURS.get(name, name)


def test_no_label_but_those_of_the_standard():
    assert sorted(label for labels in LABELS.values() for label in labels.split()) == sorted(
        " ".join(ROWS.values()).split()
    )
    assert sum(len(labels.split()) for labels in ROWS.values()) == 228  # which is how many it has
    assert [encoding_of(label) for label in ("cp950", "utf_8", "iso-8859-12", "utf-32", "\u00a0utf-8", "")] == [""] * 6


@pytest.mark.parametrize("name", LABELS)
def test_every_encoding_decodes_any_bytes(name):
    text = to_text(bytes(range(256)) * 2, name)
    assert isinstance(text, str) and to_utf_8(bytes(range(256)) * 2, name) == text.encode("utf-8")


@pytest.mark.parametrize(
    "name, data, text",
    [
        ("windows-1252", b"\x80\x81\xe7", "€\x81ç"),
        ("windows-1251", b"\x98\xc0", "\x98А"),
        ("windows-1253", b"\xaa\xe1", "\ufffdα"),
        ("koi8-u", b"\xae\xbe", "ўЎ"),
        ("windows-1255", b"\xca", "\u05ba"),
        ("windows-874", b"\x81\xa1\xff", "\x81ก\ufffd"),
        ("iso-2022-jp", b"\x1b$BF|\x1b(I1\x1b(B!", "日ｱ!"),
        ("replacement", b"<a href=x>", "\ufffd"),
        ("replacement", b"", ""),
        ("shift_jis", b"\x95\\\x85<", "表\ufffd<"),
        ("utf-8", b"\xef\xbb\xbfa\xff", "a\ufffd"),
        ("utf-16le", b"\xff\xfea\0\x00\xd8b\0", "a\ufffdb"),
    ],
)
def test_tables_are_those_of_the_standard(name, data, text):
    assert to_text(data, name) == text


@pytest.mark.parametrize(
    "body, kind, has_markup, charset",
    [
        (b"<?xml version='1.0' encoding='koi8-r'?><rss/>", "application/rss+xml", True, "koi8-r"),
        (b"<?xml version='1.0' encoding='koi8-r'?><rss/>", "text/xml; charset=utf-8", True, "utf-8"),
        (b"\n<?xml version='1.0' encoding = \"ISO-8859-1\"?><rss/>", "", True, "windows-1252"),
        (b"<?xml version='1.0' encoding='koi8-r'?><html><meta charset=gbk>", "text/html", True, "gbk"),
        (b"<?xml version='1.0' encoding='koi8-r'?><html><meta charset=gbk>", "application/xhtml+xml", True, "koi8-r"),
        (b"<?xml version='1.0' encoding='fantasy'?><html><meta charset=gbk>", "application/xhtml+xml", True, "gbk"),
        (b"<?xml version='1.0' encoding='utf-16'?><a/>", "text/xml", True, "utf-8"),
        (b"<?xml version='1.0'?><a encoding='koi8-r'/>", "text/xml", True, "utf-8"),
        ("<?xml version='1.0'?><a/>".encode("utf-16le"), "text/xml", True, "utf-16le"),
        ("<?xml version='1.0'?><a/>".encode("utf-16be"), "text/html", True, "utf-16be"),
        (b'@charset "koi8-r"; a{}', "text/css", False, "koi8-r"),
        (b'@charset "koi8-r"; a{}', "text/plain", False, "utf-8"),
        (b' @charset "koi8-r"; a{}', "text/css", False, "utf-8"),
        (b"@charset koi8-r;", "text/css", False, "utf-8"),
        (b"<meta charset=koi8-r>", "text/plain", False, "utf-8"),
        (b"<meta charset=x-user-defined>", "text/html", True, "windows-1252"),
        (b"", "text/html; charset=", True, "utf-8"),
        (b"\xff", "text/html; charset=\ud800", True, "windows-1252"),
    ],
)
def test_declarations(body, kind, has_markup, charset):
    assert choose_charset(body, kind, has_markup=has_markup) == charset


@pytest.mark.parametrize("text, charset", LANGUAGES)
def test_what_is_not_declared_is_detected(text, charset):
    page = (
        f"<!doctype html><title>x</title><script>var a = 1;</script><p class='a'>{text * 3}<a href='/x'>{text * 5}</a>"
    )
    assert choose_charset(page.encode(CODECS.get(charset, charset)), "text/html", has_markup=True) == charset


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"abc",
        b"\xe7\xe3",
        b"S\xe3o Paulo \xe9 grande",
        b"\xff" * 3,
        bytes(range(256)) * 20,
        b"a\xe9" * 10_000,
        b"<\xe9" * 100_000,
    ],
)
def test_without_evidence_it_is_windows_1252(body):
    assert detect_charset(body) == "windows-1252"


@pytest.mark.parametrize(
    "body",
    [
        b"\xe9" + b"<" * 1_000_000,
        b"\xe0\xe1\xe2\xe3 " * 300_000,
        b"\x81\x30" * 500_000,
        b"<p \xe9\xe9\xe9\xe9>" * 100_000,
    ],
    ids=["open tags", "words", "four bytes", "tags"],
)
def test_detection_takes_milliseconds(body):
    detect_charset(RUSSIAN.encode("koi8-r"))  # chardet reads its models at its first answer
    began = time.process_time()
    assert detect_charset(body) in LABELS
    assert time.process_time() - began < DETECTION_MAX_S


@pytest.mark.parametrize(
    "text, charset, expected",
    [
        ("/ç?q=ação#ç", "windows-1252", "/ç?q=a%E7%E3o#ç"),
        ("?q=ação", "utf-8", "?q=ação"),
        ("?q=ação", "utf-16le", "?q=ação"),
        ("?q=ação", "replacement", "?q=ação"),
        ("/a?b=c", "koi8-r", "/a?b=c"),
        ("/ç", "windows-1252", "/ç"),
        ("#?ç", "windows-1252", "#?ç"),
        ("?x=%E7&y=ç'<", "windows-1252", "?x=%E7&y=%E7'<"),
        ("?日é", "windows-1252", "?%26%2326085%3B%E9"),
        ("?мир", "windows-1251", "?%EC%E8%F0"),
        ("?мир", "koi8-r", "?%CD%C9%D2"),
        ("?a?é?", "windows-1252", "?a?%E9?"),
        ("?表", "shift_jis", "?%95\\"),
        ("?日本x日", "iso-2022-jp", "?%1B$BF|K\\%1B(Bx%1B$BF|%1B(B"),
        ("?日é本", "iso-2022-jp", "?%1B$BF|%1B(B%26%23233%3B%1B$BK\\%1B(B"),
        ("?日😀", "gbk", "?%C8%D5%26%23128512%3B"),
        ("?😀", "gb18030", "?%949%FC6"),
        ("?\ufffd", "windows-1253", "?%26%2365533%3B"),
        ("?\ud800", "euc-kr", "?%26%2355296%3B"),
        ("?é", "unheard of", "?%E9"),
    ],
)
def test_the_query_of_a_link_is_in_the_charset_of_the_page(text, charset, expected):
    assert to_page_query(text, charset) == expected
