"""Any bytes with any headers are an answer whose links add up, and the short way of a link never differs from the
parser.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contract.canonical import Canonical
from contract.config import DOCUMENTS, LINK_KINDS, Config, Extractor, Url
from contract.scope.rules import Scope
from contract.trouble import DIED, MEANINGS, MEMORY, TIMEOUT, UNREADABLE
from contract.url import NotCanonical, canonicalise
from contract.warc import HttpMessage
from stages.extractor.answer import AnswerReader
from stages.extractor.charset import LABELS
from stages.extractor.documents import html
from stages.extractor.targets import Targets, base_at
from tests.extractor_lab import KEYS, PAGE, judge_answer
from tests.sampling import sampling

SEPARATORS = "/.#?:@%\\ \t\n;&=~-_aAbx01éß日\u00a0"
WORDS = [
    "http:",
    "https:",
    "http://",
    "//",
    "./",
    "../",
    "..",
    "a.org",
    "www.",
    "index.html",
    "%2e",
    "utm_source=x",
    "jsessionid=" + "0" * 32,
    "#",
    "?",
    "x",
]
TEXTS = st.text(SEPARATORS, max_size=12) | st.lists(
    st.sampled_from(WORDS) | st.sampled_from(SEPARATORS), max_size=6
).map("".join)
SERVERS = st.sampled_from(["http://a.org", "https://www.b.com:81", "http://[::1]"])
BASES = st.builds("{}/{}".format, SERVERS, st.text(SEPARATORS, max_size=10))
RULES = [Url(rules=()), Url(), Url(rules=("www", "index_names", "lowercase_path", "tracking", "session_ids"))]
# Kept, so that what they remember counts.
TARGETS = [(Canonical(rules), Targets(Canonical(rules), Scope(Config().scope, KEYS), KEYS)) for rules in RULES]


def lead(canonical: Canonical, text: str, base: str) -> str:
    try:
        return canonical(text, base)
    except NotCanonical as error:
        return error.reason


@settings(max_examples=sampling.examples(3_000))
@given(TEXTS, BASES, st.sampled_from(TARGETS))
@example("http:", "http://a.org/b/c", TARGETS[0])
@example("h\nttp:?a", "http://a.org/b/c", TARGETS[0])
@example("a#b", "http://a.org/b/c?d", TARGETS[1])
@example("x/..?y", "http://a.org/b/c", TARGETS[1])
def test_a_target_is_what_the_parser_finds(text, base, made):
    canonical, targets = made
    url = canonicalise(base)
    for charset in ("utf-8", "utf-16le") if text.isascii() else ("utf-8",):
        found = targets.find(text, base_at(url), charset)
        assert (found.url or found.rejected) == lead(canonical, text, url)
        assert not found.url or found.key == KEYS.of(found.url)


@settings(max_examples=sampling.examples(300))
@given(st.text(SEPARATORS, max_size=12), st.sampled_from(["windows-1252", "windows-1251", "shift_jis", "gbk"]))
def test_the_charset_changes_nothing_but_the_query(text, charset):
    targets = TARGETS[0][1]
    plain, encoded = (targets.find(text, base_at(PAGE), name) for name in ("utf-8", charset))
    assert plain.url.partition("?")[0] == encoded.url.partition("?")[0] and plain.rejected == encoded.rejected


KINDS = (
    st.sampled_from(
        [
            "text/html",
            "text/html; charset=" + "x" * 50,
            "",
            "text/plain",
            "application/octet-stream",
            "application/xml",
            "image/svg+xml",
            "application/rss+xml",
            "text/css",
            "application/json",
            "application/javascript",
            "application/pdf",
            "application/gzip",
            "application/msword",
            "image/png",
            "a/b+xml",
            ";",
            "text/html;charset",
        ]
    )
    | st.sampled_from(sorted(LABELS)).map("text/html; charset={}".format)
    | st.text(st.characters(max_codepoint=0xFF), max_size=20)
)
MARKS = st.sampled_from(
    [
        b"<a href='",
        b"'>",
        b"<base href=",
        b"<meta charset=utf-16>",
        b"<meta http-equiv=refresh content='0;url=",
        b"<img srcset='",
        b" 2x, ",
        b"<template>",
        b"<svg>",
        b"<!--",
        b"http://[",
        b"//b.org/",
        b"?q=\xe7",
        b"#",
        b"&#xD800;",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"<?xml version='1.0' encoding='",
        b"<rss>",
        b"<urlset><loc>",
        b"%PDF-1.4 ",
        b"PK\x03\x04",
        b"\x1f\x8b\x08",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        b"FWS\x09",
        b"<script>'/a/b.html'",
        b"<form action=",
        b"<link rel=next href=",
        b"</",
        b"\0",
        b"<table><a href=x>",
    ]
)
BODIES = st.binary(max_size=300) | st.lists(MARKS | st.binary(max_size=6), max_size=20).map(b"".join)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "Link",
                "Refresh",
                "Content-Location",
                "Location",
                "X-Robots-Tag",
                "Content-Language",
                "Content-Encoding",
                "Transfer-Encoding",
                "ETag",
            ]
        ),
        st.text(st.characters(max_codepoint=0xFF), max_size=20)
        | st.sampled_from(["<x>; rel=next", "0;url=y", "gzip", "chunked", "none", "coletor: nofollow", "http://["]),
    ),
    max_size=4,
)
EVERYTHING = Config(
    extractor=Extractor(
        documents=DOCUMENTS,
        lazy_attributes=True,
        anchor_text=True,
        near_duplicates=True,
        keep_links="all",
        follow=LINK_KINDS,
        page_max_bytes=1_000,
    )
)
IN_PART = set(MEANINGS) - {TIMEOUT, MEMORY, DIED, UNREADABLE}  # what is no failure of a reader
READERS = {config: AnswerReader(config) for config in (Config(), EVERYTHING)}


@settings(max_examples=sampling.examples(600))
@given(
    BODIES,
    KINDS,
    HEADERS,
    st.sampled_from([200, 206, 301, 404, 0]),
    st.sampled_from(list(READERS)),
    st.sampled_from([PAGE, "https://b.org/?u=http://c.org/"]),
)
def test_any_bytes_are_an_answer_whose_links_add_up(body, kind, headers, status, config, url):
    answer = READERS[config].read(url, HttpMessage(status, [("Content-Type", kind), *headers], body))
    assert set(answer.trouble.split()) <= IN_PART and (not answer.reader or status in (200, 206))
    judged = judge_answer(answer, url=url, config=config, year=2026)
    assert sum(judged.classes.values()) == sum(answer.document.links.values()) + len(answer.header_links)
    assert (
        sum(links for links, _ in judged.rejected.values()) == judged.classes["out_of_scope"] + judged.classes["trap"]
    )
    assert judged.classes["followed"] == sum(judged.followed) and judged.inside + judged.outside >= len(judged.urls)
    columns = (judged.urls, judged.keys, judged.kinds, judged.nofollow, judged.followed)
    assert {len(column) for column in columns} == {len(set(judged.urls))}
    assert len(judged.anchors) == (len(judged.urls) if config.extractor.anchor_text else 0)
    for text in (
        answer.type,
        answer.charset,
        answer.document.title,
        answer.document.language,
        *judged.urls,
        *judged.anchors,
    ):
        text.encode()


@settings(max_examples=sampling.examples(300))
@given(st.lists(MARKS | st.binary(max_size=6), max_size=30).map(b"".join))
def test_settings_only_add_links(content):
    plain = html.read(content, "utf-8")
    words = ("lazy_attributes", "inline_scripts", "inline_styles", "anchor_text", "text")
    more = html.read(content, "utf-8", html.Options("coletor", **dict.fromkeys(words, True)))
    assert all(more.links[link] >= count for link, count in plain.links.items())
    assert (plain.title, plain.base, plain.canonical, plain.language) == (
        more.title,
        more.base,
        more.canonical,
        more.language,
    )
    assert not plain.anchors and not plain.text


@pytest.mark.parametrize("config", READERS, ids=["default", "everything"])
def test_every_media_type_reads_nothing(config):
    for kind in (
        "text/html",
        "text/plain",
        "application/pdf",
        "application/zip",
        "application/xml",
        "application/json",
        "text/css",
    ):
        answer = READERS[config].read(PAGE, HttpMessage(200, [("Content-Type", kind)], b""))
        assert answer.trouble == "" and not judge_answer(answer, config=config).urls
