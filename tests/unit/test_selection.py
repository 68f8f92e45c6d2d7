"""The scheduler's decisions on a few candidates; tests/property/test_selection.py has the model for any."""

from dataclasses import replace

import numpy as np
import pytest

from contract.config import Config, Fetcher, Revisit, Scheduler
from stages.scheduler.candidates import NO_SIDE, Pool
from stages.scheduler.selection import choose, fitting, order_politely, server_caps
from storage.arrays import rank_values

NOW_MS = 1_000_000
REVISIT = Revisit()


def pool_of(server: list[int], score: list[int], worth: dict[int, float] | None = None, reserved=()) -> Pool:
    """`worth` has the candidates that are revisits. Keys rise; the first candidates were seen last."""
    worth = worth or {}
    numbers = np.arange(len(server))
    return Pool(
        numbers,
        (numbers + 1).astype(np.uint64) << np.uint64(40),
        np.array(server, np.int32),
        np.array(score, np.uint32),
        np.array([worth.get(number, 1) for number in numbers], np.float32),
        np.array([NOW_MS - number if number in worth else 0 for number in numbers], np.uint32),
        np.array([number if number in worth else NO_SIDE for number in numbers], np.int32),
        np.isin(numbers, reserved),
        np.empty((len(numbers), 0), np.uint32),
    )


def choose_from(pool: Pool, caps: list[int], most: int, config: Revisit = REVISIT, domain=None, share=0.0) -> list[int]:
    return choose(pool, np.array(caps), domain, share, most, config).which.tolist()


@pytest.mark.parametrize("stride", [1, 2, 3, 8])
@pytest.mark.parametrize("cap", [1, 3])
def test_half_a_place_of_a_server_is_one_in_every_second_cycle(cap, stride):
    """However few URLs a list takes of a server: neither its new URLs nor its revisits starve."""
    pool = pool_of([0] * 8, [9] * 4 + [1] * 4, dict.fromkeys(range(4, 8), 0.9))
    config = replace(REVISIT, share_max=0.5, spread_share=0.5)
    taken = [
        choose(pool, np.array([cap]), None, 0.0, 100, config, cycle).which for cycle in range(0, 100 * stride, stride)
    ]
    assert {len(which) for which in taken} == {cap}
    again = sum(int(pool.is_revisit[which].sum()) for which in taken)
    assert 45 * cap <= again <= 55 * cap


def test_caps_follow_the_delay_and_a_server_that_is_not_due_has_none():
    servers = {
        "delay_ms": np.array([0, 60_000, 0, 0], np.uint32),
        "due_at_ms": np.array([0, NOW_MS, NOW_MS + 1, 0]),
        "given_up": np.array([False, False, False, True]),
    }
    config = Config(scheduler=Scheduler(server_max_urls=50), fetcher=Fetcher(delay_s=1.0, cycle_max_s=600.0))
    assert server_caps(servers, NOW_MS, config).tolist() == [50, 11, 0, 0]


def test_scores_meet_across_servers():
    assert choose_from(pool_of([0, 0, 0, 1], [9, 8, 7, 1]), [5, 5], 3) == [0, 1, 2]


def test_a_server_gives_no_more_than_its_cap():
    assert choose_from(pool_of([0, 0, 0, 1], [9, 8, 7, 1]), [2, 2], 3) == [0, 3, 1]


def test_equal_scores_come_by_key():
    pool = pool_of([0, 1, 2], [5, 5, 5])
    pool.key = pool.key[::-1].copy()
    assert choose_from(pool, [1, 1, 1], 2) == [2, 1]


def test_the_kth_of_every_server_comes_before_any_next_one_and_the_best_first():
    assert order_politely(np.array([0, 0, 0, 1, 2, 1])).tolist() == [0, 3, 4, 1, 5, 2]


def test_a_gated_domain_gives_one_url_whatever_its_servers_may():
    domain = np.array([0, 0, 1])
    assert choose_from(pool_of([0, 1, 1, 2], [5, 9, 8, 1]), [9, 9, 9], 9, domain=domain) == [1, 3]


def test_revisits_take_share_max_while_urls_wait_and_the_rest_where_none_do():
    pool = pool_of([0, 0, 0, 0, 1, 1, 1, 1], [9] * 8, dict.fromkeys(range(4), 1.0))
    config = replace(REVISIT, spread_share=0.0)
    assert sorted(choose_from(pool, [9, 9], 4, config)) == [0, 1, 4, 5]
    assert sorted(choose_from(pool, [9, 9], 4, replace(config, share_max=0.0))) == [4, 5, 6, 7]
    assert sorted(choose_from(pool, [9, 9], 7, replace(config, share_max=0.0))) == [0, 1, 2, 4, 5, 6, 7]
    # Two of the waiting URLs have no room on their server: they keep no revisit away.
    assert sorted(choose_from(pool, [9, 2], 4, replace(config, share_max=0.0))) == [0, 1, 4, 5]


def test_revisits_take_share_max_of_the_places_of_a_server_where_its_urls_wait():
    """One server with more due pages than it has places, all of them worth more than what waits."""
    pool = pool_of([0] * 70, [9] * 20 + [1] * 50, dict.fromkeys(range(20), 0.9))
    for config in (REVISIT, replace(REVISIT, spread_share=1.0)):
        assert sum(one < 20 for one in choose_from(pool, [10], 100, config)) == 5
    assert sum(one < 20 for one in choose_from(pool, [10], 100, replace(REVISIT, share_max=0.0))) == 0
    few = pool_of([0] * 23, [9] * 20 + [1] * 3, dict.fromkeys(range(20), 0.9))
    assert sum(one < 20 for one in choose_from(few, [10], 100)) == 7, "the rest where none wait"


def test_pages_that_were_not_seen_for_longest_have_places_of_their_own():
    pool = pool_of([0] * 4, [9, 9, 9, 1], {0: 0.9, 1: 0.8, 2: 0.7, 3: 0.0})
    assert 3 not in choose_from(pool, [9], 2, replace(REVISIT, spread_share=0.0))
    assert 3 in choose_from(pool, [9], 2, replace(REVISIT, spread_share=0.01))


def test_worth_moves_a_page_back_and_importance_brings_it_forward():
    pool = pool_of([0, 1, 2], [1, 2, 9], {2: 0.5})
    config = replace(REVISIT, spread_share=0.0, share_max=1.0)
    assert choose_from(pool, [1, 1, 1], 3, config) == [1, 2, 0]  # 2/3, 0.5, 1/3


def test_a_share_of_the_list_is_kept_for_the_rows_that_a_policy_names():
    pool = pool_of([0] * 6, [9, 8, 7, 6, 2, 1], reserved=[4, 5])
    assert sorted(choose_from(pool, [9], 4, share=0.25)) == [0, 1, 2, 4]
    assert sorted(choose_from(pool, [9], 4, share=1.0)) == [0, 1, 4, 5], "as far as there are any"


def test_ranks_of_scores_are_shared_and_end_at_1():
    assert rank_values(np.array([70_000, 5, 70_000, 0xFFFF_FFFF], np.uint32)).tolist() == [0.75, 0.25, 0.75, 1.0]
    assert rank_values(np.empty(0, np.uint32)).tolist() == []


def test_room_is_given_in_the_order_of_candidates():
    assert fitting(np.array([1, 0, 1, 1]), np.array([0, 2])).tolist() == [True, False, True, False]


def test_nothing_to_choose_from():
    assert choose_from(pool_of([], []), [], 5) == []
