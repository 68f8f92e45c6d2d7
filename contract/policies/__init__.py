"""Policies: in which order URLs are fetched. `policy.py` says what one is; each of the others is a module.

Verifier, scheduler and configuration all take them from POLICIES.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from contract.config import Config
from contract.policies import (
    breadth_first,
    common_crawl,
    fica,
    fifo,
    focused,
    history,
    in_links,
    neural,
    neural_graph,
    new_domains,
    opic,
    pagerank,
    random_order,
    random_walk,
    response_time,
    rules,
    server_size,
    shortest_path,
    spread,
)
from contract.policies.mix import Part, join, parse
from contract.policies.policy import Candidates, Column, Feature, Policy, Scores
from contract.scope.link_sources import LinkSources

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
    "neural": neural.POLICY,
    "neural-graph": neural_graph.POLICY,
    "history": history.POLICY,
    "common-crawl": common_crawl.POLICY,
    "focused": focused.POLICY,
    "random-walk": random_walk.POLICY,
    "fica": fica.POLICY,
}
FEATURES: dict[str, Feature] = {
    feature.name: feature
    for features in (*(policy.features for policy in POLICIES.values()), rules.FEATURES)
    for feature in features
}


@lru_cache
def parts_of_text(text: str) -> tuple[Part, ...]:
    """The policies of a mix, or the one policy, that a text names; BadMix where it names none."""
    return parse(text, POLICIES, suggest)


def suggest(name: str) -> str:
    near = get_close_matches(name, POLICIES, n=1)
    return f"; did you mean {near[0]}?" if near else f"; expected one of {', '.join(POLICIES)}"


def parts_of(config: Config) -> tuple[Part, ...]:
    return parts_of_text(config.scheduler.policy)


def policy_of(config: Config) -> Policy:
    """The policy, or the mix as one policy."""
    parts = parts_of(config)
    return parts[0].policy if len(parts) == 1 else join(parts)


def features_of(config: Config) -> tuple[Feature, ...]:
    """The features that rows need under this configuration."""
    return (*policy_of(config).features, *rules.features_of(config))


def text_judge_of(config: Config, files: Mapping[str, Path]) -> Callable[[str], int] | None:
    """What says how much the text of a page is worth to the policy, where the policy asks for that."""
    make = policy_of(config).judge_text
    return make(files) if make else None


def identify(config: Config, files: Mapping[str, Path]) -> dict[str, str]:
    """The features of rows under this configuration, each with what tells its values apart: for a manifest."""
    return {feature.name: digest(feature.identity(config, files)) for feature in features_of(config)}


def describe(config: Config, files: Mapping[str, Path]) -> dict[str, Any]:
    """What a block is prepared for, as its manifest has it: where it differs, the block gets a turn first."""
    settings = [getattr(config.scheduler, name) for name in policy_of(config).settings]
    scope: tuple[Any, ...] = (config.scope, config.url, bool(config.extractor.requisites))
    if LinkSources(config.scope):
        scope += (config.scope.link_sources, config.scope.seeds_are_link_sources)
    return {
        "policy": config.scheduler.policy,
        "scores": digest(repr((settings, rules.weights_of(config).tolist()))),
        "features": identify(config, files),
        "scope": digest(repr(scope)),
        "revisit": digest(repr((config.revisit, rules.intervals_of(config).tolist()))) if revisits(config) else "",
    }


def revisits(config: Config) -> bool:
    """Whether collected pages are asked again."""
    return config.revisit.policy != "none"


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest() if text else ""


def score_parts(of: Candidates) -> list[Scores]:
    """The scores by each policy of a mix, or by the one policy."""
    return [part.policy.score(of) for part in parts_of(of.config)]


def put_below_rules(scores: Scores, rule: Column | None, config: Config) -> Scores:
    """Scores below the weight of the rule of [[priority]] that each URL falls under; `rule` has its number.

    The rank of the weight takes the upper bits, as few as tell all weights apart: one for two weights, eight for 256.
    The policy's score loses as many of its lowest bits.
    """
    if rule is None:
        return scores
    weights, rank = np.unique(rules.weights_of(config), return_inverse=True)
    bits = (len(weights) - 1).bit_length()
    if not bits:
        return scores
    upper = rank.astype(np.uint32)[rule] << np.uint32(32 - bits)
    joined: Scores = upper | scores >> np.uint32(bits)
    return joined


def rule_of(of: Candidates) -> Column | None:
    """The number of the rule of [[priority]] that each candidate falls under, where there are rules."""
    return of.rows[rules.RULE.name] if of.config.priority else None


def score_with_rules(of: Candidates) -> Scores:
    """The scores of the policy, of a mix among these candidates, below the weights of rules."""
    return put_below_rules(policy_of(of.config).score(of), rule_of(of), of.config)


def columns_read(config: Config) -> tuple[str, ...]:
    """The columns of rows that scores need."""
    return (*policy_of(config).reads, *((rules.RULE.name,) if config.priority else ()))
