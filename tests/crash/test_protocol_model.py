"""The commit protocol, explored: the right one keeps every promise, and each wrong variant is caught.

The model is in `model/`; start with `model/protocol.py`. Run with `-s` to see what was explored. A
failure prints the whole story, one step per line, and for a walk its seed: `walk(Protocol, seed)`
replays it. `MODEL_WALKS=20000` makes the long run: that many walks, and the variants of `model/covered.py`.
"""

import gc
import os

import pytest

from tests.crash.model import wrong_turns
from tests.crash.model.covered import COVERED
from tests.crash.model.exploration import Failure
from tests.crash.model.protocol import Protocol
from tests.crash.model.searches import SEARCHES, WALKS, walks
from tests.crash.model.walks import walk
from tests.crash.model.web import BITS, block_of, victim
from tests.crash.model.wrong import WRONG
from tests.sampling import sampling

assert wrong_turns  # its variants are in WRONG from its import on
LONG_RUN = "MODEL_WALKS" in os.environ


@pytest.fixture(autouse=True)
def no_collector():
    """The model makes millions of tuples and no cycles: the collector would cost a fifth of the time."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("search", [name for name in SEARCHES if name != "walks"])
@pytest.mark.sampled(2)
def test_right_protocol_keeps_its_promises(search):
    print(f"\n{search}: {SEARCHES[search](Protocol)} states")


def test_right_protocol_keeps_its_promises_on_walks():
    number = int(os.environ["MODEL_WALKS"]) if LONG_RUN else WALKS
    first, stride = sampling.stride(5)  # no divisor of 72: see walk()
    seeds = range(number)[first - 1 :: stride]
    print(f"\n{len(seeds)} walks: {walks(Protocol, seeds)} steps")


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.sampled(10)
def test_wrong_variant_is_caught(name):
    variant = WRONG[name]
    with pytest.raises(Failure) as caught:
        if variant.seed is not None:
            walk(variant.cls, variant.seed)
        SEARCHES[variant.search](variant.cls)
    assert caught.value.violation.kind in variant.kinds
    print(f"\n{name}: {caught.value.violation} ({caught.value.where})")


if LONG_RUN:  # knowledge, not a promise, and it takes minutes

    @pytest.mark.parametrize("search", SEARCHES)
    @pytest.mark.parametrize("protocol_class", COVERED)
    def test_covered_variant_does_no_harm(protocol_class, search):
        SEARCHES[search](protocol_class)


def test_blocks_are_intervals_and_growth_changes_only_the_victim():
    for n in range(1, 2**BITS):
        before = [block_of(key, n) for key in range(2**BITS)]
        after = [block_of(key, n + 1) for key in range(2**BITS)]
        assert sorted(set(before)) == list(range(n))
        assert sum(a != b for a, b in zip(before, before[1:])) == n - 1  # each block in one piece
        assert {(a, b) for a, b in zip(before, after) if a != b} == {(victim(n), n)}
