"""bin/simulate freshness: pages that change, a fixed number of visits per day, and each policy of [revisit].

Rates of change are lognormal. Pages are chosen by the scheduler's own functions from those that are due; visits teach
what the verifier would learn. Freshness and age are expected, not drawn: after a time t a copy of a page that changes
at the rate d is fresh with the probability e^(-d t), and old by t - (1 - e^(-d t)) / d on average. Only what visits
find is drawn.

The upper line is the best freshness that any schedule attains with these rates and so many visits: J. Cho and H.
Garcia-Molina, "Effective page refresh policies for Web crawlers", ACM TODS 2003. One more visit is worth the same for
every page that is visited at all; the price of a visit is found numerically.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contract.config import Revisit
from contract.policies.policy import largest_first
from contract.revisits import OPTIMAL, Pages, due_at_ms, estimate_rates, next_period_min, worth
from stages.scheduler.candidates import Pool
from stages.scheduler.selection import choose

DAY_S = 86_400.0
PER_DAY = 0.2  # visits per page
MU, SIGMA = -1.0, 2.0  # of the lognormal rates, per day
PAGES, SERVER_PAGES = 1_500, 100
STEPS_PER_DAY = 4
EXPONENT_MAX = 60.0
HALVINGS = 40

Values = npt.NDArray[np.float64]


def freshness_of(per_day: Values, visits_per_day: Values) -> Values:
    """Of pages that are visited at equal intervals, on average over time."""
    changes = per_day / np.maximum(visits_per_day, 1e-12)
    return np.where(visits_per_day > 0, -np.expm1(-changes) / changes, 0.0)


def best_visits(per_day: Values, importance: Values) -> Values:
    """Visits per day of each page in the best schedule, PER_DAY on average."""

    def visits_at(price: float) -> Values:
        wanted = price * per_day / importance  # = 1 - (1 + r) e^(-r), for r changes between two visits
        low, high = np.full(len(per_day), 1e-9), np.full(len(per_day), EXPONENT_MAX)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            is_above = 1 - (1 + middle) * np.exp(-middle) > wanted
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        return np.where(wanted < 1, per_day / high, 0.0)

    cheap, dear = 1e-6, 1e4
    for _ in range(HALVINGS):
        price = float(np.sqrt(cheap * dear))
        if visits_at(price).mean() > PER_DAY:
            cheap = price
        else:
            dear = price
    return visits_at(dear)


@dataclass
class Result:
    daily_freshness: Values  # mean over pages, by their importance
    daily_age: Values  # days
    best: float  # freshness of the best schedule
    visits: npt.NDArray[np.int64]
    per_day: Values

    @property
    def freshness(self) -> float:
        """Without the first half of the days, in which rates are learned."""
        return float(self.daily_freshness[len(self.daily_freshness) // 2 :].mean())

    @property
    def age(self) -> float:
        return float(self.daily_age[len(self.daily_age) // 2 :].mean())


def simulate(policy: str, days: int, *, knows: bool = False, weighs: bool = False, seed: int = 1) -> Result:
    """`knows`: rates are given, not estimated. `weighs`: pages have an importance."""
    random = np.random.default_rng(seed + 1_000)
    per_day = np.exp(MU + SIGMA * np.random.default_rng(seed).standard_normal(PAGES))
    rates_s = per_day / DAY_S
    importance = random.permutation(np.arange(1, PAGES + 1) / PAGES) if weighs else np.ones(PAGES)
    server = np.arange(PAGES) // SERVER_PAGES
    config = Revisit(policy=policy, interval_s=DAY_S / PER_DAY, interval_min_s=DAY_S / 24)
    seen = (random.uniform(-1 / PER_DAY, 0, PAGES) * DAY_S * 1000).astype(np.int64)
    columns = [np.zeros(PAGES, np.int64) for _ in range(6)]
    pages = Pages(seen, *columns, np.zeros(PAGES))
    pages.visits[:] = 1
    visits = np.zeros(PAGES, np.int64)
    step_days, fresh, old = 1 / STEPS_PER_DAY, [], []
    for step in range(days * STEPS_PER_DAY):
        now_ms = round(step * step_days * DAY_S * 1000)
        if policy != OPTIMAL:
            rates = None
        elif knows:
            rates = np.clip(rates_s, 1 / config.interval_max_s, 1)
        else:
            rates = estimate_rates(pages, server, PAGES // SERVER_PAGES, config)
        chosen = choose_pages(pages, rates, importance, server, config, now_ms, step)
        visit(pages, chosen, now_ms, random.random(len(chosen)), rates_s, config)
        visits[chosen] += 1
        since = (now_ms - pages.seen_at_ms) / 1000 / DAY_S
        fresh_days = (np.exp(-per_day * since) - np.exp(-per_day * (since + step_days))) / per_day  # within the step
        old_days = since + step_days / 2 - (1 - fresh_days / step_days) / per_day
        fresh.append(np.average(fresh_days / step_days, weights=importance))
        old.append(np.average(old_days, weights=importance))
    best = np.average(freshness_of(per_day, best_visits(per_day, importance)), weights=importance)
    daily = [np.array(values).reshape(days, STEPS_PER_DAY).mean(axis=1) for values in (fresh, old)]
    return Result(*daily, float(best), visits, per_day)


def choose_pages(
    pages: Pages, rates: Values | None, importance: Values, server: npt.NDArray[np.int64], config: Revisit, now_ms: int,
    step: int,
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Those that are due, in the order of the scheduler, as many as there are visits in a step."""
    due = np.flatnonzero(due_at_ms(config, pages, rates) <= now_ms)
    pool = Pool(
        row=due.astype(np.int32),
        key=due.astype(np.uint64),
        server=server[due].astype(np.int32),
        score=largest_first(importance[due]),
        worth=worth(config, pages, rates, now_ms)[due].astype(np.float32),
        seen_s=(pages.seen_at_ms[due] // 1000 + round(DAY_S / PER_DAY)).astype(np.uint32),  # from 0 on
        side=due.astype(np.int32),
        is_reserved=np.zeros(len(due), bool),
        part_scores=np.empty((len(due), 0), np.uint32),
    )
    caps = np.full(PAGES // SERVER_PAGES, SERVER_PAGES)
    return due[choose(pool, caps, None, 0.0, round(PER_DAY * PAGES / STEPS_PER_DAY), config, step).which]


def visit(
    pages: Pages, chosen: npt.NDArray[np.int64], now_ms: int, draws: Values, rates_s: Values, config: Revisit
) -> None:
    """What the merge makes of a visit of each."""
    age_s = (now_ms - pages.seen_at_ms[chosen]) / 1000
    is_changed = draws < -np.expm1(-rates_s[chosen] * age_s)
    minutes = np.maximum(np.rint(age_s / 60), 1).astype(np.int64)
    before = pages.take(chosen)
    pages.period_min[chosen] = next_period_min(config, before, is_changed)
    pages.visits[chosen] += 1
    pages.changes[chosen] += is_changed
    pages.changed_min[chosen] += minutes * is_changed
    pages.unchanged_min[chosen] += minutes * ~is_changed
    pages.seen_at_ms[chosen] = now_ms
