"""Scope, rule by rule, and the judgement of links: each occurrence in one class, each target once."""

from collections import Counter

import pytest

from contract.config import LINK_KINDS, Config
from contract.config_check import from_tables
from contract.errors import BadConfiguration
from contract.scope.rules import RULES, TRAPS, Scope
from stages.extractor.answer import Answer
from stages.extractor.document import (
    ALTERNATE,
    AREA,
    CANONICAL,
    FRAME,
    IMAGE,
    LINK,
    LOCATION,
    NEXT,
    REDIRECT,
    REFRESH,
    SCRIPT,
    A,
    Document,
)
from stages.extractor.link_judge import CLASSES, Judged
from tests.extractor_lab import KEYS, configured, judge_answer


def judge(url: str, **scope) -> str:
    return Scope(configured("scope", **scope).scope, KEYS).judge(url)


@pytest.mark.parametrize(
    "url, scope, rule",
    [
        ("http://a.com.br/", {"accept_suffixes": ("br",)}, ""),
        ("http://br/", {"accept_suffixes": (".br",)}, ""),
        ("http://abr/", {"accept_suffixes": ("br",)}, "accept"),
        ("http://a.example.org:8080/", {"accept_suffixes": ("org.", "Example.ORG")}, ""),
        ("http://notexample.org/", {"accept_suffixes": ("example.org",)}, "accept"),
        ("http://xn--mnchen-3ya.de/", {"accept_suffixes": ("münchen.de",)}, ""),
        ("http://10.0.1.1/", {"accept_suffixes": ("1.1",)}, "accept"),
        ("http://10.0.1.1/", {"accept_suffixes": ("10.0.1.1",)}, ""),
        ("http://[2001:db8::1]/", {"accept_suffixes": ("2001:DB8::1",)}, ""),
        ("http://[2001:db8::2]:81/", {"accept_suffixes": ("[2001:db8::1]",)}, "accept"),
        ("http://10.0.1.1/", {}, ""),
        ("http://www.bad.com.br/", {"reject_domains": ("bad.com.br",)}, "reject_domains"),
        ("http://www.good.com.br/", {"reject_domains": ("com.br",)}, ""),
        ("http://a.b.c.bad.co.uk/", {"reject_domains": (".BAD.co.uk",)}, "reject_domains"),
        ("http://one.site.org/", {"reject_domains": ("one.site.org",)}, "reject_domains"),
        ("http://two.site.org/", {"reject_domains": ("one.site.org",)}, ""),
        ("http://a.com/x.ZIP", {}, "reject_extensions"),
        ("http://a.com/x.tar.gz?y", {}, "reject_extensions"),
        ("http://a.com/x.zip/", {}, ""),
        ("http://a.com/x.zip.html", {}, ""),
        ("http://a.com/zip?f=x.zip", {}, ""),
        ("http://a.com/x.dat", {"reject_extensions": (".DAT",)}, "reject_extensions"),
        ("http://a.com/?session=1", {"reject_patterns": ("nothing", "session=")}, "reject_patterns"),
        ("http://a.com/" + "x" * 100, {"url_length_max": 112}, "url_length_max"),
        ("http://a.com/" + "x" * 99, {"url_length_max": 112}, ""),
        ("http://a.com/1/2/3", {"path_depth_max": 2}, "path_depth_max"),
        ("http://a.com//1//2/", {"path_depth_max": 2}, ""),
        ("http://a.com/x/a/x/b/x", {"segment_repeats_max": 2}, "segment_repeats_max"),
        ("http://a.com/x/a/x", {"segment_repeats_max": 2}, ""),
        ("http://a.com/a////?x/x/x/x", {"segment_repeats_max": 1}, ""),
        ("http://www.bad.com/x.zip", {"accept_suffixes": ("br",), "reject_domains": ("bad.com",)}, "accept"),
        ("http://www.bad.com/x.zip", {"reject_domains": ("bad.com",)}, "reject_domains"),
        ("http://a.com/x/x/x/x.zip", {"segment_repeats_max": 1, "reject_patterns": ("x",)}, "reject_extensions"),
    ],
)
def test_scope(url, scope, rule):
    assert judge(url, **scope) == rule and (not rule or rule in RULES)


@pytest.mark.parametrize(
    "scope, key",
    [
        ({"reject_patterns": ("(",)}, "reject_patterns"),
        ({"accept_suffixes": ("http://x/",)}, "accept_suffixes"),
        ({"accept_suffixes": ("",)}, "accept_suffixes"),
        ({"reject_domains": ("a b",)}, "reject_domains"),
    ],
)
def test_bad_scope_names_its_key(scope, key):
    with pytest.raises(BadConfiguration, match=key):
        from_tables({"scope": scope}, "test")


def test_a_server_is_judged_once():
    scope = Scope(configured("scope", accept_suffixes=("com",)).scope, KEYS)
    for number in range(10):
        scope.judge(f"http://a.com/{number}")
    assert scope.judge_server.cache_info().misses == 1


def judged(
    links: dict,
    config: Config = Config(),
    nofollow: bool = False,
    base: str | None = None,
    headers: tuple = (),
    **place,
) -> Judged:
    document = Document(base=base, nofollow=nofollow, others=links)
    return judge_answer(Answer("text/html", "utf-8", b"", "html", document, headers, ""), config=config, **place)


def classes(
    links: dict, config: Config = Config(), nofollow: bool = False, headers: tuple = (), **place
) -> dict[str, int]:
    found = judged(links, config, nofollow, None, headers, **place)
    assert sum(found.classes.values()) == sum(links.values()) + len(headers) and set(found.classes) == set(CLASSES)
    assert sum(links for links, _ in found.rejected.values()) == found.classes["out_of_scope"] + found.classes["trap"]
    assert found.classes["followed"] == sum(found.followed)
    return {name: number for name, number in found.classes.items() if number}


@pytest.mark.parametrize(
    "links, expected",
    [
        ({}, {}),
        ({(A, "x", False): 1}, {"followed": 1}),
        ({(A, "x", False): 3}, {"followed": 1, "repeated_in_page": 2}),
        ({(A, "javascript:1", False): 3, (A, "mailto:x", False): 1}, {"other_scheme": 4}),
        ({(A, "http://[", False): 2, (A, "\ud800", False): 1, (A, "x" * 9000, False): 1}, {"unparsable": 4}),
        (
            {(A, "x", False): 1, (AREA, "./x", False): 1, (A, "/dir/x#top", True): 1},
            {"followed": 1, "repeated_in_page": 2},
        ),
        ({(IMAGE, "x", False): 1}, {"kind_not_followed": 1}),
        ({(IMAGE, "x", False): 1, (A, "x", False): 1}, {"followed": 1, "repeated_in_page": 1}),
        ({(IMAGE, "x", False): 1, (A, "x", True): 1}, {"kind_not_followed": 1, "repeated_in_page": 1}),
        ({(A, "x", True): 1, (IMAGE, "x", False): 1}, {"nofollow": 1, "repeated_in_page": 1}),
        ({(A, "x", True): 2, (A, "x", False): 2}, {"followed": 1, "repeated_in_page": 3}),
        ({(A, "x.zip", False): 1, (A, "/a/b/a/b/a/b/a/b", False): 1}, {"out_of_scope": 1, "trap": 1}),
        ({(IMAGE, "x.zip", False): 1, (A, "x.zip", False): 1}, {"out_of_scope": 1, "repeated_in_page": 1}),
        ({(IMAGE, "x.zip", False): 1, (A, "x.zip", True): 1}, {"kind_not_followed": 1, "repeated_in_page": 1}),
        ({(A, "x.zip", False): 1, (IMAGE, "x.zip", False): 1}, {"out_of_scope": 1, "repeated_in_page": 1}),
        ({(A, "x.zip", True): 1, (A, "x.zip", False): 1}, {"out_of_scope": 1, "repeated_in_page": 1}),
        ({(A, "x.zip", True): 1, (IMAGE, "x.zip", False): 1}, {"nofollow": 1, "repeated_in_page": 1}),
        (
            {
                (kind, str(kind), False): 1
                for kind in (A, AREA, FRAME, REFRESH, REDIRECT, CANONICAL, ALTERNATE, NEXT, LOCATION)
            },
            {"followed": 9},
        ),
        ({(kind, str(kind), False): 1 for kind in (LINK, IMAGE, SCRIPT)}, {"kind_not_followed": 3}),
        ({(kind, str(kind), False): 1 for kind in range(len(LINK_KINDS))}, {"followed": 14, "kind_not_followed": 7}),
        ({(A, "#a", False): 1, (A, "", False): 1, (A, "?", False): 1}, {"followed": 1, "repeated_in_page": 2}),
    ],
)
def test_classes(links, expected):
    assert classes(links) == expected


def test_nofollow_of_the_page_and_the_setting():
    links = {(A, "x", False): 1, (FRAME, "y", False): 1, (IMAGE, "z", False): 1}
    assert classes(links, nofollow=True) == {"nofollow": 2, "kind_not_followed": 1}
    careless = configured("extractor", obey_nofollow=False)
    assert classes(links, careless, nofollow=True) == {"followed": 2, "kind_not_followed": 1}
    assert judged(links, careless, nofollow=True).nofollow == [True] * 3


def test_kinds_that_are_followed_are_configured():
    assert classes({(IMAGE, "x", False): 1, (A, "y", False): 1}, configured("extractor", follow=("image",))) == {
        "followed": 1,
        "kind_not_followed": 1,
    }
    with pytest.raises(BadConfiguration, match="follow"):
        from_tables({"extractor": {"follow": ["a", "blink"]}}, "test")


def test_columns_of_a_page():
    found = judged(
        {
            (IMAGE, "x", False): 1,
            (A, "x", True): 1,
            (A, "y", True): 1,
            (A, "z.zip", False): 1,
            (A, "//other.org/", False): 2,
        }
    )
    assert found.urls == ["http://example.com/dir/x", "http://example.com/dir/y", "http://other.org/"]
    assert found.keys == [KEYS.of(url) for url in found.urls]
    assert found.kinds == [1 << IMAGE | 1 << A, 1 << A, 1 << A]
    assert found.nofollow == [False, True, False] and found.followed == [False, False, True]
    assert len(found.keys) == 3 and found.anchors == []
    assert (found.inside, found.outside) == (3, 1)
    assert found.rejected == {("reject_extensions", "http://example.com"): [1, "http://example.com/dir/z.zip"]}


@pytest.mark.parametrize(
    "text, base, url",
    [
        ("x", None, "http://example.com/dir/x"),
        ("/x", None, "http://example.com/x"),
        ("/x", "https://b.org/q/", "https://b.org/x"),
        ("x", "https://b.org/q/", "https://b.org/q/x"),
        ("#f", "https://b.org/q/", "https://b.org/q/"),
        ("//c.org", "https://b.org", "https://c.org/"),
        ("/\\c.org/x", None, "http://c.org/x"),
        ("http:x", None, "http://example.com/dir/x"),
        ("https:x", None, "https://x/"),
        ("http://c.org", None, "http://c.org/"),
        (" \n/x\t", None, "http://example.com/x"),
        ("/\n/c.org", None, "http://c.org/"),
        ("HTTP://C.org:80/ç", None, "http://c.org/%C3%A7"),
    ],
)
def test_what_a_text_leads_to(text, base, url):
    assert judged({(A, text, False): 1}, base=base).urls == [url]


def test_every_trap_is_a_rule():
    assert set(TRAPS) < set(RULES)


def test_links_of_headers_are_relative_to_the_page_itself():
    headers = ((NEXT, "x", False), (LINK, "y", False), (NEXT, "z", True), (LOCATION, "http://[", False))
    found = judged({(A, "x", False): 1}, base="/base/", headers=headers)
    assert found.urls == [f"http://example.com/{path}" for path in ("base/x", "dir/x", "dir/y", "dir/z")]
    assert found.followed == [True, True, False, False] and found.classes["unparsable"] == 1
    assert classes({(A, "x", False): 2}, headers=headers + ((NEXT, "/dir/x", False),)) == {
        "followed": 1,
        "repeated_in_page": 3,
        "kind_not_followed": 1,
        "nofollow": 1,
        "unparsable": 1,
    }


def test_nofollow_of_the_page_holds_for_its_headers():
    assert classes({}, nofollow=True, headers=((NEXT, "x", False), (LINK, "y", False))) == {
        "nofollow": 1,
        "kind_not_followed": 1,
    }


@pytest.mark.parametrize(
    "hops_max, depth, expected",
    [
        (3, 0, {"followed": 2}),
        (3, 2, {"followed": 2}),
        (3, 3, {"out_of_scope": 2}),
        (3, 9, {"out_of_scope": 2}),
        (0, 0, {"out_of_scope": 2}),
        (255, 255, {"followed": 2}),
        (254, 255, {"out_of_scope": 2}),
    ],
)
def test_hops_from_a_seed(hops_max, depth, expected):
    links = {(A, "x", False): 1, (A, "//other.org/", False): 1}
    config = configured("scope", hops_max=hops_max)
    assert classes(links, config, depth=depth) == expected
    rules = {rule for rule, _ in judged(links, config, depth=depth).rejected}
    assert rules == ({"hops_max"} if "out_of_scope" in expected else set())


def test_a_rule_about_the_url_goes_before_the_number_of_hops():
    found = judged(
        {(A, "x.zip", False): 1, (A, "x", False): 1, (IMAGE, "i", False): 1}, configured("scope", hops_max=1), depth=1
    )
    assert {rule: seen for (rule, _), seen in found.rejected.items()} == {
        "reject_extensions": [1, "http://example.com/dir/x.zip"],
        "hops_max": [1, "http://example.com/dir/x"],
    }
    assert found.classes["out_of_scope"] == 2 and found.classes["kind_not_followed"] == 1 and found.urls == []


@pytest.mark.parametrize(
    "page, text, expected",
    [
        ("http://a.com/y/y/", "y/", {"trap": 1}),
        ("http://a.com/y/y/x", "y/z", {"trap": 1}),
        ("http://a.com/y/y/", "z/", {"followed": 1}),
        ("http://a.com/y/x/y/", "/y/x/y/y/", {"trap": 1}),
        ("http://a.com/y/", "y/", {"followed": 1}),
        ("http://a.com/", "/y/y/y/", {"followed": 1}),
        ("http://a.com/y/y/", "/y/y/x", {"followed": 1}),
        ("http://a.com/y/y/", "//b.com/y/y/y/", {"followed": 1}),
    ],
)
def test_ever_deeper_links_of_suspect_pages(page, text, expected):
    assert classes({(A, text, False): 1}, url=page) == expected
    assert [rule for rule, _ in judged({(A, text, False): 1}, url=page).rejected] == ["deeper_repeats_max"] * (
        "trap" in expected
    )
    assert classes({(A, text, False): 1}, configured("scope", deeper_repeats_max=20), url=page) == {"followed": 1}


def test_a_seed_outside_the_scope_leads_into_it_only():
    config = configured("scope", accept_suffixes=("br",))
    links = {(A, "x", False): 1, (A, "http://a.br/", False): 1, (A, "http://b.com/", False): 1}
    found = judged(links, config, url="http://seed.com/")
    assert found.urls == ["http://a.br/"] and found.followed == [True]
    assert found.rejected == {
        ("accept", "http://seed.com"): [1, "http://seed.com/x"],
        ("accept", "http://b.com"): [1, "http://b.com/"],
    }
    assert (found.inside, found.outside) == (1, 2)


def test_rejected_links_are_counted_by_rule_and_server():
    texts = ("x.zip", "y.zip", "x.zip", "//b.org/z.ZIP", "/a/b/a/b/a/b", "https://example.com/w.gz")
    found = judged({(A, text, False): number for number, text in enumerate(texts, 1)})
    assert found.rejected == {
        ("reject_extensions", "http://example.com"): [2, "http://example.com/dir/x.zip"],
        ("reject_extensions", "http://b.org"): [1, "http://b.org/z.ZIP"],
        ("segment_repeats_max", "http://example.com"): [1, "http://example.com/a/b/a/b/a/b"],
        ("reject_extensions", "https://example.com"): [1, "https://example.com/w.gz"],
    }
    assert (found.classes["out_of_scope"], found.classes["trap"]) == (4, 1)


def test_targets_out_of_scope_are_kept_where_asked_for():
    links = {(A, "x.zip", False): 1, (A, "y", False): 1, (IMAGE, "i.png", False): 1, (A, "http://[", False): 1}
    found = judged(links, configured("extractor", keep_links="all"))
    assert found.urls == [f"http://example.com/dir/{name}" for name in ("x.zip", "y", "i.png")]
    assert found.followed == [False, True, False]
    assert found.rejected == judged(links).rejected and found.classes == judged(links).classes
    assert judged(links).urls == ["http://example.com/dir/y"]


def test_anchors_belong_to_targets():
    document = Document(hrefs=["x", "./x", "y"], anchors={"./x": "second", "y": "other"})
    answer = Answer("text/html", "utf-8", b"", "html", document, ((NEXT, "z", False),), "")
    assert judge_answer(answer, config=configured("extractor", anchor_text=True)).anchors == ["second", "other", ""]


@pytest.mark.parametrize("nofollow", [False, True])
@pytest.mark.parametrize("rest", [{}, {(IMAGE, "x", False): 2, (A, "z", True): 1}])
@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["mailto:q"],
        ["x", "./x", "#a", "", "mailto:q", "http://[", "y.zip", "/a/b/a/b/a/b/a/b", "http://b.org/", "x"],
    ],
)
def test_plain_links_are_judged_like_all_others(texts, rest, nofollow):
    others = Counter((A, text, False) for text in texts) + Counter(rest)
    plain = Answer("text/html", "utf-8", b"", "html", Document(hrefs=texts, others=rest, nofollow=nofollow), (), "")
    assert judge_answer(plain) == judged(others, nofollow=nofollow)
