"""Policies: in which order URLs are fetched. `policy.py` says what one is; each of the others is a module.

Verifier, scheduler and configuration all take them from POLICIES.
"""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from contract.config import Config
from contract.policies import (
    breadth_first,
    fifo,
    in_links,
    new_domains,
    opic,
    pagerank,
    random_order,
    response_time,
    rules,
    server_size,
    shortest_path,
    spread,
)
from contract.policies.policy import Candidates, Feature, Policy, Scores

POLICIES: dict[str, Policy] = {
    "fifo": fifo.POLICY,
    "breadth-first": breadth_first.POLICY,
    "shortest-path": shortest_path.POLICY,
    "random": random_order.POLICY,
    "in-links": in_links.POLICY,
    "opic": opic.POLICY,
    "server-size": server_size.POLICY,
    "response-time": response_time.POLICY,
    "pagerank": pagerank.POLICY,
    "new-domains": new_domains.POLICY,
    "spread": spread.POLICY,
}
FEATURES: dict[str, Feature] = {
    feature.name: feature
    for features in (*(policy.features for policy in POLICIES.values()), rules.FEATURES)
    for feature in features
}


def policy_of(config: Config) -> Policy:
    return POLICIES[config.scheduler.policy]


def features_of(config: Config) -> tuple[Feature, ...]:
    """The features that rows need under this configuration."""
    return (*policy_of(config).features, *rules.features_of(config))


def identify(config: Config, files: Mapping[str, Path]) -> dict[str, str]:
    """The features of rows under this configuration, each with what tells its values apart: for a manifest."""
    return {feature.name: digest(feature.identity(config, files)) for feature in features_of(config)}


def describe(config: Config, files: Mapping[str, Path]) -> dict[str, Any]:
    """What a block is prepared for, as its manifest has it: where it differs, the block gets a turn first."""
    settings = [getattr(config.scheduler, name) for name in policy_of(config).settings]
    return {
        "policy": config.scheduler.policy,
        "scores": digest(repr((settings, rules.weights_of(config).tolist()))),
        "features": identify(config, files),
        "scope": digest(repr((config.scope, config.url, bool(config.extractor.requisites)))),
        "revisit": digest(repr((config.revisit, rules.intervals_of(config).tolist()))) if revisits(config) else "",
    }


def revisits(config: Config) -> bool:
    """Whether collected pages are asked again."""
    return config.revisit.policy != "none"


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest() if text else ""


def score_with_rules(of: Candidates) -> Scores:
    """The score of the policy, below the weight of the rule of [[priority]] that a URL falls under.

    The rank of the weight takes the upper bits, as few as tell all weights apart: one for two weights, eight for 256.
    The policy's score loses as many of its lowest bits.
    """
    scores = policy_of(of.config).score(of)
    if not of.config.priority:
        return scores
    weights, rank = np.unique(rules.weights_of(of.config), return_inverse=True)
    bits = (len(weights) - 1).bit_length()
    if not bits:
        return scores
    upper = rank.astype(np.uint32)[of.rows[rules.RULE.name]] << np.uint32(32 - bits)
    joined: Scores = upper | scores >> np.uint32(bits)
    return joined


def columns_read(config: Config) -> tuple[str, ...]:
    """The columns of rows that scores need."""
    return (*policy_of(config).reads, *(feature.name for feature in rules.features_of(config)))
