"""Coming back: how often a page changes, when it is due, what a visit is worth."""

from dataclasses import replace

import numpy as np
import pytest

from contract.config import Revisit
from contract.revisits import (
    NEVER_MS,
    RATE_MAX_PER_S,
    Pages,
    claim_trust,
    due_at_ms,
    estimate_rates,
    has_claim,
    intervals_s,
    next_period_min,
    rate_of,
    seen_at_ms,
    trust_of,
    worth,
)

DAY_S, DAY_MIN = 86_400, 1_440
NOW_MS = 1_800_000_000_000
UNIFORM, PROPORTIONAL, OPTIMAL = (Revisit(policy=name) for name in ("uniform", "proportional", "optimal"))
MOST = {name: np.iinfo(dtype).max for name, dtype in (("u1", "u1"), ("u2", "u2"), ("u4", "u4"))}


def pages(count=1, **columns) -> Pages:
    """Pages of the dtypes of the side set, each seen once, now, where nothing else is said."""
    defaults = {
        "seen_at_ms": (NOW_MS, np.int64),
        "visits": (1, np.uint16),
        "changes": (0, np.uint16),
        "unchanged_min": (0, np.uint32),
        "changed_min": (0, np.uint32),
        "period_min": (0, np.uint32),
        "misses": (0, np.uint8),
        "rule_interval_s": (0, np.float64),
        "claim_trust": (0, np.float64),
    }
    values = {name: np.atleast_1d(columns.get(name, value)) for name, (value, _) in defaults.items()}
    count = max(count, *map(len, values.values()))
    return Pages(**{name: np.resize(values[name], count).astype(dtype) for name, (_, dtype) in defaults.items()})


def rates_of(given: Pages, config=OPTIMAL, servers=None) -> np.ndarray:
    """Of pages that each have a server of their own, where none are given."""
    own = np.arange(len(given.visits)) if servers is None else np.asarray(servers)
    return estimate_rates(given, own, int(own.max(initial=-1)) + 1, config)


# The rate of one page.


@pytest.mark.parametrize("visits", [1, 2, 7, 100])
@pytest.mark.parametrize("interval_min", [1, 60, 10_080])
def test_regular_visits_have_the_closed_form(visits, interval_min):
    changes = np.arange(visits + 1)
    found = rate_of(np.full(visits + 1, visits), changes, (visits - changes) * interval_min, changes * interval_min)
    wanted = -np.log((visits - changes + 0.5) / (visits + 0.5)) / (interval_min * 60)
    assert found == pytest.approx(wanted) and (np.diff(found) > 0).all()


def most_likely(intervals_s: np.ndarray, changed: np.ndarray) -> float:
    """The rate of the largest likelihood, by search: log(1 - e^(-d t)) for a change, -d t for none."""
    rates = np.geomspace(1e-9, 1e-1, 20_001)[:, None]
    seen = np.log(-np.expm1(-rates * intervals_s[changed])).sum(axis=1)
    return float(rates[(seen - (rates * intervals_s[~changed]).sum(axis=1)).argmax(), 0])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("per_visit", [0.2, 1.0, 2.0])
@pytest.mark.sampled(8)
def test_irregular_visits_come_near_the_largest_likelihood(seed, per_visit):
    """Intervals of a day to two weeks; the sums do not hold the spread of the intervals that saw a change."""
    random = np.random.default_rng(seed)
    minutes = random.integers(DAY_MIN, 14 * DAY_MIN, 400)
    rate = per_visit / (minutes.mean() * 60)
    changed = random.random(400) < -np.expm1(-rate * minutes * 60)
    (found,) = rate_of(*(np.array([n]) for n in (400, changed.sum(), minutes[~changed].sum(), minutes[changed].sum())))
    best = most_likely(minutes * 60.0, changed)
    assert 0.75 < found / best < 1.1 and 0.6 < found / rate < 1.5


def test_the_order_of_rates_is_that_of_the_pages():
    """From daily to every 100 days, 60 weekly visits each, which see as many changes as are to be expected."""
    period_d = np.array([1, 3, 10, 30, 100])
    changes = np.round(-60 * np.expm1(-7 / period_d)).astype(int)
    week_min = 7 * DAY_MIN
    given = pages(visits=61, changes=changes, changed_min=changes * week_min, unchanged_min=(60 - changes) * week_min)
    rates = rates_of(given)
    assert (np.diff(rates) < 0).all()
    assert rates[1:] == pytest.approx(1 / (period_d[1:] * DAY_S), rel=0.15)


# Extremes: every estimate is a number within its bounds.


@pytest.mark.parametrize(
    "config", [OPTIMAL, Revisit(policy="optimal", interval_s=1, interval_min_s=1, interval_max_s=1)]
)
@pytest.mark.parametrize("visits", [0, 1, 2, MOST["u2"]])
@pytest.mark.parametrize("changes", [0, 1, MOST["u2"]])
@pytest.mark.parametrize("unchanged_min", [0, 1, MOST["u4"]])
@pytest.mark.parametrize("changed_min", [0, 1, MOST["u4"]])
@np.errstate(over="raise", invalid="raise", divide="raise")
def test_any_columns_give_numbers(config, visits, changes, unchanged_min, changed_min):
    for misses in (0, MOST["u1"]):
        given = pages(
            3,
            visits=[visits, 1, 5],
            changes=[changes, 0, 2],
            unchanged_min=[unchanged_min, 0, 1000],
            changed_min=[changed_min, 0, 1000],
            period_min=[MOST["u4"], 0, 1],
            misses=misses,
            seen_at_ms=[0, NOW_MS, NOW_MS + 10**9],
            rule_interval_s=[0, 1e15, 0],
        )
        for servers in ([0, 0, 0], [2, 1, 0], [0, 1, 1]):
            rates = rates_of(given, config, servers)
            assert ((rates >= 1 / config.interval_max_s) & (rates <= RATE_MAX_PER_S)).all()
        for policy in (UNIFORM, PROPORTIONAL, config):
            values = worth(policy, given, rates, NOW_MS)
            assert ((values >= 0) & (values <= 1)).all() and values[2] == 0
            due = due_at_ms(policy, given, rates)
            assert due.dtype == np.int64 and (due >= given.seen_at_ms).all() and (due <= NEVER_MS).all()
            assert ((due == NEVER_MS) == (misses > policy.misses_max)).all()


def test_no_page_at_all():
    none = pages().take(np.empty(0, np.int64))
    rates = estimate_rates(none, np.empty(0, np.int64), 0, OPTIMAL)
    assert len(rates) == len(due_at_ms(OPTIMAL, none, rates)) == len(worth(OPTIMAL, none, rates, NOW_MS)) == 0


def test_a_page_that_changed_at_every_visit_has_a_finite_rate_that_grows_with_the_visits():
    counts = np.array([1, 3, 10, 100])
    given = pages(visits=counts + 1, changes=counts, changed_min=counts * DAY_MIN)
    rates = rates_of(given)
    assert (np.diff(rates) > 0).all() and rates[-1] < np.log(300) / DAY_S


def test_visits_within_a_minute_count_as_a_minute():
    (found,) = rate_of(np.array([10]), np.array([10]), np.array([0]), np.array([0]))
    assert 0 < found < 1


# Pages that were seen for a short time are drawn to their server, and that to its block.


def towards(rate, seen_s, mean):
    """As if one change more had been seen, in the time in which the mean has one."""
    return (seen_s * rate + 1) / (seen_s + 1 / mean)


def likeliest(intervals, changes, unchanged_min, changed_min):
    return rate_of(*(np.array([value]) for value in (intervals, changes, unchanged_min, changed_min)))[0]


def test_a_page_without_history_starts_at_the_mean_of_its_server():
    given = pages(visits=[11, 11, 1, 1], changes=[10, 0, 0, 0], changed_min=[10 * DAY_MIN, 0, 0, 0],
                  unchanged_min=[0, 10 * DAY_MIN, 0, 0])  # fmt: skip
    rates = rates_of(given, servers=[0, 1, 0, 1])
    of_block = towards(likeliest(20, 10, 10 * DAY_MIN, 10 * DAY_MIN), 20 * DAY_S, 1 / OPTIMAL.interval_s)
    of_first = towards(likeliest(10, 10, 0, 10 * DAY_MIN), 10 * DAY_S, of_block)
    of_second = towards(0, 10 * DAY_S, of_block)
    assert rates[2:] == pytest.approx([of_first, of_second])
    assert rates[0] == pytest.approx(towards(likeliest(10, 10, 0, 10 * DAY_MIN), 10 * DAY_S, of_first))
    assert rates[3] > rates[1] > 1 / OPTIMAL.interval_max_s, "ten days without a change are no rate of 0"


def test_the_longer_a_page_was_seen_the_less_the_mean_of_its_server_counts():
    days = np.array([1, 4, 16, 64])
    given = pages(visits=[*days + 1, 201], changes=[0, 0, 0, 0, 200], unchanged_min=[*days * DAY_MIN, 0],
                  changed_min=[0, 0, 0, 0, 200 * DAY_MIN])  # fmt: skip
    assert (np.diff(rates_of(given, servers=[0] * 5)[:4]) < 0).all()


def test_a_server_without_visits_has_the_mean_of_its_block():
    given = pages(visits=[5, 1], changes=[2, 0], changed_min=[2 * DAY_MIN, 0], unchanged_min=[2 * DAY_MIN, 0])
    of_block = towards(-np.log(2.5 / 4.5) / DAY_S, 4 * DAY_S, 1 / OPTIMAL.interval_s)
    assert rates_of(given, servers=[0, 1])[1] == pytest.approx(of_block)


def test_few_short_visits_without_a_change_do_not_put_a_block_to_sleep():
    given = pages(100, visits=[2, *[1] * 99], unchanged_min=[DAY_MIN, *[0] * 99])
    rates = rates_of(given, servers=[0] * 100)
    assert (rates > 0.4 / OPTIMAL.interval_s).all()


def test_a_block_without_visits_changes_once_per_interval():
    assert rates_of(pages(3)) == pytest.approx(1 / OPTIMAL.interval_s)


# When a page is due.


@pytest.mark.parametrize(
    "config, columns, wanted_s",
    [
        (UNIFORM, {}, UNIFORM.interval_s),
        (UNIFORM, {"period_min": 5, "visits": 9, "changes": 9}, UNIFORM.interval_s),
        (PROPORTIONAL, {}, PROPORTIONAL.interval_s),
        (PROPORTIONAL, {"period_min": 3 * DAY_MIN}, 3 * DAY_S),
        (PROPORTIONAL, {"period_min": 1}, PROPORTIONAL.interval_min_s),
        (PROPORTIONAL, {"period_min": MOST["u4"]}, PROPORTIONAL.interval_max_s),
        (OPTIMAL, {}, -np.log(0.8) * OPTIMAL.interval_s),
        *((config, {"rule_interval_s": 60.0, "period_min": 9}, 60) for config in (UNIFORM, PROPORTIONAL, OPTIMAL)),
    ],
)
def test_the_interval_of_each_policy(config, columns, wanted_s):
    given = pages(**columns)
    rates = rates_of(given)
    assert intervals_s(config, given, rates) == pytest.approx(wanted_s)
    assert (due_at_ms(config, given, rates) - NOW_MS) / 1000 == pytest.approx(wanted_s, abs=0.001)


def test_optimal_is_due_once_a_page_has_probably_changed_and_keeps_its_bounds():
    rates = np.array([1.0, 1 / DAY_S, 1 / (30 * DAY_S), 1 / OPTIMAL.interval_max_s])
    found = intervals_s(OPTIMAL, pages(4), rates)
    assert found == pytest.approx([DAY_S, DAY_S, -np.log(0.8) * 30 * DAY_S, -np.log(0.8) * OPTIMAL.interval_max_s])


@pytest.mark.parametrize("config", [UNIFORM, PROPORTIONAL, OPTIMAL])
def test_a_page_that_is_gone_is_asked_less_and_less_then_dropped(config):
    given = pages(misses=np.arange(8))
    due = due_at_ms(config, given, rates_of(given))
    waits = due[: config.misses_max + 1] - NOW_MS
    assert waits / waits[0] == pytest.approx(2.0 ** np.arange(config.misses_max + 1))
    assert (due[config.misses_max + 1 :] == NEVER_MS).all()


def test_a_listed_page_is_due_later_once_it_was_seen_or_missed():
    """Whatever comes of a visit at `now`, the page is not due at `now` any more: no empty cycle follows another."""
    for config in (UNIFORM, PROPORTIONAL, OPTIMAL):
        for misses in range(7):
            for rule_interval_s in (0, 0.002, 3600):
                seen = pages(misses=misses, rule_interval_s=rule_interval_s)
                assert (due_at_ms(config, seen, rates_of(seen)) > NOW_MS).all()


def test_the_last_visit_is_the_later_one_of_both_kinds():
    assert seen_at_ms(np.array([5, 5]), np.array([0, 9])).tolist() == [5, 9]


# What a visit is worth.


def test_worth_by_age_is_nothing_just_after_a_visit_and_all_after_an_endless_time():
    ages_s = np.array([-5, 0, 1, 0.1, 1, 10]) * np.array([1, 1, 1, *[UNIFORM.interval_s] * 3])
    given = pages(6, seen_at_ms=NOW_MS - ages_s * 1000)
    for config in (UNIFORM, PROPORTIONAL):
        values = worth(config, given, None, NOW_MS)
        assert values[:2].tolist() == [0, 0] and (np.diff(values[1:]) >= 0).all()
        assert values[3:] == pytest.approx(-np.expm1([-0.1, -1, -10]))


def test_worth_of_optimal_is_the_freshness_gained():
    """m (1/d - (t + 1/d) e^(-d t)), beside the 1/d of a page that changes as seldom as interval_max_s says."""
    rates = np.geomspace(1 / OPTIMAL.interval_max_s, 1, 50)
    for age_s in (0, 60, DAY_S, 30 * DAY_S, 3650 * DAY_S):
        values = worth(OPTIMAL, pages(50, seen_at_ms=NOW_MS - age_s * 1000), rates, NOW_MS)
        wanted = (1 / rates - (age_s + 1 / rates) * np.exp(-rates * age_s)) / OPTIMAL.interval_max_s
        assert values == pytest.approx(wanted, abs=1e-12)


def test_a_page_that_changes_every_second_is_not_chased():
    periods_s = np.array([1, DAY_S, 7 * DAY_S, 30 * DAY_S])
    values = worth(OPTIMAL, pages(4, seen_at_ms=NOW_MS - 7 * DAY_S * 1000), 1 / periods_s, NOW_MS)
    assert values.argmax() == 2 and values.argmin() == 0 and values[0] < 1e-6


def test_a_rule_with_an_interval_is_worth_its_age():
    given = pages(2, seen_at_ms=NOW_MS - 3_600_000, rule_interval_s=[3600, 0])
    values = worth(OPTIMAL, given, np.array([1.0, 1.0]), NOW_MS)
    assert values[0] == pytest.approx(1 - np.exp(-1)) and values[1] < 1e-6


def test_a_greedy_order_by_worth_is_fresher_than_visits_in_turn():
    """A model of 300 pages with lognormal rates, 0.2 visits per page and day, for 200 days."""
    random = np.random.default_rng(11)
    rates = np.exp(random.normal(np.log(0.1), 2, 300))  # changes per day
    rates_s = np.clip(rates / DAY_S, 1 / OPTIMAL.interval_max_s, 1)
    seen = {name: np.zeros(300) for name in ("optimal", "uniform")}
    fresh = dict.fromkeys(seen, 0.0)
    for day in range(200):
        for name, at in seen.items():
            given = pages(300, seen_at_ms=NOW_MS + at * DAY_S * 1000)
            config = OPTIMAL if name == "optimal" else UNIFORM
            values = worth(config, given, rates_s, NOW_MS + day * DAY_S * 1000)
            at[np.argsort(-values, kind="stable")[:60]] = day
            if day >= 50:
                fresh[name] += np.exp(-rates * (day - at)).mean() / 150
    assert fresh["optimal"] > fresh["uniform"] + 0.03


# Claims of sitemaps.


@pytest.mark.parametrize("config", [UNIFORM, PROPORTIONAL, OPTIMAL])
def test_a_claim_of_no_trust_changes_nothing(config):
    given = pages(8, misses=np.arange(8), seen_at_ms=NOW_MS - DAY_S * 1000, rule_interval_s=[0] * 7 + [60])
    claimed, rates = replace(given, claim_trust=np.zeros(8)), rates_of(given)
    assert (due_at_ms(config, claimed, rates) == due_at_ms(config, given, rates)).all()
    assert (worth(config, claimed, rates, NOW_MS) == worth(config, given, rates, NOW_MS)).all()


@pytest.mark.parametrize("config", [UNIFORM, PROPORTIONAL, OPTIMAL])
def test_a_claim_that_is_sure_is_due_as_soon_as_may_be_and_worth_an_unseen_page(config):
    """Just after a visit too, when it would be worth nothing else."""
    given = pages(3, claim_trust=[1, 0.75, 0], seen_at_ms=NOW_MS)
    rates, before = rates_of(given), replace(given, claim_trust=None)
    waits = (due_at_ms(config, given, rates) - NOW_MS) / 1000
    interval = intervals_s(config, given, rates)[0]
    assert waits == pytest.approx([config.interval_min_s, max(interval / 4, config.interval_min_s), interval], abs=0.01)
    ages = replace(before, seen_at_ms=np.zeros(3, np.int64))
    unseen = worth(config, ages, rates, NOW_MS * 1_000)[0]
    assert worth(config, given, rates, NOW_MS) == pytest.approx([unseen, 0.75 * unseen, 0])


def test_a_page_that_hardly_changes_and_was_never_seen_is_worth_all():
    rates = np.array([1 / OPTIMAL.interval_max_s, 1.0])
    values = worth(OPTIMAL, pages(2, claim_trust=1), rates, NOW_MS)
    assert values == pytest.approx([1, 1 / OPTIMAL.interval_max_s])


@pytest.mark.parametrize("config", [UNIFORM, PROPORTIONAL, OPTIMAL])
def test_a_rule_keeps_its_interval_and_its_worth_whatever_is_claimed(config):
    given = pages(claim_trust=0.9, rule_interval_s=9e6, seen_at_ms=NOW_MS - DAY_S * 1000)
    rates, plain = rates_of(given), replace(given, claim_trust=None)
    assert due_at_ms(config, given, rates) == due_at_ms(config, plain, rates) == given.seen_at_ms + 9 * 10**9
    assert worth(config, given, rates, NOW_MS) == worth(config, plain, rates, NOW_MS)


def test_a_wait_is_never_longer_for_a_claim_and_doubles_for_a_page_that_is_gone():
    short = replace(UNIFORM, interval_s=60.0, interval_min_s=60.0)
    claimed = pages(3, claim_trust=0.5, misses=[0, 1, 3])
    assert (due_at_ms(short, claimed, None) - NOW_MS).tolist() == [60_000, 120_000, 480_000]
    waits = (due_at_ms(UNIFORM, claimed, None) - NOW_MS) / 1000 / UNIFORM.interval_s
    assert waits == pytest.approx([0.5, 1, 4])
    assert due_at_ms(UNIFORM, pages(claim_trust=1, misses=UNIFORM.misses_max + 1), None) == NEVER_MS


def test_a_claim_is_a_time_after_the_last_visit_of_a_page():
    seen = np.array([NOW_MS] * 5 + [0])
    lastmod_s = np.array([NOW_MS // 1000, NOW_MS // 1000 + 1, 0, 1, MOST["u4"], 1], np.uint32)
    assert has_claim(lastmod_s, seen).tolist() == [False, True, False, False, True, True]
    trust = trust_of(np.array([0, 4, MOST["u4"]], np.uint32), np.array([0, 0, MOST["u4"]], np.uint32))
    assert trust == pytest.approx([1 / 2, 1 / 6, 1]) and (trust < 1).all()
    found = claim_trust(lastmod_s, seen, np.array([0, 1, 0, 1, 0, 0]), trust)
    assert found == pytest.approx([0, 1 / 6, 0, 0, 1 / 2, 1 / 2])


# How proportional adapts.


def test_the_period_is_shorter_after_a_change_and_longer_after_none():
    given = pages(6, period_min=[0, 0, 10 * DAY_MIN, 10 * DAY_MIN, 1, MOST["u4"]])
    found = next_period_min(PROPORTIONAL, given, np.array([True, False, True, False, True, False]))
    days = [3.5, 10.5, 5, 15, PROPORTIONAL.interval_min_s / DAY_S, PROPORTIONAL.interval_max_s / DAY_S]
    assert found.dtype == np.uint32 and (found / DAY_MIN).tolist() == pytest.approx(days)


def test_the_period_stays_within_its_bounds_however_often_it_changes():
    for is_changed, bound in ((True, PROPORTIONAL.interval_min_s), (False, PROPORTIONAL.interval_max_s)):
        given = pages()
        for _ in range(40):
            given = pages(period_min=next_period_min(PROPORTIONAL, given, np.array([is_changed])))
        assert given.period_min * 60 == bound


def test_a_period_of_less_than_a_minute_is_a_minute():
    config = Revisit(policy="proportional", interval_s=1, interval_min_s=1, interval_max_s=30)
    assert next_period_min(config, pages(), np.array([True])).tolist() == [1]


def test_a_period_beyond_its_column_stays_at_the_largest_value():
    config = Revisit(policy="proportional", interval_s=2.0**53, interval_min_s=1, interval_max_s=2.0**53)
    with np.errstate(all="raise"):
        assert next_period_min(config, pages(), np.array([False])).tolist() == [MOST["u4"]]
