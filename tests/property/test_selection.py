"""The choice of a list on arrays against a model that walks over candidates one by one."""

from collections import Counter
from dataclasses import replace
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.config import Revisit
from stages.scheduler import selection
from stages.scheduler.candidates import NO_SIDE, Pool
from stages.scheduler.selection import GOLDEN, choose
from storage.arrays import rank_values
from tests.sampling import sampling

SERVERS = 6
SHARE = st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 1.0])
CANDIDATE = st.tuples(
    st.integers(0, SERVERS - 1),
    st.sampled_from([0, 1, 7, 65_535, 65_536, 1 << 31, 0xFFFF_FFFF]),  # score
    st.one_of(st.none(), st.tuples(st.floats(0, 1, width=32), st.integers(0, 10))),  # worth and age of a revisit
    st.booleans(),  # reserved
)


@st.composite
def pools(draw) -> Pool:
    rows = draw(st.lists(CANDIDATE, max_size=60))
    # Some keys share their upper half, which alone is sorted first.
    halves = [(number % 3 << 32) + draw(st.integers(0, 1 << 20)) * 64 + number for number in range(len(rows))]
    return make_pool(rows, draw(st.permutations(halves)))


def make_pool(rows: list[tuple], keys: list[int]) -> Pool:
    return Pool(
        np.arange(len(rows)),
        np.array(keys, np.uint64),
        np.array([server for server, *_ in rows], np.int32),
        np.array([score for _, score, *_ in rows], np.uint32),
        np.array([again[0] if again else 1 for *_, again, _ in rows], np.float32),
        np.array([again[1] if again else 0 for *_, again, _ in rows], np.uint32),
        np.array([number if row[2] else NO_SIDE for number, row in enumerate(rows)], np.int32),
        np.array([reserved for *_, reserved in rows], bool),
        np.empty((len(rows), 0), np.uint32),
    )


def choose_one_by_one(pool: Pool, caps, domain, share: float, most: int, config: Revisit) -> list[int]:
    """As choose(), in the order of VRank."""
    score = pool.score.tolist()
    importance = [np.float32(sum(other <= own for other in score) / len(score)) for own in score]
    vrank = np.array(importance, np.float32) * pool.worth
    group = (pool.server if domain is None else domain[pool.server]).tolist()
    room = Counter(dict(enumerate(caps.tolist())) if domain is None else dict.fromkeys(group, 1))
    again, key = pool.is_revisit.tolist(), pool.key.tolist()
    firsts = Counter(own for own, is_again in zip(group, again) if not is_again)
    fitting = {own: min(firsts[own], room[own]) for own in room}
    revisits = max(int(config.share_max * most), most - sum(fitting.values()))
    revisits_of = {
        own: max(floor(config.share_max * places + own * GOLDEN % 1), places - fitting[own])
        for own, places in room.items()
    }
    taken: list[int] = []

    def take(order: list[int], limit: int) -> None:
        nonlocal revisits
        for one in order:
            may = not again[one] or revisits and revisits_of[group[one]]
            if limit and len(taken) < most and one not in taken and room[group[one]] and may:
                taken.append(one)
                room[group[one]] -= 1
                revisits -= again[one]
                revisits_of[group[one]] -= again[one]
                limit -= 1

    everything = sorted(range(len(pool)), key=lambda one: (-vrank[one], key[one]))
    due = sorted((one for one in everything if again[one]), key=lambda one: (pool.seen_s[one], key[one]))
    take(due, ceil(config.spread_share * min(revisits, len(due))))
    take([one for one in everything if pool.is_reserved[one]], int(share * most))
    take(everything, most)
    return sorted(taken, key=everything.index)


@settings(deadline=None, max_examples=sampling.examples(300))
@given(
    pools(),
    st.lists(st.integers(1, 5), min_size=SERVERS, max_size=SERVERS),
    st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=SERVERS, max_size=SERVERS)),
    SHARE,
    st.integers(1, 40),
    SHARE,
    SHARE,
)
def test_the_choice_is_that_of_a_walk_one_by_one(pool, caps, domain, share, most, share_max, spread_share):
    caps = np.array(caps)
    domain = None if domain is None else np.array(domain)
    config = replace(Revisit(), share_max=share_max, spread_share=spread_share)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "BATCH_LEAST", 2)  # several batches
        choice = choose(pool, caps, domain, share, most, config)
    model = choose_one_by_one(pool, caps, domain, share, most, config)
    assert sorted(choice.which.tolist()) == sorted(model)
    assert choice.which.tolist() == choose(pool, caps, domain, share, most, config).which.tolist()  # in one batch

    turn, before = {}, Counter()
    for one in model:
        turn[one] = before[pool.server[one]]
        before[pool.server[one]] += 1
    assert choice.which.tolist() == sorted(model, key=lambda one: turn[one]), "politely, and the best first"
    assert all(number <= caps[server] for server, number in before.items()) or domain is not None


@settings(deadline=None, max_examples=sampling.examples(200))
@given(st.lists(st.integers(0, 0xFFFF_FFFF), max_size=50))
def test_the_rank_of_a_score_is_the_share_of_scores_that_are_not_larger(scores):
    ranks = rank_values(np.array(scores, np.uint32)).tolist()
    assert ranks == [np.float32(sum(other <= own for other in scores) / len(scores)) for own in scores]


@settings(deadline=None, max_examples=sampling.examples(30))
@given(st.integers(1, 12), st.integers(2, 30), st.sampled_from([0.05, 0.5]))
def test_no_due_page_starves_beside_first_visits_and_pages_worth_more(pages, most, spread_share):
    """URLs never run out, and the pages that are worth nothing are listed all the same, within `pages` lists each."""
    config = replace(Revisit(), share_max=0.5, spread_share=spread_share)
    seen = [0] * pages
    listed: Counter = Counter()
    for now in range(1, 2 * pages + 1):
        rows = [(0, 9, None, False)] * most + [(1, 5, (0.0, at), False) for at in seen]
        rows += [(2, 9, (1.0, now), False)] * most
        which = choose(make_pool(rows, list(range(len(rows)))), np.full(3, 99), None, 0.0, most, config).which
        firsts = sum(one < most for one in which.tolist())
        assert len(which) == most and most - firsts <= max(1, most // 2)
        for one in which.tolist():
            if most <= one < most + pages:
                seen[one - most] = now
                listed[one] += 1
    assert len(listed) == pages
