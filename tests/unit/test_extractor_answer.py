"""Answers: content encodings within bounds, charsets by every way to declare them, what is read, redirects."""

import gzip
import zlib
from functools import partial
from unittest.mock import patch

import pytest

from contract.body import decode_body
from contract.config import Config
from contract.trouble import BROKEN, TOO_LONG, UNDECODED
from contract.warc import parse_response
from stages.extractor.answer import Answer
from stages.extractor.charset import choose_charset, encoding_of, is_utf_8, to_utf_8
from stages.extractor.document import REDIRECT
from stages.extractor.documents import html
from tests.extractor_lab import PAGE, configured, http, judge_answer, read_answer

pack = partial(gzip.compress, mtime=0)  # the same bytes every time, which name the tests

WORD = "ação"


def read(
    body: bytes, kind: str | None = "text/html", *headers: str, status: int = 200, config: Config = Config()
) -> Answer:
    return read_answer(body, kind, *headers, status=status, config=config)


def decode(body: bytes, *headers: str, most: int = 10_000) -> tuple[bytes, str]:
    return decode_body(parse_response(http(body, 200, "text/html", *headers)), most)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    "body, headers",
    [
        (b"hello", ()),
        (b"hello", ("Content-Encoding: identity",)),
        (b"hello", ("Content-Encoding: ",)),
        (pack(b"hello"), ("Content-Encoding: gzip",)),
        (pack(b"hello"), ("content-encoding: X-GZIP",)),
        (pack(b"hel") + pack(b"lo") + b"trash", ("Content-Encoding: gzip",)),
        (zlib.compress(b"hello"), ("Content-Encoding: deflate",)),
        (raw_deflate(b"hello"), ("Content-Encoding: deflate",)),
        (pack(zlib.compress(b"hello")), ("Content-Encoding: deflate, gzip",)),
        (pack(pack(b"hello")), ("Content-Encoding: gzip", "Content-Encoding: gzip")),
        (b"3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", ("Transfer-Encoding: chunked",)),
        (b"hello", ("Transfer-Encoding: chunked",)),
    ],
)
def test_encodings(body, headers):
    assert decode(body, *headers) == (b"hello", "")


@pytest.mark.parametrize("body", [b"5\r\nhello", b"5\r\nhello\r\n", b"6\r\nhello", b"2\r\nhe\r\n3\r\nllo\r\nno chunk"])
def test_chunks_that_end_early_are_told(body):
    assert decode(body, "Transfer-Encoding: chunked") == (b"hello", BROKEN)


@pytest.mark.parametrize(
    "body, encoding",
    [
        (b"hello", "compress"),
        (b"hello", "gzip, lzma"),
        (b"hello", "gzip"),
        (b"hello", "deflate"),
        (pack(b"x"), "gzip, gzip, gzip"),
    ],
)
def test_what_cannot_be_decoded_is_given_as_it_is(body, encoding):
    assert decode(body, f"Content-Encoding: {encoding}") == (body, UNDECODED)


def test_a_broken_stream_counts_up_to_the_break():
    text = bytes(range(256)) * 40
    packed = pack(text, 1)
    content, trouble = decode(packed[: len(packed) // 2], "Content-Encoding: gzip")
    assert trouble == BROKEN and content and text.startswith(content)
    torn = bytearray(pack(b"a" * 5000 + text, 0))
    torn[-6] ^= 1  # the checksum
    content, trouble = decode(bytes(torn), "Content-Encoding: gzip", most=100_000)
    assert trouble == BROKEN and content.startswith(b"a" * 5000)


def test_bombs_are_cut():
    bomb = pack(pack(bytes(50_000_000)))
    assert decode(bomb, "Content-Encoding: gzip, gzip", most=1000) == (bytes(1000), TOO_LONG)
    assert decode(pack(b"") * 100_000, "Content-Encoding: gzip") == (b"", BROKEN)
    assert (
        len(
            read(
                pack(b"<p>" * 1_000_000),
                "text/html",
                "Content-Encoding: gzip",
                config=configured("extractor", page_max_bytes=3000),
            ).content
        )
        == 3000
    )


@pytest.mark.parametrize(
    "label, name",
    [
        ("utf-8", "utf-8"),
        ("UTF8", "utf-8"),
        (" iso-8859-1 ", "windows-1252"),
        ("ascii", "windows-1252"),
        ("latin1", "windows-1252"),
        ("iso88591", "windows-1252"),
        ("ISO-8859-9", "windows-1254"),
        ("iso-8859-15", "iso-8859-15"),
        ("x-sjis", "shift_jis"),
        ("windows-31j", "shift_jis"),
        ("gb2312", "gbk"),
        ("gb18030", "gb18030"),
        ("ks_c_5601-1987", "euc-kr"),
        ("big5-hkscs", "big5"),
        ("koi8-ru", "koi8-u"),
        ("tis-620", "windows-874"),
        ("x-cp1251", "windows-1251"),
        ("utf-16", "utf-16le"),
        ("unicodefffe", "utf-16be"),
        ("logical", "iso-8859-8"),
        ("macintosh", "macintosh"),
        ("", ""),
        ("utf-7", ""),
        ("base64", ""),
        ("rot13", ""),
        ("unicode_escape", ""),
        ("idna", ""),
        ("none", ""),
        ("x" * 1000, ""),
        ("..", ""),
        ("a\0b", ""),
        ("ação", ""),
        ("cp037", ""),
        ("undefined", ""),
        ("aliases", ""),
    ],
)
def test_labels(label, name):
    assert encoding_of(label) == name
    if name:
        assert to_utf_8(b"abc" if not name.startswith("utf-16") else "abc".encode(name), name) == b"abc"


@pytest.mark.parametrize(
    "body, kind, charset",
    [
        (b"\xef\xbb\xbf" + WORD.encode(), "text/html; charset=iso-8859-1", "utf-8"),
        (b"\xff\xfe" + WORD.encode("utf-16le"), "text/html", "utf-16le"),
        (b"\xfe\xff" + WORD.encode("utf-16be"), "text/html; charset=utf-8", "utf-16be"),
        (WORD.encode("latin-1"), "text/html; charset=ISO-8859-1", "windows-1252"),
        (WORD.encode("latin-1"), "text/html;x=y; Charset = 'windows-1252'", "windows-1252"),
        (WORD.encode("utf-8") + b"<meta charset=iso-8859-1>", "text/html; charset=utf-8", "utf-8"),
        (b"<meta charset=latin1>" + WORD.encode("latin-1"), "text/html", "windows-1252"),
        (
            b"<META HTTP-EQUIV=content-type CONTENT='text/html; charset=iso-8859-2'>" + "Ł".encode("iso-8859-2"),
            "text/html",
            "iso-8859-2",
        ),
        (b"<meta charset=utf-16>" + WORD.encode(), "text/html", "utf-8"),
        (b"<meta charset=nonsense>" + WORD.encode(), "text/html; charset=fantasy", "utf-8"),
        (b"<meta charset=nonsense><meta charset=koi8-r>", "text/html", "koi8-r"),
        (b"<!-- <meta charset=koi8-r> -->" + WORD.encode(), "text/html", "utf-8"),
        (b" " * 1024 + b"<meta charset=koi8-r>", "text/html", "utf-8"),
        (WORD.encode("latin-1"), "text/html", "windows-1252"),
        (WORD.encode(), "text/html", "utf-8"),
        (WORD.encode()[:-1], "text/html", "utf-8"),
    ],
)
def test_charset(body, kind, charset):
    assert choose_charset(body, kind, has_markup=True) == charset
    if charset != "koi8-r":
        assert b"<" in body or WORD.encode().startswith(to_utf_8(body, charset).removesuffix("\ufffd".encode()))


def test_a_lie_about_the_charset_is_believed_and_leaves_marks():
    answer = read(b"<title>" + WORD.encode("latin-1"), "text/html; charset=utf-8")
    assert answer.charset == "utf-8" and answer.document.title == "a\ufffd\ufffdo"
    answer = read(b"<title>" + WORD.encode("utf-8"), "text/html; charset=latin1")
    assert answer.charset == "windows-1252" and answer.document.title == WORD.encode().decode("cp1252")


def test_links_are_read_in_the_charset_of_the_page():
    answer = read(f"<meta charset=iso-8859-1><a href='{WORD}'>".encode("latin-1"))
    assert [text for _, text, _ in answer.document.links] == [WORD]
    shift_jis = '<title>日本</title><a href="表">'.encode("cp932")  # the second byte of this sign is a backslash
    answer = read(shift_jis, "text/html; charset=shift_jis")
    assert answer.document.title == "日本" and [text for _, text, _ in answer.document.links] == ["表"]


def test_utf_8_that_ends_inside_a_character():
    assert is_utf_8("é".encode()[:1]) and is_utf_8("😀".encode()[:3]) and not is_utf_8(b"\xe9\xe9")


@pytest.mark.parametrize(
    "body, kind, status, reader, charset",
    [
        (b"<p>", "text/html", 200, "html", "utf-8"),
        (b"<p>", "TEXT/HTML ; x", 299, "html", "utf-8"),
        (b"<p>", "application/xhtml+xml", 200, "html", "utf-8"),
        (b"<p>", "text/html", 404, "", "utf-8"),
        (b"<p>", "text/html", 301, "", "utf-8"),
        (b"p", "text/plain", 200, "text", "utf-8"),
        (b"p", "text/calendar", 200, "", "utf-8"),
        (b"p", "image/png", 200, "", ""),
        (b"%PDF-1.4", "application/pdf", 404, "", ""),
        (b"\n <!DOCTYPE html>", None, 200, "html", "utf-8"),
        (b"<html>", "", 200, "html", "utf-8"),
        (b"<!-- x -->", None, 200, "html", "utf-8"),
        (b"%PDF-1.4 <html>", None, 200, "pdf", ""),
        (b"", "text/html", 200, "html", "utf-8"),
    ],
)
def test_what_is_read(body, kind, status, reader, charset):
    answer = read(body, kind, status=status)
    assert (answer.reader, answer.charset, answer.trouble) == (reader, charset, BROKEN if reader == "pdf" else "")


def test_type_is_cut_and_plain():
    assert read(b"", "Text/HTML; charset=x").type == "text/html" and len(read(b"", "x" * 500).type) == 100


def test_unknown_encoding_is_not_read():
    answer = read(b"<p>", "text/html", "Content-Encoding: br")
    assert answer.reader == answer.charset == "" and answer.content == b"<p>" and answer.trouble == UNDECODED


@pytest.mark.parametrize(
    "failure, trouble", [(MemoryError, "memory"), (ValueError, "unreadable"), (RecursionError, "unreadable")]
)
def test_a_page_that_makes_the_parser_fail_has_its_headers_only(failure, trouble):
    with patch.object(html, "read", side_effect=failure):
        answer = read(b"<a href=x>", "text/html", "Link: <y>; rel=next", "X-Robots-Tag: noindex")
    assert (answer.reader, answer.trouble, answer.document.links, answer.document.noindex) == ("", trouble, {}, True)
    assert judge_answer(answer).urls == ["http://example.com/dir/y"]


REDIRECTS = [
    ("/x", 301, "http://example.com/x"),
    ("y", 302, "http://example.com/dir/y"),
    ("HTTPS://Other.org", 308, "https://other.org/"),
    ("/ação".encode().decode("latin-1"), 301, "http://example.com/a%C3%A7%C3%A3o"),
    ("/a\xe7\xe3o", 301, "http://example.com/a%C3%A7%C3%A3o"),
    ("mailto:x", 301, ""),
    ("http://[", 301, ""),
    ("", 301, ""),
    ("/x", 200, ""),
    ("/x", 404, ""),
    ("#top", 301, PAGE),
    ("/?q=ç".encode().decode("latin-1"), 303, "http://example.com/?q=%C3%A7"),
    ("?a=1&utm_source=x#f", 307, PAGE + "?a=1"),
]


@pytest.mark.parametrize("location, status, redirect_to", REDIRECTS)
def test_redirects(location, status, redirect_to):
    answer = read(b"", "text/html; charset=iso-8859-1", f"Location: {location}", status=status)
    judged = judge_answer(answer)
    assert judged.urls == [redirect_to] * bool(redirect_to) and judged.kinds == [1 << REDIRECT] * bool(redirect_to)
