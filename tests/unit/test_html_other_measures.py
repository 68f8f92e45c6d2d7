"""Pages by the measure of other crawlers.

The behaviours that Heritrix and Scrapy check.
"""

import pytest

from contract.config import LINK_KINDS
from tests.extractor_lab import configured, judge_answer, read_answer

SITE = "http://example.com/"


def urls(html: str | bytes, kind: str = "text/html; charset=utf-8", *headers: str, **options) -> list[str]:
    return judge_answer(read_answer(html, kind, *headers, **options)).urls


def classes(html: str | bytes, *headers: str, **options) -> dict[str, int]:
    answer = read_answer(html, "text/html; charset=utf-8", *headers, **options)
    judged = judge_answer(answer)
    assert sum(judged.classes.values()) == sum(answer.document.links.values()) + len(answer.header_links)
    return {name: number for name, number in judged.classes.items() if number}


@pytest.mark.parametrize(
    "html, found",
    [
        ('<a href="x"title=y>', ["dir/x"]),
        ("<a title='y'href='x'class=z>", ["dir/x"]),
        ("<a/href=x>", ["dir/x"]),
        ("<a\nhref\t=\r\nx\f>", ["dir/x"]),
        ("<a class=c id=i href=x>", ["dir/x"]),
        ("<a href=x href=y>", ["dir/x"]),
        ("<a HREF=x hReF=y>", ["dir/x"]),
        ("<a href=x/>", ["dir/x/"]),
        ("<a href=x?a=1>", ["dir/x?a=1"]),
        ("<a href=/a/b.html title>", ["a/b.html"]),
        ('<a href="x\'y">', ["dir/x'y"]),
        ("<a href='x\"y'>", ["dir/x%22y"]),
        ("<a =x href=y>", ["dir/y"]),
        ('<a "href=x href=y>', ["dir/y"]),
        ("<a<b href=x>", []),
        ("<a href==x>", ["dir/=x"]),
        ("< a href=x>", []),
        ("<a href>", ["dir/page.html"]),
        ("<a href=''>", ["dir/page.html"]),
        ("<a href=' '>", ["dir/page.html"]),
        ("<a href=#>", ["dir/page.html"]),
        ("<ahref=x><abbr href=y>", []),
        ("<a data-href=x>", []),
    ],
)
def test_attributes_as_people_write_them(html, found):
    assert urls(html) == [SITE + path for path in found]


@pytest.mark.parametrize(
    "href, found",
    [
        ("?a=1&amp;b=2", "dir/page.html?a=1&b=2"),
        ("?a=1&b=2", "dir/page.html?a=1&b=2"),
        ("?a&copy=1", "dir/page.html?a&copy=1"),
        ("?a&copy;=1", "dir/page.html?a%C2%A9=1"),
        ("&#120;", "dir/x"),
        ("&#x78;", "dir/x"),
        ("&#X78", "dir/x"),
        ("&#47;x", "x"),
        ("&sol;x", "x"),
        ("x&#32;y", "dir/x%20y"),
        ("x&nbsp;y", "dir/x%C2%A0y"),
        ("&eacute;", "dir/%C3%A9"),
        ("x&#0;", "dir/x%EF%BF%BD"),
        ("x&#xD800;", "dir/x%EF%BF%BD"),
        ("x&#35;y", "dir/x"),
        ("&Tab;x&NewLine;", "dir/x"),
        ("&notit;", "dir/&notit;"),
        ("&not;it", "dir/%C2%ACit"),
        ("&unknown;", "dir/&unknown;"),
        ("&amp;amp;", "dir/&amp;"),
    ],
)
def test_entities_in_a_link(href, found):
    assert urls(f'<a href="{href}">') == [SITE + found]


@pytest.mark.parametrize(
    "href, found",
    [
        (" x ", "dir/x"),
        ("\nx\n", "dir/x"),
        ("x\ny", "dir/xy"),
        ("/a\tb", "ab"),
        ("\r\n  /a\r\n  /b", "a%20%20/b"),
        ("x y", "dir/x%20y"),
        ("x  ", "dir/x"),
        ("ht\ntp://example.com/x", "x"),
        ("\x0c/x", "x"),
        ("\\x\\y", "x/y"),
        ("./x", "dir/x"),
        ("../x", "x"),
        ("../../../x", "x"),
        ("x/./y/../z", "dir/x/z"),
        ("x%2fy", "dir/x%2fy"),
        ("x%zz", "dir/x%zz"),
        ("x|y", "dir/x|y"),
        ("x<y>", "dir/x%3Cy%3E"),
        ("HTTP://EXAMPLE.COM:80/X", "X"),
        ("http:/x", "x"),
        ("http:x", "dir/x"),
        ("//example.com/x", "x"),
        ("http://user:pass@example.com./x", "x"),
        ("x?", "dir/x"),
        ("x#a?b", "dir/x"),
        ("x?a#b", "dir/x?a"),
        ("?#", "dir/page.html"),
    ],
)
def test_white_space_steps_and_forms_of_a_link(href, found):
    assert urls(f'<a href="{href}">') == [SITE + found]


@pytest.mark.parametrize(
    "html, found",
    [
        ("<A HREF=x>one<B>two<A HREF=y>three", ["x", "y"]),
        ("<p><a href=x><div><a href=y></p></a><li><a href=z>", ["x", "y", "z"]),
        ("<table><a href=x><tr><td><a href=y>", ["x", "y"]),
        ("</a></p><a href=x></b>", ["x"]),
        ("<body><head><a href=x></html><a href=y>", ["x", "y"]),
        ("<h1><a href=x></h2></h3><script src=n></script><a href=y>", ["x", "n", "y"]),
        ("text <a href=x", []),
        ('<a href=x><a href="y', ["x"]),
        ("<!doctype html><title>t<a href=n></title><a href=x>", ["x"]),
        ("<select><option><a href=x></select>", ["x"]),
        ("<a href=x><frameset><frame src=y>", ["y"]),
        ("text<a href=x><frameset><frame src=n>", ["x"]),
        ("<button><a href=x></button><label><a href=y></label><details><a href=z>", ["x", "y", "z"]),
        ("", []),
        (" \n\t", []),
        ("no markup", []),
        ("\ufeff<a href=x>", ["x"]),
    ],
)
def test_markup_as_people_leave_it(html, found):
    assert sorted(urls(html)) == sorted(f"{SITE}dir/{path}" for path in found)


@pytest.mark.parametrize(
    "html, found",
    [
        ("<!--[if IE]><a href=n></a><![endif]-->", []),
        ("<!--[if lt IE 9]><script src=n></script><![endif]--><a href=x>", ["x"]),
        ("<![if !IE]><a href=x></a><![endif]>", ["x"]),
        ("<!--[if !IE]><!--><a href=x></a><!--<![endif]-->", ["x"]),
        ("<!--[if !IE]> --><a href=x></a><!-- <![endif]-->", ["x"]),
        ("<!-- <a href=n> --><a href=x>", ["x"]),
        ("<!-- a -- b --><a href=x>", ["x"]),
        ("<!--><a href=x>", ["x"]),
        ("<!---><a href=x>", ["x"]),
        ("<!-- <a href=n> --!><a href=x>", ["x"]),
        ("<!-- never closed <a href=n>", []),
        ("<!a href=n><?php <a href=n> ?><a href=x>", ["x"]),
        ("<![CDATA[<a href=n>]]><a href=x>", ["x"]),
        ("<svg><![CDATA[<a href=n>]]></svg><a href=x>", ["x"]),
    ],
)
def test_comments_and_their_conditions(html, found):
    assert urls(html) == [f"{SITE}dir/{path}" for path in found]


@pytest.mark.parametrize(
    "html",
    [
        "<script>document.write('<a href=\"n\">x</a>');</script>",
        '<script>document.write("<a href=\'n\'></" + "a>")</script>',
        "<script><!--\ndocument.write('<script src=n></script>')\n--></script>",
        "<script type=text/template><a href=n></script>",
        "<script>var s = '<iframe src=n>';//</script >",
        "<style>a:after { content: '<a href=n>' } @import url(n.css)</style>",
        "<textarea><a href=n></textarea>",
        "<xmp><a href=n></xmp>",
        "<noembed><a href=n></noembed>",
        "<iframe><a href=n></iframe>",
        "<a onclick=\"location='n'\"><div data-url=n style='background:url(n)'>",
        "<input value='<a href=n>'>",
    ],
)
def test_what_only_looks_like_a_tag_gives_no_link(html):
    assert urls(html + "<a href=x>") == [SITE + "dir/x"]


@pytest.mark.parametrize(
    "href",
    [
        "data:text/html,<a href=x>",
        "DATA:,x",
        "javascript:void(0)",
        " JavaScript:go('/x')",
        "java\nscript:x",
        "mailto:a@example.com",
        "tel:+55",
        "ftp://example.com/x",
        "about:blank",
        "file:///etc/passwd",
        "urn:isbn:1",
        "skype:x?call",
        "whatsapp://send",
        "blob:http://example.com/x",
        "view-source:http://example.com/",
    ],
)
def test_other_schemes_are_counted_and_lead_nowhere(href):
    assert classes(f'<a href="{href}"><a href=x>') == {"other_scheme": 1, "followed": 1}


@pytest.mark.parametrize(
    "href",
    [
        "http://[bad",
        "http://[bad]/",
        "http://",
        "https://",
        "//",
        "http://a b/",
        "http://example.com:99999/",
        "http://1.2.3.256/",
        "http://%zz/",
        "http://exa<mple.com/",
        "http://:80/",
        "http://a:b@/",
        "x" * 9_000,
    ],
)
def test_a_text_that_is_no_url_loses_nobody_else(href):
    html = f'<a href=x><a href="{href}"><img src="{href}"><a href=y><link rel=next href="{href}"><a href=z>'
    assert urls(html) == [f"{SITE}dir/{name}" for name in "xyz"]
    assert classes(html) == {"unparsable": 3, "followed": 3}


@pytest.mark.parametrize(
    "base, found",
    [
        ("http://b.org/", "http://b.org/x"),
        ("/c/", SITE + "c/x"),
        ("c/d", SITE + "dir/c/x"),
        ("//b.org", "http://b.org/x"),
        ("?q", SITE + "dir/x"),
        ("", SITE + "dir/x"),
        ("http://[bad", SITE + "dir/x"),
        ("javascript:0", SITE + "dir/x"),
        ("\n/c/ ", SITE + "c/x"),
        ("https://B.org:443/a/?q=/", "https://b.org/a/x"),
    ],
)
def test_links_are_relative_to_the_first_base(base, found):
    assert urls(f'<a href=x><base target=_top><base href="{base}"><base href=http://no.org/>') == [found]


def test_a_base_holds_for_every_kind_but_headers():
    html = (
        "<base href=//b.org/c/><img src=i><form action=f></form><link rel=next href=n><meta "
        "http-equiv=refresh content='0;r'><a href=#>"
    )
    found = urls(html, "text/html", "Link: <h>; rel=next", "Content-Location: l", "Refresh: 0;url=s")
    assert found == [f"http://b.org/c/{name}" for name in ("", "i", "f", "n", "r")] + [
        f"{SITE}dir/{name}" for name in "hsl"
    ]


@pytest.mark.parametrize(
    "html, headers, expected",
    [
        ("<a href=x rel=nofollow><a href=y>", (), {"nofollow": 1, "followed": 1}),
        ("<meta name=robots content=nofollow><a href=x><img src=y>", (), {"nofollow": 1, "kind_not_followed": 1}),
        ("<meta name=coletor content=none><a href=x>", (), {"nofollow": 1}),
        ("<meta name=googlebot content=none><a href=x>", (), {"followed": 1}),
        ("<a href=x>", ("X-Robots-Tag: nofollow",), {"nofollow": 1}),
        ("<a href=x>", ("X-Robots-Tag: Coletor: nofollow",), {"nofollow": 1}),
        ("<a href=x>", ("X-Robots-Tag: googlebot: nofollow",), {"followed": 1}),
        ("<meta name=robots content=noindex><a href=x>", (), {"followed": 1}),
        ("<a href=x rel=nofollow><a href=x>", (), {"followed": 1, "repeated_in_page": 1}),
    ],
)
def test_what_pages_ask_of_robots_is_obeyed(html, headers, expected):
    assert classes(html, *headers) == expected


def test_what_pages_ask_is_recorded_where_it_is_not_obeyed():
    config = configured("extractor", obey_nofollow=False)
    answer = read_answer("<meta name=robots content=none><a href=x>", config=config)
    judged = judge_answer(answer, config=config)
    assert judged.followed == judged.nofollow == [True] and (answer.document.noindex, answer.document.nofollow) == (
        True,
        True,
    )


def test_every_kind_of_a_page_reaches_its_column():
    html = """<base href=/b/><meta http-equiv=refresh content='0;url=refresh'>
        <link rel=x href=link><link rel=canonical href=canonical><link rel=alternate href=alternate>\
<link rel=prev href=next>
        <link rel=stylesheet href=style><link rel=sitemap href=sitemap><script src=script></script>
        <a href=a></a><map><area href=area></map><iframe src=frame></iframe><img src=image><object data=object></object>
        <form action=form></form><audio src=media></audio>"""
    judged = judge_answer(read_answer(html, "text/html", "Content-Location: /b/location"))
    assert {
        url.rpartition("/")[2]: LINK_KINDS[kinds.bit_length() - 1] for url, kinds in zip(judged.urls, judged.kinds)
    } == {kind: kind for kind in LINK_KINDS if kind not in ("redirect", "feed", "document", "text", "data")}
    kinds = {url.rpartition("/")[2] for url, is_followed in zip(judged.urls, judged.followed) if is_followed}
    assert kinds == {"a", "area", "frame", "refresh", "canonical", "alternate", "next", "object", "location", "sitemap"}
