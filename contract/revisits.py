"""When a collected page is due again, and what a visit now is worth; pure, on columns of the side set of a block.

How often a page changes is estimated from its visits. Let U be the time between visits that found it as before, C the
time between those that found it changed, k the number of the latter and m the mean time between two visits. A page that
changes at the rate d (a Poisson process) shows no change over a time t with the probability e^(-d t). Where all
intervals between visits are C/k long, the likelihood is largest at d = ln(1 + C/U) k/C. Half a visit more without a
change keeps that finite: U + m/2 for U. For regular visits, n of them, this is -ln((n - k + 1/2) / (n + 1/2)) / m, the
estimate of J. Cho and H. Garcia-Molina, "Estimating frequency of change", ACM TOIT 2003. A page that was seen for a
short time only is drawn to the mean of its server, as if it had been seen to change once at that rate; so is the mean
of a server to that of its block, and that one to a change per `interval_s`.

A visit now is worth m (1/d - (t + 1/d) e^(-d t)) for a page of importance m that was last seen t ago: the freshness
that it brings, largest first. That order attains the schedule that Cho and Garcia-Molina proved optimal ("Effective
page refresh policies for Web crawlers", ACM TODS 2003); Azar, Horvitz, Lubetzky, Peres and Shahaf ("Tractable
near-optimal policies for crawling", PNAS 2018) come within 1 % of the optimum with such a rule.

Claims. A sitemap may say that a page has changed since its last visit. The next visit tests that claim, so a server has
c tested claims, k of them true, and its next one is true with the probability p = (k + 1) / (c + 2) (Laplace's rule of
succession: a half before the first test). A page with such a claim has changed for sure with probability p, and is like
one that was never seen then; else it is as if nothing were claimed. So, with any policy:
- a visit is worth (1 - p) worth + p (what a page that was never seen is worth under the policy);
- the wait is (1 - p) of its interval, not below `interval_min_s`: a server that always lies keeps its pages' waits, and
  one that never does has them asked as soon as the configuration allows.
Pages of a rule with an interval of its own keep that interval and that worth: an operator's word counts more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from contract.accumulators import DAY_MS
from contract.config import Revisit

NONE, UNIFORM, PROPORTIONAL, OPTIMAL = "none", "uniform", "proportional", "optimal"
NEVER_MS = int(np.iinfo(np.int64).max)
MINUTE_MS, MINUTE_S = 60_000, 60
CHANGED_SHARE = 0.2  # with the policy optimal a page is due when it has changed with this probability
RATE_MAX_PER_S = 1.0
DOUBLINGS_MAX = 20
# A block forgets when one in so many of its rows can be forgotten: all of its texts are written anew for that.
FORGET_PART = 20
PERIOD_MAX_MIN = int(np.iinfo(np.uint32).max)  # of a column: 8,000 years

Numbers = npt.NDArray[np.float64]
Moments = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]  # row numbers


@dataclass(frozen=True)
class Pages:
    """Columns of collected pages, of one length; those of the side set have its names."""

    seen_at_ms: Moments  # the last visit
    visits: npt.NDArray[Any]  # answered ones, the first included
    changes: npt.NDArray[Any]
    unchanged_min: npt.NDArray[Any]
    changed_min: npt.NDArray[Any]
    period_min: npt.NDArray[Any]  # proportional: the present interval; 0 before the second visit
    misses: npt.NDArray[Any]
    rule_interval_s: Numbers  # of the rule of [[priority]] that the page falls under; 0 where none has one
    claim_trust: Numbers | None = None  # 0 where no sitemap claims that it changed since; None: of none of the pages

    def take(self, which: Rows) -> "Pages":
        """Some of the pages."""
        columns: dict[str, Any] = {
            name: None if values is None else values[which] for name, values in vars(self).items()
        }
        return Pages(**columns)


def seen_at_ms(fetched_at_ms: Moments, visited_at_ms: Moments) -> Moments:
    """The last visit, whether it brought a full answer or not."""
    return np.maximum(fetched_at_ms, visited_at_ms)


def has_claim(lastmod_s: npt.NDArray[Any], seen_at_ms: Moments) -> npt.NDArray[np.bool_]:
    """Whether the newest time that a sitemap has for each page, in seconds (0: none), is after its last visit."""
    mask: npt.NDArray[np.bool_] = lastmod_s.astype(np.int64) * 1000 > seen_at_ms
    return mask


def trust_of(claims: npt.NDArray[Any], true: npt.NDArray[Any]) -> Numbers:
    """Of servers with so many tested claims, and so many true ones: the probability that the next one is true."""
    trust: Numbers = (true.astype(np.float64) + 1) / (claims.astype(np.float64) + 2)
    return trust


def claim_trust(lastmod_s: npt.NDArray[Any], seen_at_ms: Moments, server: npt.NDArray[Any], trust: Numbers) -> Numbers:
    """The trust in the claim of each page, 0 where it has none; `trust` is that of each server."""
    return np.where(has_claim(lastmod_s, seen_at_ms), trust[server], 0.0)


def evidence_of(pages: Pages) -> tuple[npt.NDArray[Any], ...]:
    """What rates are estimated from: intervals between visits, changes, and the minutes without and with one."""
    intervals = np.maximum(pages.visits.astype(np.int64) - 1, 0)
    return intervals, pages.changes, pages.unchanged_min, pages.changed_min


def sum_by_server(pages: Pages, server: npt.NDArray[Any], servers: int) -> list[Numbers]:
    """The sums of that over the pages of each server: whole numbers, so those of parts of a block may be added up."""
    return [np.asarray(np.bincount(server, column, minlength=servers), np.float64) for column in evidence_of(pages)]


def estimate_rates(
    pages: Pages, server: npt.NDArray[Any], servers: int, config: Revisit, sums: list[Numbers] | None = None
) -> Numbers:
    """Changes per second of each page; `server` is the index of each page's server, below `servers`.

    `sums`: those of sum_by_server() over the whole block, where `pages` are a part of it.
    """
    columns = evidence_of(pages)
    sums = sum_by_server(pages, server, servers) if sums is None else sums
    of_block = draw([np.atleast_1d(column.sum()) for column in sums], np.array([1 / config.interval_s]))
    of_server = draw(sums, of_block)
    rates: Numbers = np.clip(draw(columns, of_server[server]), 1 / config.interval_max_s, RATE_MAX_PER_S)
    return rates


def draw(evidence: Sequence[npt.NDArray[Any]], mean: Numbers) -> Numbers:
    """The most likely rate, with one change more, and the time in which the mean has one: a gamma distribution before.

    So a few short visits without a change say little, and a single one is no rate of 0.
    """
    intervals, changes, unchanged_min, changed_min = evidence
    seen_s = (np.asarray(unchanged_min, np.float64) + changed_min) * MINUTE_S
    rates: Numbers = (seen_s * rate_of(intervals, changes, unchanged_min, changed_min) + 1) / (seen_s + 1 / mean)
    return rates


def rate_of(
    intervals: npt.NDArray[Any],
    changes: npt.NDArray[Any],
    unchanged_min: npt.NDArray[Any],
    changed_min: npt.NDArray[Any],
) -> Numbers:
    """The most likely rate per second; 0 where nothing was seen to change."""
    changed = np.asarray(changed_min, np.float64) * MINUTE_S
    total = changed + np.asarray(unchanged_min, np.float64) * MINUTE_S
    mean = np.maximum(total, MINUTE_S) / np.maximum(intervals, 1)
    steady = np.asarray(unchanged_min, np.float64) * MINUTE_S + mean / 2
    # Two visits within a minute have no time between them that the columns could hold: they count as a minute apart.
    per_change = np.maximum(changed, MINUTE_S) / np.maximum(changes, 1)
    return np.where(np.asarray(changes) > 0, np.log1p(np.maximum(changed, MINUTE_S) / steady) / per_change, 0.0)


def intervals_s(config: Revisit, pages: Pages, rates: Numbers | None) -> Numbers:
    """The time between two visits of each page without claims; `rates` are needed by the policy optimal only."""
    if config.policy == PROPORTIONAL:
        period = pages.period_min.astype(np.float64) * MINUTE_S
        interval = np.clip(
            np.where(period > 0, period, config.interval_s), config.interval_min_s, config.interval_max_s
        )
    elif config.policy == OPTIMAL and rates is not None:
        interval = np.clip(-np.log1p(-CHANGED_SHARE) / rates, config.interval_min_s, config.interval_max_s)
    else:
        interval = np.full(len(pages.seen_at_ms), config.interval_s)
    return np.where(pages.rule_interval_s > 0, pages.rule_interval_s, interval)


def waits_s(config: Revisit, pages: Pages, rates: Numbers | None) -> Numbers:
    """The time from the last visit to the next one: shorter where a sitemap claims a change, longer for gone pages."""
    interval = intervals_s(config, pages, rates)
    if (trust := trust_in_claims(pages)) is not None:
        interval = np.minimum(interval, np.maximum(interval * (1 - trust), config.interval_min_s))
    doubled: Numbers = interval * np.exp2(np.minimum(pages.misses, DOUBLINGS_MAX), dtype=np.float64)
    return doubled


def trust_in_claims(pages: Pages) -> Numbers | None:
    """`claim_trust` where it counts: not of pages whose rule has an interval of its own."""
    return None if pages.claim_trust is None else np.where(pages.rule_interval_s > 0, 0.0, pages.claim_trust)


def due_at_ms(config: Revisit, pages: Pages, rates: Numbers | None) -> Moments:
    """When each page is due again; NEVER_MS for one that is dropped. A page that was gone waits ever longer."""
    due = pages.seen_at_ms + np.minimum(waits_s(config, pages, rates) * 1000, NEVER_MS / 4).astype(np.int64)
    return np.where(pages.misses > config.misses_max, NEVER_MS, due)


def worth(config: Revisit, pages: Pages, rates: Numbers | None, now_ms: int) -> Numbers:
    """RVRank: what a visit now is worth, from 0 to 1, without the page's importance; a first visit is worth 1.

    One scale for all: with the policy optimal, the freshness gained beside that of a page which was never seen and
    changes as seldom as interval_max_s allows. With the others the age of the page, as 1 - e^(-age / interval): 0 for
    one that was just seen, 1 for one that was never seen, whose age is infinite.
    """
    without = worth_without_claims(config, pages, rates, now_ms)
    trust = trust_in_claims(pages)
    return without if trust is None else (1 - trust) * without + trust * worth_of_unseen(config, rates)


def worth_of_unseen(config: Revisit, rates: Numbers | None) -> Numbers | float:
    """What a visit of such a page would be worth had it never been seen: the limit of its worth for any age."""
    if config.policy != OPTIMAL or rates is None:
        return 1.0
    return np.minimum(1 / (rates * config.interval_max_s), 1.0)


def worth_without_claims(config: Revisit, pages: Pages, rates: Numbers | None, now_ms: int) -> Numbers:
    age_s = np.maximum(now_ms - pages.seen_at_ms, 0) / 1000
    by_age: Numbers = -np.expm1(-age_s / intervals_s(config, pages, rates))
    if config.policy != OPTIMAL or rates is None:
        return by_age
    changed = rates * age_s
    gained = (1 - (1 + changed) * np.exp(-changed)) / (rates * config.interval_max_s)
    return np.where(pages.rule_interval_s > 0, by_age, np.clip(gained, 0, 1))


def conditional_from_ms(config: Revisit, now_ms: int) -> int:
    """A page is asked with a condition where its last full answer is not older than this.

    A page that answers 304 names no links, and what it links to must not be forgotten. So with forget_after_days every
    page answers in full once in half of that time.
    """
    return now_ms - config.forget_after_days * DAY_MS // 2 if config.forget_after_days else -NEVER_MS


def forgettable(linked_day: npt.NDArray[Any], depth: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Rows that may be forgotten: those that a page has linked to. Seeds, and URLs of an operator's list, never are."""
    return np.asarray((linked_day > 0) & (depth > 0))


def is_forgotten(
    config: Revisit, now_ms: int, linked_day: npt.NDArray[Any], depth: npt.NDArray[Any]
) -> npt.NDArray[np.bool_]:
    """Rows that no page has linked to for forget_after_days whole days."""
    if not config.forget_after_days:
        return np.zeros(len(depth), bool)
    last_day = now_ms // DAY_MS - config.forget_after_days
    return forgettable(linked_day, depth) & (linked_day < last_day)


def forget_due_ms(config: Revisit, linked_on: npt.NDArray[np.int64], known: int) -> int | None:
    """When one in FORGET_PART of a block's rows can be forgotten; `linked_on`: forgettable rows by their linked_day."""
    if not config.forget_after_days or not linked_on.sum():
        return None
    needed = max(1, known // FORGET_PART)
    day = int(np.searchsorted(np.cumsum(linked_on), needed))
    return (day + config.forget_after_days + 1) * DAY_MS if day < len(linked_on) else None


def forget_until_ms(config: Revisit, answered_at_ms: Moments) -> int | None:
    """The latest moment by which URLs may be forgotten, given the last full answer of each page that is still asked.

    A URL whose last link is older than all of these answers is one that none of these pages links to. So a page that is
    asked late, as after a pause of the crawl, delays forgetting.
    """
    if not len(answered_at_ms):
        return None
    return int(answered_at_ms.min()) + config.forget_after_days * DAY_MS


def next_period_min(config: Revisit, pages: Pages, is_changed: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Proportional: the interval after a visit: shorter after a change, longer after none, within its bounds."""
    period = np.where(pages.period_min > 0, pages.period_min * float(MINUTE_S), config.interval_s)
    period *= np.where(is_changed, config.shorten, config.lengthen)
    minutes = np.ceil(np.clip(period, config.interval_min_s, config.interval_max_s) / MINUTE_S)
    return np.asarray(np.minimum(minutes, PERIOD_MAX_MIN), np.uint32)
