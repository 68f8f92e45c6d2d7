"""Which reader takes a document: by its media type, and by how it begins where the type is missing, vague or a lie."""

import gzip

import pytest

from contract.config import DOCUMENTS, LINK_KINDS, Config
from stages.extractor.document import Document
from stages.extractor.documents import HTML, READERS, START_BYTES, choose_reader
from tests.extractor_lab import configured, judge_answer, read_answer
from tests.sample_documents import get_url, make_compound, make_docx, make_pdf, make_swf, make_zip, relationships

DO_ACTION = 12  # the tag of Flash that holds what a button does
XML = b"<?xml version='1.0'?>"
STARTS = {
    "html": [
        b"<!DOCTYPE html><p>",
        b"\xef\xbb\xbf\n<HTML>",
        b"<!-- x --><html>",
        b"<p>x",
        b"<script >",
        XML + b"<html xmlns='http://www.w3.org/1999/xhtml'>",
        b"<a href=x>",
        b"<table border=1>",
        b"<head>",
        b"\n\t<body\n>",
    ],
    "pdf": [make_pdf(b"x"), b"\xef\xbb\xbf%PDF-1.7", b"\n%PDF-1.4"],
    "office": [make_docx("http://a/"), make_zip({"_rels/.rels": relationships("http://a/")})],
    "doc": [make_compound({"WordDocument": b"x"})],
    "swf": [make_swf((DO_ACTION, get_url(b"http://a/") + b"\0"))],
    "sitemap": [
        XML + b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>",
        XML + b"<!-- x --><sitemapindex>",
        b"<urlset>",
        gzip.compress(XML + b"<urlset></urlset>"),
    ],
    "feed": [
        XML + b"<rss version='2.0'>",
        XML + b"<feed xmlns='http://www.w3.org/2005/Atom'>",
        b"<rss>",
        XML + b"<rdf:RDF xmlns:rdf='x' xmlns='http://purl.org/rss/1.0/'>",
    ],
    "xml": [XML + b"<note>", XML + b"<rdf:RDF xmlns:rdf='x'>", b"<svg xmlns='http://www.w3.org/2000/svg'>"],
    "json": [b'{"a": 1}', b"[]", b'\n[ "x" ]', b"[{"],
    "css": [b'@charset "utf-8";'],
}
EVERY = [(name, start) for name, starts in STARTS.items() for start in starts]
NAMES = [f"{name} {number}" for name, starts in STARTS.items() for number, _ in enumerate(starts)]
VAGUE = ("", "application/octet-stream", "binary/octet-stream", "application/zip")
TELLING = ("pdf", "office", "doc", "swf", "sitemap", "feed")  # that no text and no XML looks like by chance


def name_by_words(value) -> str:
    """Of a test: zip and gzip files hold the time, and names must be the same in every process."""
    return value if isinstance(value, str) else "-"


@pytest.mark.parametrize("name, start", EVERY, ids=NAMES)
def test_vague_types_are_told_by_the_content(name, start):
    assert {kind: choose_reader(kind, start[:START_BYTES]) for kind in VAGUE} == dict.fromkeys(VAGUE, name)
    assert choose_reader("text/plain", start[:START_BYTES]) == (
        name if name in TELLING else "text"
    )  # markup in it is for reading
    assert choose_reader("text/xml", start[:START_BYTES]) == (name if name in (*TELLING, "html") else "xml")


@pytest.mark.parametrize(
    "kind, start, name",
    [
        ("text/plain", b"see http://a.org/", "text"),
        ("", b"see http://a.org/", "text"),
        ("text/plain", b"<abc>", "text"),
        ("text/plain", b"", "text"),
        ("application/octet-stream", b"see http://a.org/", ""),
        ("application/octet-stream", b"\x89PNG\r\n\x1a\n", ""),
        ("application/zip", b"PK\x03\x04", ""),
        ("application/zip", make_zip({"a.txt": "http://a.org/"}), ""),
        ("application/xml", b"<note>", "xml"),
        ("text/xml", b"", "xml"),
    ],
    ids=name_by_words,
)
def test_vague_types_whose_content_tells_nothing(kind, start, name):
    assert choose_reader(kind, start) == name


@pytest.mark.parametrize("name", READERS)
def test_a_reader_has_its_types(name):
    for kind in READERS[name].TYPES:
        starts = [*STARTS.get(name, ()), b"" if kind in (*VAGUE, "text/plain", "text/xml") else b"\x01"]
        assert {choose_reader(kind, start[:START_BYTES]) for start in starts} == {name}


@pytest.mark.parametrize("_, start", EVERY, ids=NAMES)
def test_a_page_is_a_page_whatever_it_holds(_, start):
    assert choose_reader("text/html", start) == choose_reader("application/xhtml+xml", start) == HTML


@pytest.mark.parametrize(
    "kind",
    [
        "application/pdf",
        "application/msword",
        "application/json",
        "text/css",
        "application/javascript",
        "application/rss+xml",
        "image/svg+xml",
        "application/gzip",
        "x/y+xml",
    ],
)
def test_a_page_in_the_place_of_a_document(kind):
    """Servers tell in HTML, under the type of what is not there, why it is not."""
    assert choose_reader(kind, b"<!doctype html><title>Not found") == HTML


@pytest.mark.parametrize(
    "kind", ["image/png", "video/mp4", "font/woff2", "text/calendar", "application/x-unknown", "multipart/mixed"]
)
def test_types_that_nobody_reads(kind):
    assert {choose_reader(kind, start) for _, start in EVERY} == {""}


@pytest.mark.parametrize("kind", ["application/vnd.custom+xml", "image/svg+xml", "application/rdf+xml"])
def test_a_type_made_of_xml(kind):
    assert choose_reader(kind, XML + b"<note>") == "xml"
    assert choose_reader(kind, XML + b"<urlset>") == "sitemap" and choose_reader(kind, XML + b"<feed>") == "feed"


def test_every_reader_can_be_switched():
    """HTML is always read; words that are no readers are options of others."""
    assert set(READERS) - {HTML} == set(DOCUMENTS) - {"inline_scripts", "inline_styles", "urls_in_urls"}


@pytest.mark.parametrize(
    "body, kind, reader, kinds",
    [
        (b"see http://b.org/x", "text/plain", "text", {"text"}),
        (b"<urlset><url><loc>http://b.org/</loc></url></urlset>", "application/xml", "sitemap", {"sitemap"}),
        (
            gzip.compress(b"<urlset><url><loc>http://b.org/</loc></url></urlset>"),
            "application/x-gzip",
            "sitemap",
            {"sitemap"},
        ),
        (b"<rss><channel><item><link>http://b.org/</link></item></channel></rss>", "text/xml", "feed", {"feed"}),
        (make_pdf(b"x", annotations=(b"<< /S /URI /URI (http://b.org/) >>",)), "application/pdf", "pdf", {"document"}),
        (
            make_docx("http://b.org/"),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "office",
            {"document"},
        ),
        (b"a { background: url(b.png) } @import 'c.css';", "text/css", "css", {"image", "style"}),
    ],
    ids=name_by_words,
)
def test_documents_are_read_by_default(body, kind, reader, kinds):
    answer = read_answer(body, kind)
    assert answer.reader == reader and {LINK_KINDS[found] for found, _, _ in answer.document.links} == kinds
    without = configured("extractor", documents=())
    unread = read_answer(body, kind, config=without)
    assert (unread.reader, unread.document) == ("", Document()) and read_answer(
        "<a href=x>", config=without
    ).reader == HTML


@pytest.mark.parametrize(
    "body, kind, word",
    [
        (b'{"u": "http://b.org/x"}', "application/json", "json"),
        (b"go('http://b.org/x')", "text/javascript", "script"),
        (make_swf((DO_ACTION, get_url(b"http://b.org/x") + b"\0")), "application/x-shockwave-flash", "swf"),
        (b"<script>go('http://b.org/x')</script>", "text/html", "inline_scripts"),
        (b"<p style='background: url(http://b.org/x)'>", "text/html", "inline_styles"),
        (b"<a href='http://a.org/?u=http%3A%2F%2Fb.org%2Fx'>", "text/html", "urls_in_urls"),
    ],
    ids=name_by_words,
)
def test_documents_that_are_read_where_asked_for(body, kind, word):
    asked = configured("extractor", documents=(word,))
    found = [judge_answer(read_answer(body, kind, config=config)).urls for config in (Config(), asked)]
    assert [urls.count("http://b.org/x") for urls in found] == [0, 1]


def test_urls_inside_the_url_of_any_answer():
    asked = configured("extractor", documents=("urls_in_urls",))
    answer = read_answer(b"", "image/png", url="http://a.org/?to=http://b.org/x", config=asked)
    assert judge_answer(answer, url="http://a.org/?to=http://b.org/x").urls == ["http://b.org/x"]
