"""bin/bench sorted-keys: both ways to a result give the same result."""

from argparse import Namespace

import numpy as np

from bench.sorted_keys import compare, make_rivals, measure

SIZE = 3_000


def test_both_ways_agree():
    once, reached, differences, duplicates, united, few, by_domain, packed = make_rivals(SIZE)
    (is_in, seen), (was_in, was_seen) = once.sortednp(), once.other()
    assert (is_in == was_in).all() and seen.tolist() == np.unique(was_seen).tolist()
    for rivals in (reached, united, few):
        assert rivals.sortednp().tolist() == rivals.other().tolist()
    assert [part.tolist() for part in differences.sortednp()] == [part.tolist() for part in differences.other()]
    assert len(duplicates.sortednp()) == 2 * (SIZE // 10) and len(duplicates.other()) == SIZE
    row, there = by_domain.other()
    assert np.concatenate(by_domain.sortednp()).tolist() == row[there].tolist()
    wanted, found = packed.sortednp()
    assert set(zip(np.flatnonzero(there).tolist(), row[there].tolist())) <= set(zip(wanted.tolist(), found.tolist()))


def test_a_ratio_is_how_many_times_the_other_took():
    row = compare(make_rivals(SIZE)[0], 3)
    assert set(row) == {"sortednp_ms", "other_ms", "ratio"} and min(row.values()) > 0


def test_a_quick_run_measures_every_operation(capsys):
    figures = measure(Namespace(repeats=1, quick=True))
    lines = capsys.readouterr().out.splitlines()
    assert all(any(name in line for line in lines) for name in figures) and len(figures) == 8
