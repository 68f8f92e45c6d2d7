"""The log: entries in order, void ones skipped, gaps and damage named."""

import pytest

from contract.log import (
    ABANDON,
    ABSORB,
    CRAWL,
    GROW,
    SEED,
    Entry,
    History,
    State,
    commit,
    positions,
    read_entry,
    replay,
)
from storage.errors import Damaged


@pytest.fixture
def crawl(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path


def test_entries_come_back_as_committed(crawl):
    entry = Entry(CRAWL, 7, 2, {1: None}, {1: 7}, 3, "", "")
    assert commit(crawl, entry) == 0 and commit(crawl, entry) == 1
    assert read_entry(crawl, 0) == entry


def test_which_generation_is_live(crawl):
    state = State(2)
    assert state.apply(Entry(SEED, 0, 2, inbox="a.txt"))
    assert state.apply(Entry(ABSORB, 1, 2, {0: None}, {0: 1}, 1))
    assert state.apply(Entry(CRAWL, 2, 2, {0: 1}, {0: 2}, 2))
    assert (state.live, state.seen, state.last_turn, list(state.inbox)) == ({0: 2}, {0: 2}, {0: 2}, ["a.txt"])


def test_void_entries_are_skipped():
    state = History(2)
    state.apply(Entry(CRAWL, 1, 2, {0: None}, {0: 1}, 1))
    assert not state.apply(Entry(CRAWL, 1, 2, {0: None}, {0: 1}, 1)), "its cycle has an entry already"
    assert not state.apply(Entry(CRAWL, 2, 2, {0: None}, {0: 2}, 1)), "its parent is not live"
    assert state.apply(Entry(ABANDON, 3, 2, {0: 1}, reason="x")) and state.live == {0: 1}
    assert not state.apply(Entry(CRAWL, 3, 2, {0: 1}, {0: 3}, 1)), "an abandoned cycle stays so"
    assert state.entries.count(None) == 3 and state.length == 5


def test_growth_comes_with_its_entry():
    state = State(2)
    state.apply(Entry(CRAWL, 1, 2, {0: None}, {0: 1}, 1))
    assert not state.apply(Entry(GROW, 2, 3, {0: None}, {0: 2, 2: 2}, 1)) and state.blocks == 2
    assert state.apply(Entry(GROW, 3, 3, {0: 1}, {0: 3, 2: 3}, 1))
    assert state.blocks == 3 and state.live == {0: 3, 2: 3} and state.seen == {0: 1, 2: 1}


def test_a_gap_is_damage(crawl):
    commit(crawl, Entry(SEED, 0, 1))
    commit(crawl, Entry(SEED, 1, 1))
    (crawl / "log" / "00000000.json").unlink()
    with pytest.raises(Damaged, match="expected an entry, found a gap"):
        positions(crawl)


@pytest.mark.parametrize("text", [b"", b"{}", b'{"format": 4}', b'{"format": 4, "kind": "other"}', b"\x00\xff"])
def test_a_damaged_entry_is_named(crawl, text):
    commit(crawl, Entry(SEED, 0, 1))
    (crawl / "log" / "00000000.json").write_bytes(text)
    with pytest.raises(Exception, match="00000000.json"):
        replay(crawl, 1)
