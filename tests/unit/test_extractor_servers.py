"""Servers as exchanges show them: robots.txt in every outcome, failures in a row, times."""

import gzip
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from contract.config import Config
from contract.tables import ANSWERED, FAILED, REFUSED
from contract.warc import PageReader
from stages.extractor.observed_servers import Servers
from stages.extractor.recorded_exchange import LOOK_UP_FAILURES, read_exchange
from stages.fetcher import reasons
from stages.fetcher.bodies import Bodies
from stages.fetcher.exchange import Exchange, Limits, Origin
from stages.fetcher.records import Draft, encode_exchanges, encode_outcome
from storage.frames import Zstd
from tests.extractor_lab import KEYS, NOW_MS, WarcFile, http, server_table

pack = partial(gzip.compress, mtime=0)  # the same bytes every time, which name the tests

SITE = "http://example.com"
HOME = SITE + "/"
CONFIG = replace(Config().fetcher, robots_max_bytes=1000, robots_keep_s=1.5)


def observe(folder: Path, file: WarcFile, known: dict[str, dict]) -> dict:
    """The row of the one server that the file's records are about."""
    (folder / "pages.warc.zst").write_bytes(file.data())
    servers = Servers(server_table({HOME: 0}, known), KEYS, CONFIG)
    for record in PageReader(folder / "pages.warc.zst").records():
        exchange = read_exchange(record, is_plain_final=False)
        if exchange is not None:
            servers.note(exchange)
    (row,) = servers.table().to_pylist()
    return row


LEAD_ON = ("Location: /deeper",)
DISALLOW = b"User-agent: *\nDisallow: /\n"


@pytest.mark.parametrize(
    "ask, robots, failures",
    [
        (lambda file: file.robots(SITE, b"not found", 404), b"", 0),
        (lambda file: file.robots(SITE, b"denied", 403), b"", 0),
        (lambda file: file.robots(SITE, b"busy", 429, outcome=FAILED, reason="http_429"), b"old", 4),
        (lambda file: file.robots(SITE, b"down", 500, outcome=FAILED, reason="http_5xx"), b"old", 4),
        (
            lambda file: file.no_answer(SITE + "/robots.txt", FAILED, "unreachable", robots=SITE, address="192.0.2.1"),
            b"old",
            4,
        ),
        (lambda file: file.no_answer(SITE + "/robots.txt", FAILED, "dns", robots=SITE), b"old", 4),
        (lambda file: file.no_answer(HOME, REFUSED, "forbidden_address"), b"old", 3),
        (lambda file: file.robots(SITE, b"# x\n" * 2000), b"# x\n" * 250, 0),
        (lambda file: file.robots(SITE, b"", 301, headers=LEAD_ON).robots(SITE, DISALLOW, path="/deeper"), DISALLOW, 0),
        (lambda file: file.robots(SITE, b"", 301, headers=LEAD_ON).robots(SITE, b"", 404, path="/deeper"), b"", 0),
        (
            lambda file: file.robots(SITE, b"", 301, headers=LEAD_ON).robots(
                SITE, b"", 503, path="/deeper", outcome=FAILED
            ),
            b"old",
            1,
        ),
        (lambda file: file.robots(SITE, b"", 301, headers=LEAD_ON), b"old", 0),
        (lambda file: file.robots(SITE, b"", 301, headers=("Location: http://other.org/robots.txt",)), b"old", 0),
        (lambda file: file.robots(SITE, b"", 301, headers=("Location: mailto:a@other.org",)), b"", 0),
        (lambda file: file.robots(SITE, b"", 301), b"", 0),
        (lambda file: [file.robots(SITE, b"", 302, headers=LEAD_ON) for _ in range(6)], b"", 0),
        (lambda file: [file.robots(SITE, b"", 302, headers=LEAD_ON) for _ in range(5)], b"old", 0),
    ],
)
def test_robots(tmp_path, ask, robots, failures):
    file = WarcFile()
    ask(file)
    server = observe(tmp_path, file, {SITE: {"robots": b"old", "failures": 3}})
    assert (server["robots"], server["failures"]) == (robots, failures)


@pytest.mark.parametrize(
    "text, delay_ms",
    [
        (b"User-agent: *\nCrawl-delay: 1.5", 1500),
        (b"User-agent: other\nCrawl-delay: 5", 0),
        (b"User-agent: Coletor\nCrawl-delay: 3\n", 3000),
        (b"User-agent: *\nCrawl-delay: 99999999999", 604_800_000),
        (b"User-agent: *\nCrawl-delay: nan", 0),
        (b"\xff\0", 0),
        (b"", 0),
    ],
)
def test_delay(tmp_path, text, delay_ms):
    assert observe(tmp_path, WarcFile().robots(SITE, text), {SITE: {"delay_ms": 7}})["delay_ms"] == delay_ms


@pytest.mark.parametrize(
    "body, headers",
    [
        (pack(DISALLOW), ("Content-Encoding: gzip",)),
        (zlib.compress(DISALLOW), ("Content-Encoding: deflate",)),
        (DISALLOW, ("Content-Encoding: gzip",)),
    ],
)
def test_encoded_robots(tmp_path, body, headers):
    assert observe(tmp_path, WarcFile().robots(SITE, body, headers=headers), {})["robots"] == DISALLOW


@pytest.mark.parametrize(
    "ask, sitemaps",
    [
        (lambda file: None, ["http://example.com/old.xml"]),
        (
            lambda file: file.robots(
                SITE, b"Sitemap: http://example.com/new.xml\nSitemap: HTTP://EXAMPLE.com/new.xml\nSitemap: x"
            ),
            ["http://example.com/new.xml"],
        ),
        (lambda file: file.robots(SITE, b"Disallow: /"), []),
        (lambda file: file.robots(SITE, b"", 404), []),
        (
            lambda file: file.robots(SITE, b"Sitemap: http://example.com/sorry.xml", 503, outcome=FAILED),
            ["http://example.com/old.xml"],
        ),
    ],
)
def test_sitemaps_are_those_of_the_rules_in_force(tmp_path, ask, sitemaps):
    file = WarcFile()
    ask(file)
    assert (
        observe(
            tmp_path,
            file,
            {SITE: {"robots": b"Sitemap: http://example.com/old.xml", "sitemaps": ["http://stale.example/"]}},
        )["sitemaps"]
        == sitemaps
    )
    assert observe(tmp_path, WarcFile(), {})["sitemaps"] == []


def test_robots_expire(tmp_path):
    assert observe(tmp_path, WarcFile().robots(SITE, b""), {})["robots_expires_at_ms"] == NOW_MS + 1000 + 1500


@pytest.mark.parametrize("reason", LOOK_UP_FAILURES)
def test_a_look_up_that_failed_is_the_server_s_and_no_request(tmp_path, reason):
    server = observe(tmp_path, WarcFile().no_answer(HOME, FAILED, reason), {SITE: {"failures": 1, "requests": 5}})
    assert (server["failures"], server["requests"], server["last_request_at_ms"]) == (2, 5, NOW_MS + 1000)


def test_the_words_for_look_ups_are_the_fetcher_s():
    assert LOOK_UP_FAILURES == (reasons.DNS, reasons.DNS_TIMEOUT)


@pytest.mark.parametrize("record", ["metadata", "response"])
def test_a_retry_that_never_came_about_counts_once(tmp_path, record):
    """As the fetcher itself writes it: the failure, then the closing of the books."""
    exchange = Exchange(Origin(SITE, "192.0.2.1", "Coletor"), HOME, Limits(1000, 1000), Bodies(tmp_path, 1000))
    exchange.started_at_ms, exchange.times_ms = NOW_MS, {"total": 70}
    if record == "response":
        for line in (b"HTTP/1.1 503 X\r\n", b"Retry-After: 2\r\n", b"\r\n"):
            exchange.take_header(line)
    exchange.end("")
    written = [
        *encode_exchanges([Draft(exchange, False, None)])[0],
        *encode_outcome(HOME, FAILED, exchange.reason, NOW_MS + 90_000, True),
    ]
    file = WarcFile()
    file.members += [Zstd().compress(b"".join(pieces)) for pieces in written]
    server = observe(tmp_path, file, {SITE: {"failures": 1}})
    assert (server["failures"], server["requests"], server["last_request_at_ms"]) == (2, 1, NOW_MS + 70)
    assert server["ready_at_ms"] == (NOW_MS + 2070 if record == "response" else 0)


def ask_to_wait(status: int, text: str) -> bytes:
    return http(b"", status, "text/html", f"Retry-After: {text}")


@pytest.mark.parametrize(
    "before_ms, answers, ready_at_ms",
    [
        (0, [], 0),
        (7, [], 7),
        (0, [ask_to_wait(503, "0")], 0),
        (0, [ask_to_wait(200, "9")], 0),
        (0, [ask_to_wait(503, "never")], 0),
        (0, [ask_to_wait(429, "9")], NOW_MS + 1030 + 9000),
        (7, [ask_to_wait(503, "9")], NOW_MS + 1030 + 9000),
        (NOW_MS + 86_400_000, [ask_to_wait(503, "9")], NOW_MS + 86_400_000),
        (0, [ask_to_wait(503, "60"), ask_to_wait(503, "9"), http()], NOW_MS + 1030 + 60_000),
        (0, [ask_to_wait(503, "999999999")], NOW_MS + 1030 + 86_400_000),
        (
            0,
            [ask_to_wait(429, "Fri, 15 Jan 2027 08:02:00 GMT")],
            NOW_MS + 1030 + 119_000,
        ),  # which is 08:00 and a bit when it comes
        (0, [ask_to_wait(503, "Fri, 15 Jan 2027 08:00:00 GMT")], 0),
    ],
)
def test_when_a_server_is_ready(tmp_path, before_ms, answers, ready_at_ms):
    """The end of the exchange and what the server asked for; the latest that it ever named."""
    file = WarcFile()
    for number, block in enumerate(answers):
        file.answer(f"{SITE}/{number}", block, FAILED)
    assert observe(tmp_path, file, {SITE: {"ready_at_ms": before_ms}})["ready_at_ms"] == ready_at_ms


def test_failures_in_a_row_follow_the_records(tmp_path):
    file = WarcFile()
    for status in (503, 200, 503, 503):
        file.answer(f"{SITE}/{status}", http(b"", status), FAILED if status == 503 else ANSWERED)
    assert observe(tmp_path, file, {SITE: {"failures": 9}})["failures"] == 2


def test_numbers_stay_in_their_columns(tmp_path):
    most = (1 << 32) - 1
    server = observe(
        tmp_path, WarcFile().answer(SITE + "/", http(), total=999_999_999), {SITE: {"requests": most, "mean_ms": most}}
    )
    assert server["requests"] == most and server["mean_ms"] <= most
