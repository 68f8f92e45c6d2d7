"""Pages by the measure of other crawlers: the behaviours that Heritrix and Scrapy check, and charsets from page to URL."""

import pytest

from contract.config import LINK_KINDS
from tests.extractor_lab import PAGE, configured, judge_answer, read_answer

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
    html = "<base href=//b.org/c/><img src=i><form action=f></form><link rel=next href=n><meta http-equiv=refresh content='0;r'><a href=#>"
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
        <link rel=x href=link><link rel=canonical href=canonical><link rel=alternate href=alternate><link rel=prev href=next>
        <link rel=stylesheet href=style><link rel=sitemap href=sitemap><script src=script></script>
        <a href=a></a><map><area href=area></map><iframe src=frame></iframe><img src=image><object data=object></object>
        <form action=form></form><audio src=media></audio>"""
    judged = judge_answer(read_answer(html, "text/html", "Content-Location: /b/location"))
    assert {
        url.rpartition("/")[2]: LINK_KINDS[kinds.bit_length() - 1] for url, kinds in zip(judged.urls, judged.kinds)
    } == {kind: kind for kind in LINK_KINDS if kind not in ("redirect", "feed", "document", "text", "data")}
    kinds = {url.rpartition("/")[2] for url, is_followed in zip(judged.urls, judged.followed) if is_followed}
    assert kinds == {"a", "area", "frame", "refresh", "canonical", "alternate", "next", "object", "location", "sitemap"}


PORTUGUESE, RUSSIAN, JAPANESE = "ação", "мир", "表示"


@pytest.mark.parametrize(
    "word, codec, kind, meta, charset, path, query",
    [
        (PORTUGUESE, "cp1252", "text/html; charset=windows-1252", "", "windows-1252", "a%C3%A7%C3%A3o", "a%E7%E3o"),
        (PORTUGUESE, "latin-1", "text/html; charset=ISO-8859-1", "", "windows-1252", "a%C3%A7%C3%A3o", "a%E7%E3o"),
        (PORTUGUESE, "latin-1", "text/html", "<meta charset=iso-8859-1>", "windows-1252", "a%C3%A7%C3%A3o", "a%E7%E3o"),
        (
            PORTUGUESE,
            "latin-1",
            "text/html",
            "<meta http-equiv=content-type content='text/html; charset=latin1'>",
            "windows-1252",
            "a%C3%A7%C3%A3o",
            "a%E7%E3o",
        ),
        (
            "“€”",
            "cp1252",
            "text/html; charset=iso-8859-1",
            "",
            "windows-1252",
            "%E2%80%9C%E2%82%AC%E2%80%9D",
            "%93%80%94",
        ),
        (RUSSIAN, "cp1251", "text/html; charset=windows-1251", "", "windows-1251", "%D0%BC%D0%B8%D1%80", "%EC%E8%F0"),
        (RUSSIAN, "koi8-r", "text/html", "<meta charset=koi8-r>", "koi8-r", "%D0%BC%D0%B8%D1%80", "%CD%C9%D2"),
        (JAPANESE, "cp932", "text/html; charset=shift_jis", "", "shift_jis", "%E8%A1%A8%E7%A4%BA", "%95\\%8E%A6"),
        (JAPANESE, "euc-jp", "text/html; charset=x-euc-jp", "", "euc-jp", "%E8%A1%A8%E7%A4%BA", "%C9%BD%BC%A8"),
        (PORTUGUESE, "utf-8", "text/html", "", "utf-8", "a%C3%A7%C3%A3o", "a%C3%A7%C3%A3o"),
        (PORTUGUESE, "utf-16", "text/html", "", "utf-16le", "a%C3%A7%C3%A3o", "a%C3%A7%C3%A3o"),
        (
            PORTUGUESE,
            "utf-8",
            "text/html; charset=unheard-of",
            "<meta charset=nor-this>",
            "utf-8",
            "a%C3%A7%C3%A3o",
            "a%C3%A7%C3%A3o",
        ),
        (PORTUGUESE, "latin-1", "text/html; charset=unheard-of", "", "windows-1252", "a%C3%A7%C3%A3o", "a%E7%E3o"),
        (
            PORTUGUESE,
            "latin-1",
            "text/html; charset=unheard-of",
            "<meta charset=iso-8859-1>",
            "windows-1252",
            "a%C3%A7%C3%A3o",
            "a%E7%E3o",
        ),
        (
            PORTUGUESE,
            "utf-8",
            "text/html; charset=utf-8",
            "<meta charset=windows-1251>",
            "utf-8",
            "a%C3%A7%C3%A3o",
            "a%C3%A7%C3%A3o",
        ),
        # Lies are believed.
        (
            PORTUGUESE,
            "utf-8",
            "text/html; charset=iso-8859-1",
            "",
            "windows-1252",
            "a%C3%83%C2%A7%C3%83%C2%A3o",
            "a%C3%A7%C3%A3o",
        ),
        (
            PORTUGUESE,
            "latin-1",
            "text/html; charset=utf-8",
            "",
            "utf-8",
            "a%EF%BF%BD%EF%BF%BDo",
            "a%EF%BF%BD%EF%BF%BDo",
        ),
        (RUSSIAN, "cp1251", "text/html; charset=windows-1252", "", "windows-1252", "%C3%AC%C3%A8%C3%B0", "%EC%E8%F0"),
    ],
)
def test_the_path_of_a_link_is_in_utf_8_and_its_query_in_the_charset_of_the_page(
    word, codec, kind, meta, charset, path, query
):
    html = (
        f"<html><head>{meta}<a href='/{word}/p'><a href='?q={word}#{word}'><form action='/f?{word}&x={word}'>".encode(
            codec
        )
    )
    answer = read_answer(html, kind)
    assert answer.charset == charset
    assert judge_answer(answer).urls == [f"{SITE}{path}/p", f"{PAGE}?q={query}", f"{SITE}f?{query}&x={query}"]


def test_what_the_charset_of_the_page_does_not_hold():
    """As browsers do: a reference to the character, escaped."""
    assert urls("<a href='?q=&#26085;&#233;'>", "text/html; charset=iso-8859-1") == [PAGE + "?q=%26%2326085%3B%E9"]


def test_one_text_in_pages_of_different_charsets_leads_to_different_places():
    html = "<a href='?q=&ccedil;'>"
    found = [urls(html, f"text/html; charset={charset}")[0] for charset in ("utf-8", "latin1", "windows-1251")]
    assert found == [PAGE + "?q=" + query for query in ("%C3%A7", "%E7", "%26%23231%3B")]
