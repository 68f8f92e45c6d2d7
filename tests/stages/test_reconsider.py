"""Decisions that are taken back.

By bin/reconsider and by seeding again, absorbed once, before the cycle's own outcomes.
"""

import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contract import names
from contract.config import Config
from contract.log import CRAWL, RECONSIDER, SEED
from contract.tables import FAILED, REASON_ROBOTS, REFUSED
from contract.units import count
from supervise.inbox import take_inbox
from supervise.selection import Selection, Wanted, note_collected
from tests.small_crawl import NOW_MS, Page, SmallCrawl

ROOT = Path(__file__).resolve().parent.parent.parent
CONTACT = ("--set", "fetcher.contact=mailto:nobody@localhost")
GOOD, BAD, SHUT, RULED = "http://good.test/", "http://bad.test/", "http://shut.test/", "http://ruled.test/"
CONFIG = Config(verifier=replace(Config().verifier, attempts_max=2))
OUTCOMES = {
    GOOD: Page(),
    BAD: Page(FAILED, "timeout_connect"),
    SHUT: Page(REFUSED, REASON_ROBOTS),
    RULED: Page(REFUSED, "forbidden_address"),
}


def run(name, crawl, *more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "bin" / name, "--crawl", crawl, *more], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def turn(small: SmallCrawl, block: int, outcomes: dict[str, Page], servers: dict | None = None) -> list[str]:
    """One crawl cycle of a block, whose listed URLs have these outcomes."""
    plan = small.plan(CRAWL, block)
    listed = small.schedule(plan)
    small.harvest(plan, {url: outcomes[url] for url in listed}, servers=servers)
    small.verify(plan)
    return listed


@pytest.fixture(scope="module")
def decided(tmp_path_factory) -> SmallCrawl:
    """Four URLs, three of which were decided about; one block."""
    small = SmallCrawl(tmp_path_factory.mktemp("decided") / "crawl", 1, CONFIG)
    small.seed(list(OUTCOMES))
    small.absorb_all()
    turn(small, 0, OUTCOMES)
    turn(small, 0, OUTCOMES)
    states = {url: (row["state"], row["attempts"]) for url, row in small.rows().items()}
    assert states == {
        GOOD: ("collected", 0),
        BAD: ("given_up", 2),
        SHUT: ("refused_by_robots", 0),
        RULED: ("refused_by_rule", 0),
    }
    return small


@pytest.fixture
def small(decided, tmp_path) -> SmallCrawl:
    return decided.copy(tmp_path / "crawl")


def take_in(small: SmallCrawl) -> None:
    take_inbox(small.crawl_state, small.config)
    small.absorb_all()


def waiting(small: SmallCrawl) -> set[str]:
    return {
        url for url, row in small.rows().items() if row["state"] in ("waiting", "prescheduled") and row["attempts"] == 0
    }


@pytest.mark.parametrize(
    "options, expected",
    [
        ((BAD,), {BAD}),
        ((BAD, RULED, GOOD), {BAD, RULED}),
        (("--given-up",), {BAD}),
        (("--refused",), {SHUT, RULED}),
        (("--reason", "forbidden_address"), {RULED}),
        (("--reason", "robots", "--reason", "timeout_connect"), {SHUT, BAD}),
        (("--server", "http://shut.test"), {SHUT}),
        (("--server", "shut.test", "--server", "bad.test"), {SHUT, BAD}),
        (("--domain", "ruled.test"), {RULED}),
        (("--domain", "ruled.test", "--given-up"), set()),
    ],
)
@pytest.mark.sampled(2)
def test_what_is_selected_waits_again(small, options, expected):
    told = run("reconsider", small.crawl.path, *options)
    assert told.returncode == 0, told.stderr
    take_in(small)
    assert waiting(small) == expected
    assert small.rows()[GOOD]["state"] == "collected"
    if expected:
        assert f"{count(len(expected), 'URL')} and" in told.stdout
        assert small.history().entries[-2].kind == RECONSIDER
    else:
        assert told.stdout == "nothing to reconsider\n"


def test_a_page_that_is_not_visited_any_more_stays_collected_and_the_note_says_so(small):
    selection = Selection(small.crawl, small.history(), Wanted(urls=(GOOD,)), NOW_MS, misses_max=5)
    assert sum(map(len, selection.tables())) == 0 and selection.notes == [f"{GOOD}: collected, and stays so"]
    assert note_collected(5, 5) == "collected, and stays so"
    assert note_collected(6, 5) == (
        "collected, and stays so; it is not visited any more: its last 6 visits found no page, which is more than "
        "[revisit] misses_max. A larger misses_max visits it again"
    )


def test_seeding_a_url_again_takes_back_what_was_decided(small):
    small.seed([BAD, GOOD])
    small.absorb_all()
    assert waiting(small) == {BAD} and small.rows()[GOOD]["state"] == "collected"


def test_a_decision_comes_before_the_outcomes_of_the_cycle_that_absorbs_it(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    small.seed([BAD])
    small.absorb_all()
    turn(small, 0, OUTCOMES)
    plan = small.plan(CRAWL, 0)
    listed = small.schedule(plan)
    assert run("reconsider", small.crawl.path, BAD).returncode == 0
    take_inbox(small.crawl_state, small.config)
    small.harvest(plan, {url: OUTCOMES[url] for url in listed})
    small.verify(plan)
    row = small.rows()[BAD]
    assert (row["state"], row["attempts"]) == ("prescheduled", 1), (
        "the failure that came after the decision counts, the one before does not"
    )


def test_a_server_that_was_given_up_is_due_at_once_with_all_its_urls(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    urls = [f"http://dead.test/{number}" for number in range(30)]
    small.seed([*urls, GOOD])
    small.absorb_all()
    failing = {"http://dead.test": {"failures": 99, "last_request_at_ms": NOW_MS}}
    turn(small, 0, {**dict.fromkeys(urls, Page(FAILED, "connection_refused")), GOOD: Page()}, failing)
    assert {row["state"] for url, row in small.rows().items() if url != GOOD} == {"given_up"}
    assert run("reconsider", small.crawl.path, "--given-up").returncode == 0
    take_in(small)
    assert waiting(small) == set(urls)
    assert set(small.schedule(small.plan(CRAWL, 0))) == set(urls)


def test_a_server_that_backs_off_is_due_at_once_but_not_before_the_time_that_it_asked_for(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    asked, tired = "http://asked.test/", "http://tired.test/"
    small.seed([asked, tired])
    small.absorb_all()
    far_ms = 9_000_000_000_000
    turn(
        small,
        0,
        dict.fromkeys((asked, tired), Page(FAILED, "http_5xx")),
        {
            "http://asked.test": {"failures": 6, "last_request_at_ms": far_ms, "ready_at_ms": NOW_MS + 80_000_000},
            "http://tired.test": {"failures": 6, "last_request_at_ms": far_ms},
        },
    )
    assert small.schedule(small.plan(CRAWL, 0)) == []
    assert "0 URLs and 2 servers" in run("reconsider", small.crawl.path, "--backed-off").stdout
    take_in(small)
    assert small.schedule(small.plan(CRAWL, 0)) == [tired]


def test_what_was_never_stored_is_said(small):
    told = run("reconsider", small.crawl.path, "http://never.test/", GOOD)
    assert told.returncode == 65 and "nothing to reconsider" in told.stdout
    assert "http://never.test/: never stored" in told.stderr and f"{GOOD}: collected, and stays so" in told.stderr
    told = run("reconsider", small.crawl.path, "--reason", "bad_luck", "--server", "nowhere.test")
    assert (
        "bad_luck: no failure or refusal has this reason; found are: forbidden_address, robots, timeout_connect"
        in told.stderr
    )
    assert "nowhere.test: no such server or domain is known" in told.stderr
    assert not list((small.crawl.path / names.INBOX).iterdir())


@pytest.mark.parametrize("wrong", [(), ("--server", "http:///"), ("--domain", "a b"), ("ftp://x/",)])
@pytest.mark.sampled(2)
def test_wrong_command_lines(small, wrong):
    told = run("reconsider", small.crawl.path, *wrong)
    assert told.returncode == 64 and "Traceback" not in told.stderr


def test_every_block_takes_a_decision_once_also_after_a_split(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 2, CONFIG)
    urls = [f"http://h{number}.test/" for number in range(40)]
    small.seed(urls)
    small.absorb_all()
    for block in (0, 1, 0, 1):
        turn(small, block, dict.fromkeys(urls, Page(FAILED, "timeout_connect")))
    assert {row["state"] for row in small.rows().values()} == {"given_up"}
    assert run("reconsider", small.crawl.path, "--given-up").returncode == 0
    take_inbox(small.crawl_state, small.config)
    small.grow(0)
    small.absorb_all()
    assert waiting(small) == set(urls)
    turn(small, 0, dict.fromkeys(urls, Page(FAILED, "timeout_connect")))
    small.absorb_all()
    assert {row["attempts"] for row in small.rows().values() if row["block"] == 0} == {1}, "taken once only"


def test_a_damaged_decision_is_set_aside(small):
    (small.crawl.path / names.INBOX / "1.parquet").write_bytes(b"no table")
    told = run("run-cycle", small.crawl.path, *CONTACT)
    assert (
        told.returncode == 65
        and "1.parquet" in told.stderr
        and "set aside" in told.stderr
        and "Traceback" not in told.stderr
    )
    assert run("run-cycle", small.crawl.path, "--stop-after", "scheduler", *CONTACT).returncode == 0


@pytest.mark.parametrize("kind", [SEED, RECONSIDER])
@pytest.mark.parametrize("what", ["table", "manifest", "both"])
@pytest.mark.sampled(1)
def test_the_table_of_seeds_or_of_a_decision_is_made_again_from_the_file_kept_beside_it(small, kind, what):
    assert run("reconsider", small.crawl.path, "--given-up").returncode == 0
    take_in(small)
    entry = next(entry for entry in small.history().entries if entry and entry.kind == kind)
    folder = small.crawl.path / names.cycle(entry.cycle) / names.VERIFIER
    damaged = {"table": [entry.rows_file], "manifest": [names.MANIFEST], "both": [entry.rows_file, names.MANIFEST]}[
        what
    ]
    whole = {name: (folder / name).read_bytes() for name in damaged}
    for name in damaged:
        (folder / name).write_bytes(whole[name][:-9])
    repaired = run("verifier", small.crawl.path, "--cycle", str(entry.cycle), "--repair")
    assert repaired.returncode == 0 and f"{count(len(damaged), 'file')} put back" in repaired.stdout, repaired.stderr
    assert {name: (folder / name).read_bytes() for name in damaged} == whole
    (folder / names.taken_in(entry.inbox)).write_bytes(b"http://other.test/")
    (folder / entry.rows_file).unlink()
    refused = run("verifier", small.crawl.path, "--cycle", str(entry.cycle), "--repair")
    assert refused.returncode == 65 and "back from a copy" in refused.stderr, (
        "made from another file it would be another table"
    )


def test_somebody_elses_table_in_inbox_is_set_aside(small):
    pq.write_table(pa.table({"x": [1]}), small.crawl.path / names.INBOX / "a.parquet")
    assert run("run-cycle", small.crawl.path, *CONTACT).returncode == 65
    assert not list((small.crawl.path / names.INBOX).iterdir())
    assert run("run-cycle", small.crawl.path, "--stop-after", "scheduler", *CONTACT).returncode == 0


def test_why_reads_past_a_pending_decision(small):
    assert run("reconsider", small.crawl.path, BAD).returncode == 0
    take_inbox(small.crawl_state, small.config)
    told = run("why", small.crawl.path, BAD)
    assert told.returncode == 0 and "given up" in told.stdout, told.stderr


def test_a_server_whose_robots_txt_failed_is_found_by_its_reason(tmp_path):
    small = SmallCrawl(tmp_path / "crawl", 1, CONFIG)
    small.seed([BAD])
    small.absorb_all()
    failing = {
        "failures": 9,
        "last_request_at_ms": NOW_MS,
        "last_failure_reason": "connection_refused",
        "last_failure_at_ms": NOW_MS,
    }
    plan = small.plan(CRAWL, 0)
    small.schedule(plan)
    small.harvest(plan, {}, servers={"http://bad.test": failing})
    small.verify(plan)
    told = run("reconsider", small.crawl.path, "--reason", "connection_refused")
    assert told.returncode == 0 and "0 URLs and 1 server" in told.stdout, told.stderr
    take_in(small)
    assert small.schedule(small.plan(CRAWL, 0)) == [BAD]
