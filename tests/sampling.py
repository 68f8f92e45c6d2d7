"""The quick run and the long run: which tests and cases each of them has.

`bin/test` is the quick run, `bin/test --all` the long one. The long run has everything. The quick run leaves out

- tests marked `long`, and the files in LONG;
- of a test marked `sampled(n)`, all but n of its parameter sets, which the seed chooses;
- most positions of a sweep (`stride`), most examples of hypothesis (`examples`): the seed chooses those that stay.

The seed is printed first; `--sample-seed N` repeats a run. Whoever names a file or a test, or gives -k, gets the `long`
tests and all parameter sets of what is named, also without --all; sweeps and hypothesis are complete with --all only.
"""

import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

SEEDS = 1_000_000
EXAMPLES_SHARE, EXAMPLES_MIN = 5, 5  # the quick run tries a fifth of hypothesis' examples, and at least five
# Self-tests of bench/ and synthweb/: they change seldom, and other tests would fail with them.
LONG = ("tests/stages/test_bench_*.py", "tests/stages/test_synthweb*.py")


@dataclass
class Sampling:
    is_complete: bool = True
    seed: int = 0

    def stride(self, quick: int, complete: int = 1) -> tuple[int, int]:
        """The first position of a sweep, counted from 1, and the distance to the next one."""
        if self.is_complete:
            return 1, complete
        return 1 + self.seed % quick, quick

    def examples(self, complete: int) -> int:
        """How many examples hypothesis tries."""
        return complete if self.is_complete else max(min(complete, EXAMPLES_MIN), complete // EXAMPLES_SHARE)


sampling = Sampling()  # conftest.py sets it before test modules are imported


def left_to_long_run(items: list[pytest.Item], seed: int) -> set[pytest.Item]:
    """The tests that the quick run leaves out."""
    left = {item for item in items if item.get_closest_marker("long") or is_long_file(item)}
    sets = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            sets[item.nodeid.partition("[")[0]].append(item)
    for name, members in sets.items():
        count = min(members[0].get_closest_marker("sampled").args[0], len(members))
        left |= set(members) - set(random.Random(f"{seed} {name}").sample(members, count))
    return left


def is_long_file(item: pytest.Item) -> bool:
    path = item.path.relative_to(item.config.rootpath)
    return any(path.match(pattern) for pattern in LONG)


def names_tests(config: pytest.Config) -> bool:
    """Whether the command line names a file or a test, or chooses tests by -k."""
    return bool(config.option.keyword) or any(
        "::" in argument or Path(argument).suffix == ".py" for argument in config.invocation_params.args
    )
