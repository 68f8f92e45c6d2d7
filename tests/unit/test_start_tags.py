"""Which pages are in plain markup, and what their start tags are."""

import time

import pytest

from stages.extractor.documents.html import read, read_tree
from stages.extractor.documents.html_elements import Options
from stages.extractor.documents.html_plain import take_plain
from stages.extractor.documents.start_tags import KEPT_MAX, NotPlain, load_scan, read_plain

load_scan()


@pytest.mark.parametrize(
    "html, hrefs",
    [
        ("", []),
        ("text", []),
        ("<p>a<p>b", []),
        ("<a name=x>", []),
        ('<a href="x">t</a>', ["x"]),
        ("<a href=x>t</a>", ["x"]),
        ("<a href='x'>t</a>", ["x"]),
        ("<a\n href = 'x' >t</a>", ["x"]),
        ('<a href="">t</a>', [""]),
        ('<a href="x" href="y">t</a>', ["x"]),
        ("<a class=c href=x/>t</a>", ["x/"]),
        ('<a title=">" href="x"><img alt="<a href=y>"></a>', ["x"]),
        ('<a href="a&amp;b&c=d&#39;">t</a>', ["a&b&c=d'"]),
        ('<a href="é">t</a>', ["é"]),
        ('<a href="x"><code class="c"><span>t</span></code></a> <a href="y">u</a>', ["x", "y"]),
        ('<!-- <a href="x">t</a> --><a href="y">u</a>', ["y"]),
        ('<script>"<a href=x>"</script><a href="y">u</a>', ["y"]),
        ('<div><a href="x"><p>t</p></a> <a href="y"><div><h2>u</h2></div></a></div>', ["x", "y"]),
        ('<P>a<BR><Code>b</CODE><a href="y">u</a></P>', ["y"]),
        ('<svg><text x="1">t<tspan>u</tspan></text></svg><a href="y">u</a>', ["y"]),
        ('<!--<a href="x"><p>t</p></a>--><div><a href="y"><p>t</p></a></div>', ["y"]),
        ('<svg viewBox="0"><path d="M"/></svg><select><option>o</select><a href="y">u</a>', ["y"]),
        ("<", []),
        ("a < b <3 <a href=x>t</a>", ["x"]),
        ("<P x>", []),
        ("<A>", []),
        ("<TITLE>t</TITLE>", []),
        ("</FORM>", []),
        ("<a href=x>t</A>", ["x"]),
        ("<A HREF=x><B>t</B></a>", ["x"]),
        ("<a href>t</a>", [""]),
        ("<a href=x><!-- <b> --><b><i><u>t</u></i></b></a>", ["x"]),
        ("<div>a<a href=x>t</a> b<a href=y><p>t</p></a></div>", ["x", "y"]),
        ("<div><a href=x><p>t</p></a></div>" * 51, ["x"] * 51),
        ("<!--><a href=x>t</a>", ["x"]),
        ("<!---><a href=x>t</a>", ["x"]),
        ("<!--a--b--!><a href=x>t</a><!-- -- > --->", ["x"]),
        ("<![if x]><a href=x>t</a><![CDATA[<a href=y>]]>", ["x"]),
        ("<style><!-- <a href=x> --></style><script><!-- '<a href=y>' </SCRIPT ><a href=z>t</a>", ["z"]),
        (
            '<a href="x#f">t</a><a href="#f">t</a><a href="y #f">t</a><a href="z&amp;#f">t</a><a href="&#119;#f">t</a>',
            ["x", "", "y #f", "z&", "w"],
        ),
        ('<a href="a #b#c">t</a><a href=" ##">t</a>', ["a #b#c", " ##"]),
        ("<script></1rxt3bz4h6wn5sm6za6g><a href=x></script>", []),  # the name has the number of 'script'
    ],
)
def test_plain(html, hrefs):
    assert read_plain(html.encode()).hrefs == hrefs
    assert read_tree(html.encode()).hrefs == hrefs


@pytest.mark.parametrize(
    "html",
    [
        "<p",
        "<a href>",
        "<a href=>t</a>",
        '<a href="x"title="y">t</a>',
        '<a/href="x">t</a>',
        "<a href=x>",
        "<unknown>",
        "<my-tag>",
        "<sevenandsixteen>",
        "</",
        "</ x>",
        "<?x",
        "<!x",
        "<!-- x",
        "<!-- x --",
        "<a href=x><p>t</a>",
        "<p><a href=x><div>t</div></a>",
        "<div><a href=x><div>t</a></div>",
        '<p title="<div>"><a href=x><p>t</p></a>',
        "<p><?x <div><a href=x><p>t</p></a>",
        "<p><!--<div>--><a href=x><p>t</p></a>",
        "<div><a href=x>t</a><p><a href=y><p>t</p></a>",
        "<!--<div><a href=x><p>t</p></a>--><p><a href=x><p>t</p></a>",
        "<div></div><a href=x><p>t</p></a>",
        "<div><a href=x><p>a<p>b</p></p></a>",
        "<div><a href=x><b><p>t</p></b></a>",
        "<a href=x>t<a href=y>u</a></a>",
        "<b><a href=x>t</b></a>",
        "<a href=x><b>t</a></b>",
        "<a href=x><span>t</b></a>",
        "<a href=x>" + "<b>" * 33 + "</b>" * 33 + "</a>",
        "<svg><a href=x>t</a></svg>",
        "<svg><title>t</title></svg>",
        "<svg><![CDATA[<a href=x>]]></svg>",
        "<svg>",
        "<math>",
        "<template>",
        "<frameset>",
        "<select><a href=x>t</a></select>",
        "<form><form>",
        "<html><html>",
        "<body><BODY>",
        "<title>a</title><title>b</title>",
        "<base href=x><base href=y>",
        "<td background=x>",
        "<q CITE=x>",
        "<script>",
        "<script><!--<script></script>",
        "<title>t",
        "<title>t</title x>",
        "\0",
        "</p x>",
        '<a href="&copy">t</a>',
        '<a href="&#128;">t</a>',
        '<a href="a\rb">t</a>',
        '<a href="a\nb">t</a>',
        '<a href="&unknown;">t</a>',
        "<img src=x>" * (KEPT_MAX + 1),
        '<a href="x&#00;y">t</a>',
        "<p" + "".join(f" a{number}" for number in range(1_500)) + "><a href=x>t</a>",
        "<div>" * 30_000 + "<a href=x>t</a>",
        "".join(f"<b id={number}>" for number in range(1_500)) + "<p>" * 1_500 + "<a href=x>t</a>",
        f"<p title='<p {'a ' * 3_000}'><a href=x>t</a>",
    ],
)
def test_not_plain(html):
    with pytest.raises(NotPlain):
        read_plain(html.encode())


@pytest.mark.parametrize(
    "html",
    [
        "<title>&copy=</title>",
        "<title>&#0;</title>",
        "<title>&#000;</title>",
        f"<title>{'&' * 20_000}</title>",
        "<link rel=canonical href=x><link rel=canonical href=y>",
    ],
)
def test_not_plain_either(html):
    with pytest.raises(NotPlain):
        take_plain(read_plain(html.encode()), Options())


@pytest.mark.parametrize(
    "html", ["<img srcset=x imagesrcset=y background=z>", "<body background = x>", "<form action=x srcset=y>"]
)
def test_no_element_counts_twice_or_not_at_all(html):
    assert (
        list(read_tree(html.encode()).links.values()) == [1]
        and read(html.encode(), "utf-8").links == read_tree(html.encode()).links
    )


@pytest.mark.parametrize(
    "case",
    [
        ("<a href=x>", ""),
        ("<a href=x><b>", ""),
        ("<a href=x><b><i>", ""),
        ("<a href=x>t</a>", "<"),
        ("<", ""),
        ("<!--", ""),
        ("<!-- -", ""),
        ("<script>", ""),
        ("<script><", ""),
        ("<p a", ""),
        ("<p a=", ""),
        ('<p a="', ""),
        ("<p ", ""),
        ("<p\n", ""),
        ("<svg>", ""),
        ("<svg><g>", ""),
        ("<select><option>", ""),
        ("<title>&", ""),
        ("<div>", "</a>"),
        ("</", ""),
        ("<p>x</p>", "</a>", "<div><a href=x>"),
        ("<p>x</p>", "", "<div><a href=x>"),
        ("<div><p>x</p><b>y</b></div>", "<", "<div><a href=x>"),
        ("<p><b>x</b>", "", "<div><a href=x><div>"),
        ("<b><i>x</i></b>", "</b></a>", "<a href=x>"),
        ("<b>x</b>", "", "<a href=x><i>"),
        ("<a b=c ", ""),
        ("<b><a href=x>", "</a>"),
        ("&#", ""),
        ("-", "<!--"),
        ("<!-", "-->"),
    ],
)
def test_time_is_linear(case):
    """What is not linear takes minutes of 2 MB."""
    unit, end, begin = (*case, "")[:3]
    html = (begin + unit * (2_000_000 // len(unit)) + end).encode()
    started = time.process_time()
    try:
        read_plain(html)
    except NotPlain:
        pass
    assert time.process_time() - started < 3
