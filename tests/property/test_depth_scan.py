"""The compiled estimate of open elements against the same by patterns and lists."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.extractor.documents.depth_scan import LOOK_BACK, find_depth_limit
from stages.extractor.documents.nesting import match_depth_limit
from tests.loop_ways import both_ways
from tests.sampling import sampling

NAMES = (
    b"a b br code dd div dt img input li math nobr object option p path path span svg table tbody td template tr "
    b"wbr x-y x-long-name x-long-nama x-long-n a\x00 template\x00 Div"
).split()
ENDS = (b">", b" class=x>", b"/>", b" x=1 />", b"", b" ", b"<", b"\v>", b"/ >")

tags = st.tuples(
    st.sampled_from([b"<", b"</", b"<", b"</", b"< ", b"<!"]), st.sampled_from(NAMES), st.sampled_from(ENDS)
)


def limit_of(page: bytes, steps_max: int) -> int:
    starts = np.flatnonzero(np.frombuffer(page, np.uint8) == ord("<"))
    return find_depth_limit(page, starts, steps_max)


@both_ways
@settings(max_examples=sampling.examples(300))
@given(st.lists(tags | st.tuples(st.binary(max_size=4)), max_size=60), st.integers(0, 200))
def test_both_find_the_same_tag(way, parts, steps_max):
    page = b"".join(piece for part in parts for piece in part).lower()
    with way():
        assert limit_of(page, steps_max) == match_depth_limit(page, steps_max)


@both_ways
@pytest.mark.sampled(1)
def test_both_find_the_same_tag_in_long_pages(way):
    """So deep that end tags do not reach all that is open."""
    draw = random.Random(7)
    for _ in range(20):
        names = draw.sample(NAMES, draw.randrange(2, 9))
        page = b"".join(
            draw.choice((b"<", b"<", b"</")) + draw.choice(names) + draw.choice(ENDS) for _ in range(40 * LOOK_BACK)
        ).lower()
        for steps_max in (1_000, 100_000, 1 << 40):
            with way():
                assert limit_of(page, steps_max) == match_depth_limit(page, steps_max)
