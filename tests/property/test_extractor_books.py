"""Whatever pages hold, their links add up, and the tables agree with a plain count of the same pages."""

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from contract import names
from contract.canonical import Canonical
from contract.config import LINK_KINDS, Config
from contract.scope.rules import Scope
from contract.tables import ANSWERED, FAILED, REFUSED
from contract.trouble import BROKEN, UNDECODED
from contract.url import NotCanonical, canonicalise, server_of
from stages.extractor.answer import Answer
from stages.extractor.link_judge import CLASSES
from tests.extractor_lab import (
    KEYS,
    PAGE,
    Cycle,
    WarcFile,
    alone,
    configured,
    http,
    judge_answer,
    page_file,
    read_answer,
)
from tests.sampling import sampling

CONFIG = configured(
    "scope", accept_suffixes=("com", "org"), reject_domains=("bad.org",), path_depth_max=3, reject_patterns=("secret",)
)
TEXTS = st.sampled_from(
    [
        "x",
        "./x",
        "/dir/x",
        "#top",
        "",
        "?",
        "?q=1",
        "/a/b/c/d",
        "/y.zip",
        "/secret",
        "//bad.org/",
        "//a.bad.org/z",
        "//c.org/",
        "http://d.net/",
        "javascript:void(0)",
        "mailto:a",
        "http:?q",
        "http:",
        "y?",
        " #t",
        " ?r",
        "a:b",
        "y/../../z",
        "..",
        "y/",
        "http://[",
        "https:x",
        "HTTP://EXAMPLE.com/dir/x",
        "\x00",
        "a b",
        "&#xD800;",
        "//c.org/\\x",
        "http://",
    ]
) | st.text(max_size=8).filter(lambda text: max(text, default=" ") < "\ud800")
TAGS = st.sampled_from(
    [
        "a href",
        "area href",
        "iframe src",
        "img src",
        "link href",
        "script src",
        "a rel=nofollow href",
        "frame src",
        "link rel=next href",
        "link rel='nofollow canonical' href",
        "form action",
        "img srcset",
        "object data",
        "video poster",
        "q cite",
    ]
)
HEADERS = st.lists(
    st.one_of(
        TEXTS.map("Link: <{}>; rel=next".format),
        TEXTS.map("Link: <{}>".format),
        TEXTS.map("Content-Location: {}".format),
        TEXTS.map("Refresh: 0;url={}".format),
    ).filter(lambda line: line.isprintable() and line.isascii()),
    max_size=3,
)
PIECES = st.one_of(
    st.tuples(TAGS, TEXTS).map(lambda pair: f"<{pair[0]}='{pair[1]}'>"),
    TEXTS.map(lambda text: f'<meta http-equiv=refresh content="0;url={text}">'),
    st.sampled_from(
        [
            "<base href=/dir/>",
            "<base href=//c.org/>",
            "<base href='http://['>",
            "<meta name=robots content=nofollow>",
            "<div>",
            "</div>",
            "<p",
            "<!--",
            "-->",
            "<title>x</title>",
            "text",
            "'",
            '"',
            "<svg>",
            "<template>",
            "</template>",
            "<select><option>",
        ]
    ),
)
PAGES = st.lists(PIECES, max_size=25).map("".join)


@settings(max_examples=sampling.examples(150))
@given(PAGES, HEADERS, st.booleans(), st.sampled_from([PAGE, PAGE + "?a/b?c", "https://c.org/", "http://c.org/x/y/"]))
def test_every_occurrence_falls_in_one_class(html, headers, obey_nofollow, url):
    config = replace(CONFIG, extractor=replace(CONFIG.extractor, obey_nofollow=obey_nofollow))
    answer = read_answer(html, "text/html; charset=utf-8", *headers, url=url, config=config)
    scope = Scope(CONFIG.scope, KEYS)
    judged = judge_answer(answer, url=url, config=config)
    assert sum(judged.classes.values()) == sum(answer.document.links.values()) + len(answer.header_links)
    assert (
        sum(links for links, _ in judged.rejected.values()) == judged.classes["out_of_scope"] + judged.classes["trap"]
    )
    assert judged.classes["followed"] == sum(judged.followed)
    assert len(set(judged.urls)) == len(judged.urls) == len(judged.keys) == len(judged.kinds) == len(judged.nofollow)
    assert dict(zip(judged.urls, judged.kinds)) == plain_kinds(url, answer, scope)
    assert all(canonicalise(url) == url for url in judged.urls)


def plain_kinds(page_url: str, answer: Answer, scope: Scope) -> dict[str, int]:
    """Targets in scope and the bits of their kinds, in the slow and obvious way."""
    document, canonical = answer.document, Canonical(Config().url)
    try:
        base = canonicalise(document.base, page_url) if document.base is not None else page_url
    except NotCanonical:
        base = page_url
    kinds: Counter = Counter()
    for kind, text, place in [(*link[:2], base) for link in document.links] + [
        (*link[:2], page_url) for link in answer.header_links
    ]:
        try:
            url = canonical(text, place)
        except NotCanonical:
            continue
        if not scope.judge(url):
            kinds[url] |= 1 << kind
    return dict(kinds)


@settings(max_examples=sampling.examples(15))
@given(st.lists(PAGES, max_size=5))
def test_tables_of_generated_pages(pages):
    with tempfile.TemporaryDirectory() as folder:
        tables = alone(
            Path(folder),
            page_file({f"http://s{number % 2}.com/{number}": html for number, html in enumerate(pages)}),
            config=CONFIG,
        )
        counts = tables.counts
        assert counts["link_occurrences"] == sum(counts[name] for name in CLASSES) and counts["answered"] == len(pages)
        extracted = tables.by_url(names.EXTRACTED)
        links = tables.rows(names.LINKS)
        linked = Counter(row["to_key"] for row in links if row["followed"])
        assert {row["url_key"]: row["links_in"] for row in extracted.values()} == linked
        assert counts["followed"] == counts["links_in_sum"] == linked.total()
        assert all(0 < row["kinds"] < 1 << len(LINK_KINDS) for row in links)


@settings(max_examples=sampling.examples(15))
@given(st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.booleans()), max_size=7), st.data(), st.booleans())
def test_pages_that_were_counted_and_duplicates(visits, data, follow_duplicates):
    """Few contents at several URLs, of which some were counted before: against a plain count over the edges."""
    contents = data.draw(st.lists(PAGES, min_size=3, max_size=3))
    pages = {f"http://s{number % 3}.com/{number}/": contents[which] for number, (which, _) in enumerate(visits)}
    counted = frozenset(url for url, (_, is_counted) in zip(pages, visits) if is_counted)
    config = replace(CONFIG, extractor=replace(CONFIG.extractor, follow_duplicates=follow_duplicates))
    with tempfile.TemporaryDirectory() as folder:
        cycle = Cycle(Path(folder) / "crawl", dict.fromkeys(pages, 0), page_file(pages), config=config, counted=counted)
        tables = cycle.extract()
        counts, links = tables.counts, tables.rows(names.LINKS)
        extracted = tables.by_url(names.EXTRACTED)
        metadata = tables.by_url(names.METADATA)
    assert counts["link_occurrences"] == sum(counts[name] for name in CLASSES)
    url_of = {KEYS.of(url): url for url in (*pages, *extracted)}
    followed = [(url_of[row["from_key"]], url_of[row["to_key"]]) for row in links if row["followed"]]
    assert counts["followed"] == len(followed)
    assert counts["followed_again"] == sum(page in counted for page, _ in followed)
    giving = [(page, target) for page, target in followed if page not in counted]
    links_in = Counter(target for _, target in giving)
    mentions = Counter(target for page, target in giving if domain_of(page) != domain_of(target))
    assert {url: (row["links_in"], row["mentions"]) for url, row in extracted.items()} == {
        target: (links_in[target], mentions[target]) for _, target in followed
    }
    assert (counts["links_in_sum"], counts["mentions_sum"]) == (links_in.total(), mentions.total())
    seen: set[str] = set()
    for url, html in pages.items():
        is_repeated = html in seen and html != "" and metadata[url]["parsed"] and not follow_duplicates
        assert not is_repeated or url not in {page for page, _ in followed}
        seen.add(html)
    assert bool(counts["duplicate_page"]) <= (not follow_duplicates)


def domain_of(url: str) -> str:
    return KEYS.server(server_of(url)).domain


@st.composite
def records(draw) -> list[tuple]:
    """Records of few URLs in any order: attempts, ends, ends that only repeat, and robots.txt."""
    return draw(
        st.lists(
            st.tuples(
                st.sampled_from(["http://s0.com/", "http://s0.com/a", "http://s1.com/", "http://s1.com/robots.txt"]),
                st.sampled_from([(ANSWERED, ""), (FAILED, "empty"), (FAILED, "dns"), (REFUSED, "robots")]),
                st.booleans(),
                st.sampled_from(["", "http://s1.com", "http://s0.com"]),
                st.sampled_from(["", "192.0.2.1"]),
            ),
            max_size=12,
        )
    )


@settings(max_examples=sampling.examples(40))
@given(records())
def test_failures_are_the_urls_that_were_not_answered(records):
    file = WarcFile()
    robots = {}
    for number, (url, (outcome, reason), is_final, server, address) in enumerate(records):
        if outcome == ANSWERED:
            file.answer(url, http(), final=is_final and not server, robots=server)
        else:
            options = {"robots": server, "address": address, "message": f"number {number}"}
            file.no_answer(url, outcome, reason, final=is_final, **options)
        robots |= {server: (url, outcome, reason, f"number {number}")} if server else {}
    with tempfile.TemporaryDirectory() as folder:
        tables = alone(Path(folder), file)
        ended = [row for row in tables.rows(names.COLLECTED) if row["outcome"] != ANSWERED]
        rows = tables.rows(names.FAILURES)
        pages = [row for row in rows if not row["is_robots"]]
        for name in ("url", "server_key", "outcome", "reason", "attempts"):
            assert [row[name] for row in pages] == [row[name] for row in ended]
        assert tables.counts["reasons"] == Counter(row["reason"] for row in ended)
        columns = ("url", "outcome", "reason", "message")
        told = {row["server"]: tuple(row[name] for name in columns) for row in rows if row["is_robots"]}
        assert told == {server: last for server, last in robots.items() if last[1] != ANSWERED}
        assert all(row["message"] and row["failed_at_ms"] > 0 for row in rows)


@settings(max_examples=sampling.examples(150))
@given(
    st.binary(max_size=400) | st.binary(max_size=200).map(lambda noise: b"<a href='" + noise + b"'>" + noise),
    st.sampled_from(
        [
            "text/html",
            "text/html; charset=utf-16",
            "text/html;charset=iso-2022-jp",
            "text/html; charset=gb18030",
            "text/html; charset=big5",
            "",
            "text/plain",
        ]
    ),
    st.sampled_from(["", "gzip", "deflate", "gzip, deflate", "br"]),
)
def test_no_bytes_raise(body, kind, encoding):
    answer = read_answer(body, kind, f"Content-Encoding: {encoding}")
    assert set(answer.trouble.split()) <= {BROKEN, UNDECODED}
    judge_answer(answer)
    answer.document.title.encode()
