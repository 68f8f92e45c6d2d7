"""history: known ranks, the four rules for unknown URLs, and what a page hands on to its targets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract.accumulators import ACCUMULATORS
from contract.config import Config, Scheduler
from contract.config_check import from_tables
from contract.errors import BadConfiguration
from contract.policies import describe, policy_of
from contract.policies.history import FILE_KEY, LARGEST_UNITS, ORACLE_KEY
from contract.policies.policy import largest_first
from contract.rank_files import make_ranks
from stages.verifier.figures import RowFigures
from tests.unit.test_policies import KEYS, candidates, feature, order_of, urls_of

RANKS = b"http://a.br/ 4\nhttp://a.br/half 2\nhttp://a.br/none 0\nhttp://b.br 1\n"
URLS = ("http://a.br/", "http://a.br/half", "http://a.br/none", "http://b.br/x", "http://c.br/", "http://c.br/y")


def config_of(rule: str = "parent", **settings) -> Config:
    return replace(Config(), scheduler=Scheduler(policy="history", ranks_file="/r", unknown_rank=rule, **settings))


def past_ranks(rule: str, *urls: str, oracle: bytes = b"", ranks: bytes = RANKS, **settings) -> np.ndarray:
    """In the units of the file, 0 where unknown."""
    given = urls_of(config_of(rule, **settings), *urls)
    given.memory[FILE_KEY] = make_ranks(Path("r"), ranks, KEYS)
    given.memory[ORACLE_KEY] = make_ranks(Path("o"), oracle, KEYS)
    return np.array(feature("past_rank", given), np.uint32).view(np.float32)


@pytest.mark.parametrize("rule", ["parent", "zero"])
def test_a_known_url_has_its_rank_or_that_of_its_server_and_an_unknown_one_has_none(rule):
    units = past_ranks(rule, *URLS)
    assert units.tolist() == [LARGEST_UNITS, LARGEST_UNITS / 2, 1, LARGEST_UNITS / 4, 0, 0]


def test_ranks_are_drawn_from_the_known_ones_by_key_and_seed():
    urls = [f"http://new.br/{number}" for number in range(4_000)]
    drawn = past_ranks("drawn", *urls)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [1, LARGEST_UNITS / 4, LARGEST_UNITS / 2, LARGEST_UNITS]
    assert (np.abs(counts - 1_000) < 150).all()  # five standard deviations
    assert (drawn == past_ranks("drawn", *urls)).all() and (drawn != past_ranks("drawn", *urls, seed=2)).any()
    assert past_ranks("drawn", *URLS)[:4].tolist() == past_ranks("zero", *URLS)[:4].tolist()
    assert past_ranks("drawn", *URLS, ranks=b"").tolist() == [0] * 6


def test_the_oracle_knows_what_the_earlier_crawl_did_not():
    oracle = b"http://a.br/ 100\nhttp://c.br/ 3\n"
    assert past_ranks("oracle", *URLS, oracle=oracle).tolist() == [
        *past_ranks("zero", *URLS)[:4].tolist(),
        LARGEST_UNITS * 3 / 4,
        0,
    ]


def test_true_ranks_in_a_far_larger_scale_stay_the_largest_without_a_warning():
    units = past_ranks(
        "oracle", "http://a.br/", "http://c.br/", ranks=b"http://a.br/ 1e-30\n", oracle=b"http://c.br/ 1e38"
    )
    assert np.isfinite(units).all() and units[1] > units[0] > 0


def test_the_rule_parent_puts_known_and_inherited_ranks_into_one_order():
    known = largest_first(np.array([0, 1000, 0, 5, 0])) * np.array([0, 1, 0, 1, 0], np.uint32)
    columns = {"past_rank": known, "inherited": [7, 0, 2000, 10**12, 0]}
    assert order_of(candidates(config_of("parent"), **columns)) == [2, 1, 0, 3, 4]
    for rule in ("zero", "drawn", "oracle"):
        assert order_of(candidates(config_of(rule), **columns)) == [1, 3, 0, 2, 4]


def test_a_page_hands_on_its_known_rank_or_else_what_it_inherited_and_only_by_the_rule_parent():
    known = np.array([LARGEST_UNITS, 0, 0, 1], np.float32).view(np.uint32)
    columns = {"past_rank": known, "inherited": [5, 6, 0, 2**63]}
    of = candidates(config_of("parent"), **columns)
    hand_on = policy_of(of.config).hands_on["inherited"]
    assert hand_on(of).dtype == np.uint64 and hand_on(of).tolist() == [2**32, 6, 0, 1]
    assert hand_on(candidates(config_of("drawn"), **columns)).tolist() == [0] * 4


def test_values_that_other_rules_seeds_or_files_give_are_other_features():
    def feature_of(config, ranks="r", **more):
        files = {FILE_KEY: Path(ranks), **{f"scheduler.{name}": Path(path) for name, path in more.items()}}
        return describe(config, files)["features"]["past_rank"]

    different = [
        feature_of(config_of("parent")),
        feature_of(config_of("parent"), "other"),
        feature_of(config_of("zero")),
        feature_of(config_of("drawn")),
        feature_of(config_of("drawn", seed=2)),
        feature_of(config_of("oracle"), oracle_file="o"),
        feature_of(config_of("oracle"), oracle_file="p"),
    ]
    assert len(set(different)) == len(different)
    assert feature_of(config_of("parent", seed=2)) == feature_of(config_of("parent"))


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, "scheduler.ranks_file: expected a file of ranks of an earlier crawl"),
        ({"ranks_file": "/r", "unknown_rank": "oracle"}, "scheduler.oracle_file: expected a file of true ranks"),
        ({"ranks_file": "/r", "oracle_file": "/o"}, "scheduler.unknown_rank: expected 'oracle' beside"),
        ({"ranks_file": "/r", "unknown_rank": "guess"}, "unknown_rank: expected one of"),
    ],
)
def test_impossible_settings_are_named(settings, expected):
    with pytest.raises(BadConfiguration, match=expected.replace(".", r"\.")) as caught:
        from_tables({"scheduler": {"policy": "history", **settings}}, "test")
    assert caught.value.exit_code == 78


def test_a_generation_counts_the_urls_that_the_file_knows():
    rows = {one.name: np.zeros(3, np.uint64) for one in ACCUMULATORS} | {"key": np.arange(3)}
    rows["past_rank"] = np.array([0, 7, 9], np.uint32)
    for rule, ranked in (("parent", 2), ("zero", 2), ("drawn", None), ("oracle", None)):
        figures = RowFigures(config_of(rule))
        figures.take(rows)
        figures.take(rows)
        assert figures.figures().get("ranked") == (ranked and 2 * ranked)
