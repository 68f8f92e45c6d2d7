"""Set operations on columns of sorted keys, against Python sets."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import arrays
from storage.arrays import differ_sorted, find_repeated, is_in_sorted, unite_sorted

keys = st.one_of(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1))
key_sets = st.sets(keys, max_size=30)
few_keys = st.lists(st.one_of(keys, st.integers(0, 5)), max_size=30)


def as_array(values):
    return np.array(sorted(values), np.uint64)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(key_sets, key_sets)
def test_unions_and_differences_are_those_of_sets(left, right):
    a, b = as_array(left), as_array(right)
    assert unite_sorted(a, b).tolist() == sorted(left | right)
    only_left, only_right = differ_sorted(a, b)
    assert only_left.tolist() == sorted(left - right) and only_right.tolist() == sorted(right - left)
    assert only_left.dtype == only_right.dtype == unite_sorted(a, b).dtype == np.uint64


@pytest.mark.parametrize("sorted_at_once", [1, 4, 1 << 20])
@pytest.mark.sampled(1)
def test_keys_in_any_order_are_found_and_counted(monkeypatch, sorted_at_once):
    monkeypatch.setattr(arrays, "SORTED_AT_ONCE", sorted_at_once)

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(few_keys, key_sets)
    def check(some, among):
        column = np.array(some, np.uint64)
        assert is_in_sorted(column, as_array(among)).tolist() == [key in among for key in some]
        number = Counter(some)
        assert find_repeated(column).tolist() == [row for row, key in enumerate(some) if number[key] > 1]

    check()
