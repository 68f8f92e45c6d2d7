"""robots.txt: asked first, obeyed, kept; and what a server's failures lead to."""

import gzip
import re
import zlib
from functools import partial

import pytest

from contract import warc
from contract.config import Fetcher
from contract.robots import ALLOW_ALL, UNREACHABLE, Answer, find_target, read_answer
from contract.url import server_of
from contract.warc import HttpMessage, parse_response
from stages.fetcher.server_queues import Known, Server
from tests.fetcher_lab import NO_ROBOTS, RawServer, fetch, finals_in, ok, outcome_of, records_in

pack = partial(gzip.compress, mtime=0)  # the same bytes every time, which name the tests

FORBID = b"User-agent: *\nDisallow: /private\n"
MOVED = "HTTP/1.1 301 Moved\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n"


def fetch_with(tmp_path, robots, paths=("/open", "/private/a"), **settings):
    """Finals by path, result and targets seen of a server with these answers to its robots.txt."""
    answers = robots if callable(robots) else lambda seen: robots if seen.target == "/robots.txt" else ok()
    with RawServer(answers) as server:
        origin = f"http://one.test:{server.port}"
        known = {origin: settings.pop("known")} if "known" in settings else {}
        result = fetch(
            tmp_path / "out", [origin + path for path in paths], {"one.test": "127.0.0.1"}, known=known, **settings
        )
        finals = {url.removeprefix(origin): record for url, record in finals_in(tmp_path / "out").items()}
        return finals, result, server.targets


def test_what_is_forbidden_is_refused_without_a_request(tmp_path):
    finals, result, targets = fetch_with(tmp_path, ok(FORBID))
    assert targets == ["/robots.txt", "/open"]
    assert outcome_of(finals["/private/a"]) == ("refused", "robots") and finals["/private/a"].type == "metadata"
    assert result.counts == {
        "listed": 2,
        "answered": 1,
        "failed": 0,
        "refused": 1,
        "not_reached": 0,
        "requests": 2,
        "robots_requests": 1,
        "bytes": len(ok(FORBID)) + len(ok()),
    }


def test_rules_that_name_another_host_are_not_for_this_one(tmp_path):
    def answer(seen):
        own = re.search(rb"\r\nHost: ([^\r]*)", seen.raw)[1].decode()  # with its port
        rules = f"User-agent: *\nDisallow: https://other.example/\nDisallow: http://{own}/private\n"
        return ok(rules.encode() if seen.target == "/robots.txt" else b"page")

    finals, _, targets = fetch_with(tmp_path, answer)
    assert targets == ["/robots.txt", "/open"] and outcome_of(finals["/private/a"]) == ("refused", "robots")


@pytest.mark.parametrize(
    "encoding, body",
    [
        ("gzip", pack(FORBID)),
        ("deflate", zlib.compress(FORBID)),
        ("deflate", zlib.compress(FORBID)[2:-4]),
        ("GZip ", FORBID),
    ],
)
def test_a_compressed_robots_is_read(tmp_path, encoding, body):
    finals, _, targets = fetch_with(tmp_path, ok(body, f"Content-Encoding: {encoding}"))
    assert targets == ["/robots.txt", "/open"] and outcome_of(finals["/private/a"]) == ("refused", "robots")
    stored = next(record for record in records_in(tmp_path / "out") if record.type == "response")
    assert warc.parse_response(stored.block).body == body


@pytest.mark.parametrize("status", ["404 Gone", "403 No", "401 Who", "304 Same", "204 Nothing"])
def test_without_robots_all_is_allowed(tmp_path, status):
    finals, _, _ = fetch_with(tmp_path, f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
    assert [outcome_of(record)[0] for record in finals.values()] == ["answered"] * 2


@pytest.mark.parametrize(
    "robots",
    [
        b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n",
        b"",
        b"junk",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *",
    ],
)
def test_where_robots_cannot_be_had_nothing_is_asked(tmp_path, robots):
    finals, result, targets = fetch_with(tmp_path, robots)
    assert not finals and targets == ["/robots.txt"]
    assert result.counts["not_reached"] == 2 and len(result.not_reached) == 2
    record = records_in(tmp_path / "out")[-1]
    assert (
        record.get(warc.ROBOTS_FOR) == server_of(record.url)
        and record.get(warc.OUTCOME) == "failed"
        and not record.get(warc.FINAL)
    )


def test_redirects_are_followed(tmp_path):
    def answer(seen):
        hop = {"/robots.txt": "/r1", "/r1": "r2?x", "/r2?x": "/r3"}.get(seen.target)
        return MOVED.format(hop).encode() if hop else ok(FORBID if seen.target == "/r3" else b"page")

    finals, result, targets = fetch_with(tmp_path, answer)
    assert targets == ["/robots.txt", "/r1", "/r2?x", "/r3", "/open"] and result.counts["robots_requests"] == 4
    assert outcome_of(finals["/private/a"]) == ("refused", "robots")


@pytest.mark.parametrize("location", ["mailto:a@b", "", "http://["])
def test_a_redirect_that_leads_nowhere_is_no_robots(tmp_path, location):
    finals, _, targets = fetch_with(tmp_path, MOVED.format(location).encode())
    assert [outcome_of(record)[0] for record in finals.values()] == ["answered"] * 2


def test_a_redirect_to_another_server_is_followed_there_politely(tmp_path):
    """Two servers send us to a third, which is in the list itself; one of them by way of the other."""

    def answer(seen):
        if seen.target != "/robots.txt":
            return ok(FORBID) if seen.target == "/rules" else ok()
        port = seen.raw.partition(b":")[2].partition(b"\r")[0].partition(b":")[2].decode()
        hop = {"a.test": f"http://b.test:{port}/moved", "c.test": f"http://b.test:{port}/rules"}.get(seen.host)
        return MOVED.format(hop).encode() if hop else NO_ROBOTS

    def move_on(seen):
        return MOVED.format("/rules").encode() if seen.target == "/moved" else answer(seen)

    with RawServer(move_on, "0.0.0.0", dwell_s=0.01) as server:
        hosts = {"a.test": "127.0.0.2", "b.test": "127.0.0.3", "c.test": "127.0.0.4"}
        urls = [f"http://{name}:{server.port}{path}" for name in hosts for path in ("/open", "/private/a")]
        result = fetch(tmp_path / "out", urls, hosts, delay_s=0.1)
        of_b = sorted((seen for seen in server.seen if seen.host == "b.test"), key=lambda seen: seen.started_s)
    outcomes = [outcome_of(finals_in(tmp_path / "out")[url]) for url in urls]
    refused, answered = ("refused", "robots"), ("answered", "")
    assert outcomes == [answered, refused, answered, answered, answered, refused] and not result.not_reached
    assert sorted(seen.target for seen in of_b) == ["/moved", "/open", "/private/a", "/robots.txt", "/rules", "/rules"]
    assert all(after.started_s - before.ended_s >= 0.1 for before, after in zip(of_b, of_b[1:]))
    rules = [
        record for record in records_in(tmp_path / "out") if record.url.endswith("/rules") and record.type == "response"
    ]
    assert sorted(record.get(warc.ROBOTS_FOR) for record in rules) == [
        f"http://{name}:{server.port}" for name in ("a.test", "c.test")
    ]
    again = fetch(tmp_path / "out", urls, hosts)  # nothing is left, whoever's rules lie where
    assert again.counts == result.counts and len(server.seen) == 10


def test_a_crawl_delay_told_by_another_host_holds_at_once(tmp_path):
    def answer(seen):
        if seen.target == "/rules":
            return ok(b"User-agent: *\nCrawl-delay: 0.5\n")
        port = seen.raw.partition(b":")[2].partition(b"\r")[0].partition(b":")[2].decode()
        return MOVED.format(f"http://b.test:{port}/rules").encode() if seen.target == "/robots.txt" else ok()

    with RawServer(answer, "0.0.0.0") as server:
        fetch(
            tmp_path / "out",
            [f"http://a.test:{server.port}/{n}" for n in range(2)],
            {"a.test": "127.0.0.2", "b.test": "127.0.0.3"},
        )
        asked = [seen for seen in server.seen if seen.host == "a.test"]
    assert len(asked) == 3 and all(after.started_s - before.ended_s >= 0.5 for before, after in zip(asked, asked[1:]))


def test_a_redirect_to_where_nobody_may_be_asked_leaves_the_server_alone(tmp_path):
    _, result, _ = fetch_with(tmp_path, MOVED.format("http://elsewhere.test/robots.txt").encode())
    assert result.counts["not_reached"] == 2 and {reason for _, reason in result.not_reached} == {"dns"}


def test_endless_redirects_end(tmp_path):
    def answer(seen):
        return MOVED.format(seen.target + "x").encode() if seen.target.startswith("/robots.txt") else ok()

    finals, result, _ = fetch_with(tmp_path, answer)
    assert result.counts["robots_requests"] == 6 and result.counts["answered"] == 2


def test_known_rules_are_used(tmp_path):
    finals, _, targets = fetch_with(tmp_path, ok(b""), known=Known(robots_text=FORBID))
    assert targets == ["/open"] and outcome_of(finals["/private/a"]) == ("refused", "robots")


def test_rules_for_our_agent_come_first(tmp_path):
    text = b"User-agent: *\nDisallow: /\n\nUser-agent: coletor\nDisallow: /private\n"
    finals, _, _ = fetch_with(tmp_path, ok(text))
    assert outcome_of(finals["/open"]) == ("answered", "")


def test_a_long_robots_is_read_up_to_its_limit(tmp_path):
    finals, _, _ = fetch_with(tmp_path, ok(FORBID + b"#" * 5000), robots_max_bytes=1000)
    assert outcome_of(finals["/private/a"]) == ("refused", "robots")
    record = next(record for record in records_in(tmp_path / "out") if record.type == "response")
    assert record.get("WARC-Truncated") == "length"


def test_a_server_is_left_alone_after_failures_in_a_row(tmp_path):
    paths = [f"/{n}" for n in range(6)]

    def answer(seen):
        broken = seen.target not in ("/robots.txt", "/2")
        return b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n" if broken else ok(b"")

    finals, result, _ = fetch_with(tmp_path, answer, paths, server_failures_max=2)
    assert list(finals) == ["/0", "/1"] and result.counts["not_reached"] == 4

    finals, result, _ = fetch_with(tmp_path / "three", answer, paths, server_failures_max=3)
    assert list(finals) == [f"/{n}" for n in range(6)], "the answer in between starts the count anew"

    finals, _, _ = fetch_with(tmp_path / "known", answer, paths, server_failures_max=3, known=Known(b"", failures=2))
    assert list(finals) == ["/0"]


def test_a_name_that_does_not_exist(tmp_path):
    result = fetch(tmp_path / "out", ["http://nowhere.test/a", "http://nowhere.test/b"], {})
    record = records_in(tmp_path / "out")[-1]
    assert record.url == "http://nowhere.test/robots.txt" and outcome_of(record) == ("failed", "dns")
    assert record.get(warc.ROBOTS_FOR) == "http://nowhere.test" and not record.get(warc.FINAL)
    assert result.counts["not_reached"] == 2 and result.counts["requests"] == 0


def test_meanings_of_answers():
    url = "http://a.test/robots.txt"
    assert read_answer(url, 0, "failed", parse_response(b""), 10) == UNREACHABLE
    assert read_answer(url, 0, "answered", parse_response(b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *"), 20) == Answer(
        b"User-agent: *", ""
    )
    assert read_answer(url, 4, "answered", parse_response(MOVED.format("/x").encode()), 5) == Answer(
        None, "http://a.test/x"
    )
    assert read_answer(url, 5, "answered", parse_response(MOVED.format("/x").encode()), 5) == Answer(ALLOW_ALL, "")
    assert find_target(url, "//a.test:80/y#z") == "http://a.test/y" and find_target(url, "mailto:a@a.test") == ""


def test_a_compressed_robots_cannot_fill_the_memory():
    def read(body):
        return read_answer(
            "http://a.test/robots.txt", 0, "answered", HttpMessage(200, [("Content-Encoding", "gzip")], body), 1000
        ).text

    assert read(pack(b"abc\n" * 10**6)) == b"abc\n" * 250
    assert read(pack(FORBID)[:-9]).startswith(b"User-agent")


def test_refusals_count_neither_way():
    server = Server("http://a.test", Known(failures=1), Fetcher())
    server.note("refused")
    assert server.failures == 1
