"""Encodings, above all those with more than one byte per character, against the Encoding standard."""

import hashlib
import random
import time

import pytest

from stages.extractor.charset import to_page_query, to_text, to_utf_8
from storage.compiled import load_all
from tests.loop_ways import both_ways

CJK = ("gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr", "iso-2022-jp")
BYTES = range(0x100)
PAIRS = b"".join(bytes((first, second, 0x0A)) for first in BYTES for second in BYTES)
TRIPLES = b"".join(bytes((0x8F, first, second, 0x0A)) for first in BYTES for second in BYTES)  # EUC-JP
FOURS = b"".join(
    bytes((first, second, third, fourth, 0x0A))
    for first in (*range(0x81, 0x86), 0x90, 0xE3, 0xFE)
    for second in range(0x30, 0x3A)
    for third in range(0x81, 0xFF)
    for fourth in range(0x30, 0x3A)
)  # GB 18030
TABLES = [*((name, PAIRS) for name in CJK), ("euc-jp", TRIPLES), ("gb18030", FOURS)]
# The first 16 digits of SHA-256 of the UTF-8 that the standard gives for each of TABLES, by another implementation
# (the npm package @exodus/bytes 1.16.0).
DIGESTS = """
0dfd53ac1e467329 0dfd53ac1e467329 eb37b683bc3b8d41 729da9b1379c2dbd 06eef6314f687274 42e8e5e2b5646caf 116e013d696819a5
322c5fe92caac1cf a621afb16beba764
"""
SPEED_BYTES = 4_000_000
SLOWER_MAX = 4  # times Python's codec, which is slower today


@pytest.mark.parametrize("table, digest", list(zip(TABLES, DIGESTS.split(), strict=True)))
def test_every_sequence_decodes_as_the_standard_says(table, digest):
    name, data = table
    assert hashlib.sha256(to_utf_8(data, name)).hexdigest()[:16] == digest


@both_ways
@pytest.mark.parametrize(
    "name, data, text",
    [
        ("gbk", b"\x80\xa3\xa0\xa6\xd9\xfe\x59\xa8\xbc", "€\u3000︐龴ḿ"),
        ("gb18030", b"\x81\x35\xf4\x37\x90\x30\x81\x30\xe3\x32\x9a\x35", "\ue7c7𐀀\U0010ffff"),
        ("gb18030", b"\x84\x31\x95\x33a", "\ufeffa"),
        ("gbk", b"\x81<a>\xff\x81\x7f", "\ufffd<a>\ufffd\ufffd\x7f"),
        ("gb18030", b"\x81\x30\x81<\x81\x30<", "\ufffd0\ufffd<\ufffd0<"),
        ("gb18030", b"\x81\x30", "\ufffd"),
        ("gb18030", b"a\x81\x30\x81", "a\ufffd"),
        ("gb18030", b"\xfe\x39\xfe\x39a", "\ufffda"),
        ("big5", b"\x88\x62\x88\x64\x88\xa3\x88\xa5", "Ê̄Ê̌ê̄ê̌"),
        ("big5", b"\xa1\x45\xa3\xe1\x87\x7a\x87\x7b", "‧€㡵𡵓"),
        ("big5", b"\x80\x81<\xa4", "\ufffd\ufffd<\ufffd"),
        ("big5", b"\xfe\xff\xa4\x40", "\ufffd一"),
        ("euc-jp", b"\xad\xa1\xa1\xc1\x8f\xa2\xb7\x8e\xb1", "①～～ｱ"),
        ("euc-jp", b"\x8f\xa1\x8f<\x8e<\xa1<\xa0", "\ufffd<\ufffd<\ufffd<\ufffd"),
        ("euc-jp", b"\x8f\xc6J\xa1\xd8", "\ufffdJ『"),
        ("euc-jp", b"\x8f\xb0", "\ufffd"),
        ("shift_jis", b"\x80\xa0\xb1\x81\x60\x85<\xf0\x40\xfd", "\x80\ufffdｱ～\ufffd<\ue000\ufffd"),
        ("shift_jis", b"\x81\xfd<", "\ufffd<"),
        ("euc-kr", b"\x80\x81<\xc9\xa1<\xb0\xa1\xfe", "\ufffd\ufffd<\ufffd<가\ufffd"),
        ("iso-2022-jp", b"\x1b(J\\~\x1b(I1\x0e\x1b$B!", "¥‾ｱ\ufffd\ufffd"),
        ("iso-2022-jp", b"\x1b(\xa0\x1b$B\x1b(B\x0e", "\ufffd(\ufffd\ufffd\ufffd"),
        ("iso-2022-jp", b"\x1b$B!\x1b(B<\x1b$", "\ufffd<\ufffd$"),
        ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
    ],
)
def test_errors_take_what_the_standard_says(name, data, text, way):
    with way():
        assert to_text(data, name) == text and to_utf_8(data, name) == text.encode()


@pytest.mark.parametrize(
    "query, charset, expected",
    [
        ("€￥\ue5e5\ue78d︐", "gbk", "%80%A3%A4%26%2358853%3B%A6%D9%A6%D9"),
        ("€\ue5e5\ue7c7ḿ", "gb18030", "%A2%E3%26%2358853%3B%815%F47%A8%BC"),
        ("═十㡵€", "big5", "%F9%F9%A4Q%26%2314453%3B%A3%E1"),
        ("①−¥‾ｱ纊丂", "euc-jp", "%AD%A1%A1%DD\\~%8E%B1%F9%A1%26%2319970%3B"),
        ("①−¥‾ｱ纊\x80\ue000", "shift_jis", "%87@%81|\\~%B1%FA\\%80%26%2357344%3B"),
        ("가éА", "euc-kr", "%B0%A1%26%23233%3B%AC%A1"),
        ("¥ab\\日ｱé", "iso-2022-jp", "%1B(J\\ab%1B(B\\%1B$BF|%%22%1B(B%26%23233%3B"),
        ("¥\n b ", "iso-2022-jp", "%1B(J\\%20b%1B(B"),
    ],
)
def test_queries_are_encoded_as_the_standard_says(query, charset, expected):
    assert to_page_query(f"?{query}", charset) == f"?{expected}"


@pytest.mark.parametrize("name", CJK)
@pytest.mark.sampled(3)
def test_any_page_is_decoded_in_the_time_of_a_codec(name):
    """A page of errors must not take a step of Python for each."""
    codec = {"gbk": "gb18030", "iso-2022-jp": "iso2022_jp_ext"}.get(name, name)
    data = random.Random(1).randbytes(SPEED_BYTES)
    load_all()

    def measure(function, *arguments) -> float:
        began = time.process_time()
        function(*arguments)
        return time.process_time() - began

    codec_s = min(measure(data.decode, codec, "replace") for _ in range(3))
    assert min(measure(to_utf_8, data, name) for _ in range(3)) < SLOWER_MAX * codec_s
