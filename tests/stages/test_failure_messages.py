"""Every failure and refusal is told in words: in the fetcher's records, in Falhas, and by --trace."""

import socket
from pathlib import Path

import pytest

from contract import names, warc
from contract.config import Config, Scope
from contract.url import Keys
from stages.extractor.__main__ import extract_pages
from stages.fetcher.pre_refusals import refuse_before
from synthweb.name_answers import fail, give, give_nothing, stay_silent
from synthweb.names import NameServer
from tests.extractor_lab import Tables
from tests.fetcher_lab import RawServer, fetch, ok, override, pages_of, records_in, run_here

RULES = b"User-agent: *\nDisallow: /private\n"
SORRY = b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n"


def failures_of(folder: Path) -> list[dict]:
    """Falhas of what the fetcher left in a folder."""
    extract_pages(folder, folder / "tables", Config())
    return Tables(folder / "tables").rows(names.FAILURES)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.parametrize(
    "answer, settings, reason, message",
    [
        (SORRY % b"503 Service Unavailable", {}, "http_5xx", "503 Service Unavailable"),
        (SORRY % b"503", {}, "http_5xx", "503 Service Unavailable"),
        (SORRY % b"599 ", {}, "http_5xx", "599"),
        (SORRY % b"429 Slow\x1b[31m\x07 down\xff", {}, "http_429", "429 Slow [31m downÿ"),
        (SORRY % b"500 " + b"x" * 2000, {}, "http_5xx", None),
        (
            ok(b"x", "Content-Type: Image/PNG; q=1"),
            {"accept_types": ("text/",)},
            "excluded_type",
            "fetcher.accept_types does not name image/png",
        ),
        (
            ok(b"x" * 99),
            {"length_max_bytes": 9},
            "too_big",
            "Content-Length 99 is more than fetcher.length_max_bytes = 9",
        ),
        (
            ok(b"", "X: " + "y" * 9000),
            {"header_max_bytes": 8192},
            "too_long_headers",
            "the head is longer than fetcher.header_max_bytes = 8192",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart", {}, "disconnect", "end of response with 5 bytes missing"),
        (b"", {}, "empty", "Empty reply from server"),
    ],
)
@pytest.mark.sampled(4)
def test_what_an_answer_comes_to(tmp_path, answer, settings, reason, message):
    with RawServer(pages_of({"/page": answer})) as server:
        urls = [f"http://one.test:{server.port}/page"]
        fetch(tmp_path / "out", urls, {"one.test": "127.0.0.1"}, retries_max=0, **settings)
    (row,) = failures_of(tmp_path / "out")
    assert (row["reason"], row["address"], row["attempts"], row["is_robots"]) == (reason, "127.0.0.1", 1, False)
    assert row["failed_at_ms"] > 0 and row["message"].isprintable()
    assert 0 < len(row["message"]) <= warc.MESSAGE_MAX_CHARACTERS
    assert row["message"] == message or message is None or message in row["message"]


def test_what_ends_a_url_before_an_answer(tmp_path):
    """A refused connection, a rule of robots.txt, and settings of the scope, all told with their cause."""
    with RawServer(pages_of({"/page": ok()}, ok(RULES))) as server:
        closed = closed_port()
        urls = [f"http://one.test:{server.port}/{name}" for name in ("private/x", "picture.jpg")]
        urls += [f"http://one.test:{closed}/", f"http://two.test:{server.port}/"]
        refused = refuse_before(urls, Scope(reject_domains=("two.test",), reject_extensions=("jpg",)), Keys(0))
        fetch(tmp_path / "out", urls, {"one.test": "127.0.0.1", "two.test": "127.0.0.2"}, refused=refused)
    rows = {row["url"]: row for row in failures_of(tmp_path / "out")}
    told = {url: (rows[url]["outcome"], rows[url]["reason"], rows[url]["message"]) for url in urls if url in rows}
    assert told == {
        urls[0]: ("refused", "robots", "Disallow: /private (line 2, for user-agent *)"),
        urls[1]: ("refused", "reject_extensions", "scope.reject_extensions leaves out .jpg"),
        urls[3]: ("refused", "reject_domains", "scope.reject_domains leaves out two.test"),
    }
    robots = rows[f"http://one.test:{closed}/robots.txt"]  # what cannot be had, so that the page was not reached
    assert (robots["is_robots"], robots["server"]) == (True, f"http://one.test:{closed}")
    assert robots["reason"] == "connection_refused"
    assert "(Connection refused)" in robots["message"] and robots["address"] == "127.0.0.1" and robots["attempts"] == 1


def test_a_forbidden_address_names_the_setting(tmp_path):
    fetch(tmp_path / "out", ["http://one.test/"], {"one.test": "127.0.0.1"}, allow_private_addresses=False)
    (row,) = failures_of(tmp_path / "out")
    message = "127.0.0.1 (loopback) is refused: set fetcher.allow_private_addresses = true to ask it"
    assert (row["outcome"], row["reason"], row["message"]) == ("refused", "forbidden_address", message)
    (tmp_path / "hosts").write_text("127.0.0.1 one.test\n")
    traced = run_here("--trace", "http://one.test/", *override(hosts_file=tmp_path / "hosts"))
    assert f"  message       {message}\n" in traced.stdout


@pytest.mark.parametrize(
    "script, reason, words",
    [
        (give(), "dns", "the name has no A or AAAA record, says 127.0.0.1 port {port}"),
        (give_nothing(), "dns", "there is no such name (NXDOMAIN), says 127.0.0.1 port {port}"),
        (fail(), "dns_timeout", "Server Do53:127.0.0.1@{port} answered SERVFAIL"),
        (stay_silent, "dns_timeout", "Server Do53:127.0.0.1@{port} answered The DNS operation timed out"),
    ],
)
def test_a_name_that_is_not_found_names_who_said_so(tmp_path, script, reason, words):
    with NameServer(scripts={"gone.test": script}) as name_server:
        servers = (f"127.0.0.1:{name_server.port}",)
        fetch(tmp_path / "out", ["http://gone.test/"], {}, hosts_file="", dns_servers=servers, dns_timeout_s=0.3)
    (robots,) = failures_of(tmp_path / "out")  # robots.txt could not be had: the page is not reached, and stays waiting
    assert (robots["is_robots"], robots["outcome"], robots["reason"], robots["attempts"]) == (True, "failed", reason, 0)
    assert words.format(port=name_server.port) in robots["message"]


def test_a_name_that_the_hosts_file_lacks(tmp_path):
    fetch(tmp_path / "out", ["http://gone.test/"], {})
    (robots,) = failures_of(tmp_path / "out")
    assert robots["message"] == "the name is not in fetcher.hosts_file, which replaces DNS"


def test_a_retry_that_never_came_about_keeps_the_message_of_its_attempt(tmp_path):
    """The last record has no address of its own: the row has those of the attempt, also after a resumption."""
    with RawServer(pages_of({"/page": SORRY % b"503 Busy"})) as server:
        url = f"http://one.test:{server.port}/page"
        fetch(tmp_path / "out", [url], {"one.test": "127.0.0.1"}, retries_max=3, cycle_max_s=0.5, delay_s=0)
    attempt, last = [
        record for record in records_in(tmp_path / "out") if record.url == url and record.get(warc.OUTCOME)
    ]
    assert attempt.type == "response" and last.type == "metadata" and not last.get("WARC-IP-Address")
    assert last.get(warc.MESSAGE) == attempt.get(warc.MESSAGE) == "503 Busy"
    (row,) = failures_of(tmp_path / "out")
    ended_ms = warc.parse_date(attempt.get("WARC-Date")) + warc.parse_times(attempt.get(warc.TIMES))["total"]
    assert (row["message"], row["address"], row["attempts"]) == ("503 Busy", "127.0.0.1", 1)
    assert row["failed_at_ms"] == ended_ms
