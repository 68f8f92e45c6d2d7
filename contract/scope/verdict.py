"""The verdict of the scope on one URL, by the configuration that a plan holds."""

from collections.abc import Iterable
from typing import NamedTuple

from contract.plan import Plan
from contract.scope.requisites import Requisites, bits_of
from contract.scope.rules import TRAPS, Scope, year_of
from contract.url import Keys


class Verdict(NamedTuple):
    rule: str  # that the URL breaks; empty where the crawl wants it
    is_trap: bool


def judge_by_plan(
    plan: Plan, keys: Keys, url: str, page_url: str | None = None, depth: int = 0, kinds: Iterable[str] = ()
) -> Verdict:
    """Judges a canonical URL, and, given a page `depth` hops from a seed, as its target by links of these kinds."""
    year = year_of(plan.now_ms)
    scope = Scope(plan.config.scope, keys, year)
    rule = scope.judge_link(url, page_url, depth) if page_url else scope.judge(url)
    if rule and page_url:
        requisites = Requisites(plan.config, scope, keys, year)
        if requisites.kinds_from(page_url, depth) & bits_of(kinds):
            rule = requisites.judge(url, page_url, depth)
    return Verdict(rule, rule in TRAPS)
