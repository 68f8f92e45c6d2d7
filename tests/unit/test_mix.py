"""Mixes of policies: how they are written, what their parts share, and the order that they give."""

from dataclasses import replace

import numpy as np
import pytest

from contract.config import Config
from contract.config_check import from_tables
from contract.errors import BadConfiguration
from contract.log import CRAWL
from contract.policies import parts_of, policy_of, score_with_rules
from contract.policies.mix import mix_scores, places_of
from tests.small_crawl import Page, SmallCrawl
from tests.unit.test_policies import candidates, config_of


def shares_of(text: str) -> dict[str, float]:
    return {part.name: round(part.share, 6) for part in parts_of(config_of(text))}


@pytest.mark.parametrize(
    "text, shares",
    [
        ("opic", {"opic": 1}),
        ("0.7*in-links + 0.3*new-domains", {"in-links": 0.7, "new-domains": 0.3}),
        ("3 * in-links+1*opic", {"in-links": 0.75, "opic": 0.25}),
        ("2*opic", {"opic": 1}),
    ],
)
def test_weights_are_shares_of_their_sum(text, shares):
    assert shares_of(text) == shares


@pytest.mark.parametrize(
    "text, expected",
    [
        ("in-link", "'in-link' is no policy; did you mean in-links?"),
        ("0.5*in-links + 0.5*opicc", "'opicc' is no policy; did you mean opic?"),
        ("", "'' is no policy; expected one of fifo"),
        ("0.7*in-links +", "is not a policy, or a mix of them such as '0.7"),
        ("0.7**in-links", "is no policy; "),
        ("0*in-links + 1*opic", "expected weights from 0.001 to 1000, found 0 in"),
        ("1.2.3*in-links + 1*opic", "expected weights from 0.001 to 1000, found 1.2.3 in"),
        ("in-links + 0.3*opic", "expected a weight for in-links, as in '0.7[*]in-links'"),
        ("0.5*opic + 0.5*opic", "expected each policy once, found opic twice"),
        ("0.5*pagerank + 0.5*opic", "scheduler.ranks_file: expected a file of ranks"),
    ],
)
def test_a_mix_that_does_not_parse_is_named(text, expected):
    with pytest.raises(BadConfiguration, match=f"here: .*{expected}") as caught:
        from_tables({"scheduler": {"policy": text}}, "here")
    assert caught.value.exit_code == 78


def test_ranks_are_added_up_not_scores():
    """Cash reaches 2^64 and links-in do not: that decides nothing."""
    config = config_of("0.6*in-links + 0.4*opic")
    of = candidates(config, links_in=[1, 2, 3], cash=[1 << 40, 1 << 20, 1 << 10])
    assert np.argsort(score_with_rules(of)).tolist() == [0, 1, 2]
    other = candidates(config_of("0.4*in-links + 0.6*opic"), links_in=[1, 2, 3], cash=[1 << 40, 1 << 20, 1 << 10])
    assert np.argsort(score_with_rules(other)).tolist() == [2, 1, 0]


def test_the_first_of_all_parts_has_the_largest_score_there_is():
    parts = parts_of(config_of("0.3*in-links + 0.7*opic"))
    scores = [np.array([5, 9], np.uint32), np.array([0, 1], np.uint32)]
    mixed = mix_scores(scores, parts)
    assert mixed[1] >= 0xFFFF_FFF0 and mixed[0] == mixed[1] // 2 and mixed.dtype == np.uint32


@pytest.mark.parametrize("room", [0, 1, 7, 1_000])
def test_places_are_shared_out_without_remainder(room):
    parts = parts_of(config_of("0.7*in-links + 0.2*opic + 0.1*fifo"))
    places = places_of(parts, np.array([room]))
    assert sum(each[0] for each in places) == room and all(each[0] >= 0 for each in places)
    assert room < 1_000 or [each[0] for each in places] == [700, 200, 100]


def test_a_mix_reads_and_hands_on_what_its_parts_do_and_takes_over_nothing_else():
    policy = policy_of(config_of("0.5*opic + 0.3*new-domains + 0.2*response-time"))
    assert {"cash", "promise", "depth"} <= set(policy.reads) and list(policy.hands_on) == ["cash"] and policy.varies
    assert not policy.is_gated and policy.reserve is None
    assert not policy_of(config_of("0.5*fifo + 0.5*spread")).varies


def test_the_weight_of_a_rule_comes_before_a_mix():
    config = Config()
    plain = from_tables({"scheduler": {"policy": "0.5*in-links + 0.5*opic"}}, "here")
    ruled = from_tables(
        {"scheduler": {"policy": "0.5*in-links + 0.5*opic"}, "priority": [{"pattern": "x", "weight": 2.0}]}, "here"
    )
    columns = {"links_in": [1, 2], "cash": [1, 2], "rule": [1, 0]}
    assert np.argmax(score_with_rules(candidates(plain, **columns))) == 1
    assert np.argmax(score_with_rules(candidates(replace(config, scheduler=plain.scheduler), **columns))) == 1
    assert np.argmax(score_with_rules(candidates(ruled, **columns))) == 0


def test_each_part_has_its_best_prescheduled_and_the_list_is_in_the_order_of_the_mix(tmp_path):
    config = config_of("0.5*in-links + 0.5*shortest-path")
    config = replace(config, verifier=replace(config.verifier, prescheduled_max=4, prescheduled_refill=1))
    small = SmallCrawl(tmp_path / "crawl", 1, config)
    seeds = [f"http://s{number}.test/" for number in range(4)]
    small.seed(seeds)
    small.absorb_all()
    linked = [f"http://one.test/deep/down/{number}" for number in range(10)]  # the last three have the most links
    short = [f"http://one.test/{number}" for number in range(10)]
    pages = {
        seed: Page(links=[*linked[7 * (index > 0) :], *short[: 10 * (index > 1)]]) for index, seed in enumerate(seeds)
    }
    plan = small.plan(CRAWL, 0)
    small.schedule(plan)
    small.harvest(plan, pages)
    small.verify(plan)
    states = {url: row["state"] for url, row in small.rows().items() if url.startswith("http://one.test/")}
    chosen = {url for url, state in states.items() if state == "prescheduled"}
    assert len(chosen) == 4 and len(chosen & set(short)) == 2 and chosen & set(linked) <= set(linked[7:])
    listed = small.schedule(small.plan(CRAWL, 0))
    assert set(listed) == chosen and small.schedule(small.plan(CRAWL, 0)) == listed
