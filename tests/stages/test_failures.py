"""Falhas and the last failure of servers: their rows, what the verifier keeps, what bin/check, why and status say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from contract import names
from contract.config import Config
from contract.generation import BLOCK_SERVERS, open_generation
from contract.log import CRAWL
from contract.tables import COLLECTED, CYCLE_SERVERS, FAILED, FAILURES, FAILURES_ORDER, REFUSED
from contract.warc import MESSAGE_MAX_CHARACTERS, clean_message
from examine.crawl_figures import join_failures
from examine.cycle_books import check_failures
from examine.findings import Findings
from examine.why import describe, gather
from stages.verifier.figures import REASONS_MAX, count_failures
from storage.publish import read_manifest
from storage.tables import read_table, write_table
from tests.extractor_lab import KEYS, Cycle, WarcFile, http
from tests.extractor_lab import NOW_MS as FETCHED_MS
from tests.small_crawl import NOW_MS, Page, SmallCrawl

SITE, OTHER = "http://example.com", "http://sub.example.com"


def test_rows_of_pages_and_of_robots_txt(tmp_path):
    """One row per page that ended without an answer, and per server whose robots.txt failed last."""
    file = WarcFile()
    file.robots(SITE, b"", 301, headers=("Location: http://rules.org/r",))
    file.no_answer("http://rules.org/r", FAILED, "empty", robots=SITE, address="192.0.2.7", message="Empty reply")
    file.no_answer(OTHER + "/robots.txt", FAILED, "dns", robots=OTHER, message="NXDOMAIN")
    file.robots("http://well.org", b"", 503, outcome=FAILED, reason="http_5xx", message="503 Busy")
    file.robots("http://well.org", b"")
    file.no_answer("http://rules.org/r", REFUSED, "robots", message="Disallow: /r")  # listed as a page too
    file.answer(SITE + "/a", http(b"", 503), FAILED, "http_5xx", final=False, total=70, message="503 Busy")
    file.no_answer(SITE + "/a", FAILED, "http_5xx", message="503 Busy")
    file.answer(SITE + "/b", http(b"", 503), FAILED, "http_5xx", final=False, message="503 Busy")
    file.no_answer(SITE + "/b", FAILED, "dns", message="gone meanwhile")
    file.answer(SITE + "/c", http(b"", 503), FAILED, "http_5xx", final=False, message="503 Busy")
    file.answer(SITE + "/c", http())
    urls = [SITE + f"/{name}" for name in "abc"]
    cycle = Cycle(tmp_path / "crawl", {**dict.fromkeys(urls, 0), "http://rules.org/r": 0}, file)
    tables = cycle.extract()
    rows = tables.rows(names.FAILURES)
    assert rows == sorted(rows, key=lambda row: tuple(row[name] for name in FAILURES_ORDER))
    columns = ("is_robots", "reason", "message", "address", "attempts")
    told = {(row["url"], row["server"]): tuple(row[name] for name in columns) for row in rows}
    assert len(told) == len(rows) and told == {
        ("http://rules.org/r", SITE): (True, "empty", "Empty reply", "192.0.2.7", 1),
        (OTHER + "/robots.txt", OTHER): (True, "dns", "NXDOMAIN", "", 0),
        ("http://rules.org/r", "http://rules.org"): (False, "robots", "Disallow: /r", "", 0),
        (SITE + "/a", SITE): (False, "http_5xx", "503 Busy", "192.0.2.1", 1),
        (SITE + "/b", SITE): (False, "dns", "gone meanwhile", "", 1),
    }
    at_ms = {row["url"]: row["failed_at_ms"] for row in rows if not row["is_robots"]}
    assert at_ms[SITE + "/a"] == FETCHED_MS + 7000 + 70  # of the attempt, not of the record that only repeats it
    for row in rows:
        server = KEYS.server(row["server"])
        assert (row["domain_key"], row["server_key"]) == (server.domain_key, server.key)
        assert row["url_key"] == KEYS.of(row["url"])
    assert tables.counts["reasons"] == {"dns": 1, "http_5xx": 1, "robots": 1}
    last = {
        name: (row["last_failure_reason"], row["last_failure_message"], row["failures"])
        for name, row in tables.servers().items()
    }
    assert last[OTHER] == ("dns", "NXDOMAIN", 1)
    assert last["http://rules.org"] == ("", "", 0)  # asked for the robots.txt of SITE, which alone is charged
    assert last["http://well.org"] == ("http_5xx", "503 Busy", 0) and last[SITE][2] == 0  # answered since
    again = cycle.extract(tmp_path / "again")
    assert again.files() == tables.files()

    findings = Findings()
    collected = read_table(tables.folder / names.COLLECTED, COLLECTED)
    check_failures(tables.folder / names.FAILURES, collected, KEYS, tables.counts, findings)
    assert not findings.wrong


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[1:],
        lambda rows: rows[::-1],
        lambda rows: [{**rows[0], "reason": "tls"}, *rows[1:]],
        lambda rows: [{**rows[0], "url_key": 7}, *rows[1:]],
        lambda rows: [*rows, rows[-1]],
    ],
)
@pytest.mark.sampled(2)
def test_the_books_find_what_does_not_agree(tmp_path, change):
    file = WarcFile()
    for name in "ab":
        file.no_answer(f"{SITE}/{name}", FAILED, "empty", address="192.0.2.1")
    tables = Cycle(tmp_path / "crawl", {f"{SITE}/{name}": 0 for name in "ab"}, file).extract()
    path = tables.folder / names.FAILURES
    write_table(path, pa.Table.from_pylist(change(tables.rows(names.FAILURES)), schema=FAILURES))
    findings = Findings()
    collected = read_table(tables.folder / names.COLLECTED, COLLECTED)
    check_failures(path, collected, KEYS, tables.counts, findings)
    assert findings.wrong


@pytest.mark.parametrize(
    "text", ["\x1b]0;owned\x07 a\r\nCookie: b\0", "\u202egnp\u2066", "\udcff", "x" * 5000, " \t\n", "ção"]
)
@pytest.mark.sampled(2)
def test_hostile_messages_become_one_plain_line(tmp_path, text):
    clean = clean_message(text)
    assert clean.isprintable() and len(clean) <= MESSAGE_MAX_CHARACTERS
    assert clean == clean.strip() == clean_message(clean)
    written = text.replace("\r\n", "\n").encode("utf-8", "replace").decode()
    file = WarcFile().no_answer(SITE + "/", FAILED, "empty", message=written)
    (row,) = Cycle(tmp_path / "crawl", {SITE + "/": 0}, file).extract().rows(names.FAILURES)
    assert row["message"].isprintable() and len(row["message"]) <= MESSAGE_MAX_CHARACTERS


def failed(reason: str, message: str, failures: int = 1) -> dict:
    return {
        "failures": failures,
        "last_failure_reason": reason,
        "last_failure_message": message,
        "last_failure_at_ms": NOW_MS,
        "last_request_at_ms": NOW_MS,
    }


def small_crawl(folder: Path) -> SmallCrawl:
    """One cycle: a server that fails, one that is given up with all its URLs, and one that has recovered."""
    config = replace(
        Config(),
        fetcher=replace(Config().fetcher, server_failures_max=3),
        verifier=replace(Config().verifier, server_backoffs_max=2),
    )
    crawl = SmallCrawl(folder, 1, config)
    crawl.seed([f"http://{name}.test/" for name in ("failing", "ended", "fine")])
    crawl.absorb_all()
    plan = crawl.plan(CRAWL, 0)
    crawl.schedule(plan)
    crawl.harvest(
        plan,
        {
            "http://failing.test/": Page(
                FAILED, "connection_refused", message="Failed to connect (Connection refused)"
            ),
            "http://fine.test/": Page(),
        },
        servers={
            "http://failing.test": failed("connection_refused", "Failed to connect"),
            "http://fine.test": failed("dns", "old", 0),
            "http://ended.test": failed("dns", "there is no such name (NXDOMAIN)", 9),
        },
    )
    crawl.verify(plan)
    return crawl


def test_the_verifier_keeps_the_last_failure_and_sums_up_why(tmp_path):
    crawl = small_crawl(tmp_path / "crawl")
    number = crawl.crawl_state.log.generation(0)
    servers = open_generation(crawl.crawl.path, 0, number).servers
    columns = ("last_failure_reason", "last_failure_message", "last_failure_at_ms", "given_up")
    last = {row["server"]: tuple(row[name] for name in columns) for row in servers.to_pylist()}
    assert last == {
        "http://failing.test": ("connection_refused", "Failed to connect", NOW_MS, False),
        "http://ended.test": ("dns", "there is no such name (NXDOMAIN)", NOW_MS, True),
        "http://fine.test": ("dns", "old", NOW_MS, False),
    }
    assert read_manifest(crawl.crawl.path / names.generation(0, number))["server_failures"] == [
        {
            "reason": "connection_refused",
            "failing": 1,
            "given_up": 0,
            "example": "http://failing.test",
            "message": "Failed to connect",
        },
        {
            "reason": "dns",
            "failing": 0,
            "given_up": 1,
            "example": "http://ended.test",
            "message": "there is no such name (NXDOMAIN)",
        },
    ]
    crawl.config = replace(crawl.config, verifier=replace(crawl.config.verifier, attempts_max=9))
    plan = crawl.plan(CRAWL, 0, NOW_MS + 10**10)
    assert crawl.schedule(plan) == ["http://failing.test/"]  # and its list hands on what is known
    path = crawl.crawl.path / names.cycle(plan.cycle) / names.SCHEDULER / names.SERVERS
    assert read_table(path, CYCLE_SERVERS).column("last_failure_message").to_pylist() == ["Failed to connect"]


def test_why_tells_the_cause_with_address_and_time(tmp_path):
    crawl = small_crawl(tmp_path / "crawl")
    told = "\n".join(describe(gather(crawl.crawl, "http://failing.test/", NOW_MS), crawl.crawl.path))
    assert "failed connection_refused, 1 request of 192.0.2.1\n          Failed to connect (Connection" in told
    assert "last: failed, connection_refused, in cycle" in told
    assert "last failure: connection_refused, 2027-01-15" in told
    ended = "\n".join(describe(gather(crawl.crawl, "http://ended.test/", NOW_MS), crawl.crawl.path))
    assert "failed 9 times in a row and was given up with its URLs; its last failure: dns, 2027-01-15" in ended
    assert "          given up; last failure: dns" in ended and ended.count("there is no such name (NXDOMAIN)") == 2
    (crawl.crawl.path / names.cycle(crawl.history().entries[-1].cycle) / names.EXTRACTOR / names.FAILURES).unlink()
    assert "failed connection_refused, 1 request" in "\n".join(
        describe(gather(crawl.crawl, "http://failing.test/", NOW_MS), crawl.crawl.path)
    )


def servers_of(rows: list[tuple[str, int, bool]]) -> pa.Table:
    blank = {field.name: {pa.string(): "", pa.bool_(): False}.get(field.type, 0) for field in BLOCK_SERVERS}
    return pa.Table.from_pylist(
        [
            {**blank, "server": f"s{place}", "failures": failures, "given_up": given_up, "last_failure_reason": reason}
            for place, (reason, failures, given_up) in enumerate(rows)
        ],
        schema=BLOCK_SERVERS,
    )


def test_the_summary_is_bounded_and_in_one_order():
    assert count_failures(servers_of([])) == count_failures(servers_of([("dns", 0, False)])) == []
    chance = np.random.default_rng(5)
    rows = [(f"r{chance.integers(30):02d}", int(chance.integers(3)), bool(chance.integers(2))) for _ in range(900)]
    found = count_failures(servers_of(rows))
    bad = [(place, row) for place, row in enumerate(rows) if row[1] or row[2]]
    truth = sorted({row[0] for _, row in bad}, key=lambda reason: (-sum(row[0] == reason for _, row in bad), reason))
    assert [row["reason"] for row in found] == truth[:REASONS_MAX] and len(found) == REASONS_MAX
    for row in found:
        same = [(place, one) for place, one in bad if one[0] == row["reason"]]
        assert row["example"] == f"s{same[0][0]}" and row["given_up"] == sum(one[2] for _, one in same)
        assert row["failing"] + row["given_up"] == len(same)
    joined = join_failures(found + found)
    assert [(row["reason"], row["failing"]) for row in joined] == [(row["reason"], 2 * row["failing"]) for row in found]
