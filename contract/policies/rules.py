"""Rules about some URLs on top of any policy: [[priority]] and [[budget]], as features.

A URL falls under the first rule whose SURT prefix it has, or whose pattern is found in it.
"""

import numpy as np

from contract.config import Config
from contract.policies.policy import Column, Feature, Urls
from contract.surt_match import find_rules

FREE_WEIGHT = 1.0


def find_priority(urls: Urls) -> Column:
    return find_rules(urls.lines, urls.config.priority)


def find_budget(urls: Urls) -> Column:
    return find_rules(urls.lines, urls.config.budget)


RULE = Feature(
    "rule", "u1", find_priority, lambda config, files: repr([(rule.surt, rule.pattern) for rule in config.priority])
)
BUDGET = Feature(
    "budget", "u1", find_budget, lambda config, files: repr([(rule.surt, rule.pattern) for rule in config.budget])
)
FEATURES = (RULE, BUDGET)


def features_of(config: Config) -> tuple[Feature, ...]:
    return (RULE,) * bool(config.priority) + (BUDGET,) * bool(config.budget)


def weights_of(config: Config) -> Column:
    """The weight of each number of a rule; f64."""
    return np.array([FREE_WEIGHT, *(rule.weight for rule in config.priority)])


def intervals_of(config: Config) -> Column:
    """Seconds between two visits, by number of a rule; 0 where the policy decides. f64."""
    return np.array([0.0, *(rule.interval_s for rule in config.priority)])
