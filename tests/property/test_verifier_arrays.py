"""The verifier's operations on sorted arrays against plain Python, with keys that begin alike and keys at both ends."""

import os
import resource

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.accumulators import COUNTED, LINKED, Accumulator
from contract.config import Config, Scheduler, Verifier
from contract.generation import BLOCK_SERVERS, domains_of, line_numbers
from contract.tables import COLLECTED_STATE, PRESCHEDULED, WAITING
from stages.verifier.pieces import cut
from stages.verifier.prescheduling import Refill
from stages.verifier.server_table import ServerTable
from stages.verifier.texts import FOLDED, SEGMENTS_MAX, choose_folded
from storage.keyed_file import KeyedFile
from storage.pairs import PAIR_END, Runs, find_pair, find_pairs, sort_pairs
from storage.tables import ROW_GROUP_ROWS, column, write_table
from tests.loop_ways import both_ways
from tests.sampling import sampling

END = 2**64 - 1
keys = st.one_of(st.sampled_from([0, 1, 2**32, 2**32 + 1, 2**63, END - 1, END]), st.integers(0, END))
pairs = st.tuples(keys, keys)
SCHEMA = pa.schema([pa.field(name, pa.uint64(), nullable=False) for name in ("first", "second")])
quick = settings(max_examples=sampling.examples(150))


def columns_of(rows) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.array([row[place] for row in rows], np.uint64) for place in (0, 1))


@both_ways
@quick
@given(st.lists(pairs, max_size=40))
def test_pairs_are_sorted(way, rows):
    first, second = columns_of(rows)
    with way():
        order, majors, minors = sort_pairs(first, second)
    assert [rows[place] for place in order.tolist()] == sorted(rows) == list(zip(majors.tolist(), minors.tolist()))


@both_ways
@quick
@given(st.sets(pairs, max_size=40), st.lists(pairs, max_size=20))
def test_pairs_are_found(way, there, wanted):
    rows = sorted(there)
    place_of = {pair: place for place, pair in enumerate(rows)}
    with way():
        found = find_pairs(*columns_of(wanted), *columns_of(rows))
    assert found.tolist() == [place_of.get(pair, -1) for pair in wanted]
    for first, second in wanted:
        assert find_pair(*columns_of(rows), first << 64 | second) == sum(pair < (first, second) for pair in rows)
    assert find_pair(*columns_of(rows), PAIR_END) == len(rows)


@both_ways
@quick
@given(st.dictionaries(keys, st.sets(keys, max_size=12), max_size=6), st.lists(pairs, max_size=20), st.data())
def test_runs_of_pairs_are_searched(way, runs, wanted, data):
    rows = [(first, second) for first in sorted(runs) for second in sorted(runs[first])]  # some runs are empty
    wanted += data.draw(st.lists(st.sampled_from(rows), max_size=20)) if rows else []
    wanted += [
        (first, second ^ 1) for first, second in wanted
    ]  # as they differ in the last bit alone, they begin alike
    starts = np.cumsum([0, *(len(runs[first]) for first in sorted(runs))])
    with way():
        place, there = Runs(np.array(sorted(runs), np.uint64), starts, columns_of(rows)[1]).search(*columns_of(wanted))
    assert place.tolist() == [sum(row < pair for row in rows) for pair in wanted]
    assert there.tolist() == [pair in rows for pair in wanted]


@quick
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from([0, 1, 2, 3, 254, 255, 256, 257, 65_535, 65_536, 2**24 - 1]),
            st.booleans(),
        ),
        max_size=12,
    ),
    st.integers(1, 20),
    st.integers(1, 3),
    st.integers(0, 60),
)
def test_the_best_waiting_rows_of_each_server_are_found(rows, times, most, piece):
    """Servers with more than sixteen times `most` rows are crowded."""
    rows *= times
    chosen, counts = preschedule([(f"s{server}", score, waits) for server, score, waits in rows], most, {0, piece})
    best = [
        sorted((score, row) for row, (other, score, waits) in enumerate(rows) if waits and other == server)[:most]
        for server in range(3)
    ]
    assert chosen == {row for rows_of_server in best for _, row in rows_of_server}
    assert counts == {f"s{server}": len(best[server]) for server in range(3) if best[server]}


@quick
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 255), st.booleans()), max_size=40),
    st.sets(st.integers(0, 40), max_size=4),
    st.integers(1, 8),
)
def test_choosing_anew_is_a_plain_sort(rows, cuts, most):
    """Domains with two servers each, in their order; pieces end anywhere."""
    rows.sort(key=lambda row: row[0])
    named = [(f"d{domain}s{server}", depth, waits) for domain, server, depth, waits in rows]
    chosen, counts = preschedule(named, most, cuts | {0}, [domain for domain, *_ in rows])
    best = {
        name: sorted((depth, row) for row, (other, depth, waits) in enumerate(named) if waits and other == name)[:most]
        for name, _, _ in named
    }
    assert chosen == {row for rows_of_server in best.values() for _, row in rows_of_server}
    assert counts == {name: len(rows_of_server) for name, rows_of_server in best.items() if rows_of_server}


def preschedule(
    rows: list[tuple[str, int, bool]], most: int, starts: set[int], domains: list[int] | None = None
) -> tuple[set[int], dict[str, int]]:
    """(rows that Refill chooses, how many of each server), from rows of (server, score, waits); fifo scores them."""
    servers_named = sorted({name for name, _, _ in rows})
    domain_of = dict(zip((name for name, _, _ in rows), domains or [7] * len(rows)))
    keys = np.arange(1, len(servers_named) + 1, dtype=np.uint64)
    domain_keys = np.array([domain_of[name] for name in servers_named], np.uint64)
    servers = ServerTable(BLOCK_SERVERS.empty_table(), keys, domain_keys)
    config = Config(scheduler=Scheduler(policy="fifo"), verifier=Verifier(prescheduled_max=most, prescheduled_refill=1))
    refill = Refill(np.ones(len(servers_named), bool), servers, config, 0)
    index = np.array([servers_named.index(name) for name, _, _ in rows], np.int32)
    state = np.array([WAITING if waits else COLLECTED_STATE for _, _, waits in rows], np.uint8)
    added = np.array([score for _, score, _ in rows], np.uint32)
    edges = sorted(start for start in starts if start <= len(rows)) + [len(rows)]
    for start, stop in zip(edges, edges[1:]):
        part = slice(start, stop)
        servers.count(index[part], state[part])
        refill.offer({"state": state[part], "added": added[part]}, index[part], start)
    state[refill.choose()] = PRESCHEDULED
    counts = dict(zip(servers_named, servers.states[:, PRESCHEDULED].tolist()))
    return set(np.flatnonzero(state == PRESCHEDULED).tolist()), {name: count for name, count in counts.items() if count}


@quick
@given(st.lists(st.tuples(keys, st.integers(0, 5)), max_size=12), st.lists(keys, max_size=10))
def test_rows_of_domains(servers, asked):
    servers.sort()
    domains = domains_of(
        np.array([key for key, _ in servers], np.uint64), np.array([known for _, known in servers], np.uint32)
    )
    start, stop = domains.rows_of(np.array(asked, np.uint64))
    for key, low, high in zip(asked, start.tolist(), stop.tolist()):
        assert low == sum(known for other, known in servers if other < key) and high == sum(
            known for other, known in servers if other <= key
        )


@quick
@given(st.lists(st.integers(0, 4), max_size=300), st.data())
def test_lines_are_numbered_by_counting(segment, data):
    rows = sorted(data.draw(st.sets(st.integers(0, max(len(segment) - 1, 0)), max_size=20))) if segment else []
    found = line_numbers(np.array(segment, np.uint8), np.array(rows, np.int64))
    assert found.tolist() == [segment[:row].count(segment[row]) for row in rows]


@quick
@given(st.sets(pairs, max_size=30), st.integers(1, 5))
def test_pieces_follow_each_other_and_fit(rows, most):
    points = sorted(first << 64 | second for first, second in rows)
    pieces = cut(0, PAIR_END, lambda low, high: sum(low <= point < high for point in points), most)
    assert (
        pieces[0][0] == 0
        and pieces[-1][1] == PAIR_END
        and all(left[1] == right[0] for left, right in zip(pieces, pieces[1:]))
    )
    assert all(sum(low <= point < high for point in points) <= most for low, high in pieces)


@quick
@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, END)), min_size=1, max_size=20))
def test_sums_and_latest_values_stay_within_their_column(values):
    have, more = np.array([one for one, _ in values], np.uint32), np.array([two for _, two in values], np.uint64)
    most = 2**32 - 1
    assert Accumulator("", "u4", COUNTED).join(have, more).tolist() == [min(one + two, most) for one, two in values]
    assert Accumulator("", "u4", LINKED).join(have, more).tolist() == [max(one, min(two, most)) for one, two in values]


@quick
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_few_segments_stay(segments):
    in_use, texts = np.array([min(segment) for segment in segments], np.int64), [max(segment) for segment in segments]
    folded = choose_folded(in_use, texts)
    assert len(segments) - len(folded) < SEGMENTS_MAX or len(segments) - len(folded) <= len(segments) - FOLDED
    assert all(place in folded for place, lines in enumerate(texts) if lines and in_use[place] * 4 < lines)


@pytest.mark.parametrize(
    "runs",
    [[1] * 100, [50_000], [10, 60_000, 10], [ROW_GROUP_ROWS], [3 * ROW_GROUP_ROWS, 5, 2 * ROW_GROUP_ROWS + 1], []],
)
def test_a_keyed_file_gives_any_range(tmp_path, runs):
    random = np.random.default_rng(len(runs))
    first = np.repeat(np.sort(random.integers(0, END, len(runs), np.uint64, endpoint=True)), runs)
    second = np.concatenate(
        [
            np.empty(0, np.uint64),
            *(np.sort(random.choice(2**62, size, replace=False).astype(np.uint64)) for size in runs),
        ]
    )
    write_table(tmp_path / "t.parquet", pa.table({"first": first, "second": second}, schema=SCHEMA))
    told = {"first_keys": first[::ROW_GROUP_ROWS].tolist(), "last_key": int(first[-1]) if len(first) else None}
    for file in (
        KeyedFile(tmp_path / "t.parquet", SCHEMA, ("first", "second")),
        KeyedFile(tmp_path / "t.parquet", SCHEMA, ("first", "second"), **told),
    ):
        assert round(file.measure(0, PAIR_END)[0]) == len(file) == len(first) and len(file.read(0, PAIR_END)) == len(
            first
        )
        for _ in range(20):
            rows = sorted(random.integers(0, len(first), 2).tolist()) if len(first) else [0, 0]
            low, high = (int(first[row]) << 64 | int(second[row]) if len(first) else 5 for row in rows)
            found = file.read(low, high)
            assert np.array_equal(column(found, "second"), second[rows[0] : rows[1]])
            assert abs(file.measure(low, high)[0] - len(found)) <= 2 * ROW_GROUP_ROWS
            assert sum(len(part) for part in file.read_pieces(low, high)) == len(found)


def test_any_number_of_keyed_files_may_be_in_use(tmp_path):
    """A block that was long without a turn has an AUX for each turn of the others.

    A process may have some hundred files open.
    """
    write_table(tmp_path / "t.parquet", pa.table({"first": [1, 1, 2], "second": [1, 2, 1]}, schema=SCHEMA))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = len(os.listdir("/proc/self/fd")) + 20
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
        files = [KeyedFile(tmp_path / "t.parquet", SCHEMA, ("first", "second")) for _ in range(100)]
        assert [len(file.read(1 << 64, 2 << 64)) for file in files] == [2] * 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
