"""The table of kinds, and which entries wait for a block."""

import numpy as np
import pytest

from contract import names
from contract.aux_rows import summarise
from contract.blocks import interval
from contract.log import ABANDON, ABSORB, CRAWL, FORGET, GROW, KINDS, RECONSIDER, SEED, Entry, State, read_kind
from contract.pending import SCHEMAS, Absorber, absorber, entries_with_table, find_pending, live_absorber


def log_of(*entries: Entry) -> State:
    state = State(2)
    for entry in entries:
        state.apply(entry)
    return state


def rows_of(*blocks: int) -> dict:
    """A summary of a table with one row for each of these blocks, of two."""
    return summarise(np.array(sorted(interval(block, 2)[0] for block in blocks), np.uint64))


LOG = log_of(
    Entry(SEED, 0, 2, inbox="a.txt"),
    Entry(CRAWL, 1, 2, {0: None}, {0: 1}, 1),
    Entry(CRAWL, 2, 2, {0: None}, {0: 2}, 1),  # void
    Entry(RECONSIDER, 3, 2, inbox="b.parquet"),
    Entry(ABANDON, 4, 2, {0: 1}, reason="kept dying"),
    Entry(ABSORB, 5, 2, {1: None}, {1: 5}, 2),
)
SUMMARIES = {0: rows_of(0, 1), 1: rows_of(1), 2: rows_of(0, 1), 3: rows_of(0)}


def pending(absorber: Absorber, **options) -> list[int]:
    return [entry.cycle for entry, _ in find_pending(LOG, absorber, lambda entry: SUMMARIES[entry.cycle], **options)]


def test_the_properties_of_each_kind():
    assert {kind for kind in KINDS if KINDS[kind].fetches} == {CRAWL}
    assert {kind for kind in KINDS if KINDS[kind].has_aux} == {CRAWL, SEED}
    assert {kind for kind in KINDS if KINDS[kind].from_inbox} == {SEED, RECONSIDER}
    assert {kind for kind in KINDS if KINDS[kind].merges} == {CRAWL, ABSORB}
    assert {kind for kind in KINDS if KINDS[kind].splits} == {GROW}
    assert {kind for kind in KINDS if KINDS[kind].forgets} == {FORGET}
    assert {kind for kind in KINDS if KINDS[kind].is_turn} == {CRAWL, ABANDON}
    assert {KINDS[kind].table for kind in KINDS} == {"", *SCHEMAS}
    for kind in KINDS.values():
        assert bool(kind.stages) == (kind.merges or kind.splits or kind.forgets), "only stages make generations"
        assert not (kind.from_inbox and kind.stages) and kind.stages in ((), names.STAGES, names.STAGES[-1:])


@pytest.mark.parametrize("word", ["", "Crawl", "other", None, 1, ["crawl"]])
def test_a_word_that_is_no_kind(word):
    with pytest.raises(ValueError, match="kind of an entry"):
        read_kind(word)


def test_entries_wait_from_the_position_that_a_block_has_seen():
    assert live_absorber(LOG, 0) == (*interval(0, 2), 1) and live_absorber(LOG, 1) == (*interval(1, 2), 2)
    assert pending(live_absorber(LOG, 0)) == [3] and pending(live_absorber(LOG, 1)) == []
    assert pending(absorber(0, 2)) == [0, 3] and pending(absorber(1, 2)) == [0, 1]
    assert pending(absorber(0, 1)) == [0, 1, 3], "one block has all keys; a void entry has no rows"


def test_an_end_and_wanted_kinds_limit_them():
    assert pending(absorber(0, 1), end=3) == [0, 1]
    assert pending(absorber(0, 1), wanted=lambda kind: kind.has_aux) == [0, 1]
    assert pending(absorber(0, 1), wanted=lambda kind: kind.from_inbox) == [0, 3]
    assert [position for position, _ in entries_with_table(LOG, 1)] == [1, 3]
    assert list(find_pending(LOG, absorber(0, 1), lambda entry: None)) == [], "no summary, no table"


def test_abandoned_cycles_of_the_log():
    assert [cycle for cycle in range(7) if LOG.is_abandoned(cycle)] == [4]
