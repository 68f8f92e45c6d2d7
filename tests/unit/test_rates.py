"""Rates, shares of stages and the estimate of bin/status, from made-up journals; what it calls wrong."""

import pytest

from contract.journal_tail import Tail
from examine.crawl_figures import count_daily_pages
from examine.problems import find_problems
from examine.rates import WINDOWS_S, Work, estimate_end, format_rate, list_work, measure_rates, share_busy_time
from examine.run_files import Live

NOW_MS = 1_800_000_000_000
MINUTE_MS, HOUR_MS, DAY_MS = (length_s * 1000 for length_s in WINDOWS_S.values())


def fetched(ago_ms, lasted_ms, pages, cycle=1, stage="fetcher", **more):
    return {
        "stage": stage,
        "cycle": cycle,
        "block": 0,
        "attempt": 1,
        "exit_code": 0,
        "pages": pages,
        "bytes": (pages or 0) * 10,
        "begin_ms": NOW_MS - ago_ms,
        "end_ms": NOW_MS - ago_ms + lasted_ms,
        **more,
    }


def make_live(*cycles, pages_per_s=0.0, covers_s=60.0, **more):
    values = {
        "run": "r",
        "command": "crawl",
        "process_id": 7,
        "began_at_ms": NOW_MS - HOUR_MS,
        "written_at_ms": NOW_MS,
        "ended_at_ms": None,
        "why": "",
        "sleeps_until_ms": None,
        "counts": {},
        "counts_committed": {},
        "rates": {"pages_per_s": pages_per_s, "bytes_per_s": 0.0, "covers_s": covers_s},
        "is_alive": True,
    }
    return Live(**{**values, **more}, cycles=list(cycles))


def flying(cycle, ago_ms, pages, stage="fetcher"):
    began_at_ms = NOW_MS - ago_ms
    figures = {"pages": pages, "bytes": pages * 10}
    return {"cycle": cycle, "stage": stage, "is_running": True, "stage_began_at_ms": began_at_ms, "figures": figures}


def rates_of(*lines, since_ms=NOW_MS - 2 * DAY_MS, live=None):
    return measure_rates(list_work(Tail(stages=list(lines)), live), since_ms, live, NOW_MS)


def test_pages_are_spread_over_the_time_of_their_fetcher():
    rates = rates_of(fetched(2 * HOUR_MS, 2 * HOUR_MS, 7_200))
    assert {name: rate["pages"] for name, rate in rates.items()} == {"minute": 60, "hour": 3_600, "day": 7_200}
    assert rates["minute"]["pages_per_s"] == rates["hour"]["pages_per_s"] == 1.0
    assert rates["hour"]["bytes_per_s"] == 10.0
    assert rates["day"]["pages_per_s"] == pytest.approx(7_200 / 86_400, abs=1e-3)


def test_a_fetcher_of_no_time_counts_wholly():
    assert rates_of(fetched(1_000, 0, 5))["minute"]["pages"] == 5
    assert rates_of(fetched(MINUTE_MS + 1_000, 0, 5))["minute"]["pages"] == 0


def test_each_page_of_a_resumed_cycle_counts_once():
    rates = rates_of(fetched(50_000, 10_000, 100), fetched(30_000, 10_000, 150), fetched(10_000, 5_000, None))
    assert rates["minute"]["pages"] == 150


def test_other_stages_bring_no_pages():
    assert rates_of(fetched(10_000, 5_000, 100, stage="extractor"))["minute"]["pages"] == 0


def test_a_younger_journal_is_averaged_over_its_age():
    rates = rates_of(fetched(10_000, 10_000, 100), since_ms=NOW_MS - 10_000)
    assert rates["hour"] == rates["day"] == rates["minute"]
    assert (rates["hour"]["covers_s"], rates["hour"]["pages_per_s"]) == (10.0, 10.0)


def test_without_a_journal_no_rate_is_known():
    assert {rate["pages_per_s"] for rate in rates_of(since_ms=None).values()} == {None}


def test_cycles_in_flight_count_and_the_run_knows_the_last_minute_best():
    live = make_live(flying(2, HOUR_MS, 3_600), flying(3, 5_000, 9, stage="extractor"), pages_per_s=4.0)
    rates = rates_of(fetched(HOUR_MS, HOUR_MS // 2, 1_800), live=live)
    assert rates["minute"]["pages_per_s"] == 4.0 and rates["hour"]["pages"] == 5_400
    dead = make_live(flying(2, HOUR_MS, 3_600), pages_per_s=4.0, is_alive=False)
    assert rates_of(live=dead)["hour"]["pages"] == 0


def test_the_share_of_each_stage_is_that_of_the_busy_time_in_the_window():
    work = [
        Work("fetcher", NOW_MS - 2 * HOUR_MS, NOW_MS),  # half of it in the window
        Work("extractor", NOW_MS - HOUR_MS, NOW_MS - HOUR_MS // 2),
        Work("verifier", NOW_MS - 3 * HOUR_MS, NOW_MS - 2 * HOUR_MS),
    ]
    shares = share_busy_time(work, NOW_MS)
    assert list(shares) == ["fetcher", "extractor", "verifier"]
    assert shares == pytest.approx({"fetcher": 2 / 3, "extractor": 1 / 3, "verifier": 0}, abs=1e-3)
    assert share_busy_time([], NOW_MS) == {}


def estimate(waiting, rates, is_running=True, due_ms=0):
    return estimate_end(waiting, rates, is_running=is_running, due_ms=due_ms, now_ms=NOW_MS)


def test_the_estimate_says_what_it_rests_on():
    rates = rates_of(fetched(HOUR_MS, HOUR_MS, 36_000))
    found = estimate(72_000, rates)
    assert found.seconds == 7_200
    assert found.text == (
        "about 2 h for the 72,000 URLs that wait, at 10 pages/s over the last hour; new URLs make it longer"
    )
    young = estimate(1_200, rates_of(fetched(120_000, 120_000, 120), since_ms=NOW_MS - 120_000))
    assert "at 1 pages/s over 2 min;" in young.text and young.seconds == 1_200


def test_a_rate_is_no_estimate_while_all_that_waits_is_due_later():
    found = estimate(72_000, rates_of(fetched(HOUR_MS, HOUR_MS, 36_000)), due_ms=NOW_MS + 9_000)
    assert found.seconds is None and "all that waits is due later" in found.text


@pytest.mark.parametrize(
    "waiting, is_running, due_ms, since_ms, seconds, text",
    [
        (0, True, None, 0, 0.0, "nothing is waiting"),
        (5, False, 0, 0, None, "no estimate: no run is at work, 5 URLs wait"),
        (1, False, 0, 0, None, "no estimate: no run is at work, 1 URL waits"),
        (5, True, 0, NOW_MS - 30_000, None, "no estimate: the journal covers less than a minute"),
        (5, True, 0, 0, None, "no estimate: no page came in the time that the journal covers"),
        (5, True, NOW_MS + 9_000, 0, None, "no estimate: all that waits is due later, the first at "),
    ],
)
def test_where_there_is_no_estimate_the_reason_is_told(waiting, is_running, due_ms, since_ms, seconds, text):
    found = estimate(waiting, rates_of(since_ms=since_ms), is_running, due_ms)
    assert found.seconds == seconds and found.text.startswith(text)


@pytest.mark.parametrize(
    "rate, text", [(0, "0"), (0.1234, "0.12"), (8.333, "8.33"), (99.96, "100"), (1_204.4, "1,204")]
)
def test_rates_are_short(rate, text):
    assert format_rate(rate) == text


STATUS = {
    "crawl": "my crawl",
    "now_ms": NOW_MS,
    "running": True,
    "live": None,
    "inbox": 0,
    "open": [],
    "damage": [],
    "without_plan": [],
    "configuration": "",
    "uncounted": [],
    "servers_failing": 0,
    "ranked": None,
    "notes": [],
    "disk": {"free_bytes": 10**12, "total_bytes": 2 * 10**12, "growth_bytes_per_day": 10**9},
}


def problems(stages=(), **changes):
    return [(found["kind"], found["what"], found["do"]) for found in find_problems({**STATUS, **changes}, list(stages))]


def test_nothing_is_wrong_with_a_good_crawl():
    assert problems() == [] == problems(live=vars(make_live()))


def test_a_file_of_ranks_that_fits_no_url_is_named():
    of = {"known": 5, "policy": "pagerank"}
    ((kind, what, do),) = problems(ranked=0, **of)
    assert kind == "ranks" and "has no rank of any of the 5 known URLs" in what and "docs/ordering.md" in do
    assert problems(ranked=1, **of) == [] == problems(ranked=0, known=0)


def test_a_run_that_died_is_named_with_what_resumes_it():
    ((kind, what, do),) = problems(live=vars(make_live(is_alive=False)), running=False)
    assert kind == "run" and "(process 7) died at about" in what and do == "bin/crawl --crawl 'my crawl' resumes it"
    assert problems(live=vars(make_live(is_alive=False)), running=True) == [], "another run is at work"
    assert problems(live=vars(make_live(is_alive=False, ended_at_ms=NOW_MS)), running=False) == []


def test_a_demonstration_that_died_is_resumed_with_its_web():
    ((_, _, do),) = problems(live=vars(make_live(is_alive=False, command="run-cycle --demo")), running=False)
    assert do.startswith("bin/run-cycle --demo resumes it") and "--crawl" not in do


def test_a_silent_run_is_named():
    ((_, what, _),) = problems(live=vars(make_live(written_at_ms=NOW_MS - 120_000)))
    assert what == "the run of process 7 has been silent for 2 min"


def test_a_stage_that_keeps_dying_is_named():
    dead = [fetched(ago_ms, 100, None, exit_code=-9) for ago_ms in (30_000, 20_000, 10_000)]
    ((kind, what, do),) = problems(dead)
    assert kind == "stage" and what.startswith(
        "the fetcher ended 3 times by an error in the last hour, last by signal 9"
    )
    assert "messages.log" in do
    assert problems(dead[:2]) == []
    assert problems([{**line, "exit_code": 75} for line in dead]) == [], "it was told to try later"
    assert problems([fetched(3 * HOUR_MS, 100, None, exit_code=1)] * 5) == []


@pytest.mark.parametrize(
    "free, total, growth, wrong",
    [
        (10**12, 2 * 10**12, 10**9, []),
        (10**8, 2 * 10**12, 0, ["the disk is nearly full: 100.0 MB free"]),
        (10**8, 2 * 10**12, 10**8, ["the disk is nearly full: 100.0 MB free, full in about 1 d at the present pace"]),
        (10**8, 10**9, None, []),  # a small disk with a tenth of it free
        (9 * 10**11, 2 * 10**12, 9 * 10**11, ["the disk will be full in about 1 d at the present pace: 900.0 GB free"]),
    ],
)
def test_a_disk_that_is_nearly_full_is_named(free, total, growth, wrong):
    disk = {"free_bytes": free, "total_bytes": total, "growth_bytes_per_day": growth}
    assert [what for _, what, _ in problems(disk=disk)] == wrong


@pytest.mark.parametrize(
    "covers_s, is_running, pages", [(599, True, None), (600, True, 864_000), (599, False, 70), (86_400, False, 70)]
)
def test_a_day_is_not_extrapolated_from_a_few_minutes(covers_s, is_running, pages):
    day = {"pages": 70, "pages_per_s": 10.0, "covers_s": covers_s}
    assert count_daily_pages(day, is_running=is_running) == pages


def test_servers_that_wait_after_failures_are_normal():
    assert problems(servers_failing=2) == []


def test_held_and_damaged_things_are_named_with_what_to_do():
    held = {"cycle": 4, "block": 1, "kind": "crawl", "stages_done": [], "held": "the extractor died 4 times"}
    note = {"path": "R/0001/00000004/key.npy", "reason": "expected x", "run": "bin/verifier --repair"}
    found = problems(open=[held], damage=[note], without_plan=[9], uncounted=[3], configuration="bad", notes=["x"])
    assert [kind for kind, *_ in found] == ["held", *["damage"] * 4, "note"]
    assert found[0][2] == "bin/run-cycle --crawl 'my crawl' tries it again; with --drop-open 4 gives it up"
    assert ("damage", "R/0001/00000004/key.npy: expected x", "bin/verifier --repair") in found
