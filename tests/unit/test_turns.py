"""Whose turn it is, and when N grows: decisions without files or a clock."""

from contract.config import Blocks
from supervise.turns import BlockView, Done, Sleep, Turn, must_grow, next_step, next_turn

NOW = 1_000


def due(block, **more):
    return BlockView(block, waiting=1, earliest_due_ms=0, **more)


def test_the_oldest_turn_comes_first_and_ties_go_by_number():
    assert next_turn([due(0, last_turn=5), due(1, last_turn=3)], NOW) == Turn("crawl", 1)
    assert next_turn([due(2), due(1)], NOW) == Turn("crawl", 1)


def test_at_constant_n_turns_go_round():
    last = dict.fromkeys(range(4), -1)
    order = []
    for position in range(12):
        turn = next_turn([due(block, last_turn=last[block]) for block in last], NOW)
        last[turn.block] = position
        order.append(turn.block)
    assert order == [0, 1, 2, 3] * 3


def test_pending_rows_and_nothing_to_fetch_is_an_absorb_turn():
    assert next_turn([BlockView(0, pending=True), due(1, last_turn=4)], NOW) == Turn("absorb", 0)
    assert next_turn([due(0, pending=True)], NOW) == Turn("crawl", 0), "its own turn absorbs them as well"
    later = BlockView(0, waiting=1, earliest_due_ms=NOW + 1, pending=True)
    assert next_turn([later], NOW) == Turn("absorb", 0)


def test_what_is_due_later_is_slept_for():
    views = [
        BlockView(0, waiting=2, earliest_due_ms=NOW + 50),
        BlockView(1, waiting=1, earliest_due_ms=NOW + 20),
        BlockView(2),
    ]
    assert next_turn(views, NOW) == Sleep(NOW + 20)


def test_done_tells_whether_something_is_held_up():
    assert next_turn([BlockView(0), BlockView(1, known=5)], NOW) == Done(blocked=False)
    assert next_turn([due(0, free=False), BlockView(1)], NOW) == Done(blocked=True)


def test_a_block_that_is_not_prepared_is_prepared_before_it_is_listed():
    assert next_turn([due(0, is_prepared=False), due(1, last_turn=4)], NOW) == Turn("absorb", 0)
    assert next_turn([due(0, last_turn=4), due(1, last_turn=5, is_prepared=False)], NOW) == Turn("crawl", 0)
    assert next_turn([BlockView(0, known=3, is_prepared=False)], NOW) == Turn("absorb", 0), "nothing waits or pends"
    assert next_turn([BlockView(0, is_prepared=False, free=False)], NOW) == Done(blocked=True)


def test_revisits_make_a_block_due_but_not_in_a_run_that_is_to_end():
    collected, waiting = BlockView(0, known=5, revisit_due_ms=NOW), BlockView(1, waiting=1, earliest_due_ms=NOW + 9)
    assert next_turn([collected, waiting], NOW) == Turn("crawl", 0)
    assert next_turn([collected], NOW, revisits=False) == Done(blocked=False)
    assert next_turn([collected, waiting], NOW, revisits=False) == Sleep(NOW + 9)
    assert next_step([collected], NOW, Blocks(), None, revisits=False) == Done(blocked=False)


def test_the_next_revisit_is_slept_for():
    views = [
        BlockView(0, revisit_due_ms=NOW + 7),
        BlockView(1, waiting=1, earliest_due_ms=NOW + 9, revisit_due_ms=NOW + 8),
    ]
    assert next_turn(views, NOW) == Sleep(NOW + 7)
    assert next_turn(views[1:], NOW) == Sleep(NOW + 8)
    assert next_turn(views, NOW, revisits=False) == Sleep(NOW + 9)


def test_growth():
    bounds = Blocks(servers_max=10, urls_max=100)
    assert not must_grow([BlockView(0, known=100, servers=10)], bounds)
    assert must_grow([BlockView(0, known=101, servers=1, largest_domain_known=50)], bounds)
    assert must_grow([BlockView(0), BlockView(1, known=1, servers=11, largest_domain_servers=5)], bounds)
    assert not must_grow(
        [BlockView(0, known=101, servers=11, largest_domain_known=90, largest_domain_servers=9)], bounds
    ), "no split divides a domain"


def test_a_split_comes_before_any_other_turn_of_its_block_and_does_not_hold_up_the_others():
    bounds = Blocks(servers_max=10, urls_max=100)
    full, other = due(0, known=101), due(1, last_turn=7)
    assert next_step([full, other], NOW, bounds, 0) == Turn("grow", 0)
    assert next_step([full, other], NOW, bounds, None) == Turn("crawl", 0), "a cycle that fetches between two splits"
    in_flight = due(0, known=101, free=False)
    assert next_step([in_flight, other], NOW, bounds, 0) == Turn("crawl", 1)
