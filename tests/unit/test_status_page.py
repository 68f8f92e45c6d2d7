"""The page of bin/status: the words of its lines, from made-up figures."""

import pytest

from contract.units import moment
from examine.link_sources import leave_out
from examine.status_page import describe_rates, make_page, tabulate_blocks
from tests.unit.test_prometheus import make_status, manifest_with
from tests.unit.test_rates import MINUTE_MS, NOW_MS, fetched, make_live, rates_of


def page_of(**changes):
    """The lines of the page by their labels."""
    live = vars(make_live(**changes.pop("live", {})))
    live["counts"] = live["counts_committed"] = {"answered": 0, "bytes": 0}
    status = {
        **make_status(live=live),
        "began_at_ms": 0,
        "commits": 4,
        "known": 10,
        "waiting": 10,
        "errors": [],
        "journal_since_ms": 0,
        "by_block": [],
        "damage": [],
    } | changes
    return make_page(status)


def line_of(label, lines):
    return next((line[10:] for line in lines if line.startswith(label)), None)


def test_a_run_that_ended_with_many_lines_shows_the_first():
    ended = {"is_alive": False, "ended_at_ms": NOW_MS, "why": "done for now: all waits\nfirst server\nsecond server"}
    lines = page_of(live=ended, running=False)
    assert line_of("now", lines) == f"nothing; bin/crawl ended at {moment(NOW_MS)}: done for now: all waits"
    assert "server" not in line_of("now", lines)


def test_a_run_that_died_has_a_line():
    lines = page_of(live={"is_alive": False}, running=False)
    assert line_of("now", lines) == f"nothing; bin/crawl (process 7) died at about {moment(NOW_MS)}"


def test_errors_are_times_not_urls():
    row = {"reason": "http_5xx", "servers_failing": 0, "servers_given_up": 0, "example": "", "message": ""}
    lines = page_of(errors=[{**row, "urls": 12}, {**row, "urls": 1}])
    assert line_of("errors", lines) == "http_5xx: 12 times" and "          http_5xx: 1 time" in lines


@pytest.mark.parametrize(
    "due_ms, text", [(None, "-"), (0, "now"), (NOW_MS - 1, "now"), (NOW_MS, "now"), (NOW_MS + 1, moment(NOW_MS + 1))]
)
def test_a_due_moment_that_has_passed_is_now(due_ms, text):
    block = {"block": 0, "generation": 3, "earliest_due_ms": due_ms}
    assert list(tabulate_blocks({"by_block": [block], "now_ms": NOW_MS}))[1].endswith(f"  {text}")


def test_the_policy_and_what_visits_found_have_lines():
    lines = page_of()
    assert line_of("policy", lines) == "in-links, revisits uniform" and line_of("domains", lines) is None
    assert line_of("visits", lines) == "9 of 7 pages, 2 found a change; 6 may be due again, the first are due now"
    later = page_of(revisit_due_ms=NOW_MS + 1, unprepared=2, domains_closed=1)
    assert line_of("visits", later).endswith(f"; 6 may be due again, the first at {moment(NOW_MS + 1)}")
    assert line_of("policy", later).endswith("; 2 blocks not prepared for that yet: a turn for it comes first")
    assert line_of("domains", later) == "3 known, 1 closed"
    assert line_of("visits", page_of(revisit_due_ms=None)).endswith("6 may be due again")


def test_without_revisits_visits_have_a_line_only_where_they_found_a_change():
    assert line_of("policy", page_of(revisit_policy="none")) == "in-links, no revisits"
    assert line_of("visits", page_of(revisit_policy="none")) == "9 of 7 pages, 2 found a change"
    assert line_of("visits", page_of(revisit_policy="none", changes=0)) is None
    assert line_of("policy", page_of(policy=None)) is None, "the configuration is damaged"


def test_blocks_are_due_for_revisits_too():
    visited = {"block": 0, "generation": 3, "revisit_due_ms": NOW_MS}
    later = {"block": 1, "generation": 3, "waiting": 4, "earliest_due_ms": NOW_MS + 1, "revisit_due_ms": None}
    due = "2: 1 due now, 1 due later, 0 with nothing to fetch"
    assert line_of("blocks", page_of(by_block=[visited, later])).startswith(due)
    none = "2: 0 due now, 1 due later, 1 with nothing to fetch"
    assert line_of("blocks", page_of(by_block=[visited, later], revisit_policy="none")).startswith(none)


def test_link_sources_have_a_line_where_there_are_any():
    fetched = {"answered": 3, "failed": 0, "refused": 0, "bytes": 20}
    theirs = leave_out(manifest_with(waiting=4, collected=3))["link_sources"] | {"fetched": fetched}
    lines = page_of(link_sources=theirs)
    assert line_of("besides", lines) == (
        "7 link sources that the collection leaves out: 3 collected, 4 to fetch; 3 pages, 20 B fetched"
    )
    assert line_of("visits", lines).startswith("9 of 10 pages"), "visits of link sources count too"
    assert line_of("besides", page_of()) is None
    only_theirs = {"block": 0, "generation": 3, "waiting": 0, "link_sources": theirs, "earliest_due_ms": NOW_MS}
    assert line_of("blocks", page_of(by_block=[only_theirs])).startswith("2: 1 due now")


def rates_text(since_ms, covers_s=60.0, is_alive=True):
    live = make_live(pages_per_s=4.0, covers_s=covers_s, is_alive=is_alive)
    lines = [] if since_ms is None else [fetched(NOW_MS - since_ms, 1_000, 100)]
    rates = rates_of(*lines, since_ms=since_ms, live=live)
    return describe_rates({"rates": rates, "rates_at_end": None, "journal_since_ms": since_ms, "began_at_ms": 0})


@pytest.mark.parametrize("since_ms", [None, NOW_MS, NOW_MS - 20_000])
def test_without_its_journal_a_live_run_knows_the_last_minute(since_ms):
    assert rates_text(since_ms) == "4 pages/s, 0 B/s over the last minute"


def test_rates_of_a_young_run_are_shown_once():
    assert rates_text(NOW_MS - 20_000, covers_s=20.0) == "5 pages/s, 50 B/s over 20 s, since the journal begins"
    assert rates_text(NOW_MS - 2 * MINUTE_MS).count("pages/s") == 2
    assert rates_text(None, is_alive=False) == "not known: there is no journal"


def test_without_a_run_rates_end_with_its_last_stage():
    ended = {"rates": {}, "rates_at_end": rates_of(fetched(20_000, 20_000, 100), since_ms=NOW_MS - 20_000)}
    ended |= {"work_ended_at_ms": NOW_MS, "journal_since_ms": NOW_MS - 20_000, "began_at_ms": NOW_MS - 20_000}
    text = f"5 pages/s, 50 B/s over 20 s, since the crawl began; the last stage ended at {moment(NOW_MS)}"
    assert describe_rates(ended) == text


def test_ranks_have_a_line_where_the_policy_reads_them():
    assert line_of("ranks", page_of()) is None
    assert line_of("ranks", page_of(ranked=3)) == "3 of 10 known URLs have one in ranks_file"
