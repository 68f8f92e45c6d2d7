"""HTML: which links a page has, of which kind, and that no page, however hostile, does more than be a page."""

import random
import time

import pytest

from contract.config import LINK_KINDS
from stages.extractor import nesting
from stages.extractor.links import LinkJudge
from stages.extractor.nesting import cut_tangled
from stages.extractor.page import read_page
from tests.unit.test_extractor_lab import PAGE

SECONDS_MAX = 6.0  # about one is expected; a page that is not cut takes minutes


def links(html: str | bytes) -> list[tuple[str, str]]:
    page = read_page(html.encode() if isinstance(html, str) else html, "Coletor")
    return [(LINK_KINDS[kind], text) for kind, text, _ in page.links]


@pytest.mark.parametrize("html, expected", [
    ("<a href=x>", [("a", "x")]),
    ("<A HREF='x y'>", [("a", "x y")]),
    ("<a name=x>", []),
    ("<a href>self</a><a href=''>", [("a", "")]),
    ("<a href='?a=1&amp;b=2&copy=3'>", [("a", "?a=1&b=2&copy=3")]),
    ("<a href=1 href=2>", [("a", "1")]),
    ("<map><area href=x></map>", [("area", "x")]),
    ("<iframe src=x></iframe>", [("frame", "x")]),
    ("<frameset><frame src=x><frame src=y></frameset>", [("frame", "x"), ("frame", "y")]),
    ("<iframe src=''></iframe><img src><link href='' rel=x>", []),
    ("<link rel=next href=x>", [("link", "x")]),
    ("<img src=x><script src=y></script>", [("image", "x"), ("script", "y")]),
    ("<script>document.write('<a href=x>')</script><!-- <a href=y> --><style><a href=z></style>", []),
    ("<textarea><a href=x></textarea><template><a href=y></a></template>", []),
    ("<noscript><a href=x></a></noscript>", [("a", "x")]),
    ("<svg><a href=x></a><a xlink:href=y></a></svg>", [("a", "x")]),
    ("<table><tr><a href=x></table><p><a href=y><div><a href=z>", [("a", "x"), ("a", "y"), ("a", "z")]),
    ("<meta http-equiv=refresh content='5; url=x'>", [("refresh", "x")]),
    ("<meta http-equiv=Refresh content=\"0;URL = 'a b'; c\">", [("refresh", "a b")]),
    ("<meta http-equiv=refresh content='url=x'>", []),
    ("<meta http-equiv=refresh content=' 0.5 , url=x '>", [("refresh", "x")]),
    ("<meta http-equiv=refresh content=5><meta name=refresh content='5;url=x'><meta http-equiv=refresh>", []),
    ("<a href=x", []),
    ("<a href='x>never closed", []),
    ("<a href=x><a href=x><a rel=nofollow href=x>", [("a", "x"), ("a", "x")]),
])
def test_links_of_a_page(html, expected):
    assert links(html) == expected


def test_links_are_counted_by_kind_text_and_mark():
    page = read_page(b"<a href=x><area href=x><a href=x><a href=x rel='me NoFollow'>", "Coletor")
    assert page.links == {(0, "x", False): 2, (1, "x", False): 1, (0, "x", True): 1}


@pytest.mark.parametrize("html, forbidden", [
    ("<meta name=robots content=nofollow>", True),
    ("<meta name=ROBOTS content='noindex, NoFollow'>", True),
    ("<meta name=robots content=none>", True),
    ("<meta name=coletor content=nofollow>", True),
    ("<meta name=otherbot content=nofollow>", False),
    ("<meta name=robots content='noindex'>", False),
    ("<meta name=robots><meta content=nofollow>", False),
    ("<meta name=description content='none nofollow'>", False),
    ("<body><a href=x><meta name=robots content=nofollow>", True),
])
def test_meta_robots(html, forbidden):
    assert read_page(html.encode(), "Coletor").nofollow == forbidden


@pytest.mark.parametrize("html, base", [
    ("", None), ("<base href=/a/><base href=/b/>", "/a/"), ("<base target=x><base href=/b/>", "/b/"), ("<base href>", ""),
    ("<body><a href=x><base href=/late/>", "/late/"),
])
def test_first_base_with_href(html, base):
    assert read_page(html.encode(), "Coletor").base == base


@pytest.mark.parametrize("base, resolved", [
    (None, PAGE), ("", PAGE), ("/a/", "http://example.com/a/"), ("//other.org", "http://other.org/"), ("sub/", "http://example.com/dir/sub/"),
    ("https://b.org/x?q#f", "https://b.org/x?q"), ("javascript:1", PAGE), ("data:text/html,x", PAGE), ("http://[", PAGE), ("\ud800", PAGE),
])
def test_base_is_resolved_against_the_page(base, resolved):
    assert LinkJudge.base_of(PAGE, base) == resolved


@pytest.mark.parametrize("html, title", [
    ("<title> a\n\t b&amp;c </title>", "a b&c"), ("<title></title><title>b</title>", ""), ("<p>x", ""), ("<title>" + "x" * 400, "x" * 300),
    ("<title>a<b>c</title>", "a<b>c"), ("<title>a\0b\ud800</title>".encode("utf-8", "surrogatepass"), "a\ufffdb\ufffd\ufffd\ufffd"),
])
def test_title(html, title):
    assert read_page(html if isinstance(html, bytes) else html.encode(), "Coletor").title == title


HOSTILE = {
    "random": random.Random(1).randbytes(300_000),
    "long attribute": b"<a href='" + b"x" * 1_000_000 + b"'><a href=y>",
    "deep": b"<div>" * 100_000 + b"<a href=x>",
    "deep lists": b"<ul><li>" * 100_000,
    "nul": b"\0<a href=\0x\0>\0" * 1000,
    "many attributes": b"<a href=x><b " + b" ".join(b"a%d=1" % number for number in range(200_000)) + b">",
    "attributes with marks": b"<a href=x><b " + b" ".join(b"a%d='>'" % number for number in range(200_000)) + b">",
    "open formatting": b"<a href=x><p>" + b"".join(b"<b id=%d>" % number for number in range(4_000)) + b"<p>x" * 4_000,
    "open formatting, long": b"<a href=x><p>" + b"".join(b"<b id=%d>" % number for number in range(8)) + b"<p>x" * 300_000,
    "many options": b"<a href=x><select>" + b"<option>x" * 200_000,
    "unknown end tags": b"<a href=x>" + b"<div></x>" * 100_000,
    "end tags out of reach": b"<a href=x>" + b"<div><table></div>" * 100_000,
    "cells without a table": b"<a href=x>" + b"<div><td>" * 100_000,
    "only brackets": b"<" * 1_000_000,
    "tags that never end": b"<b " * 300_000,
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages(name):
    began = time.process_time()  # what others do on the machine is not counted
    found = links(HOSTILE[name])
    assert time.process_time() - began < SECONDS_MAX
    if b"href=x>" in HOSTILE[name][:20]:
        assert ("a", "x") in found


ORDINARY = {
    "large table": b"<table>" + b"<tr><td><font color=red><b>x</b></font><td><p>y<td><a href=z>z</a></tr>" * 20_000 + b"</table>",
    "unclosed cells": b"<table>" + b"<tr><td><font color=red><b>x<td><p>y" * 20_000,
    "unclosed items": b"<ul>" + b"<li><font size=1><b>x" * 40_000,
    "unclosed paragraphs": b"<p>x<br>" * 100_000,
    "drawing": b"<svg>" + b"<path d='M0 0'/>" * 50_000 + b"</svg>" + b"<div><p>x<b>y</b></div>" * 10_000,
    "definitions": b"<dl>" + b"<dt>x<dd>y" * 50_000,
    "one long script": b"<script>" + b"var a = '/x'; " * 50_000 + b"</script><a href=x>",
    "long data": b"<img src='data:," + b"a b " * 50_000 + b"'><a href=x>",
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_large_pages_are_not_cut(name):
    assert cut_tangled(ORDINARY[name]) == ORDINARY[name]


def test_a_tangled_page_is_cut_at_a_tag(monkeypatch):
    monkeypatch.setattr(nesting, "TAGS_UNCHECKED", 10)
    monkeypatch.setattr(nesting, "TAGS_SHALLOW", 10)
    monkeypatch.setattr(nesting, "STEPS_MAX", 1_000)
    monkeypatch.setattr(nesting, "ELEMENTS_MAX", 1_000)
    assert cut_tangled(b"<DIV>" * 100) == b"<DIV>" * 45
    bold = b"".join(b"<b id=%d>" % number for number in range(100))
    assert len(bold) > len(cut_tangled(bold)) and bold[len(cut_tangled(bold))] == ord("<")
    assert cut_tangled(b"<b></b>" * 500 + b"<b>" * 3) == b"<b></b>" * 500 + b"<b>" * 3
