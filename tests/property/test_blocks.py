"""Blocks are intervals that cover all keys; growth changes only the block that is split."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.aux_rows import may_hold, row_groups, summarise
from contract.blocks import block_of, block_to_split, in_interval, interval
from storage.tables import ROW_GROUP_ROWS
from tests.sampling import sampling

keys = st.one_of(st.sampled_from([0, 2**64 - 1, 2**63, 2**63 - 1]), st.integers(0, 2**64 - 1))


@pytest.mark.parametrize("blocks", [*range(1, 70), 127, 128, 129, 1000])
def test_blocks_are_intervals(blocks):
    intervals = sorted(interval(block, blocks) for block in range(blocks))
    assert intervals[0][0] == 0 and intervals[-1][1] == 1 << 64
    assert all(left[1] == right[0] for left, right in zip(intervals, intervals[1:]))
    unchanged = [block for block in range(blocks) if interval(block, blocks) == interval(block, blocks + 1)]
    assert unchanged == [block for block in range(blocks) if block != block_to_split(blocks)]


@settings(max_examples=sampling.examples(200))
@given(keys, st.integers(1, 5000))
def test_a_key_is_in_the_interval_of_its_block(key, blocks):
    low, high = interval(block_of(key, blocks), blocks)
    assert low <= key < high
    assert in_interval(np.array([key], np.uint64), low, high)[0]


@settings(max_examples=sampling.examples(100))
@given(st.lists(keys, max_size=50), st.integers(1, 64))
def test_a_summary_of_aux_tells_whose_rows_it_holds(held, blocks):
    summary = summarise(np.array(sorted(held), np.uint64))
    owners = {block_of(key, blocks) for key in held}
    assert {block for block in range(blocks) if may_hold(summary, *interval(block, blocks))} == owners


def test_row_groups_are_picked_by_their_first_keys():
    held = np.sort(np.random.default_rng(1).integers(0, 2**64, 5 * ROW_GROUP_ROWS + 7, np.uint64))
    summary = summarise(held)
    for block in range(16):
        low, high = interval(block, 16)
        rows = np.flatnonzero(in_interval(held, low, high))
        needed = {int(row) // ROW_GROUP_ROWS for row in (rows[0], rows[-1])}
        assert needed <= set(row_groups(summary, low, high))
        assert len(row_groups(summary, low, high)) <= 3
