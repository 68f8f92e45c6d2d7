"""What cycles in flight are doing, in words and figures; the rates and totals of a run; live.json."""

import pytest

from contract import names
from supervise.flight_view import Views, count_all
from supervise.live import Live, describe_end
from supervise.pace import Pace
from tests.made_up_flights import NOW_MS, NOW_S, every_kind, make_flight, make_flights


def look(*flights):
    return {view.cycle: view for view in Views().look(make_flights(*flights), NOW_S)}


def test_each_cycle_says_what_it_is_doing_or_waits_for():
    views = {view.cycle: view.describe() for view in Views().look(every_kind(), NOW_S)}
    assert views == {
        117: "fetching: 800 of 2,000 URLs, 12 failed, 96 in flight",
        118: "extracting: 750 of 1,000 pages",
        119: "verifying: 2 of 5 pieces",
        120: "scheduling",
        121: "fetching: waits for politeness: 12 hosts rest, the next in 3 s",
        122: "waits for the extractor (8 s so far)",
        123: "waits before attempt 3 of the fetcher (8 s so far)",
        124: "waits for its first stage",
    }


@pytest.mark.parametrize(
    "figures, is_politeness",
    [
        ({"transfers": 0, "lookups": 0, "next_ms": 3_000}, True),
        ({"transfers": 1, "lookups": 0, "next_ms": 3_000}, False),  # an answer is on its way
        ({"transfers": 0, "lookups": 1, "next_ms": 3_000}, False),  # a name is being looked up
        ({"transfers": 0, "lookups": 0, "next_ms": 40}, False),  # too short for a word
    ],
)
def test_politeness_is_named_only_where_nothing_else_is_waited_for(figures, is_politeness):
    view = look(make_flight(1, "fetcher", listed=9, waiting=3, hosts=1, **figures))[1]
    assert (view.text == "waits for politeness: 1 host rests, the next in 3 s") is is_politeness
    assert view.is_wait is is_politeness


def test_an_outage_is_named():
    view = look(make_flight(1, "fetcher", listed=9, waiting=3, outage_s=12, transfers=0))[1]
    assert view.text == "our network has been down for 12 s: no URL is charged"


def test_counters_belong_to_the_stage_that_they_stand_beside():
    """Figures of another stage, as a moment between two stages leaves them, give no bar."""
    view = look(make_flight(1, "extractor", listed=9, waiting=3, pages=6))[1]
    assert (view.share, view.text) == (None, "")


def test_the_time_that_is_left_follows_the_pace_of_the_last_seconds_and_ends_with_the_cycle():
    views, flight = Views(), make_flight(1, "fetcher", listed=1_000, waiting=900, left_s=500)
    flights = make_flights(flight)
    assert views.look(flights, NOW_S)[0].eta_s is None
    flight.figures = {**flight.figures, "waiting": 800}
    view = views.look(flights, NOW_S + 2)[0]
    assert view.eta_s == 16.0 and view.text == "200 of 1,000 URLs, 50/s" and view.share == 0.2
    flight.figures = {**flight.figures, "left_s": 7}
    assert views.look(flights, NOW_S + 4)[0].eta_s == 7


def test_a_resumed_fetcher_is_not_as_fast_as_the_pages_that_it_found():
    views, flights = Views(), make_flights(make_flight(1, "fetcher", listed=1_000, waiting=100))
    assert "/s" not in views.look(flights, NOW_S)[0].text
    assert ", 0/s" in views.look(flights, NOW_S + 5)[0].text


def test_a_new_attempt_has_a_pace_of_its_own():
    views, flight = Views(), make_flight(1, "fetcher", listed=1_000, waiting=500)
    flights = make_flights(flight)
    views.look(flights, NOW_S)
    flight.attempt, flight.figures = 2, {"listed": 1_000, "waiting": 400}
    assert views.look(flights, NOW_S + 1)[0].eta_s is None


def test_totals_have_what_is_committed_fetched_and_being_fetched():
    flights = every_kind()
    flights.counts.answered, flights.counts.cycles = 1_000, 3
    flights.flights[118].counts = {names.FETCHER: {"answered": 1_500, "failed": 4, "refused": 2, "bytes": 7}}
    total = count_all(flights)
    assert (total.cycles, total.answered, total.failed, total.refused) == (3, 1_000 + 780 + 90 + 1_500, 16, 10)
    assert total.bytes == 10_000_000 + 1_000 + 7
    assert flights.counts.answered == 1_000, "what is committed stays as it is"


@pytest.mark.parametrize(
    "figures", [{"listed": "many"}, {"listed": None}, {"listed": 10, "waiting": 90}, {"pages": []}]
)
def test_strange_figures_are_no_error(figures):
    flights = make_flights(make_flight(1, "fetcher", **figures))
    count_all(flights)
    (view,) = Views().look(flights, NOW_S)
    assert view.share is None or 0 <= view.share <= 1


def test_the_pace_is_that_of_the_window():
    pace = Pace(window_s=60.0)
    assert pace.per_s() == ()
    for second in range(200):
        pace.note(float(second), second * 10, 5)
    assert pace.per_s() == (10.0, 0.0) and 60 <= pace.covers_s <= 62
    pace.note(200.0, 0, 0)  # counted anew
    assert pace.per_s() == (0.0, 0.0)


def test_the_pace_counts_a_burst_only_while_it_is_in_the_window():
    pace = Pace(window_s=10.0)
    pace.note(0.0, 0)
    pace.note(1.0, 1_000)
    assert pace.per_s() == (1_000.0,)
    for second in range(2, 30):
        pace.note(float(second), 1_000)
    assert pace.per_s() == (0.0,)


def test_live_describes_the_run_and_its_cycles():
    live = Live("run-1", "crawl").describe(every_kind(), NOW_S, NOW_MS, lambda process_id: process_id)
    assert {"run", "pid", "pid_began_ticks", "command", "began_at_ms", "written_at_ms", "sleeps_until_ms"} <= set(live)
    assert live["rates"] == {"pages_per_s": 0.0, "bytes_per_s": 0.0, "covers_s": 0.0}
    first, *_, last = live["cycles"]
    assert first["memory_bytes"] == 40_117 and last["memory_bytes"] == 0
    assert first["stage_began_at_ms"] == NOW_MS - 8_000
    assert (first["stage"], first["is_running"], first["share"]) == ("fetcher", True, 0.4)
    assert live["counts"]["answered"] == 870 and live["counts_committed"]["answered"] == 0
    ended = describe_end(live, NOW_MS + 5, "done")
    assert (ended["ended_at_ms"], ended["why"], live["ended_at_ms"]) == (NOW_MS + 5, "done", None)


def test_live_rates_include_cycles_in_progress():
    live, flights = Live("run-1", "crawl"), make_flights(make_flight(1, "fetcher", pages=100, bytes=1_000))
    live.describe(flights, NOW_S, NOW_MS)
    flights.flights[1].figures = {"pages": 150, "bytes": 3_000}
    rates = live.describe(flights, NOW_S + 2, NOW_MS + 2_000)["rates"]
    assert rates == {"pages_per_s": 25.0, "bytes_per_s": 1_000.0, "covers_s": 2.0}
