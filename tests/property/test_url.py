"""Canonical form is idempotent, ASCII and stays inside its server; keys follow it."""

import ada_url
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contract.url import _PLAIN, Keys, NotCanonical, canonicalise, host_of, port_of, server_of
from tests.sampling import sampling

hosts = st.sampled_from(
    ["a.test", "A.Test.", "ü.de", "1.2.3.4", "0x7f.1..", "[::1]", "[::ffff:1.2.3.4]", "a..", "xn--tda.de", "%41.test"]
)
texts = st.builds(
    "{}{}{}{}{}{}{}".format,
    st.sampled_from(["http://", "HTTPS://", "http:\\\\", "//", "", "ftp://", " http://", "http:/"]),
    st.sampled_from(["", "user@", "user:pw@", "a@b@"]),
    hosts,
    st.sampled_from(["", ":80", ":443", ":8080", ":", ":99999"]),
    st.sampled_from(["", "/", "/a/../b", "/a//b/./c", "/%7euser/%2e%2e/x", "/ü?q=ü", "\\a\\b", "/a b"]),
    st.sampled_from(["", "?", "??", "?a=1&b", "?#", '?q=<>"']),
    st.sampled_from(["", "#", "#frag", "#a?b"]),
)


def canonical_or_none(text, base=None):
    try:
        return canonicalise(text, base)
    except NotCanonical:
        return None


@settings(max_examples=sampling.examples(400))
@given(
    st.one_of(texts, st.text(max_size=40), st.text(max_size=20).map("http://a.test/".__add__)),
    st.sampled_from([None, "http://base.test/x/y?z"]),
)
@example("http://0x7f.1../", None)
@example("http://a.test/x??", None)
@example("http://\ud800.test/", None)
def test_canonical_form_is_idempotent(text, base):
    url = canonical_or_none(text, base)
    if url is not None:
        assert canonicalise(url) == url
        assert url.isascii() and not any(character.isspace() or ord(character) < 32 for character in url)
        assert url.startswith(("http://", "https://")) and "#" not in url and "@" not in server_of(url)
        assert url.startswith(server_of(url) + "/") and host_of(server_of(url)) and 0 <= port_of(server_of(url)) < 65536


@settings(max_examples=sampling.examples(400))
@given(
    st.from_regex(_PLAIN, fullmatch=True)
    | st.builds("http://{}/{}".format, st.text("a1-.x", min_size=1, max_size=12), st.text("aZ0_.~/-?=&%", max_size=12))
)
@example("http://a.0x7f/")
@example("http://xn--a.de/")
@example("http://a.test/b/../c")
@example("http://-a-.test/.")
def test_what_is_plain_is_what_the_parser_leaves(text):
    """The short way of canonical URLs: the parser itself would give them back."""
    url = canonical_or_none(text)
    if url == text:
        href = ada_url.normalize_url(text)
        assert href in (text, text + "?"), "an empty query is ours to drop"


@pytest.mark.parametrize(
    "text, url",
    [
        ("HTTP://User:pw@EXAMPLE.test.:80/a/../b?#x", "http://example.test/b"),
        ("http://a.test/x?", "http://a.test/x"),
        ("http://a.test/x??", "http://a.test/x??"),
        ("http://0x7f.1../", "http://127.0.0.1/"),
        ("http://ü.de/ü", "http://xn--tda.de/%C3%BC"),
        ("https://[::1]:443/", "https://[::1]/"),
    ],
)
def test_canonical_form(text, url):
    assert canonicalise(text) == url


@pytest.mark.parametrize(
    "text, reason",
    [
        ("mailto:x@y", "other_scheme"),
        ("javascript:1", "other_scheme"),
        ("http://[", "unparsable"),
        ("http://.../", "unparsable"),
        ("http://a.test/" + "x" * 9000, "unparsable"),
        ("http://a b/", "unparsable"),
        ("", "unparsable"),
    ],
)
def test_what_has_no_canonical_form(text, reason):
    with pytest.raises(NotCanonical) as caught:
        canonicalise(text)
    assert caught.value.reason == reason


def test_domains_follow_the_suffix_list():
    keys = Keys(0)
    domains = {
        name: keys.server(name).domain
        for name in (
            "http://www.ufmg.br",
            "http://a.b.gov.br",
            "http://s1.test:80",
            "http://x.s1.test",
            "http://127.0.0.1:8080",
            "http://[::1]:80",
            "http://localhost",
        )
    }
    assert domains == {
        "http://www.ufmg.br": "ufmg.br",
        "http://a.b.gov.br": "b.gov.br",
        "http://s1.test:80": "s1.test",
        "http://x.s1.test": "s1.test",
        "http://127.0.0.1:8080": "127.0.0.1",
        "http://[::1]:80": "::1",
        "http://localhost": "localhost",
    }


def test_keys_depend_on_the_secret_of_the_crawl():
    assert Keys(1).of("http://a.test/") != Keys(2).of("http://a.test/")
