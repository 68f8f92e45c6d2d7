"""Records that end no page of their own.

Attempts that are repeated, heads that were refused, revisits, rules from elsewhere.
"""

import pytest

from contract import names
from contract.tables import ANSWERED, FAILED, METADATA, REFUSED, UNKNOWN_DIGEST
from contract.warc import IDENTICAL_PAYLOAD, NOT_MODIFIED
from examine.cycle_books import check_pages
from examine.findings import Findings
from examine.readers import read_any
from storage.tables import read_table
from tests.extractor_lab import NOW_MS, Cycle, WarcFile, alone, coletor, http
from tests.stages.test_extractor_cycle import HOME, SITE, assert_books

DIGEST = "sha1:" + "A" * 32


def test_attempts_that_are_repeated_count_for_the_server_and_end_nothing(tmp_path):
    first = WarcFile()
    first.answer(HOME, http(b"<a href=wrong>", 503), FAILED, "http_5xx", final=False, total=100)
    first.no_answer(HOME, FAILED, "timeout", final=False, total=200, address="192.0.2.1")
    first.no_answer(SITE + "/b", FAILED, "connect", final=False, total=300, address="192.0.2.1")
    second = WarcFile().no_answer(HOME, FAILED, "dns", final=False).answer(HOME, http(b"<a href=x>"), total=400)
    cycle = Cycle(tmp_path / "crawl", {HOME: 0, SITE + "/b": 0}, first, second, known={SITE: {"failures": 2}})
    tables = cycle.extract()
    assert_books(tables)
    (home,) = tables.rows(names.COLLECTED)
    assert (home["url"], home["outcome"], home["attempts"], home["status"]) == (HOME, ANSWERED, 3, 200)
    assert set(tables.by_url(names.EXTRACTED)) == {SITE + "/x"} and tables.counts["not_reached"] == 1
    server = tables.servers()[SITE]
    assert (server["requests"], server["mean_ms"], server["failures"]) == (4, 250, 0)
    assert server["last_request_at_ms"] == NOW_MS + 3000 + 300


def test_failures_in_a_row_include_attempts_that_are_repeated(tmp_path):
    file = WarcFile()
    for is_final in (False, True):
        file.no_answer(HOME, FAILED, "timeout", final=is_final, address="192.0.2.1")
    tables = Cycle(tmp_path / "crawl", {HOME: 0}, file, known={SITE: {"failures": 2}}).extract()
    assert tables.servers()[SITE]["failures"] == 4
    (row,) = tables.rows(names.COLLECTED)
    assert (row["outcome"], row["reason"], row["attempts"]) == (FAILED, "timeout", 2)


@pytest.mark.parametrize("reason", ["excluded_type", "too_big"])
def test_a_head_that_was_refused_is_no_page(tmp_path, reason):
    file = WarcFile().answer(HOME, http(b"", 200, "text/html", "Content-Length: 99999999"), REFUSED, reason)
    file.answer(SITE + "/moved", http(b"", 301, "image/png", "Location: /x"), REFUSED, reason)
    tables = Cycle(tmp_path / "crawl", {HOME: 0, SITE + "/moved": 0}, file).extract()
    assert_books(tables)
    assert {(row["outcome"], row["reason"], row["attempts"]) for row in tables.rows(names.COLLECTED)} == {
        (REFUSED, reason, 1)
    }
    assert tables.by_url(names.COLLECTED)[HOME]["status"] == 200 and tables.counts["refused"] == 2
    assert not tables.rows(names.METADATA) and not tables.rows(names.EXTRACTED) and not tables.rows(names.LINKS)
    assert tables.servers()[SITE]["requests"] == 2


def revisited(file: WarcFile, url: str, block: bytes, profile: str, **headers: str) -> WarcFile:
    file.add("request", url, b"GET / HTTP/1.1\r\n\r\n")
    return file.add(
        "revisit",
        url,
        block,
        WARC_Profile=profile,
        WARC_Payload_Digest=DIGEST,
        **coletor(ANSWERED, "", 30, True, "", ""),
        **headers,
    )


def test_a_revisit_is_an_answer_without_a_page(tmp_path):
    file = revisited(WarcFile(), HOME, http(b"", 304, None, 'ETag: "x"'), NOT_MODIFIED)
    revisited(file, SITE + "/b", http(b"", 200, "text/html; charset=utf-8", "Location: /x"), IDENTICAL_PAYLOAD)
    file.answer(SITE + "/c", http(b"<a href=d>"))
    tables = Cycle(tmp_path / "crawl", {HOME: 0, SITE + "/b": 0, SITE + "/c": 0}, file).extract()
    assert_books(tables)
    collected, metadata = tables.by_url(names.COLLECTED), tables.by_url(names.METADATA)
    assert {url: (row["outcome"], row["status"]) for url, row in collected.items()} == {
        HOME: (ANSWERED, 304),
        SITE + "/b": (ANSWERED, 200),
        SITE + "/c": (ANSWERED, 200),
    }
    for url, status, kind in ((HOME, 304, ""), (SITE + "/b", 200, "text/html")):
        row = metadata[url]
        assert (row["status"], row["type"], row["charset"], row["parsed"], row["title"]) == (
            status,
            kind,
            "",
            False,
            "",
        )
        assert (row["payload_digest"], row["content_digest"], row["bytes"]) == (DIGEST, UNKNOWN_DIGEST, 0)
        assert (row["links_inside"], row["links_outside"], row["redirect_to"]) == (0, 0, "")
    assert metadata[HOME]["etag"] == '"x"' and metadata[SITE + "/c"]["content_digest"] != UNKNOWN_DIGEST
    assert set(tables.by_url(names.EXTRACTED)) == {SITE + "/d"} and tables.counts["pages_parsed"] == 1


def test_revisits_count_for_their_server_as_any_answer_does(tmp_path):
    file = revisited(WarcFile(), HOME, http(b"", 304), NOT_MODIFIED)
    revisited(file, SITE + "/b", http(b""), IDENTICAL_PAYLOAD)
    file.no_answer(SITE + "/c", REFUSED, "robots")
    known = {SITE: {"requests": 2, "mean_ms": 90, "failures": 3}}
    listed = dict.fromkeys((HOME, SITE + "/b", SITE + "/c"), 0)
    tables = Cycle(tmp_path / "crawl", listed, file, known=known, counted=frozenset(listed)).extract()
    assert_books(tables)
    server = tables.servers()[SITE]
    assert (server["requests"], server["mean_ms"], server["failures"]) == (4, 60, 0)
    metadata = tables.by_url(names.METADATA)
    assert {url: (row["revisit"], row["parsed"], row["trouble"]) for url, row in metadata.items()} == dict.fromkeys(
        (HOME, SITE + "/b"), (True, False, "")
    )
    refused = tables.by_url(names.COLLECTED)[SITE + "/c"]
    assert (refused["outcome"], refused["reason"]) == (REFUSED, "robots")
    assert tables.counts["link_occurrences"] == tables.counts["followed_again"] == 0


def test_check_and_show_know_revisits(tmp_path):
    file = revisited(WarcFile(), HOME, http(b"", 304), NOT_MODIFIED)
    cycle = Cycle(tmp_path / "crawl", {HOME: 0}, file)
    metadata = read_table(cycle.extract().folder / names.METADATA, METADATA)
    findings = Findings()
    check_pages(cycle.path, metadata, findings)
    assert not findings.wrong and sum(findings.checked.values()) == 1
    shown = list(read_any(cycle.page_path(0))[1])
    assert [(row["type"], row.get("profile")) for row in shown][1:] == [
        ("request", None),
        ("revisit", "server-not-modified"),
    ]
    moved = metadata.set_column(
        metadata.schema.get_field_index("offset"), METADATA.field("offset"), [[shown[1]["offset"]]]
    )
    check_pages(cycle.path, moved, findings)
    assert findings.wrong, "a request record is no answer"


def test_revisits_of_other_writers(tmp_path):
    file = WarcFile().add("revisit", HOME, b"", WARC_Profile=IDENTICAL_PAYLOAD)
    file.add("revisit", SITE + "/b", http(b"", 304), WARC_Profile=NOT_MODIFIED).add(
        "revisit", SITE + "/c", http(b"", 503)
    )
    collected = alone(tmp_path, file).by_url(names.COLLECTED)
    assert {url: (row["outcome"], row["status"]) for url, row in collected.items()} == {
        HOME: (ANSWERED, 0),
        SITE + "/b": (ANSWERED, 304),
        SITE + "/c": (FAILED, 503),
    }


OTHER = "https://rules.org"
RULES = b"User-agent: *\nDisallow: /\nCrawl-delay: 3\n"


def test_rules_belong_to_the_server_that_the_record_names(tmp_path):
    file = (
        WarcFile()
        .robots(SITE, b"", 301, headers=("Location: /deeper",))
        .robots(OTHER, RULES, robots=SITE, address="192.0.2.9")
    )
    tables = Cycle(tmp_path / "crawl", {HOME: 0}, file).extract()
    site, other = tables.servers()[SITE], tables.servers()[OTHER]
    assert (site["robots"], site["delay_ms"], site["requests"], site["address"]) == (RULES, 3000, 1, "192.0.2.1")
    assert (other["robots"], other["delay_ms"], other["requests"], other["address"]) == (None, 0, 1, "192.0.2.9")
    assert other["last_request_at_ms"] > site["last_request_at_ms"]


def test_rules_that_another_server_does_not_give_are_a_failure_of_the_server_that_they_are_for(tmp_path):
    file = (
        WarcFile()
        .robots(SITE, b"", 301, headers=("Location: /deeper",))
        .robots(OTHER, b"", 503, robots=SITE, outcome=FAILED)
    )
    tables = Cycle(tmp_path / "crawl", {HOME: 0}, file, known={SITE: {"robots": b"old"}}).extract()
    site, other = tables.servers()[SITE], tables.servers()[OTHER]
    assert (site["robots"], site["failures"], other["robots"], other["failures"]) == (b"old", 1, None, 0)


@pytest.mark.parametrize("name", ["yes", "http://[", "\x00", "ftp://a"])
@pytest.mark.sampled(1)
def test_a_record_for_the_rules_of_nobody_is_passed_over(tmp_path, name):
    file = WarcFile().robots(SITE, RULES, robots=name).answer(HOME, http(b"<a href=x>"))
    tables = Cycle(tmp_path / "crawl", {HOME: 0}, file).extract()
    assert_books(tables)
    assert tables.servers()[SITE]["robots"] is None and tables.counts["skipped_records"] == 1
