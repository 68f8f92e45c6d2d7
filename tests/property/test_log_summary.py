"""The state from a summary and the entries behind it is that of the whole log, for any log."""

import json
from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from contract.aux_rows import mask_of
from contract.blocks import block_to_split, interval
from contract.closed_cycles import ClosedCycles
from contract.log import ABANDON, ABSORB, CRAWL, FORGET, GROW, RECONSIDER, SEED, Entry, History, State
from contract.log_summary import decode_state, encode_state
from contract.pending import absorber, find_lacked, find_lacking

BLOCKS_FIRST = 2
# Kind, which block, how far the cycle's number lies behind the newest, and whether the parent is a wrong one.
STEPS = st.lists(
    st.tuples(
        st.sampled_from([CRAWL, CRAWL, ABSORB, FORGET, SEED, GROW, ABANDON, RECONSIDER]),
        st.integers(0, 7),
        st.integers(-3, 4),
        st.integers(0, 5).map(lambda number: number == 0),
    ),
    max_size=60,
)


def entries_of(steps: list[tuple[str, int, int, bool]]) -> list[Entry]:
    """A log with entries in force, second entries of a cycle, and entries whose parent is not live."""
    state, entries, newest = State(BLOCKS_FIRST), [], 0
    for kind, which, behind, is_stale in steps:
        cycle = max(0, newest - behind)
        newest = max(newest, cycle) + 1
        block = block_to_split(state.blocks) if kind == GROW else which % state.blocks
        parent = state.generation(block) if not is_stale else 4_000_000
        parents, seen = {block: parent}, min(state.length, state.seen.get(block, 0) + which)
        if kind in (CRAWL, ABSORB, FORGET):
            entry = Entry(kind, cycle, state.blocks, parents, {block: cycle}, seen)
        elif kind == GROW:
            made = cycle if parent is not None else None
            children = {block: made, state.blocks: made}
            entry = Entry(kind, cycle, state.blocks + 1, parents, children, state.seen.get(block, 0))
        elif kind == ABANDON:
            entry = Entry(kind, cycle, state.blocks, parents, reason="kept dying")
        else:
            entry = Entry(kind, cycle, state.blocks, inbox=f"{which}.txt")
        state.apply(entry)
        entries.append(entry)
    return entries


@given(STEPS, st.integers(0, 60))
def test_a_summary_and_the_entries_behind_it_are_the_whole_log(steps, cut):
    entries = entries_of(steps)
    whole, part = History(BLOCKS_FIRST), State(BLOCKS_FIRST)
    in_force = [whole.apply(entry) for entry in entries]
    again = [part.apply(entry) for entry in entries[:cut]]
    part.recent = []
    value = json.loads(json.dumps(encode_state(part)))
    part = decode_state(value, BLOCKS_FIRST)
    again += [part.apply(entry) for entry in entries[cut:]]
    assert again == in_force, "an entry is void whether or not what makes it so is below the summary"
    for name in (field.name for field in fields(State) if field.name != "recent"):
        assert getattr(part, name) == getattr(whole, name), name
    behind = [(position, entry) for position, entry in enumerate(whole.entries) if entry and position >= cut]
    assert part.recent == behind
    assert [whole.is_closed(cycle) for cycle in range(70)] == [cycle in whole.cycles for cycle in range(70)]
    assert sum(whole.kinds.values()) == len(whole.cycles)


@given(st.lists(st.integers(0, 40)))
def test_closed_cycles_are_a_set_of_numbers(cycles):
    closed = ClosedCycles()
    for cycle in cycles:
        closed.add(cycle)
    assert [cycle for cycle in range(-2, 50) if cycle in closed] == sorted(set(cycles))
    assert sorted([*closed.missing(), *set(cycles)]) == list(range(closed.end))
    assert closed.count_missing() == closed.end - len(set(cycles))
    assert all(begin < end for begin, end in closed.holes) and closed == closed.copy()


@given(
    st.integers(1, 20),
    st.lists(st.lists(st.integers(0, (1 << 64) - 1), max_size=3), max_size=20),
    st.lists(st.tuples(st.integers(0, 19), st.integers(0, 60)), min_size=1, max_size=20),
)
def test_what_is_lacked_is_found_in_one_pass(blocks, tables, wanted):
    given_tables = []
    for index, keys in enumerate(tables):
        bits = 0
        for key in keys:
            bits |= mask_of(key, key + 1)
        given_tables.append((3 * index, bits))
    absorbers = [absorber(block % blocks, blocks, seen) for block, seen in wanted]
    lacks = [
        [position for position, bits in given_tables if position >= one.seen and bits & mask_of(one.low, one.high)]
        for one in absorbers
    ]
    assert find_lacking(given_tables, absorbers) == [bool(positions) for positions in lacks]
    assert find_lacked(given_tables, absorbers) == {position for positions in lacks for position in positions}
    assert mask_of(*interval(0, 1)) == (1 << 4096) - 1
