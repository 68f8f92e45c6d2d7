"""Where texts of links lead: the short way for plain paths and the parser agree, and what is found is found once."""

import pytest

from contract.canonical import Canonical
from contract.config import Config, Url
from contract.scope.rules import Scope
from contract.url import NotCanonical
from stages.extractor import targets as targets_module
from stages.extractor.targets import Target, Targets, base_at
from tests.extractor_lab import KEYS, configured

PAGE = "http://example.com/dir/page.html?q=1"


def make_targets(config: Config = Config()) -> Targets:
    return Targets(Canonical(config.url), Scope(config.scope, KEYS), KEYS)


def find(text: str, base: str = PAGE, charset: str = "utf-8", config: Config = Config()) -> Target:
    return make_targets(config).find(text, base_at(base), charset)


BASES = (
    PAGE,
    "http://example.com/",
    "https://b.org/a/",
    "http://example.com/a/b/c",
    "http://example.com/?a/b?c",
    "http://b.org:81/x//",
    "http://[::1]/a/b;c=d/e",
)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "/x",
        "x/y",
        "/x/",
        "x//y",
        "a.b",
        "a.",
        "a..",
        "..",
        ".",
        "./",
        "../",
        "./x",
        "../x",
        "x/.",
        "x/..",
        "x/./y",
        "x/../y",
        "x/...",
        "x./y",
        ".x",
        "/.x",
        "/..x",
        "/.",
        "~x",
        "_x",
        "-x",
        "x?",
        "x?a",
        "x?a=1&b=2",
        "x?a?b",
        "x?a/../b",
        "x?./",
        "x?.",
        "x.?y",
        "x/..?y",
        "?",
        "?a",
        "??",
        "/?a",
        "/",
        "//",
        "///",
        "//b.org",
        "/x//y",
        "//b.org/x",
        "",
        "#",
        "#a",
        "##",
        "#?",
        "x#",
        "x#a",
        "x#a#b",
        "x?a#b",
        "x?#b",
        "x #a",
        "x\t#a",
        " #a",
        "\t#",
        "\n",
        " ",
        "x ",
        " x",
        "/ x",
        "x\ny",
        "\n/x",
        "/\n/b.org/x",
        "\\x",
        "/\\b.org",
        "http:",
        "http:x",
        "http:/x",
        "http:?a",
        "http:#a",
        "http:..",
        "HTTP:?a",
        "ht\ntp:?a",
        "https:",
        "https:x",
        "https:?a",
        "http://b.org",
        "http://b.org?a#b",
        "https://b.org/..",
        "http:///x",
        "a:b",
        "x:1",
        "1:x",
        "/a:b",
        "x?a:b",
        "./a:b",
        "mailto:x",
        "javascript:#",
        "data:,#",
        "x@y",
        "@",
        "x%2e",
        "%2e%2e/x",
        "%2E",
        "x%",
        "é",
        "/é?é#é",
        "日本",
        "x\u00a0",
        "\u2028#x",
        "\u3000",
        "x;jsessionid=0123456789abcdef0123456789abcdef",
        "x?utm_source=a&b=c",
        "x" * 900,
        "x" * 1_100,
        "/" + "x" * 7_990,
        "x" * 8_100,
        "\x00",
        "\x00#a",
        "x\x00",
        "x\x1f#a",
    ],
)
def test_a_target_is_what_the_parser_finds(text):
    canonical, targets = Canonical(Config().url), make_targets()
    for base in BASES:
        try:
            expected = canonical(text, base)
        except NotCanonical as error:
            expected = error.reason
        found = targets.find(text, base_at(base), "utf-8")
        assert (found.url or found.rejected) == expected
        assert targets.find(text, base_at(base), "shift_jis").url == found.url or not text.isascii()


def test_a_target_has_key_server_and_verdict():
    assert find("x") == Target(
        "http://example.com/dir/x", KEYS.of("http://example.com/dir/x"), "http://example.com", ""
    )
    packed = "http://b.org:8080/x.zip"
    assert find("//B.org:8080/x.zip") == Target(packed, KEYS.of(packed), "http://b.org:8080", "reject_extensions")
    assert find("mailto:x") == Target("", 0, "", "other_scheme") and find("http://[") == Target("", 0, "", "unparsable")


@pytest.mark.parametrize("text", ["\ud800", "x\ud800", "?\ud800", "x#\ud800", "#\ud800"])
@pytest.mark.parametrize("charset", ["utf-8", "windows-1252", "gbk", ""])
def test_half_characters_do_not_raise(text, charset):
    assert find(text, charset=charset).rejected in ("", "unparsable")


def test_targets_are_folded_whichever_way_they_are_found():
    config = configured("url", rules=("lowercase_path", "www", "index_names", "tracking", "session_ids"))
    texts = ("/A/B", "A?B", "http://www.B.org/", "/index.html", "./index.php?x=Y", "?utm_source=x", "#top")
    assert [find(text, "http://www.a.org/Dir/Index.html", config=config).url for text in texts] == [
        "http://a.org/a/b",
        "http://a.org/dir/a?B",
        "http://b.org/",
        "http://a.org/",
        "http://a.org/dir/?x=Y",
        "http://a.org/dir/",
        "http://a.org/dir/",
    ]


def test_the_page_of_a_fragment_is_folded_too():
    assert (
        find("#x", "http://a.org/p?utm_source=y&b").url
        == find("", "http://a.org/p?utm_source=y&b").url
        == "http://a.org/p?b"
    )
    assert (
        find("#x", "http://a.org/p?utm_source=y", config=Config(url=Url(rules=()))).url == "http://a.org/p?utm_source=y"
    )


def test_bases():
    base = base_at("http://a.org/b/c?d=/e/")
    assert (base.url, base.root, base.folder) == ("http://a.org/b/c?d=/e/", "http://a.org/", "http://a.org/b/")
    assert base_at("https://a.org/").folder == base_at("https://a.org/?x/y").folder == "https://a.org/"


def test_a_url_is_judged_once(monkeypatch):
    judged = []
    monkeypatch.setattr(Scope, "judge", lambda scope, url: judged.append(url) or "")
    targets = make_targets()
    for page in ("http://a.org/d/1", "http://a.org/d/2", "http://a.org/e"):
        for text in ("/x", "/x#a", "http://a.org/x", "//a.org/x", "/y/../x", " /x "):
            targets.find(text, base_at(page), "utf-8")
    assert judged == ["http://a.org/x"]


def test_what_is_remembered_is_bounded(monkeypatch):
    """Neither long texts, which would fill the memory, nor what is relative to more than the folder.

    And all is forgotten in time.
    """
    monkeypatch.setattr(targets_module, "TEXT_REMEMBERED_MAX_CHARACTERS", 10)
    monkeypatch.setattr(targets_module, "TEXTS_REMEMBERED", 2)
    targets, base = make_targets(), base_at(PAGE)
    for text in ("a", "b" * 20, "?q", "#f", "", " c", "mailto:d", "../e", "http:?q", "/\u00e9", "/f#g"):
        assert targets.find(text, base, "utf-8") == targets.find(text, base, "utf-8")
    assert set(targets.near(base)) == {""}  # more than two were found: begun anew, with where the page itself lies
    targets.find("a", base, "utf-8")
    targets.find("a#b", base, "utf-8")
    assert set(targets.near(base)) == {"", "a"} and set(targets.near(base_at("http://other.org/"))) == {""}


def test_what_is_remembered_is_what_was_found():
    targets, base = make_targets(), base_at(PAGE)
    for text in ("a", "../e", "/f#g", "http://b.org/x", "a b", "x/../y"):
        assert text not in targets.near(base)
        found = targets.find(text, base, "utf-8")
        assert targets.near(base)[text] is found and found.url == Canonical(Config().url)(text, PAGE)
