"""random-walk: a draw by the number of links; fica: the nearest to a seed by logarithmic distance."""

import numpy as np
import pytest

from contract.accumulators import ACCUMULATORS, NEARNESS_STEP, SEED_NEARNESS, share_out
from contract.policies import policy_of, score_with_rules
from tests.unit.test_policies import candidates, config_of, order_of

(NEARNESS,) = (one for one in ACCUMULATORS if one.name == "nearness")


def keys_of(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64 - 1, count, np.uint64)


def test_the_chance_to_come_first_is_in_proportion_to_the_links():
    """20,000 races of four URLs each."""
    races, links = 20_000, np.array([1, 2, 3, 10])
    of = candidates(config_of("random-walk"), key=keys_of(4 * races), links_in=np.tile(links, races))
    firsts = np.bincount(score_with_rules(of).reshape(races, 4).argmax(axis=1), minlength=4) / races
    wanted = links / links.sum()
    assert (np.abs(firsts - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / races)).all()


def test_a_url_without_links_counts_as_having_one():
    of = candidates(config_of("random-walk"), key=[5, 5], links_in=[0, 1])
    assert len(set(score_with_rules(of).tolist())) == 1


def test_more_links_never_put_a_url_later():
    links = np.unique(np.geomspace(1, 2**32 - 1, 1_000).astype(np.uint32))
    of = candidates(config_of("random-walk"), key=np.full(len(links), 77, np.uint64), links_in=links)
    assert (np.diff(score_with_rules(of).astype(np.int64)) >= 0).all()


def test_the_seed_gives_another_walk_and_the_order_of_random_is_none_of_them():
    keys = keys_of(20_000)
    walks = [
        score_with_rules(candidates(config_of(name, seed=seed), key=keys))
        for name, seed in (("random-walk", 1), ("random-walk", 2), ("random", 1))
    ]
    assert (walks[0] == score_with_rules(candidates(config_of("random-walk", seed=1), key=keys))).all()
    for one, two in ((0, 1), (0, 2), (1, 2)):
        ranks = [np.argsort(np.argsort(walks[number])) for number in (one, two)]
        assert abs(np.corrcoef(*ranks)[0, 1]) < 0.04


def test_extreme_draws_have_scores():
    """Whatever is drawn, also numbers of which rounding makes 0 or 1."""
    of = candidates(config_of("random-walk"), key=keys_of(200_000), links_in=np.full(200_000, 2**32 - 1))
    with np.errstate(all="raise"):
        assert np.isfinite(policy_of(of.config).score(of).view(np.float32)).all()


def test_fica_is_the_order_of_nearness_to_the_last_unit():
    nearness = [0, SEED_NEARNESS, SEED_NEARNESS - 1, 1, SEED_NEARNESS - NEARNESS_STEP]
    assert order_of(candidates(config_of("fica"), nearness=nearness)) == [1, 2, 4, 3, 0]


@pytest.mark.parametrize("targets", [[8, 8], [64], [2, 4, 8]])
def test_the_distance_is_the_sum_of_logarithms_of_the_targets_on_the_way(targets):
    """8 * 8 = 64 = 2 * 4 * 8: all of these ways are equally long."""
    nearness = np.array([SEED_NEARNESS], np.uint64)
    for count in targets:
        of = candidates(config_of("fica"), nearness=nearness)
        amount = policy_of(of.config).hands_on["nearness"](of)
        nearness = share_out(NEARNESS, amount, np.array([count]))
    assert nearness.tolist() == [SEED_NEARNESS - 6 * NEARNESS_STEP]
