"""Cycles: the tables and the books of a crawl folder, the same bytes again, and damage."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from contract import names
from contract.config import LINK_KINDS
from contract.errors import BadInput, Usage
from contract.tables import (
    ANSWERED,
    COLLECTED,
    CYCLE_SERVERS,
    EXTRACTED,
    FAILED,
    FAILURES,
    LINKS,
    METADATA,
    REFUSED,
    REJECTED,
)
from contract.warc import PageReader, sha1_digest
from storage.errors import Damaged
from storage.tables import read_table
from tests.extractor_lab import KEYS, NOW_MS, Cycle, Tables, WarcFile, http

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    names.COLLECTED: COLLECTED,
    names.METADATA: METADATA,
    names.EXTRACTED: EXTRACTED,
    names.LINKS: LINKS,
    names.SERVERS: CYCLE_SERVERS,
    names.REJECTED: REJECTED,
    names.FAILURES: FAILURES,
}
SITE = "http://example.com"
HOME = SITE + "/"


def assert_books(tables: Tables) -> None:
    counts = tables.counts
    collected, metadata = tables.rows(names.COLLECTED), tables.rows(names.METADATA)
    assert counts["listed"] == counts["answered"] + counts["failed"] + counts["refused"] + counts["not_reached"]
    assert len(collected) == counts["answered"] + counts["failed"] + counts["refused"] + counts["foreign"]
    assert len(metadata) == counts["metadata"] == counts["answered"] + counts["foreign_answered"]
    assert [row["url"] for row in metadata] == [row["url"] for row in collected if row["outcome"] == ANSWERED]
    ended = [row for row in collected if row["outcome"] != ANSWERED]
    failures = [row for row in tables.rows(names.FAILURES) if not row["is_robots"]]
    for name in ("url", "url_key", "outcome", "reason", "attempts"):
        assert [row[name] for row in failures] == [row[name] for row in ended]
    assert counts["reasons"] == Counter(row["reason"] for row in ended if not row["foreign"])
    classes = (
        "unparsable",
        "other_scheme",
        "repeated_in_page",
        "kind_not_followed",
        "nofollow",
        "out_of_scope",
        "trap",
        "duplicate_page",
        "followed",
    )
    assert counts["link_occurrences"] == sum(counts[name] for name in classes)
    rejected = tables.rows(names.REJECTED)
    assert (
        sum(counts["rejected"].values())
        == counts["out_of_scope"] + counts["trap"]
        == sum(row["links"] for row in rejected)
    )
    assert [(row["server"], row["rule"]) for row in rejected] == sorted(
        {(row["server"], row["rule"]) for row in rejected}
    )
    extracted = tables.by_url(names.EXTRACTED).values()
    links_in = sum(row["links_in"] for row in extracted)
    assert counts["followed"] - counts["followed_again"] == counts["links_in_sum"] == links_in
    assert counts["mentions_sum"] == sum(row["mentions"] for row in extracted) <= links_in
    assert counts["extracted_rows"] == len(extracted)
    links = tables.rows(names.LINKS)
    assert counts["links_rows"] == len(links) and counts["followed"] == sum(row["followed"] for row in links)
    pairs = [(row["from_key"], row["to_key"]) for row in links]
    assert pairs == sorted(set(pairs))
    assert counts["pages_parsed"] == sum(row["parsed"] for row in metadata)
    for name, schema in SCHEMAS.items():
        read_table(tables.folder / name, schema)


def small(folder: Path) -> Cycle:
    first = WarcFile().robots(SITE, b"User-agent: *\nDisallow: /no\nCrawl-delay: 2\n")
    first.answer(
        HOME,
        http(b"<title>Home</title><a href=a>A</a><a href=b rel=nofollow>B</a><a href=//other.org/>O</a><img src=i>"),
    )
    first.answer(SITE + "/a", http(b"<a href=/>home</a><a href=c>", 200))
    second = WarcFile().answer(
        SITE + "/moved", http(b"", 301, "text/html", "Location: /c", 'ETag: "x"', "Last-Modified: Thu")
    )
    second.answer(SITE + "/down", http(b"", 503), FAILED, "http_5xx")
    second.no_answer(SITE + "/lost", FAILED, "timeout_total", total=900, address="192.0.2.1")
    second.no_answer(SITE + "/no", REFUSED, "robots")
    listed = {
        HOME: 0,
        SITE + "/a": 4,
        SITE + "/moved": 255,
        SITE + "/down": 1,
        SITE + "/lost": 1,
        SITE + "/no": 1,
        SITE + "/never": 1,
    }
    return Cycle(folder, listed, first, second)


def test_pages_hand_on_what_the_list_gave_them(tmp_path):
    """Equally to each followed target.

    The rest of the division stays with the page, and so does all where there is nobody to give it to.
    """
    pages = WarcFile().answer(
        HOME, http(b"<a href=a>A</a><a href=b>B</a><a href=b>B</a><a href=c rel=nofollow>C</a><img src=i.png>")
    )
    pages.answer(SITE + "/a", http(b"<a href=b>B</a>")).answer(SITE + "/b", http(b"no links"))
    pages.no_answer(SITE + "/lost", FAILED, "timeout_total", total=900, address="192.0.2.1")
    listed = {HOME: 0, SITE + "/a": 1, SITE + "/b": 1, SITE + "/lost": 1}
    tables = Cycle(
        tmp_path / "crawl", listed, pages, cash={HOME: 101, SITE + "/a": 2**40, SITE + "/b": 7, SITE + "/lost": 9}
    ).extract()
    assert_books(tables)
    assert {url: row["cash"] for url, row in tables.by_url(names.EXTRACTED).items()} == {
        SITE + "/a": 50,
        SITE + "/b": 50 + 2**40,
    }
    assert {url: row["cash_taken"] for url, row in tables.by_url(names.COLLECTED).items()} == {
        HOME: 100,
        SITE + "/a": 2**40,
        SITE + "/b": 0,
        SITE + "/lost": 0,
    }


def test_tables_of_a_cycle(tmp_path):
    cycle = small(tmp_path / "crawl")
    tables = cycle.extract()
    assert_books(tables)

    collected = tables.by_url(names.COLLECTED)
    assert {
        url: (row["outcome"], row["reason"], row["status"], row["attempts"], row["depth"])
        for url, row in collected.items()
    } == {
        HOME: (ANSWERED, "", 200, 1, 0),
        SITE + "/a": (ANSWERED, "", 200, 1, 4),
        SITE + "/moved": (ANSWERED, "", 301, 1, 255),
        SITE + "/down": (FAILED, "http_5xx", 503, 1, 1),
        SITE + "/lost": (FAILED, "timeout_total", 0, 1, 1),
        SITE + "/no": (REFUSED, "robots", 0, 0, 1),
    }
    assert collected[HOME]["fetched_at_ms"] == NOW_MS + 2000 and not any(row["foreign"] for row in collected.values())
    assert all(row["url_key"] == KEYS.of(url) for url, row in collected.items())

    extracted = tables.by_url(names.EXTRACTED)
    assert {url: (row["depth"], row["links_in"]) for url, row in extracted.items()} == {
        SITE + "/a": (1, 1),
        "http://other.org/": (1, 1),
        HOME: (5, 1),
        SITE + "/c": (5, 2),
    }
    other = KEYS.server("http://other.org")
    assert (extracted["http://other.org/"]["server_key"], extracted["http://other.org/"]["domain_key"]) == (
        other.key,
        other.domain_key,
    )

    metadata = tables.by_url(names.METADATA)
    home, moved = metadata[HOME], metadata[SITE + "/moved"]
    assert (home["title"], home["parsed"], home["type"], home["charset"]) == ("Home", True, "text/html", "utf-8")
    assert (home["links_inside"], home["links_outside"]) == (3, 1) and home["address"] == "192.0.2.1"
    assert [home[f"{name}_ms"] for name in ("waited", "dns", "connect", "first_byte", "total")] == [1, 4, 2, 3, 30]
    assert (moved["redirect_to"], moved["etag"], moved["last_modified"], moved["parsed"]) == (
        SITE + "/c",
        '"x"',
        "Thu",
        False,
    )
    for url, row in metadata.items():
        record = PageReader(cycle.fetcher / row["file"]).record_at(row["offset"])
        assert (record.url, record.length, row["payload_digest"]) == (url, row["length"], sha1_digest(record.block))

    names_of = {KEYS.of(url): url for url in (*collected, *extracted, SITE + "/b", SITE + "/i")}
    links = {(names_of[row["from_key"]], names_of[row["to_key"]]): row for row in tables.rows(names.LINKS)}
    assert set(links) == {
        (HOME, SITE + "/a"),
        (HOME, SITE + "/b"),
        (HOME, SITE + "/i"),
        (HOME, "http://other.org/"),
        (SITE + "/a", HOME),
        (SITE + "/a", SITE + "/c"),
        (SITE + "/moved", SITE + "/c"),
    }
    marked = links[HOME, SITE + "/b"]
    assert (marked["kinds"], marked["nofollow"], marked["followed"]) == (1, True, False)
    assert links[SITE + "/moved", SITE + "/c"]["kinds"] == 1 << LINK_KINDS.index("redirect")

    assert tables.manifest["stage"] == names.EXTRACTOR and tables.manifest["cycle"] == 3
    assert set(tables.manifest["inputs"]) == {
        "cycles/00000003/scheduler/manifest.json",
        "cycles/00000003/fetcher/manifest.json",
    }
    assert tables.manifest["config_digest"] == cycle.plan.config.digest()
    assert tables.counts["not_reached"] == 1 and tables.counts["damaged_files"] == 0


def test_servers_as_observed(tmp_path):
    known = {
        SITE: {
            "robots": b"old",
            "robots_expires_at_ms": 5,
            "delay_ms": 9,
            "last_request_at_ms": NOW_MS + 10**6,
            "address": "198.51.100.7",
            "requests": 2,
            "mean_ms": 101,
            "failures": 3,
        },
        "http://quiet.org": {"robots": b"kept", "robots_expires_at_ms": 7, "failures": 2, "requests": 1, "mean_ms": 5},
    }
    cycle = small(tmp_path / "one")
    tables = cycle.extract()
    server = tables.servers()[SITE]
    assert server["robots"] == b"User-agent: *\nDisallow: /no\nCrawl-delay: 2\n" and server["delay_ms"] == 2000
    assert server["robots_expires_at_ms"] == NOW_MS + 1000 + 86_400_000
    assert (server["requests"], server["mean_ms"], server["failures"]) == (6, (30 * 5 + 900) // 6, 2)
    assert server["last_request_at_ms"] == NOW_MS + 3000 + 900 and server["address"] == "192.0.2.1"
    file = WarcFile().answer(HOME, http(), total=100).no_answer(SITE + "/x", FAILED, "dns")
    tables = Cycle(tmp_path / "two", {HOME: 0, SITE + "/x": 0, "http://quiet.org/": 0}, file, known=known).extract()
    server = tables.servers()[SITE]
    assert (server["robots"], server["robots_expires_at_ms"], server["delay_ms"]) == (b"old", 5, 9)
    assert (server["requests"], server["mean_ms"], server["failures"]) == (3, (2 * 101 + 100) // 3, 1)
    assert server["last_request_at_ms"] == NOW_MS + 10**6
    assert {name: tables.servers()["http://quiet.org"][name] for name in known["http://quiet.org"]} == known[
        "http://quiet.org"
    ]
    assert tables.by_url(names.COLLECTED)[SITE + "/x"]["attempts"] == 0


def test_finals_foreign_urls_and_attempts(tmp_path):
    file = WarcFile()
    file.answer(HOME, http(b"", 503), FAILED, "http_5xx", final=False)
    file.answer(HOME, http(b"<a href=1>"))
    file.answer(HOME, http(b"<a href=2>"))
    file.answer("http://foreign.org/", http(b"<a href=3>"))
    file.answer("http://unended.org/", http(b"<a href=4>"), final=False)
    file.no_answer("http://strange.org/", REFUSED, "robots")
    file.answer("HTTP://Example.com/b#x", http())
    file.answer("mailto:x", http())
    tables = Cycle(tmp_path / "crawl", {HOME: 7, SITE + "/b": 7}, file).extract()
    assert_books(tables)
    collected = tables.by_url(names.COLLECTED)
    assert {url: (row["attempts"], row["foreign"], row["depth"]) for url, row in collected.items()} == {
        HOME: (2, False, 7),
        SITE + "/b": (1, False, 7),
        "http://foreign.org/": (1, True, 0),
        "http://strange.org/": (0, True, 0),
    }
    assert set(tables.by_url(names.EXTRACTED)) == {SITE + "/1", "http://foreign.org/3"}
    assert tables.by_url(names.EXTRACTED)["http://foreign.org/3"]["depth"] == 1
    assert set(tables.servers()) == {SITE, "http://foreign.org", "http://unended.org", "http://strange.org"}
    wanted = {
        "listed": 2,
        "answered": 2,
        "foreign": 2,
        "foreign_answered": 1,
        "repeated_finals": 1,
        "skipped_records": 1,
        "not_reached": 0,
    }
    assert {name: tables.counts[name] for name in wanted} == wanted


def test_who_was_asked(tmp_path):
    """An answer, or an address without one, is a request; a URL whose retry never came about ends without one more."""
    file = (
        WarcFile()
        .answer(HOME, http(), REFUSED, "excluded_type")
        .no_answer(SITE + "/b", FAILED, "tls", address="192.0.2.1")
    )
    file.add("request", SITE + "/c", b"").no_answer(SITE + "/c", REFUSED, "robots")
    file.no_answer(SITE + "/d", FAILED, "empty", final=False, address="192.0.2.1").no_answer(
        SITE + "/d", FAILED, "empty", total=9000
    )
    file.answer(SITE + "/e", http(b"", 503), FAILED, "http_5xx", final=False).no_answer(
        SITE + "/e", FAILED, "http_5xx", total=9000
    )
    tables = Cycle(
        tmp_path / "crawl", {HOME: 0, **{SITE + f"/{page}": 0 for page in "bcde"}}, file, known={SITE: {"failures": 2}}
    ).extract()
    collected = tables.by_url(names.COLLECTED)
    assert {url: (row["attempts"], row["outcome"], row["reason"], row["status"]) for url, row in collected.items()} == {
        HOME: (1, REFUSED, "excluded_type", 200),
        SITE + "/b": (1, FAILED, "tls", 0),
        SITE + "/c": (0, REFUSED, "robots", 0),
        SITE + "/d": (1, FAILED, "empty", 0),
        SITE + "/e": (1, FAILED, "http_5xx", 0),
    }
    assert not tables.rows(names.METADATA) and tables.counts["repeated_finals"] == 0
    server = tables.servers()[SITE]
    assert (server["requests"], server["failures"], server["last_request_at_ms"]) == (4, 2 + 3, NOW_MS + 6000 + 30)


def test_nothing_was_fetched(tmp_path):
    tables = Cycle(tmp_path / "crawl", {HOME: 0}, WarcFile()).extract()
    assert_books(tables)
    assert tables.counts["not_reached"] == 1 and list(tables.servers()) == [SITE]


def test_the_same_bytes_again(tmp_path):
    cycle = small(tmp_path / "crawl")
    first = cycle.extract()
    again = cycle.extract(tmp_path / "again")
    assert first.files() == again.files() and len(first.files()) == len(SCHEMAS) + 1
    script = "import sys; sys.argv[0] = 'extractor'; from stages.extractor.__main__ import main; main()"
    for seed in ("1", "2"):
        command = [sys.executable, "-c", script, "--crawl", cycle.crawl.path, "--cycle", "3", "--out", tmp_path / seed]
        subprocess.run(
            command, cwd=ROOT, check=True, env=os.environ | {"PYTHONHASHSEED": seed}, stderr=subprocess.DEVNULL
        )
        assert Tables(tmp_path / seed).files() == first.files()


def test_already_extracted_and_folders_of_others(tmp_path, capsys):
    cycle = small(tmp_path / "crawl")
    before = cycle.extract().files()
    assert cycle.extract().files() == before and "already" in capsys.readouterr().err
    cycle.extract(tmp_path / "again")
    with pytest.raises(Usage, match="again"):
        cycle.extract(tmp_path / "again")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("keep me")
    with pytest.raises(Usage, match="thesis"):
        cycle.extract(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_what_an_attempt_left_is_replaced(tmp_path):
    cycle = small(tmp_path / "crawl")
    (cycle.path / names.EXTRACTOR).mkdir()
    (cycle.path / names.EXTRACTOR / names.LINKS).write_bytes(b"torn")
    assert_books(cycle.extract())


def test_inputs_that_are_not_there(tmp_path):
    cycle = small(tmp_path / "crawl")
    (cycle.fetcher / names.MANIFEST).rename(tmp_path / "aside")
    with pytest.raises(BadInput, match="fetcher"):
        cycle.extract()
    (tmp_path / "aside").rename(cycle.fetcher / names.MANIFEST)
    (cycle.path / names.SCHEDULER / names.URL_LIST).write_bytes(b"damaged")
    with pytest.raises(Damaged, match="Lista"):
        cycle.extract()


def test_duckdb_opens_every_table(tmp_path):
    cycle = small(tmp_path / "crawl")
    folder = cycle.extract().folder
    for name, schema in SCHEMAS.items():
        assert duckdb.sql(f"select * from '{folder / name}'").columns == schema.names
    joined = duckdb.sql(
        f"select count(*) from '{folder / names.METADATA}' join "
        f"'{folder / names.COLLECTED}' using (url_key) where outcome = 'answered'"
    )
    assert joined.fetchall() == [(3,)]
