"""What a page says of itself: robots, base, templates, language, title, and what is read only where asked for."""

import pytest

from contract.canonical import Canonical
from contract.config import LINK_KINDS, Config
from contract.scope.rules import Scope
from stages.extractor.targets import Targets
from tests.extractor_lab import KEYS, PAGE
from tests.unit.test_html import links, read


@pytest.mark.parametrize(
    "html, forbidden",
    [
        ("<meta name=robots content=nofollow>", True),
        ("<meta name=ROBOTS content='noindex, NoFollow'>", True),
        ("<meta name=robots content=none>", True),
        ("<meta name=coletor content=nofollow>", True),
        ("<meta name=otherbot content=nofollow>", False),
        ("<meta name=robots content='noindex'>", False),
        ("<meta name=robots><meta content=nofollow>", False),
        ("<meta name=description content='none nofollow'>", False),
        ("<body><a href=x><meta name=robots content=nofollow>", True),
        ("<meta name=robots content='index,follow'><meta name=Coletor content='NOFOLLOW'>", True),
        ("<meta name=robots content='max-snippet:-1,nofollow'>", True),
        ("<meta name=robots content='nofollowing'><meta name=robots content='follow none-such'>", False),
        ("<template><meta name=robots content=nofollow></template>", False),
    ],
)
def test_meta_robots(html, forbidden):
    assert read(html).nofollow == forbidden


@pytest.mark.parametrize(
    "html, noindex",
    [
        ("<meta name=robots content=noindex>", True),
        ("<meta name=robots content=none>", True),
        ("<meta name=coletor content='x, NOINDEX'>", True),
        ("<meta name=robots content=nofollow>", False),
        ("<meta name=googlebot content=noindex>", False),
        ("<meta name=robots content=noindex><meta name=robots content=index>", True),
    ],
)
def test_meta_noindex(html, noindex):
    assert read(html).noindex == noindex


@pytest.mark.parametrize(
    "html, base",
    [
        ("", None),
        ("<base href=/a/><base href=/b/>", "/a/"),
        ("<base target=x><base href=/b/>", "/b/"),
        ("<base href>", ""),
        ("<body><a href=x><base href=/late/>", "/late/"),
        ("<base href=a/b>", "a/b"),
        ("<template><base href=/t/></template><base href=/a/>", "/a/"),
        ("<template><base href=/t/></template>", None),
        ("<!-- <base href=/c/> --><BASE HREF='//b.org'>", "//b.org"),
    ],
)
def test_first_base_with_href(html, base):
    assert read(html).base == base


@pytest.mark.parametrize(
    "base, resolved",
    [
        (None, PAGE),
        ("", PAGE),
        ("/a/", "http://example.com/a/"),
        ("//other.org", "http://other.org/"),
        ("sub/", "http://example.com/dir/sub/"),
        ("https://b.org/x?q#f", "https://b.org/x?q"),
        ("javascript:1", PAGE),
        ("data:text/html,x", PAGE),
        ("http://[", PAGE),
        ("\ud800", PAGE),
    ],
)
def test_base_is_resolved_against_the_page(base, resolved):
    scope = Scope(Config().scope, KEYS)
    assert Targets(Canonical(Config().url), scope, KEYS).base_of(PAGE, base).url == resolved


@pytest.mark.parametrize(
    "html, expected",
    [
        ("<template><a href=y></a></template><a href=x>", {"x": 1, "y": 1}),
        (
            (
                "<template><a href=a><template><img src=b><template><embed src=c>"
                "</template></template><a href=d></template>"
            ),
            {"a": 1, "b": 1, "c": 1, "d": 1},
        ),
        ("<table><template><tr><td><a href=x></template></table>", {"x": 1}),
        ("<template shadowrootmode=open><a href=x></a></template>", {"x": 1}),
        ("<template><a href=x></template><template><a href=x></template>", {"x": 2}),
        ("<template></template><template><script>'<a href=x>'</script><!-- <a href=y> --></template>", {}),
    ],
)
def test_templates(html, expected):
    assert {text: count for (_, text, _), count in read(html).links.items()} == expected


def test_what_a_template_says_is_not_of_the_page():
    page = read(
        "<template><title>t</title><meta http-equiv=refresh content='0;url=x'><link rel=canonical href=c></template>"
        "<title>p</title>"
    )
    assert page.title == "p" and [(LINK_KINDS[kind], text) for kind, text, _ in page.links] == [("canonical", "c")]


LAZY = (
    "<img src=s data-src=a data-srcset='b 1x, c 2x' data-lazy-src=d><a href='#' data-href=e>"
    "<a data-url=f><iframe data-src=g></iframe><img data-original=h data-lazy=i><source data-lazy-srcset='j, k 2x'>"
)


def test_lazy_attributes_are_read_where_asked_for():
    plain = [("a", ""), ("image", "s")]
    assert links(LAZY) == plain
    assert set(links(LAZY, lazy_attributes=True)) - set(plain) == {
        *(("image", text) for text in "abcdhijk"),
        ("a", "e"),
        ("a", "f"),
        ("frame", "g"),
    }


def test_inline_scripts_are_read_where_asked_for():
    html = (
        "<script>go('/x/y.html', \"http://b.org/z\"); w('<a href=n>')</script><script src=s>'/not/this.html'</script>"
    )
    assert links(html) == [("script", "s")]
    assert links(html, inline_scripts=True) == [("data", "/x/y.html"), ("data", "http://b.org/z"), ("script", "s")]


def test_inline_styles_are_read_where_asked_for():
    html = (
        "<style>@import 'a.css'; p {background: url(b.png)} q {fill: url(#c) url(data:,d)}</style>"
        "<p style='background: URL(\"e.png\")'><a href=f style='background: url(g)'>h</a>"
        "<svg><style>r {fill: url(i)}</style></svg><template><p style='x: url(j)'></template>"
        "<!-- <style>url(k)</style> --><p style='color: red'><p style>"
    )
    assert links(html) == [("a", "f")]
    images = [("image", text) for text in ("b.png", "e.png", "g", "i", "j")]
    assert links(html, inline_styles=True) == [("a", "f"), ("style", "a.css"), *images]


def test_anchor_text_is_kept_where_asked_for():
    html = (
        "<a href=x> one <b>two</b>\n three</a><a href=x>more</a><a href=y><img alt=n></a><a href=y>late</a><a href=z>"
        + "w " * 300
    )
    assert read(html).anchors == {}
    anchors = read(html, anchor_text=True).anchors
    assert (anchors["x"], anchors["y"], len(anchors["z"])) == ("one two three", "late", 200)


@pytest.mark.parametrize(
    "html, language",
    [
        ("<html lang=pt-BR>", "pt-BR"),
        ("<html xml:lang=it>", "it"),
        ("<html lang=' ru '>", "ru"),
        ("<p lang=x>", ""),
        ("", ""),
        ("<html lang>", ""),
        ("<html lang=" + "x" * 99, ""),
        ("<html lang=" + "x" * 99 + ">", "x" * 35),
        ("<body><html lang=de>", "de"),
    ],
)
def test_language(html, language):
    assert read(html).language == language


@pytest.mark.parametrize(
    "html, title",
    [
        ("<title> a\n\t b&amp;c </title>", "a b&c"),
        ("<title></title><title>b</title>", ""),
        ("<p>x", ""),
        ("<title>" + "x" * 400, "x" * 300),
        ("<title>a<b>c</title>", "a<b>c"),
        ("<title>a\0b\ud800</title>".encode("utf-8", "surrogatepass"), "a\ufffdb\ufffd\ufffd\ufffd"),
        ("<svg><title>icon</title></svg><title>page</title>", "page"),
        ("<svg><title>icon</title></svg>", ""),
    ],
)
def test_title(html, title):
    assert read(html).title == title


def test_the_text_that_people_read_is_kept_where_asked_for():
    html = "<title>t</title><p>one<script>no</script><style>no</style><template>no</template><b>two</b>"
    assert read(html).text == "" and read(html, text=True).text.split() == ["one", "two"]
