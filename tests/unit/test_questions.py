"""storage/questions.py and storage/side_by_side.py: each question has its answer; streams lose nothing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.questions import Questions
from storage.side_by_side import side_by_side

KEYS = st.one_of(st.integers(0, (1 << 64) - 1), st.integers(0, 9), st.integers(7 << 50, (7 << 50) + 30))


@settings(deadline=None, max_examples=30)
@given(
    parts=st.lists(st.lists(KEYS, max_size=40), max_size=5),
    at_once=st.integers(1, 20),
    expected=st.integers(0, 400),
    step=st.integers(1, 50),
)
def test_each_question_gets_its_answer_in_the_order_of_questions(tmp_path_factory, parts, at_once, expected, step):
    """The answer says which payload the question had, and whether its key was asked about more than once."""
    folder = tmp_path_factory.mktemp("questions")
    questions, seen = Questions(folder / "asked", 64, expected, at_once), []
    asked = [key for part in parts for key in part]
    for part in parts:
        questions.ask(np.array(part, np.uint64), np.array([key % 97 for key in part], np.uint32))

    def decide(keys, payload):
        assert (keys[1:] >= keys[:-1]).all() and len(keys)
        assert not seen or seen[-1] < keys[0], "keys of an earlier call come again"
        seen.append(int(keys[-1]))
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return (payload + 100 * (counts[inverse] > 1)).astype(np.uint8)

    questions.settle(decide)
    answers = []
    for start in range(0, len(asked), step):
        answers += questions.answer(np.array(asked[start : start + step], np.uint64)).tolist()
    assert answers == [key % 97 + 100 * (asked.count(key) > 1) for key in asked]
    questions.close()
    assert not list(folder.iterdir())


def cut(keys: list[int], sizes: list[int]):
    """Sorted keys with a second column, in pieces, of which some are empty."""
    keys, start = sorted(keys), 0
    for size in [*sizes, len(keys)]:
        part = np.array(keys[start : start + size], np.uint64)
        yield part, part * np.uint64(3)
        start += size


@given(
    left=st.sets(st.integers(0, 60)),
    right=st.sets(st.integers(0, 60)),
    left_sizes=st.lists(st.integers(0, 9), max_size=9),
    right_sizes=st.lists(st.integers(0, 9), max_size=9),
)
def test_two_streams_are_cut_at_the_same_keys(left, right, left_sizes, right_sizes):
    found, last = ([], []), -1
    for pair in side_by_side(cut(list(left), left_sizes), cut(list(right), right_sizes)):
        keys = np.concatenate([columns[0] for columns in pair if columns is not None])
        assert len(keys) and keys.min() > last, "a key comes behind a larger one"
        last = int(keys.max())
        for side, columns in zip(found, pair):
            if columns is not None:
                assert (columns[1] == columns[0] * np.uint64(3)).all()
                side += columns[0].tolist()
    assert found == (sorted(left), sorted(right))
