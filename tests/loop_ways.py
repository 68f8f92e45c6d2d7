"""Runs a test both ways that compiled loops may run: by machine code, and as in a process that has no numba."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest

from storage import compiled

PLENTY = 1 << 40  # items: more than a test has


@contextmanager
def by_machine_code() -> Iterator[None]:
    compiled.load_all()
    yield


@contextmanager
def without_numba() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(compiled, "is_loaded", lambda: False))
        for loop in compiled.loops:
            stack.enter_context(patch.multiple(loop, machine=None, plain_left=PLENTY))
        yield


both_ways = pytest.mark.parametrize("way", [by_machine_code, without_numba], ids=["machine", "plain"])
