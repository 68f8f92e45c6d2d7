"""Rules about some URLs on top of any policy, as features: [[priority]] and [[budget]], and [scope] link_sources.

A URL falls under the first rule whose SURT prefix it has, or whose pattern is found in it. Link sources are ordered as
other URLs are: their feature is for those who count.
"""

import numpy as np

from contract.config import Config
from contract.policies.policy import Column, Feature, Urls
from contract.scope.link_sources import NAMED, LinkSources
from contract.surt_match import find_rules

FREE_WEIGHT = 1.0


def find_priority(urls: Urls) -> Column:
    return find_rules(urls.lines, urls.config.priority)


def find_budget(urls: Urls) -> Column:
    return find_rules(urls.lines, urls.config.budget)


def find_link_sources(urls: Urls) -> Column:
    names = LinkSources(urls.config.scope).names
    found = (NAMED * names(line[:-1].decode("utf-8", "replace")) for line in urls.lines.to_pylist())
    return np.fromiter(found, np.uint8, len(urls.lines))


RULE = Feature(
    "rule", "u1", find_priority, lambda config, files: repr([(rule.surt, rule.pattern) for rule in config.priority])
)
BUDGET = Feature(
    "budget", "u1", find_budget, lambda config, files: repr([(rule.surt, rule.pattern) for rule in config.budget])
)
LINK_SOURCE = Feature("link_source", "u1", find_link_sources, lambda config, files: repr(config.scope.link_sources))
FEATURES = (RULE, BUDGET, LINK_SOURCE)


def features_of(config: Config) -> tuple[Feature, ...]:
    asked = (config.priority, config.budget, config.scope.link_sources)
    return tuple(feature for feature, rules in zip(FEATURES, asked) if rules)


def weights_of(config: Config) -> Column:
    """The weight of each number of a rule; f64."""
    return np.array([FREE_WEIGHT, *(rule.weight for rule in config.priority)])


def intervals_of(config: Config) -> Column:
    """Seconds between two visits, by number of a rule; 0 where the policy decides. f64."""
    return np.array([0.0, *(rule.interval_s for rule in config.priority)])
