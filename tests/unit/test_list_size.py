"""[scheduler] cycle_target_s: how long a list gets, from lines of the journal."""

import pytest

from contract.config import Config, Scheduler
from supervise.list_size import limit_list, measure_pace, size_list


def fetched(cycle, pages, seconds, block=0, stage="fetcher"):
    begin_ms = 1_000_000 * cycle
    return {
        "stage": stage,
        "cycle": cycle,
        "block": block,
        "pages": pages,
        "begin_ms": begin_ms,
        "end_ms": begin_ms + round(seconds * 1000),
    }


def size_of(lines, target_s=60.0, block=0, **settings):
    config = Config(scheduler=Scheduler(cycle_target_s=target_s, **settings))
    return size_list(config, block, lines).scheduler


def test_a_list_has_what_the_fetcher_gets_in_the_time():
    assert size_of([fetched(1, 1_000, 100)]).list_max_urls == 600
    assert size_of([fetched(1, 1_000, 100), fetched(2, 3_000, 100)], target_s=30.0).list_max_urls == 600


def test_without_a_target_or_a_journal_nothing_changes():
    for lines, target_s in (([fetched(1, 1_000, 100)], 0.0), ([], 60.0), ([fetched(1, 7, 3, stage="verifier")], 60.0)):
        assert size_of(lines, target_s) == Scheduler(cycle_target_s=target_s)


@pytest.mark.parametrize("pages, seconds, size", [(0, 10, 100), (1, 1_000, 100), (10**9, 1, 100_000), (5, 0, 100_000)])
def test_it_stays_within_bounds(pages, seconds, size):
    assert size_of([fetched(1, pages, seconds)]).list_max_urls == size


def test_a_smaller_bound_of_the_configuration_holds():
    assert size_of([fetched(1, 0, 10)], list_max_urls=7, server_max_urls=5) == Scheduler(
        cycle_target_s=60.0, list_max_urls=7, server_max_urls=5
    )


def test_the_newest_cycles_of_the_block_count_and_those_of_others_only_where_it_has_none():
    old = [fetched(cycle, 10**6, 1) for cycle in range(10)]
    new = [fetched(cycle, 100, 10) for cycle in range(10, 15)]
    other = [fetched(15, 10**6, 1, block=1)]
    assert measure_pace([*old, *new, *other], 0) == 10.0
    assert measure_pace(new, 1) == 10.0
    assert measure_pace([], 1) is None


def test_each_page_of_a_resumed_fetcher_counts_once():
    assert measure_pace([fetched(1, 50, 10), fetched(1, 80, 10)], 0) == 4.0


def test_a_server_gets_no_more_than_the_list_has():
    settings = limit_list(Config(), 3).scheduler
    assert (settings.list_max_urls, settings.server_max_urls) == (3, 3)
    assert limit_list(Config(), 10**6) == Config()
