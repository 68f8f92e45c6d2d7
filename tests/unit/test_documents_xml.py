"""XML documents: sitemaps, feeds, XML of any kind; what is read of them, and how broken they may be."""

import gzip

import pytest

from contract.config import LINK_KINDS
from stages.extractor.document import Document
from stages.extractor.documents import feed, sitemap, xml
from stages.extractor.documents.markup import mend, root_of

SITEMAP = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'"
IMAGE = "xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'"
VIDEO = "xmlns:video='http://www.google.com/schemas/sitemap-video/1.1'"
ATOM, XHTML = "xmlns='http://www.w3.org/2005/Atom'", "xmlns:h='http://www.w3.org/1999/xhtml'"
SVG, XLINK = "xmlns='http://www.w3.org/2000/svg'", "xmlns:l='http://www.w3.org/1999/xlink'"
RSS_1 = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'"


def listed(document: Document) -> list[tuple[str, str]]:
    return [(LINK_KINDS[kind], text) for kind, text, _ in document.links]


def read(reader, text: str) -> list[tuple[str, str]]:
    return listed(reader.read(text.encode(), "utf-8"))


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            (
                f"<urlset {SITEMAP}><url><loc>http://a/1</loc><lastmod>2020</lastmod></url>"
                f"<url><loc>\n http://a/2 </loc></url></urlset>"
            ),
            [("sitemap", "http://a/1"), ("sitemap", "http://a/2")],
        ),
        (
            f"<sitemapindex {SITEMAP}><sitemap><loc>http://a/s.xml.gz</loc></sitemap></sitemapindex>",
            [("sitemap", "http://a/s.xml.gz")],
        ),
        ("<urlset><url><loc>http://a/?x=1&amp;y=2</loc></url></urlset>", [("sitemap", "http://a/?x=1&y=2")]),
        ("<urlset><url><loc>http://a/?x=1&y=2&amp;z</loc></url></urlset>", [("sitemap", "http://a/?x=1&y=2&z")]),
        ("<urlset><url><loc><![CDATA[http://a/?x=1&y=2]]></loc></url></urlset>", [("sitemap", "http://a/?x=1&y=2")]),
        (
            "<s:urlset xmlns:s='x'><s:url><s:loc>http://a/ação</s:loc></s:url></s:urlset>",
            [("sitemap", "http://a/ação")],
        ),
        (
            f"<urlset {SITEMAP} {XHTML}><url><loc>u</loc><h:link rel='alternate' hreflang='de' href='http://a/de?x=1&amp;y=2'/></url></urlset>",
            [("sitemap", "u"), ("alternate", "http://a/de?x=1&y=2")],
        ),
        (
            (
                f"<urlset {SITEMAP} {IMAGE}><url><image:image><image:loc>i.png</image:loc>"
                f"</image:image><loc>u</loc></url></urlset>"
            ),
            [("image", "i.png"), ("sitemap", "u")],
        ),
        ("<urlset><url><image:image><image:loc>i.png</image:loc></image:image></url></urlset>", [("image", "i.png")]),
        (
            f"<urlset {VIDEO}><video:video><video:thumbnail_loc>t</video:thumbnail_loc>"
            "<video:content_loc>v</video:content_loc><video:player_loc>p</video:player_loc></video:video></urlset>",
            [("image", "t"), ("media", "v"), ("media", "p")],
        ),
        ("<urlset><url><loc></loc><loc> </loc></url></urlset>", []),
        ("<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/2", [("sitemap", "http://a/1")]),
        (
            "<urlset><url><loc>http://a/\x00\x011</loc></url><url><loc>2</loc></url>",
            [("sitemap", "http://a/1"), ("sitemap", "2")],
        ),
        ("\ufeff\n <?xml version='1.0'?>\n<urlset><url><loc>x</loc></url></urlset>", [("sitemap", "x")]),
    ],
)
def test_sitemaps(text, expected):
    assert read(sitemap, text) == expected


def test_a_sitemap_in_gzip():
    text = f"<?xml version='1.0' encoding='windows-1251'?><urlset {SITEMAP}><url><loc>http://a/мир</loc></url></urlset>".encode(
        "cp1251"
    )
    packed = gzip.compress(text, mtime=0)
    assert sitemap.looks_like(packed[:1024]) and listed(sitemap.read(packed, "")) == [("sitemap", "http://a/мир")]
    assert listed(sitemap.read(packed[:-9], "")) == [("sitemap", "http://a/мир")]  # its end is missing
    for other in (
        gzip.compress(b"<html><loc>x</loc>"),
        gzip.compress(bytes(10_000)),
        b"\x1f\x8b\x08",
        b"\x1f\x8b\x08" + b"\xff" * 2000,
    ):
        assert not sitemap.looks_like(other[:1024]) and listed(sitemap.read(other, "utf-8")) == []


RSS = """<?xml version="1.0"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/" \
xmlns:itunes="i">
<channel><title> Notícias &eacute; &amp;\n mais </title><link>http://a/</link><language>pt-br</language>
<atom:link rel="self" href="http://a/feed?x=1&amp;y=2"/><atom:link rel="hub" href="http://hub/"/>\
<atom:link rel="next" href="?p=2"/>
<image><title>logo</title><url>http://a/logo.png</url><link>http://a/</link></image><itunes:image href="cover.jpg"/>
<item><title>no</title><link><![CDATA[ http://a/1?x=1&y=2 ]]></link><guid>http://a/g</guid><comments>http://a/1#c</comments>
<description>&lt;a href="http://no/"&gt;</description><content><![CDATA[<a href="http://no/">]]></content>
<enclosure url="http://a/e.mp3" length="1" type="audio/mpeg"/><media:content url="m.mp4"/>\
<media:thumbnail url="t.png"/></item>
<item><guid isPermaLink="false">http://a/n</guid><guid>urn:x</guid><link>http://a/2</link></item></channel></rss>"""


def test_rss():
    document = feed.read(RSS.encode(), "utf-8")
    assert (document.title, document.language, document.canonical, document.base) == (
        "Notícias é & mais",
        "pt-br",
        "http://a/feed?x=1&y=2",
        None,
    )
    assert listed(document) == [
        ("feed", "http://a/"),
        ("canonical", "http://a/feed?x=1&y=2"),
        ("link", "http://hub/"),
        ("next", "?p=2"),
        ("image", "http://a/logo.png"),
        ("image", "cover.jpg"),
        ("feed", "http://a/1?x=1&y=2"),
        ("feed", "http://a/g"),
        ("feed", "http://a/1#c"),
        ("media", "http://a/e.mp3"),
        ("media", "m.mp4"),
        ("image", "t.png"),
        ("feed", "http://a/2"),
    ]


def test_atom():
    document = feed.read(
        f"""<feed {ATOM} xml:lang="it" xml:base="/b/"><title type="text">A</title><link href="."/>
        <link rel="self" href="f"/><link rel="next" href="?p=2"/><logo>l.png</logo>
        <entry><title>x</title><link href="e1"/><link rel="alternate" href="e2"/><link rel="enclosure" href="m"/>\
<link rel="self" href="s"/>
        <link rel="replies" href="r"/><content type="xhtml"><h:div {XHTML}><h:a href="in">x</h:a></h:div></content>\
<content src="c"/>
        <author><uri>u</uri></author></entry></feed>""".encode(),
        "utf-8",
    )
    assert (document.title, document.language, document.base, document.canonical) == ("A", "it", "/b/", "f")
    assert listed(document) == [
        ("alternate", "."),
        ("canonical", "f"),
        ("next", "?p=2"),
        ("image", "l.png"),
        ("feed", "e1"),
        ("feed", "e2"),
        ("media", "m"),
        ("link", "s"),
        ("link", "r"),
        ("a", "in"),
        ("feed", "c"),
        ("link", "u"),
    ]


def test_rss_1_and_0_91():
    text = (
        f"<rdf:RDF {RSS_1}><channel rdf:about='x'><title>R</title><link>http://a/</link></channel>"
        f"<item rdf:about='y'><link>1</link></item></rdf:RDF>"
    )
    assert read(feed, text) == [("feed", "http://a/"), ("feed", "1")]
    doctype = '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://127.0.0.1:9/rss-0.91.dtd">'
    document = feed.read(
        f"{doctype}<rss version='0.91'><channel><title>caf&eacute;&nbsp;x</title></channel></rss>".encode(), "utf-8"
    )
    assert document.title == "café x"


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            f"<d {XLINK}><ref l:href='x1'/><topic href='x2'/><pic src='x3'/><ref xlink:href='x4'/></d>",
            [("document", "x1"), ("document", "x2"), ("document", "x3"), ("document", "x4")],
        ),
        (
            (
                f"<d {XHTML}><h:a href='x'/><h:img src='y'/><h:link href='z'/><h:link "
                f"rel='stylesheet' href='s'/><h:iframe src='f'/></d>"
            ),
            [("a", "x"), ("image", "y"), ("link", "z"), ("style", "s"), ("frame", "f")],
        ),
        (
            (
                f"<svg {SVG} {XLINK}><a l:href='p'><image href='i.png'/></a><use href='#a'/><use "
                f"href='b.svg#c'/><image href='data:image/png;base64,x'/></svg>"
            ),
            [("a", "p"), ("image", "i.png"), ("image", "b.svg#c")],
        ),
        ("<?xml-stylesheet type='text/xsl' href='s.xsl?a&amp;b'?><d/>", [("style", "s.xsl?a&b")]),
        ("<?xml-stylesheet href='#x'?><?other href='y'?><d/>", []),
        (
            "<d><u> http://x/1?a&amp;b </u><u>see http://x/2</u><u>http://x/3<b/></u><u>ftp://x/</u><u>https://x/4</u></d>",
            [("text", "http://x/1?a&b"), ("text", "https://x/4")],
        ),
        ("<d><u>http://x/" + "a" * 9_000 + "</u></d>", []),
        ("<a href=''/>", []),
        ("<a href='x'>", [("document", "x")]),
        ('<a href="x"><b href=\'y', [("document", "x")]),
    ],
)
def test_xml(text, expected):
    assert read(xml, text) == expected


def test_what_xml_says_of_itself():
    document = xml.read(
        f"<h:html {XHTML} lang='pt'><h:base href='/b/'/><h:title>a\n b</h:title><h:title>c</h:title>"
        "<h:link rel='x canonical' href='c'/><h:a rel='nofollow' href='n'/></h:html>".encode(),
        "utf-8",
    )
    assert (document.language, document.base, document.title, document.canonical) == ("pt", "/b/", "a b", "c")
    assert [nofollow for _, _, nofollow in document.links] == [False, True]


@pytest.mark.parametrize(
    "charset, encoding", [("windows-1252", "cp1252"), ("utf-16le", "utf-16-le"), ("utf-8", "utf-8")]
)
@pytest.mark.parametrize(
    "declared", ["", " encoding='utf-16'", " encoding='iso-8859-1'", " encoding='fantasy'", " encoding='utf-8'"]
)
def test_the_chosen_charset_counts_and_not_the_declared_one(charset, encoding, declared):
    text = f"<?xml version='1.0'{declared}?><d><title>ação</title><u>http://x/ção</u></d>"
    document = xml.read(text.encode(encoding), charset)
    assert document.title == "ação" and listed(document) == [("text", "http://x/ção")]


def test_bytes_of_another_charset_leave_marks():
    assert read(xml, "<d a='é'/>") == []
    assert listed(xml.read("<d><u>http://x/é</u><v href='y'/></d>".encode("cp1252"), "utf-8")) == [
        ("text", "http://x/\ufffd"),
        ("document", "y"),
    ]


@pytest.mark.parametrize(
    "start, claimed",
    [
        (b"<urlset>", "sitemap"),
        (b"\xef\xbb\xbf \n<?xml version='1.0'?><!-- <a> --><sitemapindex xmlns='x'>", "sitemap"),
        ("\ufeff<?xml version='1.0'?><urlset>".encode("utf-16le"), "sitemap xml"),
        (b"<rss version='2.0'>", "feed"),
        (b"<feed xmlns='x'>", "feed"),
        (f"<rdf:RDF {RSS_1}>".encode(), "feed"),
        (b"<rdf:RDF xmlns:rdf='x'>", ""),
        (b"<?xml version='1.0'?><a>", "xml"),
        (b"<svg>", "xml"),
        (b"<!DOCTYPE svg PUBLIC 'x' [<!ENTITY a 'b'>]>\n<svg:svg>", "xml"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html>", ""),
        (b"<html>", ""),
        (b"", ""),
        (b"<!--" * 256, ""),
        (b"<?" * 512, ""),
        (b"<!DOCTYPE [" * 93, ""),
        (b"urlset", ""),
        (b"\0" * 1024, ""),
    ],
)
def test_how_documents_begin(start, claimed):
    found = [name for name, reader in (("sitemap", sitemap), ("feed", feed), ("xml", xml)) if reader.looks_like(start)]
    assert [name for name in found if name != "xml" or not found[:-1]] == claimed.split()[:1]
    assert set(claimed.split()) <= set(found)


def test_root_and_mending():
    assert root_of(b"<?pi?><!DOCTYPE x [<!ELEMENT y ANY>]><n:Root/>") == "root"
    assert (
        mend(b"a&b &amp; &#38; &#x26; &nbsp;&lt;&AMP;&x-y; &")
        == "a&amp;b &amp; &#38; &#x26; \u00a0&lt;&amp;&x-y; &amp;".encode()
    )
    assert mend(b"<![CDATA[a&b]]>&<![CDATA[&") == b"<![CDATA[a&b]]>&amp;<![CDATA[&"
