"""Scope, rule by rule, and the judgement of links: each occurrence in one class, each target once."""

import pytest

from contract.config import Config, from_tables
from contract.errors import BadConfiguration
from stages.extractor.links import CLASSES, Judged, LinkJudge
from stages.extractor.page import A, AREA, FRAME, IMAGE, LINK, REDIRECT, REFRESH, SCRIPT
from stages.extractor.scope import RULES, TRAPS, Scope
from tests.unit.test_extractor_lab import KEYS, PAGE, configured


def judge(url: str, **scope) -> str:
    return Scope(configured("scope", **scope).scope, KEYS).judge(url)


@pytest.mark.parametrize("url, scope, rule", [
    ("http://a.com.br/", {"accept_suffixes": ("br",)}, ""),
    ("http://br/", {"accept_suffixes": (".br",)}, ""),
    ("http://abr/", {"accept_suffixes": ("br",)}, "accept_suffixes"),
    ("http://a.example.org:8080/", {"accept_suffixes": ("org.", "Example.ORG")}, ""),
    ("http://notexample.org/", {"accept_suffixes": ("example.org",)}, "accept_suffixes"),
    ("http://xn--mnchen-3ya.de/", {"accept_suffixes": ("münchen.de",)}, ""),
    ("http://10.0.1.1/", {"accept_suffixes": ("1.1",)}, "accept_suffixes"),
    ("http://10.0.1.1/", {"accept_suffixes": ("10.0.1.1",)}, ""),
    ("http://[2001:db8::1]/", {"accept_suffixes": ("2001:DB8::1",)}, ""),
    ("http://[2001:db8::2]:81/", {"accept_suffixes": ("[2001:db8::1]",)}, "accept_suffixes"),
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
    ("http://www.bad.com/x.zip", {"accept_suffixes": ("br",), "reject_domains": ("bad.com",)}, "accept_suffixes"),
    ("http://www.bad.com/x.zip", {"reject_domains": ("bad.com",)}, "reject_domains"),
    ("http://a.com/x/x/x/x.zip", {"segment_repeats_max": 1, "reject_patterns": ("x",)}, "reject_extensions"),
])
def test_scope(url, scope, rule):
    assert judge(url, **scope) == rule and (not rule or rule in RULES)


@pytest.mark.parametrize("scope, key", [
    ({"reject_patterns": ("(",)}, "reject_patterns"), ({"accept_suffixes": ("http://x/",)}, "accept_suffixes"),
    ({"accept_suffixes": ("",)}, "accept_suffixes"), ({"reject_domains": ("a b",)}, "reject_domains"),
])
def test_bad_scope_names_its_key(scope, key):
    with pytest.raises(BadConfiguration, match=key):
        from_tables({"scope": scope}, "test")


def test_a_server_is_judged_once():
    scope = Scope(configured("scope", accept_suffixes=("com",)).scope, KEYS)
    for number in range(10):
        scope.judge(f"http://a.com/{number}")
    assert scope.judge_server.cache_info().misses == 1


def judged(links: dict, config: Config = Config(), nofollow: bool = False, base: str | None = None) -> Judged:
    return LinkJudge(config.extractor, Scope(config.scope, KEYS), KEYS).judge(PAGE, base, links, nofollow)


def classes(links: dict, config: Config = Config(), nofollow: bool = False) -> dict[str, int]:
    found = judged(links, config, nofollow)
    assert sum(found.classes.values()) == sum(links.values()) and set(found.classes) == set(CLASSES)
    assert sum(found.rejected.values()) == found.classes["out_of_scope"] + found.classes["trap"]
    assert found.classes["followed"] == sum(found.followed)
    return {name: number for name, number in found.classes.items() if number}


@pytest.mark.parametrize("links, expected", [
    ({}, {}),
    ({(A, "x", False): 1}, {"followed": 1}),
    ({(A, "x", False): 3}, {"followed": 1, "repeated_in_page": 2}),
    ({(A, "javascript:1", False): 3, (A, "mailto:x", False): 1}, {"other_scheme": 4}),
    ({(A, "http://[", False): 2, (A, "\ud800", False): 1, (A, "x" * 9000, False): 1}, {"unparsable": 4}),
    ({(A, "x", False): 1, (AREA, "./x", False): 1, (A, "/dir/x#top", True): 1}, {"followed": 1, "repeated_in_page": 2}),
    ({(IMAGE, "x", False): 1}, {"kind_not_followed": 1}),
    ({(IMAGE, "x", False): 1, (A, "x", False): 1}, {"followed": 1, "repeated_in_page": 1}),
    ({(IMAGE, "x", False): 1, (A, "x", True): 1}, {"kind_not_followed": 1, "repeated_in_page": 1}),
    ({(A, "x", True): 1, (IMAGE, "x", False): 1}, {"nofollow": 1, "repeated_in_page": 1}),
    ({(A, "x", True): 2, (A, "x", False): 2}, {"followed": 1, "repeated_in_page": 3}),
    ({(A, "x.zip", False): 1, (A, "/a/b/a/b/a/b/a/b", False): 1}, {"out_of_scope": 1, "trap": 1}),
    ({(IMAGE, "x.zip", False): 1, (A, "x.zip", False): 1}, {"kind_not_followed": 1, "repeated_in_page": 1}),
    ({(A, "x.zip", False): 1, (IMAGE, "x.zip", False): 1}, {"out_of_scope": 1, "repeated_in_page": 1}),
    ({(A, "x.zip", True): 1, (A, "x.zip", False): 1}, {"nofollow": 1, "repeated_in_page": 1}),
    ({(kind, str(kind), False): 1 for kind in (A, AREA, FRAME, REFRESH, REDIRECT)}, {"followed": 5}),
    ({(kind, str(kind), False): 1 for kind in (LINK, IMAGE, SCRIPT)}, {"kind_not_followed": 3}),
    ({(A, "#a", False): 1, (A, "", False): 1, (A, "?", False): 1}, {"followed": 1, "repeated_in_page": 2}),
])
def test_classes(links, expected):
    assert classes(links) == expected


def test_nofollow_of_the_page_and_the_setting():
    links = {(A, "x", False): 1, (FRAME, "y", False): 1, (IMAGE, "z", False): 1}
    assert classes(links, nofollow=True) == {"nofollow": 2, "kind_not_followed": 1}
    careless = configured("extractor", obey_nofollow=False)
    assert classes(links, careless, nofollow=True) == {"followed": 2, "kind_not_followed": 1}
    assert judged(links, careless, nofollow=True).nofollow == [True] * 3


def test_kinds_that_are_followed_are_configured():
    assert classes({(IMAGE, "x", False): 1, (A, "y", False): 1}, configured("extractor", follow=("image",))) == {"followed": 1, "kind_not_followed": 1}
    with pytest.raises(BadConfiguration, match="follow"):
        from_tables({"extractor": {"follow": ["a", "blink"]}}, "test")


def test_columns_of_a_page():
    found = judged({(IMAGE, "x", False): 1, (A, "x", True): 1, (A, "y", True): 1, (A, "z.zip", False): 1, (A, "//other.org/", False): 2})
    assert found.urls == ["http://example.com/dir/x", "http://example.com/dir/y", "http://other.org/"]
    assert found.keys == [KEYS.of(url) for url in found.urls]
    assert found.kinds == [1 << IMAGE | 1 << A, 1 << A, 1 << A]
    assert found.nofollow == [False, True, False] and found.followed == [False, False, True]
    assert (found.inside, found.outside) == (3, 1) and found.rejected == {"reject_extensions": 1}


@pytest.mark.parametrize("text, base, url", [
    ("x", None, "http://example.com/dir/x"), ("/x", None, "http://example.com/x"), ("/x", "https://b.org/q/", "https://b.org/x"),
    ("x", "https://b.org/q/", "https://b.org/q/x"), ("#f", "https://b.org/q/", "https://b.org/q/"), ("//c.org", "https://b.org", "https://c.org/"),
    ("/\\c.org/x", None, "http://c.org/x"), ("http:x", None, "http://example.com/dir/x"), ("https:x", None, "https://x/"),
    ("http://c.org", None, "http://c.org/"), (" \n/x\t", None, "http://example.com/x"), ("/\n/c.org", None, "http://c.org/"),
    ("HTTP://C.org:80/ç", None, "http://c.org/%C3%A7"),
])
def test_what_a_text_leads_to(text, base, url):
    assert judged({(A, text, False): 1}, base=base).urls == [url]


def test_every_trap_is_a_rule():
    assert set(TRAPS) < set(RULES)
