"""Documents made to cost: each is read within seconds of CPU, and what stood first is found."""

import gzip
import time

import pytest

from stages.extractor.documents import css, feed, json_text, script, sitemap, text, xml

SECONDS_MAX = 6.0  # of CPU; the worst takes about one here
SIZE = 2_000_000  # where anything quadratic would take hours

LAUGHS = (
    b'<!DOCTYPE d [<!ENTITY l0 "lol">'
    + b"".join(b'<!ENTITY l%d "%s">' % (number, b"&l%d;" % (number - 1) * 10) for number in range(1, 10))
    + b"]>"
)


def fill(piece: bytes) -> bytes:
    return piece * (SIZE // len(piece))


FIRST = b"<d><url><loc>http://a/</loc></url><link>http://a/</link>"  # a link for each reader of XML
XML = {
    "deep": FIRST + b"<a>" * 1_000_000,
    "deep and closed": FIRST + b"<a>" * 200_000 + b"</a>" * 200_000,
    "attributes": FIRST + b"<a " + b" ".join(b"a%d='1'" % number for number in range(1_000_000)) + b"/>",
    "laughs in text": LAUGHS + FIRST + b"<a>&l9;</a>",
    "laughs in an attribute": LAUGHS + FIRST + b"<a href='&l9;'/>",
    "long entity, often": b"<!DOCTYPE d [<!ENTITY a '" + b"x" * 100_000 + b"'>]>" + FIRST + b"<b href='&a;'/>" * 20_000,
    "outside entity": b"<!DOCTYPE d SYSTEM 'http://127.0.0.1:9/x' [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>"
    + FIRST
    + b"<title>&a;</title>",
    "one line": FIRST + b"<title>" + b"x" * 10_000_000 + b"</title>",
    "one attribute": FIRST + b"<a href='" + b"x" * 10_000_000 + b"'/>",
    "one name": FIRST + b"<" + b"x" * 10_000_000 + b"/>",
    "brackets": FIRST + fill(b"<"),
    "references": FIRST + fill(b"&x;"),
    "ampersands": FIRST + fill(b"&"),
    "sections": FIRST + fill(b"<![CDATA["),
    "sections, closed": FIRST + fill(b"<![CDATA[&]]>"),
    "end tags": FIRST + fill(b"</b>"),
    "instructions": FIRST + fill(b"<?xml-stylesheet href=?>"),
    "one instruction": FIRST + b"<?xml-stylesheet " + fill(b" href") + b"?>",
    "comments": FIRST + fill(b"<!-"),
    "namespaces": FIRST
    + b"<n "
    + b" ".join(b"xmlns:n%d='u%d'" % (number, number) for number in range(100_000))
    + b">"
    + b"<n5:x/>" * 100_000,
    "names": FIRST + b"".join(b"<a%d/>" % number for number in range(400_000)),
    "controls": FIRST + fill(b"\x01"),
    "nothing": fill(b"\0"),
}
TEXTS = {
    text: (
        b"http://",
        b"http://x(",
        b"http://x)",
        b"http://x,",
        b"http://x'",
        b"'http://x ",
        b"(",
        b"://",
        b"h",
        b"http://a.b/[{(",
        "http://é。".encode(),
    ),
    css: (
        b",",
        b"/*",
        b"*/",
        b"url(",
        b"url('",
        b"url( ",
        b"url(a ",
        b"url(\\",
        b"@import ",
        b"@import/**/",
        b"@import url(",
        b'"',
        b"'\n",
        b"\\",
    ),
    json_text: (b"[", b"{", b'"', b"\\", b"\\/", b"\\u", b"\\u0041", b"\\ud800 ", b'"http:\\/\\/a'),
    script: (
        b'"',
        b"'/",
        b"'a",
        b"'a.",
        b"'a.html",
        b"'//a.",
        b"'//a.b ",
        b"'/aa",
        b"\\",
        b"\\/",
        b"\\u0041",
        b"/",
        b"`${",
    ),
}


@pytest.mark.parametrize("reader", [sitemap, feed, xml], ids=lambda reader: reader.__name__.rpartition(".")[2])
@pytest.mark.parametrize("name", XML)
@pytest.mark.sampled(6)
def test_hostile_xml(reader, name):
    began = time.process_time()
    document = reader.read(XML[name], "utf-8")
    assert time.process_time() - began < SECONDS_MAX
    if FIRST in XML[name]:
        assert next(iter(document.links))[1] == "http://a/"
    assert "root:" not in document.title


@pytest.mark.parametrize(
    "reader, piece",
    [(reader, piece) for reader, pieces in TEXTS.items() for piece in pieces],
    ids=lambda value: repr(value) if isinstance(value, bytes) else value.__name__.rpartition(".")[2],
)
@pytest.mark.sampled(6)
def test_hostile_text(reader, piece):
    for content in (fill(piece), b"'" + fill(piece), b"url(" + fill(piece), b"http://a.b/" + fill(piece)):
        began = time.process_time()
        reader.read(content[: SIZE // 4], "utf-8")
        assert time.process_time() - began < SECONDS_MAX


def test_a_bomb_in_gzip_is_cut(monkeypatch):
    monkeypatch.setattr(sitemap, "CONTENT_MAX_BYTES", 1_000_000)
    bomb = gzip.compress(b"<urlset>" + b"<loc>http://a/</loc>" * 1_000_000)
    document = sitemap.read(bomb, "")
    assert 45_000 < sum(document.links.values()) < 50_000


def test_no_more_links_than_anybody_wants():
    content = b"<urlset>" + b"".join(b"<loc>%d</loc>" % number for number in range(600_000))
    assert 500_000 <= len(sitemap.read(content, "utf-8").links) < 510_000
