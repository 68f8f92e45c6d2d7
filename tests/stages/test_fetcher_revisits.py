"""Pages that are asked again: conditional requests, and what is recorded of their answers."""

import pytest

from contract import names, warc
from contract.warc import IDENTICAL_PAYLOAD, NOT_MODIFIED, sha1_digest
from stages.fetcher.resume import cut_after, read_history
from stages.fetcher.revisit import Revisit
from tests.fetcher_lab import NO_ROBOTS, RawServer, fetch, finals_in, ok, outcome_of, records_in

HOSTS = {"one.test": "127.0.0.1"}
BODY = b"<html>as it was"
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
AT_MS = 1_800_000_000_000
EARLIER = Revisit('"one"', DATE, sha1_digest(BODY), AT_MS)
UNCHANGED = b'HTTP/1.1 304 Not Modified\r\nETag: "one"\r\n\r\n'


def answer(seen) -> bytes:
    """A server that knows ETags and dates for /page and /dated, and neither for the others."""
    if seen.target == "/robots.txt":
        return NO_ROBOTS
    asked = seen.raw.lower()
    if seen.target == "/page" and b'\r\nif-none-match: "one"\r\n' in asked:
        return UNCHANGED
    if seen.target == "/dated" and b"\r\nif-modified-since: " + DATE.lower().encode() + b"\r\n" in asked:
        return UNCHANGED
    if seen.target == "/stubborn":
        return UNCHANGED
    return ok(b"new" if seen.target == "/changed" else BODY, 'ETag: "one"')


def test_revisits_are_conditional_and_become_records_of_their_kind(tmp_path):
    earlier = {
        "/page": EARLIER,
        "/dated": EARLIER._replace(etag=""),
        "/same": EARLIER._replace(etag="", last_modified=""),
        "/changed": EARLIER,
    }
    with RawServer(answer) as server:
        origin = f"http://one.test:{server.port}"
        urls = [origin + path for path in (*earlier, "/first")]
        result = fetch(tmp_path, urls, HOSTS, earlier={origin + path: known for path, known in earlier.items()})
        asked = {seen.target: seen.raw for seen in server.seen}
    assert b'\r\nIf-None-Match: "one"\r\nIf-Modified-Since: ' in asked["/page"] and b"If-" not in asked["/same"]
    assert b"If-None-Match" not in asked["/dated"] and b"If-" not in asked["/first"] + asked["/robots.txt"]
    finals = {url.removeprefix(origin): record for url, record in finals_in(tmp_path).items()}
    found = {path: (record.type, record.get("WARC-Profile")) for path, record in finals.items()}
    assert found == {
        "/page": ("revisit", NOT_MODIFIED),
        "/dated": ("revisit", NOT_MODIFIED),
        "/same": ("revisit", IDENTICAL_PAYLOAD),
        "/changed": ("response", ""),
        "/first": ("response", ""),
    }
    for path in ("/page", "/dated", "/same"):
        record = finals[path]
        assert record.get("WARC-Refers-To-Target-URI") == origin + path
        assert record.get("WARC-Refers-To-Date") == warc.format_date(AT_MS)
        assert record.get("WARC-Payload-Digest") == sha1_digest(BODY) and BODY not in record.block
    assert all(outcome_of(record) == ("answered", "") for record in finals.values())
    assert result.counts["answered"] == 5
    requests = [
        record for record in records_in(tmp_path) if record.type == "request" and record.url == origin + "/page"
    ]
    assert [b'If-None-Match: "one"' in record.block for record in requests] == [True], "as it was sent"


@pytest.mark.parametrize("known", [None, Revisit(), EARLIER._replace(etag="", last_modified="")])
def test_a_304_that_nobody_asked_for_is_a_failure(tmp_path, known):
    """It stands for no page: a first visit got none, and a revisit cannot tell that the earlier one still holds."""
    with RawServer(answer) as server:
        url = f"http://one.test:{server.port}/stubborn"
        result = fetch(tmp_path, [url], HOSTS, earlier={url: known} if known else {}, retries_max=2)
        assert server.targets.count("/stubborn") == 1, "it is not asked again in this cycle"
    record = finals_in(tmp_path)[url]
    assert outcome_of(record) == ("failed", "http_304") and record.type == "response"
    assert record.block == UNCHANGED and record.get(warc.MESSAGE) == "304 Not Modified, to a request without conditions"
    assert (result.counts["answered"], result.counts["failed"]) == (0, 1)
    (past,) = [past for past in read_history(tmp_path).past if past.url == url]
    assert past.is_final and past.reason == "http_304"


def test_a_304_for_robots_txt_is_no_failure_of_its_server(tmp_path):
    with RawServer(lambda seen: UNCHANGED if seen.target == "/robots.txt" else ok()) as server:
        url = f"http://one.test:{server.port}/page"
        fetch(tmp_path, [url], HOSTS)
    assert outcome_of(finals_in(tmp_path)[url]) == ("answered", "")


def test_rules_are_kept_whole_where_robots_txt_is_a_page_that_is_revisited(tmp_path):
    rules = b"User-agent: *\nDisallow: /no\n"
    with RawServer(lambda seen: ok(rules)) as server:
        url = f"http://one.test:{server.port}/robots.txt"
        fetch(tmp_path, [url], HOSTS, earlier={url: Revisit("", "", sha1_digest(rules), AT_MS)})
    of_rules, of_page = [record for record in records_in(tmp_path) if record.type in warc.ANSWERS]
    assert of_rules.get(warc.ROBOTS_FOR) and of_rules.type == "response" and of_rules.block.endswith(rules)
    assert of_page.get(warc.FINAL) and of_page.type == "revisit"


def test_rules_may_refuse_a_revisit(tmp_path):
    with RawServer(lambda seen: ok(b"User-agent: *\nDisallow: /page")) as server:
        url = f"http://one.test:{server.port}/page"
        fetch(tmp_path, [url], HOSTS, earlier={url: EARLIER})
        assert server.targets == ["/robots.txt"]
    record = finals_in(tmp_path)[url]
    assert outcome_of(record) == ("refused", "robots") and record.type == "metadata"


def test_an_error_is_no_revisit_even_with_the_same_body(tmp_path):
    busy = b"HTTP/1.1 503 Busy\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else busy) as server:
        url = f"http://one.test:{server.port}/page"
        fetch(tmp_path, [url], HOSTS, earlier={url: EARLIER})
    record = finals_in(tmp_path)[url]
    assert record.type == "response" and outcome_of(record) == ("failed", "http_5xx")


@pytest.mark.parametrize("torn", [0, 1, 40])
def test_a_resumed_fetch_asks_what_was_torn_off_with_the_same_conditions(tmp_path, torn):
    """An attempt ended by a kill: of its last record some bytes are missing, or all is whole."""
    with RawServer(answer) as server:
        origin = f"http://one.test:{server.port}"
        urls = [origin + "/same", origin + "/page"]
        earlier = {urls[0]: EARLIER._replace(etag="", last_modified=""), urls[1]: EARLIER}
        fetch(tmp_path, urls, HOSTS, earlier=earlier)
        (path,) = (tmp_path / names.PAGES).iterdir()
        for mark in tmp_path.glob(".aside-synced-*"):
            mark.unlink()  # as if the last bytes were never synced
        cut_after(path, path.stat().st_size - torn)
        fetch(tmp_path, urls, HOSTS, earlier=earlier)
        asked = [seen.raw for seen in server.seen if seen.target == "/page"]
    assert len(asked) == (2 if torn else 1) and all(b'If-None-Match: "one"' in raw for raw in asked)
    finals = finals_in(tmp_path)
    assert {url.removeprefix(origin): record.get("WARC-Profile") for url, record in finals.items()} == {
        "/same": IDENTICAL_PAYLOAD,
        "/page": NOT_MODIFIED,
    }
    assert all(record.get("WARC-Refers-To-Date") == warc.format_date(AT_MS) for record in finals.values())
