"""Mixes of policies, such as `0.7*in-links + 0.3*new-domains`.

A mix orders the candidates of a list by the weighted sum of their ranks: in the order of each part a candidate has a
rank, the share of candidates whose scores are not larger. Ranks and not scores are added up, because scores of
different policies have nothing in common. The verifier preschedules the best URLs of each part, as many as its weight
says. A part gives nothing but its order: no domain is closed by new-domains, no share kept by response-time.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from contract.config import Config
from contract.policies.policy import LARGEST, Policy, Scores
from storage.arrays import rank_values

PARTS_MAX = 8
EXPECTED = "a policy, or a mix of them such as '0.7*in-links + 0.3*opic'"
PART = re.compile(r"(?:([0-9.]+)\s*\*\s*)?([a-z][a-z-]*)")


class BadMix(ValueError):
    """A text names no policy and no mix; the message says what was expected."""


@dataclass(frozen=True)
class Part:
    name: str
    share: float  # of the sum of all weights
    policy: Policy


def parse(text: str, policies: Mapping[str, Policy], suggest: Callable[[str], str]) -> tuple[Part, ...]:
    """`suggest` ends a message about an unknown name."""
    found: dict[str, float] = {}
    for piece in text.split("+"):
        match = PART.fullmatch(piece.strip())
        if not match:
            raise BadMix(f"{text!r} is no policy{suggest(text)}" if text == piece else f"{text!r} is not {EXPECTED}")
        weight, name = match.groups()
        if name not in policies:
            raise BadMix(f"{name!r} is no policy{suggest(name)}")
        if name in found:
            raise BadMix(f"expected each policy once, found {name} twice in {text!r}")
        found[name] = read_weight(weight, text) if weight else 1.0
        if not weight and "+" in text:
            raise BadMix(f"expected a weight for {name}, as in '0.7*{name}', found {text!r}")
    if len(found) > PARTS_MAX:
        raise BadMix(f"expected at most {PARTS_MAX} policies, found {len(found)}")
    total = sum(found.values())
    return tuple(Part(name, weight / total, policies[name]) for name, weight in found.items())


def read_weight(text: str, where: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0.001 <= weight <= 1_000:
        raise BadMix(f"expected weights from 0.001 to 1000, found {text} in {where!r}")
    return weight


def mix_scores(scores: Sequence[Scores], parts: Sequence[Part]) -> Scores:
    """One score for each candidate, from its scores by all parts."""
    if len(parts) == 1:
        return scores[0]
    total = sum(part.share * rank_values(each).astype(np.float64) for part, each in zip(parts, scores))
    mixed: Scores = np.minimum(total * np.float64(LARGEST), np.float64(LARGEST)).astype(np.uint32)
    return mixed


def places_of(parts: Sequence[Part], room: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """How many of so many places each part has, by its share; together they have all."""
    shares = np.cumsum([0.0, *(part.share for part in parts)])
    bounds = [np.rint(share * room).astype(np.int64) for share in shares]
    return [high - low for low, high in zip(bounds, bounds[1:])]


def join(parts: Sequence[Part]) -> Policy:
    """What all parts together read and hand on; its score is that of the mix, among the candidates given."""
    policies = [part.policy for part in parts]

    def gather(name: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(each for policy in policies for each in getattr(policy, name)))

    return Policy(
        lambda of: mix_scores([policy.score(of) for policy in policies], parts),
        columns=gather("columns"),
        features=gather("features"),
        settings=gather("settings"),
        varies=any(policy.varies for policy in policies),
        hands_on={name: amount for policy in policies for name, amount in policy.hands_on.items()},
        judge_text=next((policy.judge_text for policy in policies if policy.judge_text), None),
        check=partial(check, parts),
        files=gather("files"),
    )


def check(parts: Sequence[Part], config: Config) -> str:
    owners: dict[str, str] = {}
    for part in parts:
        if problem := part.policy.check(config):
            return problem
        for name in part.policy.hands_on:
            if name in owners:
                return (
                    f"[scheduler] policy: {owners[name]} and {part.name} cannot be mixed: pages hand on {name} in both"
                )
            owners[name] = part.name
    return ""
