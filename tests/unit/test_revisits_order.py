"""The order of revisits in a simulation: `optimal` comes near the best schedule that there is, and beats the others.

Rates of change are lognormal, and there are 0.2 visits per page and day: the case for which issue and documents cite
freshness in closed form, 0.07 for visits in proportion to the rates, 0.47 for uniform ones, 0.52 for the best schedule.
The simulation is that of bin/simulate freshness.
"""

from statistics import NormalDist

import numpy as np
import pytest

from contract.config import Revisit
from contract.revisits import OPTIMAL, PROPORTIONAL, UNIFORM, Pages, estimate_rates
from study.freshness import DAY_S, MU, PER_DAY, SIGMA, best_visits, freshness_of, simulate


def test_the_figures_of_the_issue_in_closed_form():
    quantiles = [NormalDist().inv_cdf((place + 0.5) / 5_000) for place in range(5_000)]
    per_day = np.exp(MU + SIGMA * np.array(quantiles))
    even = np.full(len(per_day), PER_DAY)
    in_proportion = PER_DAY * per_day / per_day.mean()
    best = best_visits(per_day, np.ones(len(per_day)))
    figures = [freshness_of(per_day, visits).mean() for visits in (in_proportion, even, best)]
    assert figures == pytest.approx([0.07, 0.47, 0.52], abs=0.01) and best.mean() == pytest.approx(PER_DAY, rel=0.01)


@pytest.mark.parametrize("weighs", [False, True])
def test_with_known_rates_the_order_attains_the_best_schedule(weighs):
    """But for the small share that goes to all pages."""
    result = simulate(OPTIMAL, 120, knows=True, weighs=weighs)
    assert 0.98 * result.best < result.freshness < 1.01 * result.best


def test_with_estimated_rates_it_comes_near_and_beats_the_others():
    """After 400 days and some eighty visits per page; what is lost is what learning the rates costs."""
    freshness = {policy: simulate(policy, 400) for policy in (UNIFORM, PROPORTIONAL, OPTIMAL)}
    best = freshness[OPTIMAL].best
    assert freshness[OPTIMAL].freshness > 0.94 * best > 1.02 * freshness[UNIFORM].freshness
    assert freshness[UNIFORM].freshness > 1.2 * freshness[PROPORTIONAL].freshness


def test_what_changes_all_the_time_is_not_chased_and_no_page_starves():
    optimal, proportional = (simulate(policy, 120) for policy in (OPTIMAL, PROPORTIONAL))
    restless = optimal.per_day > 10
    assert optimal.visits[restless].mean() < 1.2 * optimal.visits.mean()
    assert proportional.visits[restless].mean() > 2.5 * proportional.visits.mean()
    assert optimal.visits.min() >= 5


@pytest.mark.parametrize("interval_days", [0.5, 2, 8])
@pytest.mark.parametrize("per_day", [0.03, 0.3, 3.0])
def test_rates_are_estimated_right_from_regular_visits(per_day, interval_days):
    visits, pages = 60, 400
    share = -np.expm1(-per_day * interval_days)
    changes = np.random.default_rng(1).binomial(visits, share, pages)
    if share > 0.97 or share < 0.1:
        pytest.skip("such visits tell little")
    minutes = round(interval_days * 1440)
    zeros = np.zeros(pages, np.int64)
    columns = Pages(
        zeros, zeros + visits + 1, changes, minutes * (visits - changes), minutes * changes, zeros, zeros, zeros * 1.0
    )
    found = estimate_rates(columns, zeros, 1, Revisit(policy=OPTIMAL)) * DAY_S
    assert np.median(found) == pytest.approx(per_day, rel=0.15)
