"""The scope, rule by rule: which rule decides, in which order, and what a bad setting is told."""

import re
import tomllib
from pathlib import Path

import pytest

from contract.config import Config
from contract.config import Scope as ScopeConfig
from contract.config_check import from_tables
from contract.errors import BadConfiguration
from contract.scope.rules import OUT_OF_SCOPE, RULES, TRAPS, Scope
from contract.surt import parse_surt, surt_of
from contract.url import Keys, NotCanonical

TODAY = 2026
KEYS = Keys(17)  # made once: reading the suffix list takes a tenth of a second
ROOT = Path(__file__).resolve().parent.parent.parent
UFMG, OTHER = "https://www.ufmg.br/ensino/x?y", "http://a.org/"


def scope(**settings) -> Scope:
    return Scope(ScopeConfig(**settings), KEYS, TODAY)


@pytest.mark.parametrize(
    "url, settings, rule",
    [
        (OTHER, {}, ""),
        (OTHER, {"accept_suffixes": ("br",)}, "accept"),
        (UFMG, {"accept_suffixes": ("br",)}, ""),
        (UFMG, {"accept_domains": ("ufmg.br",)}, ""),
        ("http://ufmg.br.a.org/", {"accept_domains": ("ufmg.br",)}, "accept"),
        ("http://x.www.ufmg.br/", {"accept_domains": ("www.ufmg.br",)}, "accept"),
        (UFMG, {"accept_domains": ("www.ufmg.br",)}, ""),
        (UFMG, {"accept_patterns": ("/ensino/",)}, ""),
        (OTHER, {"accept_patterns": ("/ensino/",)}, "accept"),
        (OTHER, {"accept_suffixes": ("br",), "accept_patterns": (r"a\.org",)}, ""),
        (UFMG, {"accept_suffixes": ("br",), "accept_patterns": (r"a\.org",)}, ""),
        (UFMG, {"accept_surts": ("br,ufmg,www)/ensino",)}, ""),
        (UFMG, {"accept_surts": ("br,ufmg,www)/pesquisa",)}, "accept"),
        (UFMG, {"accept_surts": ("br,ufmg,www)/pesquisa",), "accept_domains": ("ufmg.br",)}, ""),
        (OTHER, {"accept_surts": ("br,ufmg,www)/ensino",)}, "accept"),
        (UFMG, {"reject_surts": ("br,ufmg,www)/ensino/",)}, "reject_surts"),
        (UFMG, {"reject_surts": ("br,ufmg,www)/ensino/x?",)}, "reject_surts"),
        (UFMG, {"reject_surts": ("br,ufmg,www)/pesquisa",)}, ""),
        (UFMG, {"reject_surts": ("br,",), "accept_surts": ("br,ufmg,",)}, "reject_surts"),
        (UFMG, {"reject_terms": ("ENSINO",)}, "reject_terms"),
        ("http://a.org/%C3%87%C3%A3o", {"reject_terms": ("ção",)}, "reject_terms"),
        ("http://a.org/%E7", {"reject_terms": ("ção",)}, ""),
        (UFMG, {"reject_dynamic": True}, "reject_dynamic"),
        ("http://a.org/CGI-bin/x", {"reject_dynamic": True}, "reject_dynamic"),
        ("http://a.org/x.PHP", {"reject_dynamic": True}, "reject_dynamic"),
        ("http://a.org/php/x.html", {"reject_dynamic": True}, ""),
        ("http://a.org/do", {"reject_dynamic": True}, ""),
        ("http://a.org/x.zip", {"reject_extensions": ()}, ""),
        ("http://a.org/x.zip/y", {}, ""),
        ("http://a.org/x?y.zip", {}, ""),
        ("http://a.b.c.d.e.f.g.h.org/", {}, "host_labels_max"),
        ("http://www.www.www.a.org/", {}, "host_labels_max"),
        ("http://10.10.10.10/", {"host_labels_max": 3}, ""),
        ("http://[1:1:1:1:1:1:1:1]/", {}, ""),
        ("http://a.org/2087/05/", {}, "calendar_years_max"),
        ("http://a.org/2087/05/", {"calendar_years_max": 0}, ""),
        ("http://a.org/x?date=1911-01-01", {}, "calendar_years_max"),
        ("http://a.org/x;jsessionid=1", {}, "reject_session_segments"),
        ("http://a.org/x;jsessionid=1", {"reject_session_segments": False}, ""),
        ("http://a.org/www.b.org/", {}, "reject_hosts_in_paths"),
        ("http://a.org:81/x/a.org/", {}, "reject_hosts_in_paths"),
        ("https://a.org/x/a.org", {}, "reject_hosts_in_paths"),
        ("http://a.org/www.b.org/", {"reject_hosts_in_paths": False}, ""),
        ("http://a.org/a/b/a/b/a/b", {}, "segment_repeats_max"),
        # the first rule decides: those about the server, then those about the URL, each in the order of RULES
        ("http://bad.org/x.zip", {"accept_suffixes": ("br",), "reject_domains": ("bad.org",)}, "accept"),
        ("http://bad.org/x.zip", {"accept_patterns": ("ensino",), "reject_domains": ("bad.org",)}, "reject_domains"),
        ("http://www.www.www.a.org/x.zip", {}, "host_labels_max"),
        ("http://a.org/2087/05/x.zip?" + "x" * 2000, {"reject_patterns": ("x",)}, "reject_extensions"),
        (
            "http://a.org/2087/05/x?" + "x" * 2000,
            {"reject_patterns": ("x",), "reject_dynamic": True},
            "reject_patterns",
        ),
        ("http://a.org/2087/05/x?" + "x" * 2000, {}, "url_length_max"),
        ("http://a.org/2087/05/x;sid=1", {"path_depth_max": 2}, "path_depth_max"),
        ("http://a.org/2087/05/x;sid=1/www.b.org", {}, "calendar_years_max"),
    ],
)
def test_scope(url, settings, rule):
    assert scope(**settings).judge(url) == rule


def test_a_scope_that_does_not_know_the_year_judges_no_dates():
    assert Scope(Config().scope, KEYS).judge("http://a.org/2087/05/") == ""


def test_rules_are_named_by_their_settings():
    assert sorted((*OUT_OF_SCOPE, *TRAPS)) == sorted(RULES) and len(set(RULES)) == len(RULES)
    taking = {name for name in ScopeConfig.__dataclass_fields__ if name.startswith("accept_") or "link_source" in name}
    settings = set(ScopeConfig.__dataclass_fields__) - taking
    assert set(RULES) - {"accept"} == settings
    text = (ROOT / "docs/scope.md").read_text()
    documented = {
        *RULES,
        *tomllib.loads((ROOT / "pipeline.toml").read_text())["scope"],
        *Config().url.rules,
        "lowercase_path",
        "www",
        "index_names",
    }
    assert [name for name in documented if not re.search(rf"^\| `{name}`", text, re.M)] == []


@pytest.mark.parametrize(
    "url, settings, rule",
    [
        ("http://a.org/p", {"reject_domains": ("a.org",)}, "reject_domains"),
        ("http://www.a.org/p.jpg", {"reject_domains": ("A.org.",)}, "reject_domains"),
        ("http://b.org/p.JPG?q", {"reject_domains": ("a.org",)}, "reject_extensions"),
        ("http://b.org/map.xml.gz", {}, ""),
        (
            "http://b.org/p",
            {"accept_suffixes": ("br",), "hops_max": 0, "reject_dynamic": True, "path_depth_max": 1},
            "",
        ),
        ("http://b.org/2087/05/", {"reject_patterns": ("b",), "reject_surts": ("org,b,",)}, ""),
    ],
)
def test_listed_urls_are_refused_by_two_rules_only(url, settings, rule):
    assert scope(**settings).judge_listed(url) == rule


def test_hops():
    assert [scope(hops_max=2).judge_depth(depth) for depth in (0, 1, 2, 3)] == ["", "", "hops_max", "hops_max"]
    assert scope(hops_max=0).judge_depth(0) == "hops_max" and scope().judge_depth(255) == ""


@pytest.mark.parametrize(
    "page, target, rule",
    [
        ("http://a.org/y/y/", "http://a.org/y/y/y/", "deeper_repeats_max"),
        ("http://a.org/y/y/p?q", "http://a.org/y/y/y/p", "deeper_repeats_max"),
        ("http://a.org/y/y/", "http://a.org/y/y/z/", ""),
        ("http://a.org/y/y/", "http://a.org/y/", ""),
        ("http://a.org/y/y/", "http://b.org/y/y/y/", ""),
    ],
)
def test_ever_deeper(page, target, rule):
    assert scope().is_suspect(page) and scope().judge_from(page, target) == rule and scope().judge(target) == ""


@pytest.mark.parametrize(
    "page, most, suspect",
    [
        ("http://a.org/", 2, False),
        ("http://a.org/a/b/c/c", 2, False),
        ("http://a.org/a/b/a/", 2, True),
        ("http://a.org/a/b/a/", 3, False),
        ("http://a.org/?/a/a/", 2, False),
        ("http://a.org/a/", 1, True),
        ("http://a.org/", 1, False),
        ("http://a.org/a/a/b/b/", 3, False),
    ],
)
def test_pages_whose_links_need_a_second_look(page, most, suspect):
    assert scope(deeper_repeats_max=most).is_suspect(page) is suspect


def test_a_server_is_judged_once():
    judge = scope(accept_suffixes=("com",), reject_surts=("com,a)/x",))
    assert [judge.judge(f"http://a.com/{number}") for number in range(10)] == [""] * 10
    assert judge.judge_server("http://a.com") == "" and judge.judge_server("http://a.org") == "accept"
    assert judge.judge_server.cache_info().misses == 2


@pytest.mark.parametrize(
    "prefix, taken, left",
    [
        ("br,", ["http://br/", "https://a.com.br:81/x"], ["http://br.com/", "http://xbr/"]),
        ("br,ufmg,", ["http://ufmg.br/", "https://www.dcc.ufmg.br:8080/x"], ["http://ufmgx.br/", "http://br/"]),
        ("br,ufmg", ["http://ufmg.br/x"], ["http://ufmgx.br/"]),
        ("BR,UFMG,", ["http://ufmg.br/x"], ["http://a.br/"]),
        ("http://(br,ufmg,", ["https://a.ufmg.br/"], ["http://a.br/"]),
        ("(br,ufmg,", ["https://a.ufmg.br/"], ["http://a.br/"]),
        ("br,ufmg)", ["http://ufmg.br/", "https://ufmg.br/x"], ["http://www.ufmg.br/", "http://ufmg.br:81/"]),
        ("br,ufmg)/", ["http://ufmg.br/", "https://ufmg.br/x"], ["http://www.ufmg.br/", "http://ufmg.br:81/"]),
        (
            "http://(br,ufmg,www,)/ensino",
            ["https://www.ufmg.br/ensino", "http://www.ufmg.br/ensinos?x"],
            ["http://www.ufmg.br/", "http://ufmg.br/ensino"],
        ),
        ("br,ufmg)/a b", ["http://ufmg.br/a%20bc"], ["http://ufmg.br/a"]),
        ("br,ufmg)/p?", ["http://ufmg.br/p?x"], ["http://ufmg.br/p", "http://ufmg.br/px"]),
        (
            "br,ufmg:8080)/x",
            ["http://ufmg.br:8080/x", "https://ufmg.br:8080/x"],
            ["http://ufmg.br/x", "http://ufmg.br:8080/"],
        ),
        ("http://(br,ufmg,:8080)", ["http://ufmg.br:8080/x"], ["http://ufmg.br/x"]),
        ("https://(br,ufmg,:443)/", ["https://ufmg.br/x", "http://ufmg.br/"], ["http://ufmg.br:443/"]),
        ("br,são", ["http://x.xn--so-sia.br/"], ["http://sao.br/"]),
        ("192.0.2.1", ["http://192.0.2.1/", "http://192.0.2.1:81/x"], ["http://192.0.2.10/"]),
        ("192.0.2.1)/x", ["http://192.0.2.1/x"], ["http://192.0.2.1/"]),
        ("[2001:DB8::1]", ["http://[2001:db8::1]:81/"], ["http://[2001:db8::2]/"]),
        ("com,a", ["http://b.a.com/"], ["http://b,a.com/"]),
    ],
)
def test_surt_prefixes(prefix, taken, left):
    accepting, rejecting = scope(accept_surts=(prefix,)), scope(reject_surts=(prefix,))
    assert [accepting.judge(url) for url in (*taken, *left)] == [""] * len(taken) + ["accept"] * len(left)
    assert [rejecting.judge(url) for url in (*taken, *left)] == ["reject_surts"] * len(taken) + [""] * len(left)


def test_several_prefixes_of_one_server():
    judge = scope(accept_surts=("br,a)/x", "br,a)/y", "br,b,"), reject_surts=("br,a)/x/z",)).judge
    assert [
        judge(url) for url in ("http://a.br/x", "http://a.br/y", "http://a.br/z", "http://b.br/x/z", "http://a.br/x/z")
    ] == ["", "", "accept", "", "reject_surts"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        ")",
        "http://www.ufmg.br/",
        "www.ufmg.br",
        "br,,x",
        "br,ufmg,)x",
        "1,2,3,4",
        "ftp://(br,",
        "br,a)/x#y",
        "br,a:99999)/",
        "http://br,ufmg,",
        "a b",
        "br,a)\n/",
    ],
)
def test_what_is_no_surt_prefix(text):
    with pytest.raises(NotCanonical):
        parse_surt(text)


def test_surt_of_servers():
    assert [
        surt_of(server) for server in ("http://www.ufmg.br", "https://a:81", "http://[::1]:81", "http://1.2.3.4")
    ] == ["br,ufmg,www,", "a,:81", "::1,:81", "1.2.3.4,"]


@pytest.mark.parametrize(
    "key, text",
    [
        ("accept_suffixes", "http://x/"),
        ("accept_domains", "a b"),
        ("reject_domains", ""),
        ("accept_surts", "www.ufmg.br"),
        ("reject_surts", "http://a.br/"),
        ("accept_patterns", "("),
        ("reject_patterns", "["),
        ("reject_terms", " "),
    ],
)
def test_bad_settings_name_their_key(key, text):
    with pytest.raises(BadConfiguration, match=rf"test: \[scope\] {key}: expected .+, found {re.escape(repr(text))}"):
        from_tables({"scope": {key: [text]}}, "test")
