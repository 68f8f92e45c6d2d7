"""The goals of bin/bench scheduler, and its table; pure."""

from collections.abc import Mapping
from statistics import median

from bench.fetcher.figures import Goal
from contract.revisits import NONE, OPTIMAL

GOALS = (
    Goal("select_s", "seconds to choose a list, the most expensive policy", 2.0, False),
    Goal("us_per_url_features", "us per URL, the most expensive feature", 5.0, False),
    Goal("us_per_url_qrank", "us per URL, features and rank of the network of neural", 5.0, False),
    Goal("turn_ratio_revisits", "a verifier turn with revisits to one without", 1.15, False),
    Goal("rss_mb", "MB of memory, of the command", 1024.0, False),
)


def figures_of(
    select_s: Mapping[str, list[float]],
    features_us: Mapping[str, list[float]],
    turn_s: Mapping[str, list[float]],
    command_s: float,
    rss_mb: float,
) -> dict:
    """Medians; the most expensive policy and feature stand for all. `turn_s` is by policy of [revisit]."""
    policies = {name: round(median(seconds), 3) for name, seconds in select_s.items()}
    features = {name: round(median(each), 3) for name, each in features_us.items()}
    turns = {name: median(seconds) for name, seconds in turn_s.items()}
    return {
        "select_s": max(policies.values()),
        "us_per_url_features": max(features.values()),
        "us_per_url_qrank": features["qrank"],
        "turn_ratio_revisits": round(turns[OPTIMAL] / turns[NONE], 3),
        "rss_mb": round(rss_mb),
        "command_s": round(command_s, 3),
        "select_s_by_policy": policies,
        "us_per_url_by_feature": features,
        "turn_s_by_revisit_policy": {name: round(seconds, 3) for name, seconds in turns.items()},
    }


def table_lines(figures: dict, found: Mapping[str, tuple[int, int]]) -> list[str]:
    """`found`: URLs and revisits of the list, by policy."""
    lines = ["policy            seconds      listed    revisits"]
    for name, seconds in figures["select_s_by_policy"].items():
        lines.append(f"{name:16} {seconds:8.2f} " + " ".join(f"{number:11,}" for number in found[name]))
    lines.append("feature        us per URL")
    lines += [f"{name:14} {us:10.2f}" for name, us in figures["us_per_url_by_feature"].items()]
    lines += [f"turn, revisits {name}: {s:.2f} s" for name, s in figures["turn_s_by_revisit_policy"].items()]
    lines.append(f"the whole command: {figures['command_s']:.2f} s, {figures['rss_mb']} MB")
    return lines
