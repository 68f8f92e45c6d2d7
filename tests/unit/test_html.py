"""HTML: which links a page has, of which kind, and what else it says."""

import pytest

from contract.config import LINK_KINDS
from stages.extractor.document import Document
from stages.extractor.documents import html as html_reader


def read(html: str | bytes, **options) -> Document:
    return html_reader.read(
        html.encode() if isinstance(html, str) else html, "utf-8", html_reader.Options("coletor", **options)
    )


def links(html: str | bytes, **options) -> list[tuple[str, str]]:
    return [(LINK_KINDS[kind], text) for kind, text, _ in read(html, **options).links]


@pytest.mark.parametrize(
    "html, expected",
    [
        ("<a href=x>", [("a", "x")]),
        ("<A HREF='x y'>", [("a", "x y")]),
        ("<a name=x>", []),
        ("<a href>self</a><a href=''>", [("a", "")]),
        ("<a href='?a=1&amp;b=2&copy=3'>", [("a", "?a=1&b=2&copy=3")]),
        ("<a href=1 href=2>", [("a", "1")]),
        ("<map><area href=x></map>", [("area", "x")]),
        ("<area href>", [("area", "")]),
        ("<iframe src=x></iframe>", [("frame", "x")]),
        ("<frameset><frame src=x><frame src=y></frameset>", [("frame", "x"), ("frame", "y")]),
        ("<iframe src=''></iframe><img src><link href='' rel=x>", []),
        ("<img src=x><script src=y></script>", [("image", "x"), ("script", "y")]),
        ("<script>document.write('<a href=x>')</script><!-- <a href=y> --><style><a href=z></style>", []),
        ("<textarea><a href=x></textarea><title><a href=y></title>", []),
        ("<noscript><a href=x></a></noscript>", [("a", "x")]),
        (
            "<head><noscript><link rel=stylesheet href=x><meta http-equiv=refresh content='0;url=y'></noscript></head>",
            [("style", "x"), ("refresh", "y")],
        ),
        ("<svg><a href=x></a><a xlink:href=y></a></svg>", [("a", "x"), ("a", "y")]),
        (
            "<svg><image href=x /><image xlink:href=y /><use xlink:href='z#i'/></svg>",
            [("image", "x"), ("image", "y"), ("image", "z#i")],
        ),
        ("<table><tr><a href=x></table><p><a href=y><div><a href=z>", [("a", "x"), ("a", "y"), ("a", "z")]),
        ("<a href=x", []),
        ("<a href='x>never closed", []),
        ("<a href=x><a href=x><a rel=nofollow href=x>", [("a", "x"), ("a", "x")]),
        ("<object data=x></object><embed src=y>", [("object", "x"), ("object", "y")]),
        (
            "<video src=v poster=p><source src=s><track src=t></video>",
            [("media", "v"), ("image", "p"), ("media", "s"), ("media", "t")],
        ),
        ("<audio src=a></audio><bgsound src=b>", [("media", "a"), ("media", "b")]),
        (
            "<img src=a longdesc=x><iframe src=b longdesc=y></iframe>",
            [("image", "a"), ("link", "x"), ("frame", "b"), ("link", "y")],
        ),
        (
            "<blockquote cite=b></blockquote><q cite=q></q><ins cite=i></ins><del cite=d></del>",
            [("link", text) for text in "bqid"],
        ),
        ("<q>no cite</q><q\ncite=x>", [("link", "x")]),
        (
            "<body background=b><table background=t><td background=d><th BACKGROUND=h></table>",
            [("image", text) for text in "btdh"],
        ),
        ("<input type=image src=x><image src=y>", [("image", "x"), ("image", "y")]),
        (
            "<!doctype html><p><a href=x><br><A Href=y>" + "<p>" * 2_000 + "<q cite=z>",
            [("a", "x"), ("a", "y"), ("link", "z")],
        ),
    ],
)
def test_links_of_a_page(html, expected):
    assert links(html) == expected


@pytest.mark.parametrize(
    "rel, kind",
    [
        ("canonical", "canonical"),
        ("Canonical", "canonical"),
        ("alternate", "alternate"),
        ("ALTERNATE nofollow", "alternate"),
        ("stylesheet", "style"),
        ("alternate stylesheet", "style"),
        ("StyleSheet Alternate", "style"),
        ("next", "next"),
        ("prev", "next"),
        ("previous", "next"),
        ("icon", "image"),
        ("shortcut icon", "image"),
        ("apple-touch-icon", "image"),
        ("mask-icon", "image"),
        ("sitemap", "sitemap"),
        ("me\n canonical\tx", "canonical"),
        ("alternate canonical", "canonical"),
        ("start", "link"),
        ("nextpage", "link"),
        ("dns-prefetch", "link"),
        ("", "link"),
        ("canonical,next", "link"),
    ],
)
def test_relations_of_a_link(rel, kind):
    document = read(f"<link href=x rel='{rel}'>")
    assert document.links == {(LINK_KINDS.index(kind), "x", "nofollow" in rel): 1}
    assert document.canonical == ("x" if kind == "canonical" else None)


def test_a_link_without_a_relation_or_a_target():
    assert links("<link href=x><link rel=next><link rel=canonical href>") == [("link", "x")]


def test_the_first_canonical_link_counts():
    assert (
        read(
            "<link rel=next href=n><link rel=canonical><link rel=canonical href=a><link rel=canonical href=b>"
        ).canonical
        == "a"
    )


def test_links_are_counted_by_kind_text_and_mark():
    page = read("<a href=x><area href=x><a href=x><a href=x rel='me NoFollow'>")
    assert page.links == {(0, "x", False): 2, (1, "x", False): 1, (0, "x", True): 1}


@pytest.mark.parametrize(
    "html, nofollow",
    [
        ("<a href=x rel=nofollow>", True),
        ("<area href=x rel='NOFOLLOW'>", True),
        ("<link href=x rel='next nofollow'>", True),
        ("<a href=x rel='external\nnofollow\tnoopener'>", True),
        ("<a href=x rel=nofollowed>", False),
        ("<a href=x rel='no follow'>", False),
        ("<a href=x rel>", False),
        ("<a href=x rev=nofollow>", False),
        ("<iframe src=x rel=nofollow>", False),
        ("<svg><a xlink:href=x rel=nofollow>", True),
    ],
)
def test_links_marked_nofollow(html, nofollow):
    assert [marked for _, _, marked in read(html).links] == [nofollow]


@pytest.mark.parametrize(
    "html, expected",
    [
        ("<form action=x>", ["x"]),
        ("<form action=x method=get>", ["x"]),
        ("<form action=x method=GET>", ["x"]),
        ("<form action=x method>", ["x"]),
        ("<form action=x method=post>", []),
        ("<form action=x method=POST>", []),
        ("<form action=x method=dialog>", []),
        ("<form action=x method=put>", ["x"]),  # what is no method means GET
        ("<form>", []),
        ("<form action=''>", []),
        ("<form action=x><button formaction=y>", ["x", "y"]),
        ("<form action=x><input type=submit formaction=y formmethod=post>", ["x"]),
        ("<form method=post action=x><button formmethod=get formaction=y>", ["y"]),
        ("<button formaction>", []),
        ("<input type=image src=i formaction=y>", ["i", "y"]),
    ],
)
def test_forms(html, expected):
    assert [text for _, text in links(html)] == expected
    assert all(kind == "form" or text == "i" for kind, text in links(html))


SETS = [
    ("a", ["a"]),
    ("a 1x", ["a"]),
    ("a 1x, b 2x", ["a", "b"]),
    ("a, b", ["a", "b"]),
    ("a, b 2x", ["a", "b"]),
    ("a 1x,b 2x", ["a", "b"]),
    ("a,b", ["a,b"]),
    ("a,b 1x, c,d 2x", ["a,b", "c,d"]),
    ("a,", ["a"]),
    ("a,,,", ["a"]),
    (",a", ["a"]),
    (" , ,a 1x", ["a"]),
    ("a, ,b", ["a", "b"]),
    ("", []),
    (" ", []),
    (",", []),
    (" , ,", []),
    ("data:image/png;base64,AA== 1x, b 2x", ["data:image/png;base64,AA==", "b"]),
    ("/w_100,h_50/a.jpg 100w, /w_200,h_90/a.jpg 200w", ["/w_100,h_50/a.jpg", "/w_200,h_90/a.jpg"]),
    ("\n  a.jpg\t480w,\n  b.jpg 800w\n", ["a.jpg", "b.jpg"]),
    ("a 100w 50h, b 1.5x", ["a", "b"]),
    ("a junk, b -1x, c 1e3x, d x", ["a", "b", "c", "d"]),
    ("a (1x, 2x), b", ["a", "b"]),
    ("a f(1,2) 1x, b", ["a", "b"]),
    ("a (, b 2x, c", ["a"]),
    ("a 1x 2x 3x, b", ["a", "b"]),
    ("a 1x, a 1x", ["a", "a"]),
    ("https://a.org/?u=http://b.org/,x 2x", ["https://a.org/?u=http://b.org/,x"]),
    ("a\u00a0b 1x", ["a\u00a0b"]),
]


@pytest.mark.parametrize("text, expected", SETS)
def test_candidates_of_a_srcset(text, expected):
    """The URLs that 'parse a srcset attribute' of the HTML standard finds, whatever their descriptors are worth."""
    wanted = {(LINK_KINDS.index("image"), url, False): expected.count(url) for url in expected}
    for tag in ("img srcset", "source srcset", "link rel=preload imagesrcset"):
        assert read(f'<{tag}="{text}">').links == wanted


def test_pictures():
    assert links("<picture><source srcset='w.webp, w2.webp 2x' src=n><img src=i.png srcset='i2.png 2x'></picture>") == [
        ("media", "n"),
        ("image", "w.webp"),
        ("image", "w2.webp"),
        ("image", "i.png"),
        ("image", "i2.png"),
    ]
    assert links("<link rel=preload as=image href=p imagesrcset='q 2x'>") == [("link", "p"), ("image", "q")]


@pytest.mark.parametrize(
    "content, expected",
    [
        ("5; url=x", "x"),
        ("0;URL = 'a b'; c", "a b"),
        ("url=x", None),
        (" 0.5 , url=x ", "x"),
        ("5", None),
        ("", None),
        ("5;", None),
        ("5; ", None),
        ("0;url=x y", "x y"),
        ("0;url='x", "x"),
        ('0;url="x"y', "x"),
        ("0;url='x\"y'z", 'x"y'),
        ("0;url=", None),
        ("0;url=''", None),
        ("0;x", "x"),
        ("0; /x", "/x"),
        ("0 x", "x"),
        ("0,x", "x"),
        ("0, 'x'y", "x"),
        ("0;;x", ";x"),
        ("0; upload", "upload"),
        ("0;ur=x", "ur=x"),
        ("0;url x", "url x"),
        ("0x", None),
        ("x", None),
        (";url=x", None),
        (" url=x", None),
        (".5;url=x", "x"),
        ("...;url=x", "x"),
        ("-1;url=x", None),
        ("+1;url=x", None),
        ("1e1;url=x", None),
        ("\n0\t;\furl\r=\nx", "x"),
        ("00009999999999999999999;url=x", "x"),
        ("0;uRl=http://b.org/?url=y", "http://b.org/?url=y"),
        ("0\u00a0;url=x", None),
        ("٣;url=x", None),
    ],
)
def test_refreshes(content, expected):
    """The shared declarative refresh steps of the HTML standard; with a header they are the same."""
    quoted = content.replace("&", "&amp;").replace('"', "&quot;")
    found = [("refresh", expected)] if expected is not None else []
    assert links(f'<meta http-equiv=refresh content="{quoted}">') == found
    assert links(f'<body><META CONTENT="{quoted}" HTTP-EQUIV=" Refresh ">') == found


def test_what_is_no_refresh():
    assert (
        links(
            "<meta name=refresh content='5;url=x'><meta http-equiv=refresh><meta "
            "http-equiv=refreshed content='5;url=x'>"
        )
        == []
    )
