"""Encodings against Chromium: bytes are decoded, and links written, as it does."""

import base64
import json
import random
import re
import subprocess

import pytest

from contract.url import canonicalise
from stages.extractor.charset import LABELS, to_page_query, to_text
from tests.unit.test_encodings import BYTES, CJK, TABLES

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


@pytest.mark.long
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


@pytest.mark.long
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
