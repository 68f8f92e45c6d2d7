"""Encodings, above all those with more than one byte per character, against the Encoding standard and Chromium."""

import base64
import hashlib
import json
import random
import re
import subprocess
import time

import pytest

from contract.url import canonicalise
from stages.extractor.charset import LABELS, to_page_query, to_text, to_utf_8

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
# Where we follow the standard and Chromium 156 does not. Big5: four sequences stand for two characters each, and it
# gives half a surrogate pair. EUC-JP: after an error in three bytes it reads the next two as if 8F preceded them.
# ISO-2022-JP: it does not read all bytes again that begin like an escape and are none.
CHROMIUM_ERRS = {
    "big5": re.compile(rb"\x88[\x62\x64\xa3\xa5]"),
    "euc-jp": re.compile(rb"\x8f[\xa1-\xfe](?![\xa1-\xfe])"),
    "iso-2022-jp": re.compile(rb"\x1b(?:\((?![BIJ])|\$(?![@B]))"),
}
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=3600000",
]  # virtual time passes only when nothing is left to do
PAGE = """<!doctype html><meta charset=utf-8><pre></pre><script>
const answer = document.querySelector("pre"), cases = %s;
document.currentScript.remove();  // so that it is not printed
const toBytes = data => Uint8Array.from(atob(data), character => character.charCodeAt(0));
const decode = ([name, data]) => new TextDecoder(name).decode(toBytes(data));
const readLinks = ([name, data]) => new Promise(done => {
  const request = new XMLHttpRequest();
  request.open("GET", `data:text/html;charset=${name};base64,${data}`);
  request.responseType = "document";
  request.onload = () => done(Array.from(request.response.links, link => link.href));
  request.send();
});
Promise.all(cases.map(%s)).then(found => {
  const bytes = new TextEncoder().encode(JSON.stringify(found));
  let text = "";
  for (let at = 0; at < bytes.length; at += 30000) text += String.fromCharCode(...bytes.subarray(at, at + 30000));
  answer.textContent = btoa(text);
});
</script>"""
ESCAPES = b"\x1b$B", b"\x1b(B", b"\x1b(J", b"\x1b(I", b"\x1b$@", b"\x1b", b"\\~", b"\x0e", b"!!", b"F|", b"\x80", b"a"
POOLS = (
    BYTES,
    range(0x80, 0x100),
    range(0x30, 0x3A),
    b"\x80\x81\x8e\x8f\xa0\xfe\xff",
    range(0x81, 0x86),
    range(0x20, 0x7F),
    range(0xD8, 0xE0),
)
LINK_CHARACTERS = 50
SPEED_BYTES = 4_000_000
SLOWER_MAX = 4  # times Python's codec, which is slower today


@pytest.fixture
def ask_chromium(needs, tmp_path):
    """What Chromium makes of cases, each an encoding and bytes: `decode` their texts, or `readLinks` of pages."""
    program = needs("chromium")

    def ask(function: str, cases: list[tuple[str, bytes]]) -> list:
        page = tmp_path / "page.html"
        encoded = [(name, base64.b64encode(data).decode()) for name, data in cases]
        page.write_text(PAGE % (json.dumps(encoded), function))
        command = [program, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
        run = subprocess.run(command, capture_output=True, text=True)
        found = re.search(r"<pre>([A-Za-z0-9+/=]+)</pre>", run.stdout)
        assert found, run.stderr[-2_000:]
        return json.loads(base64.b64decode(found[1]))

    return ask


def make_bytes(source: random.Random, name: str) -> bytes:
    """Short bytes that are often nearly right: cut off, or with a byte that does not fit."""
    parts = ESCAPES if name == "iso-2022-jp" else ()
    return b"".join(
        source.choice(parts) if parts and source.random() < 0.7 else bytes([source.choice(source.choice(POOLS))])
        for _ in range(source.randrange(1, 14))
    )


def is_judged(name: str, data: bytes) -> bool:
    """Whether Chromium follows the standard there."""
    return name not in CHROMIUM_ERRS or not CHROMIUM_ERRS[name].search(data)


@pytest.mark.parametrize("table, digest", list(zip(TABLES, DIGESTS.split(), strict=True)))
def test_every_sequence_decodes_as_the_standard_says(table, digest):
    name, data = table
    assert hashlib.sha256(to_utf_8(data, name)).hexdigest()[:16] == digest


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
def test_errors_take_what_the_standard_says(name, data, text):
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
def test_any_page_is_decoded_in_the_time_of_a_codec(name):
    """A page of errors must not take a step of Python for each."""
    codec = {"gbk": "gb18030", "iso-2022-jp": "iso2022_jp_ext"}.get(name, name)
    data = random.Random(1).randbytes(SPEED_BYTES)
    to_utf_8(data[:100], name)  # loads what was compiled

    def measure(function, *arguments) -> float:
        began = time.process_time()
        function(*arguments)
        return time.process_time() - began

    codec_s = min(measure(data.decode, codec, "replace") for _ in range(3))
    assert min(measure(to_utf_8, data, name) for _ in range(3)) < SLOWER_MAX * codec_s


def test_chromium_decodes_the_same(ask_chromium):
    source = random.Random(20)
    cases = [(name, bytes(BYTES)) for name in LABELS if name != "replacement"]  # whose name a script may not use
    cases += [(name, b"\xef\xbb\xbfa") for name in LABELS if name != "replacement"]
    for name in (*CJK, "utf-8", "utf-16le", "utf-16be"):
        cases += [(name, data) for data in (make_bytes(source, name) for _ in range(1_000)) if is_judged(name, data)]
    for name, data in TABLES:
        cases.append((name, b"".join(line for line in data.splitlines(keepends=True) if is_judged(name, line))))
    answers = zip(cases, ask_chromium("decode", cases), strict=True)
    assert [(name, data, text) for (name, data), text in answers if to_text(data, name) != text] == []


def test_chromium_writes_the_same_links(ask_chromium):
    codes = [*range(0xA0, 0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, 997)]
    begins = range(0, len(codes), LINK_CHARACTERS)
    texts = ["x".join(map(chr, codes[begin : begin + LINK_CHARACTERS])) for begin in begins]
    texts += ["¥abc\\~x", "日\n本", "日é本", "日本x日", "¥é日", "ｱｲ‾b~", "日\x0ex", "é'<\"", "¥ x ", " 日 "]
    references = ("".join(f"&#{ord(character)};" for character in text) for text in texts)
    page = "".join(f'<a href="http://h/?{reference}"></a>' for reference in references).encode()
    names = [*CJK, "windows-1252", "koi8-u", "x-user-defined"]
    for name, links in zip(names, ask_chromium("readLinks", [(name, page) for name in names]), strict=True):
        ours = [canonicalise(to_page_query(f"http://h/?{text}", name)) for text in texts]
        assert [pair for pair in zip(links, ours, strict=True) if pair[0] != pair[1]] == [], name
