"""storage/external_sort.py: whatever is added comes back sorted, with little memory too, and nothing stays on disk."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.external_sort import ExternalSort


def sort_all(folder, bits: int, parts: list[list[int]], at_once: int, expected: int, has_payload: bool):
    """(numbers, payloads) as they are read; the payload of a number is its position among all."""
    sort, position = ExternalSort(folder / "sort", bits, expected, at_once, has_payload), 0
    for part in parts:
        payload = np.arange(position, position + len(part), dtype=np.uint32) if has_payload else None
        sort.add(np.array(part, np.uint64), payload)
        position += len(part)
    assert len(sort) == position
    pieces = list(sort.read())
    assert not list(folder.iterdir())
    for piece in pieces:
        assert piece.low <= int(piece.numbers[0]) and int(piece.numbers[-1]) < piece.high
    numbers = np.concatenate([piece.numbers for piece in pieces] or [np.empty(0, np.uint64)])
    return numbers.tolist(), [row for piece in pieces for row in (piece.payload.tolist() if has_payload else ())]


@settings(deadline=None, max_examples=20)
@given(
    parts=st.lists(st.lists(st.one_of(st.integers(0, (1 << 64) - 1), st.integers(0, 9)), max_size=40), max_size=5),
    at_once=st.integers(1, 20),
    expected=st.integers(0, 400),
    has_payload=st.booleans(),
)
def test_numbers_come_back_sorted_with_what_they_carry(tmp_path_factory, parts, at_once, expected, has_payload):
    added = [number for part in parts for number in part]
    numbers, payload = sort_all(tmp_path_factory.mktemp("sort"), 64, parts, at_once, expected, has_payload)
    assert numbers == sorted(added)
    if has_payload:
        assert sorted(payload) == list(range(len(added))) and [added[at] for at in payload] == numbers


def test_a_file_that_grew_too_large_is_cut_again(tmp_path):
    """All numbers begin alike, and one of them is most of all."""
    chance = np.random.default_rng(1)
    common = [7 << 50 | number for number in chance.integers(0, 1 << 20, 3_000).tolist()] + [7 << 50] * 500
    numbers, _ = sort_all(tmp_path, 64, [common], 100, 3_000, False)
    assert numbers == sorted(common)


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_few_bits(tmp_path, bits):
    numbers = np.random.default_rng(bits).integers(0, 1 << bits, 50).tolist()
    assert sort_all(tmp_path, bits, [numbers], 4, 50, True)[0] == sorted(numbers)


def test_unjoined_pieces_hold_all_and_stay_within_memory(tmp_path):
    sort = ExternalSort(tmp_path / "sort", 64, 40, 10, has_payload=True)
    numbers = np.array([5] * 95 + [1 << 63], np.uint64)
    sort.add(numbers, np.arange(96, dtype=np.uint32))
    pieces = list(sort.read_unjoined())
    assert max(len(piece.numbers) for piece in pieces) == 10
    assert sorted(int(row) for piece in pieces for row in piece.payload) == list(range(96))
    assert all((np.diff(piece.numbers.astype(np.float64)) >= 0).all() for piece in pieces)
    assert not list(tmp_path.iterdir())


@settings(deadline=None, max_examples=20)
@given(
    rows=st.lists(st.tuples(st.sampled_from([0, 5, 7 << 50, (1 << 64) - 1]), st.integers(0, 1 << 31)), max_size=90),
    at_once=st.integers(1, 20),
)
def test_equal_numbers_are_ordered_by_what_they_carry_within_memory(tmp_path_factory, rows, at_once):
    folder = tmp_path_factory.mktemp("sort")
    sort = ExternalSort(folder / "sort", 64, 40, at_once, has_payload=True)
    for number, payload in rows:
        sort.add(np.array([number], np.uint64), np.array([payload], np.uint32))
    pieces = list(sort.read_ordered())
    assert [pair for piece in pieces for pair in zip(piece.numbers.tolist(), piece.payload.tolist())] == sorted(rows)
    most = max((rows.count(row) for row in rows), default=0)  # only what is wholly equal stays together
    assert all(len(piece.numbers) <= max(at_once, most) for piece in pieces)
    assert not list(folder.iterdir())
