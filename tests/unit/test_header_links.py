"""Headers: links of Link, Refresh, Content-Location and Location, and what X-Robots-Tag asks."""

import time

import pytest

from contract.config import LINK_KINDS, Config
from stages.extractor.directives import read_tags, read_words
from stages.extractor.header_links import read_header_links
from tests.extractor_lab import PAGE, configured, judge_answer, read_answer

SECONDS_MAX = 6.0  # tenths are expected; anything quadratic takes minutes


def read(status: int = 200, **headers: str | list[str]) -> list[tuple[str, str, bool]]:
    named = {
        name.replace("_", "-"): [values] if isinstance(values, str) else values for name, values in headers.items()
    }
    return [(LINK_KINDS[kind], text, marked) for kind, text, marked in read_header_links(status, named)]


@pytest.mark.parametrize(
    "value, expected",
    [
        ("<x>", [("link", "x", False)]),
        ("<x>; rel=next", [("next", "x", False)]),
        ('<x>; rel="next"', [("next", "x", False)]),
        ("<x>;rel=prev,<y>;rel=canonical", [("next", "x", False), ("canonical", "y", False)]),
        ('<x>; rel="alternate stylesheet"; type="text/css"', [("style", "x", False)]),
        ("<x>; REL=Alternate; hreflang=pt", [("alternate", "x", False)]),
        ('<x>; title="a, <no>; rel=canonical"; rel=next, <y>', [("next", "x", False), ("link", "y", False)]),
        ('<x>; title="say \\"hi\\", <no>"; rel=next', [("next", "x", False)]),
        ('<x>; title="; rel=canonical"', [("link", "x", False)]),
        ("<x>; rel=next; rel=canonical", [("next", "x", False)]),
        ("<x>; rel = next", [("next", "x", False)]),
        ("<x> ; crossorigin ; rel=next", [("next", "x", False)]),
        ("<x>; title*=UTF-8''a%2C%20b; rel=next", [("next", "x", False)]),
        ("<x>; xrel=canonical; rev=next", [("link", "x", False)]),
        ('<x>; rel="next nofollow", <y>; rel="NOFOLLOW"', [("next", "x", True), ("link", "y", True)]),
        ("<a,b;c>; rel=next, <d>", [("next", "a,b;c", False), ("link", "d", False)]),
        ("< x >; rel=icon", [("image", "x", False)]),
        ("<>; rel=next", [("next", "", False)]),
        (", ,<x>,,<y>,", [("link", "x", False), ("link", "y", False)]),
        ("junk <x>; rel=next junk, <y>", [("next", "x", False), ("link", "y", False)]),
        ('<x>; rel="next', [("link", "x", False)]),
        ("<x", []),
        ("x>; rel=next", []),
        ("", []),
        ("no links", []),
        ("<x<y>; rel=next", [("next", "y", False)]),
        ("<http://[bad>; rel=next, <y>; rel=next", [("next", "http://[bad", False), ("next", "y", False)]),
    ],
)
def test_link(value, expected):
    assert read(link=value) == expected


def test_several_headers_in_their_order():
    found = read(
        301, link=["<a>; rel=next", "<b>, <c>"], refresh="5; url=d", content_location=["e", "f"], location=["g", "no"]
    )
    assert found == [
        ("next", "a", False),
        ("link", "b", False),
        ("link", "c", False),
        ("refresh", "d", False),
        ("location", "e", False),
        ("location", "f", False),
        ("redirect", "g", False),
    ]


@pytest.mark.parametrize(
    "value, expected",
    [
        ("5; url=x", ["x"]),
        ("0;URL='x y'", ["x y"]),
        ("0;x", ["x"]),
        ("5", []),
        ("", []),
        ("url=x", []),
        ("0;url=/a\xc3\xa7", ["/aç"]),
        ("0;url=/a\xe7", ["/aç"]),
    ],
)
def test_refresh(value, expected):
    assert [text for _, text, _ in read(refresh=value)] == expected


@pytest.mark.parametrize(
    "status, location, expected",
    [
        (301, "x", ["x"]),
        (302, "//b.org", ["//b.org"]),
        (308, "x", ["x"]),
        (300, "x", ["x"]),
        (304, "x", ["x"]),
        (201, "x", []),
        (200, "x", []),
        (404, "x", []),
        (399, "", []),
        (301, "/a\xc3\xa7\xc3\xa3o", ["/ação"]),
        (301, "/a\xe7\xe3o", ["/ação"]),
    ],
)
def test_location(status, location, expected):
    assert [text for _, text, _ in read(status, location=location)] == expected


def test_headers_are_judged_like_links_of_the_page():
    headers = (
        "Link: <x>; rel=next, <mailto:a>, <http://[>; rel=next",
        "link: </s.css>; rel=stylesheet; rel=next",
        "Content-Location: page.pt.html",
        "Refresh: 9;url=x",
    )
    answer = read_answer("<a href=x>", "text/html", *headers)
    judged = judge_answer(answer)
    assert judged.urls == [f"http://example.com/{path}" for path in ("dir/x", "dir/page.pt.html")]
    kinds = [LINK_KINDS.index(kind) for kind in ("a", "next", "refresh")]
    assert judged.kinds[0] == sum(1 << kind for kind in kinds)
    wanted = {"followed": 2, "repeated_in_page": 2, "other_scheme": 1, "unparsable": 1, "kind_not_followed": 1}
    assert {name: number for name, number in judged.classes.items() if number} == wanted


@pytest.mark.parametrize(
    "location, found",
    [
        ("x", "http://example.com/dir/x"),
        ("../x?a#b", "http://example.com/x?a"),
        ("//B.org/x y", "http://b.org/x%20y"),
        ("\\x", "http://example.com/x"),
        ("/?q=ação".encode().decode("latin-1"), "http://example.com/?q=a%C3%A7%C3%A3o"),
        ("/?q=a\xe7", "http://example.com/?q=a%C3%A7"),
        ("http://münchen.de/ä".encode().decode("latin-1"), "http://xn--mnchen-3ya.de/%C3%A4"),
    ],
)
def test_where_a_redirect_leads(location, found):
    """Whatever the charset of its body: a redirect is read before that."""
    for charset in ("utf-8", "iso-8859-1", "shift_jis"):
        answer = read_answer(
            "<base href=/no/><a href=no>", f"text/html; charset={charset}", f"Location: {location}", status=302
        )
        assert judge_answer(answer).urls == [found]


def test_canonical_of_a_header_counts_where_the_page_names_none():
    link = 'Link: <h>; rel="canonical"'
    assert read_answer("", "text/html", link).document.canonical == "http://example.com/dir/h"
    assert read_answer("<link rel=canonical href=p>", "text/html", link).document.canonical == "p"
    assert read_answer(b"\x89PNG", "image/png", link).document.canonical == "http://example.com/dir/h"


@pytest.mark.parametrize(
    "content, noindex, nofollow",
    [
        ("", False, False),
        ("noindex", True, False),
        ("nofollow", False, True),
        ("none", True, True),
        ("all", False, False),
        ("NoIndex,NOFOLLOW", True, True),
        ("noindex nofollow", True, True),
        ("index, follow", False, False),
        (" ,, nofollow ,", False, True),
        ("noindexing, donone", False, False),
        ("noarchive, nosnippet", False, False),
    ],
)
def test_words(content, noindex, nofollow):
    assert read_words(content) == read_tags([content], "coletor") == (noindex, nofollow)


@pytest.mark.parametrize(
    "values, noindex, nofollow",
    [
        ([], False, False),
        (["noindex", "nofollow"], True, True),
        (["coletor: nofollow"], False, True),
        (["Coletor:none"], True, True),
        (["*: noindex"], True, False),
        (["googlebot: none"], False, False),
        (["googlebot: noindex", "nofollow"], False, True),
        (["otherbot: noindex, nofollow", "coletor: noindex"], True, False),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST"], False, False),
        (["unavailable_after: 25-Jun-2010 15:00:00 PST, nofollow"], False, True),
        (["max-snippet:-1, max-image-preview:large, noindex"], True, False),
        (["noindex, max-video-preview: 3"], True, False),
        (["coletor-news: none"], False, False),
        (["coletor: max-snippet: 0, nofollow"], False, True),
        ([""], False, False),
        ([":"], False, False),
        (["coletor :  none"], True, True),
    ],
)
def test_tags_by_agent(values, noindex, nofollow):
    assert read_tags(values, "coletor") == (noindex, nofollow)


def test_tags_of_an_answer_are_for_the_agent_that_the_crawl_names():
    headers = ("X-Robots-Tag: SpiderX: nofollow", "x-robots-tag: otherbot: noindex")
    named = configured("fetcher", agent="SpiderX")
    assert [
        read_answer("", "text/html", *headers, config=config).document.nofollow for config in (Config(), named)
    ] == [False, True]
    assert not read_answer("", "text/html", *headers, config=named).document.noindex


def test_tags_hold_for_documents_that_are_no_html():
    answer = read_answer("see http://b.org/x", "text/plain", "X-Robots-Tag: none")
    judged = judge_answer(answer)
    assert (answer.document.noindex, judged.classes["nofollow"], judged.followed) == (True, 1, [False])


@pytest.mark.parametrize(
    "header, page, language",
    [
        ("pt-BR", "", "pt-BR"),
        ("de, en", "", "de"),
        ("pt", "<html lang=it>", "it"),
        (" ru ", "<html lang>", "ru"),
        ("x" * 99, "", "x" * 35),
    ],
)
def test_language_of_a_header_counts_where_the_page_declares_none(header, page, language):
    assert read_answer(page, "text/html", f"Content-Language: {header}").document.language == language


@pytest.mark.parametrize(
    "piece",
    ["<", "<>", ",", ", ", "<x>;", "<x>;a=", '<x>;a="', '<x>;a="\\', "<x>; rel=next", ";", " ", '"', '\\"', "<x>;;"],
)
@pytest.mark.sampled(1)
def test_hostile_headers_take_linear_time(piece):
    value = piece * (500_000 // len(piece))
    began = time.process_time()
    for start in ("", "<x>", '<x>; a="', "0"):
        read(link=start + value, refresh=start + value)
    read_tags([value, "x" + value], "coletor")
    assert time.process_time() - began < SECONDS_MAX


def test_a_page_and_its_url_in_headers():
    assert judge_answer(read_answer("", "text/html", "Content-Location: ", "Link: <>; rel=canonical")).urls == [PAGE]
