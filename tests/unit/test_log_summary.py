"""log_summary.json: used where it belongs to the log, ignored and made anew where it is wrong, missing or hostile."""

import os

import pytest

from contract import names
from contract.log import ABANDON, ABSORB, CRAWL, SEED, Entry, State, commit, find_end, replay
from contract.log_summary import BYTES_MAX, encode_state, read_log, read_summary, witness, write_summary
from contract.plan import PROBED, cycles_without_plan, open_cycles
from contract.totals import FETCHED, read_totals
from examine.findings import Findings
from examine.log_summary_check import check_summary, find_unusable
from storage.errors import Damaged
from storage.publish import FORMAT, encode_json, make_folder, read_json
from supervise import crawl_state as crawl_states
from supervise.crawl_state import CrawlState
from tests.small_crawl import SmallCrawl

SEEDS = [f"http://s{number}.test/" for number in range(8)]
EXACT = ("blocks", "length", "live", "seen", "last_turn", "gave_up", "closed", "kinds", "inbox")


@pytest.fixture
def crawl(tmp_path) -> SmallCrawl:
    crawl = SmallCrawl(tmp_path / "crawl", 2)
    crawl.seed(SEEDS)
    crawl.absorb_all()
    crawl.seed(["http://s1.test/more"])
    crawl.crawl_state.write_summary()
    return crawl


def summary_of(crawl: SmallCrawl):
    return crawl.crawl.path / names.LOG_SUMMARY


def rewrite(crawl: SmallCrawl, **fields) -> None:
    """Changes fields of the summary; its checksum is right again."""
    value = read_json(summary_of(crawl)) | fields
    summary_of(crawl).write_bytes(encode_json(value))


def exact(state: State) -> dict:
    return {name: getattr(state, name) for name in EXACT}


def findings_of(crawl: SmallCrawl) -> list[str]:
    findings = Findings()
    check_summary(crawl.crawl, crawl.history(), findings)
    return [line for line in findings.report() if "remove it" in line]


def test_a_reader_takes_the_summary_and_the_entries_behind_it(crawl, monkeypatch):
    length = crawl.crawl_state.log.length
    crawl.absorb_all()
    read = []
    monkeypatch.setattr("contract.log_summary.read_entry", lambda *about: read.append(about[1]) or replay_entry(*about))
    state = read_log(crawl.crawl)
    assert exact(state) == exact(crawl.history()) and read == list(range(length, state.length)) != []
    assert not findings_of(crawl) and not find_unusable(crawl.crawl)


def replay_entry(path, position):
    return replay(path, 2).entries[position]


WRONG = {
    "an older version": {"version": 0},
    "another crawl": {"crawl_id": "other"},
    "other entries": {"witness": "0" * 32},
    "ahead of the log": {"position": 1_000},
    "a position below 0": {"position": -1},
    "a position that is no number": {"position": "3"},
    "a number out of range": {"live": {"0": 1 << 40}},
    "too many blocks": {"blocks": 1 << 31},
    "a block that is not there": {"seen": {"7": 0}},
    "seen behind the end": {"seen": {"0": 99}},
    "a table that is a list": {"live": []},
    "a truth value": {"closed_below": True},
    "holes that do not rise": {"not_closed": [[3, 1]]},
    "a hole behind the end": {"not_closed": [[0, 1 << 31]]},
    "holes that are texts": {"not_closed": ["ab"]},
    "an unknown kind": {"entries": {"other": 1}},
    "tables that are no entries": {"tables": [{"position": 0}]},
    "an entry without a table": {"tables": [{"position": 0, **vars(Entry(ABSORB, 0, 2))}]},
    "names that are numbers": {"inbox": [1]},
    "more names than are kept": {"inbox": [str(number) for number in range(1_001)]},
    "splits of another shape": {"splits": [[1, 2]]},
    "sums that are texts": {"fetched": {"answered": "1", "failed": 0, "refused": 0, "bytes": 0}},
    "reasons that are numbers": {"reasons": [1]},
    "unsettled cycles of another shape": {"unsettled": [1]},
    "live generations that were not committed": {"generations": {}},
}


@pytest.mark.parametrize("fields", WRONG.values(), ids=WRONG)
@pytest.mark.sampled(8)
def test_a_wrong_summary_is_ignored_and_made_anew(crawl, fields):
    rewrite(crawl, **fields)
    assert read_summary(crawl.crawl) is None and exact(read_log(crawl.crawl)) == exact(crawl.history())
    assert "remove it; it is made anew" in find_unusable(crawl.crawl) and not findings_of(crawl)
    again = CrawlState(crawl.crawl)
    assert again.is_rebuilt and exact(again.log) == exact(crawl.history())
    again.write_summary()
    assert exact(read_summary(crawl.crawl)) == exact(crawl.history()) and not find_unusable(crawl.crawl)


def put_fifo(path):
    os.mkfifo(path)


def put_huge(path):
    with open(path, "wb") as file:
        file.truncate(BYTES_MAX + 1)


IN_ITS_PLACE = {
    "nothing": lambda path: None,
    "a pipe": put_fifo,
    "a folder": lambda path: (path.mkdir(), (path / "file").write_text("x")),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to a file": lambda path: path.symlink_to(path.parent / names.CRAWL_FILE),
    "a huge file": put_huge,
    "an empty file": lambda path: path.write_bytes(b""),
    "a torn file": lambda path: path.write_bytes(b'{"format": 4,'),
    "deep brackets": lambda path: path.write_bytes(b"[" * 100_000),
    "a long number": lambda path: path.write_bytes(b'{"format": ' + b"9" * 10_000 + b"}"),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("put", IN_ITS_PLACE.values(), ids=IN_ITS_PLACE)
@pytest.mark.sampled(4)
def test_whatever_is_in_its_place_is_replaced(crawl, put):
    summary_of(crawl).unlink()
    put(summary_of(crawl))
    assert read_summary(crawl.crawl) is None and exact(read_log(crawl.crawl)) == exact(crawl.history())
    again = CrawlState(crawl.crawl)
    again.write_summary()
    assert summary_of(crawl).is_file() and exact(read_summary(crawl.crawl)) == exact(crawl.history())


def test_a_summary_of_a_longer_log_is_not_used_after_a_copy_was_restored(crawl):
    (crawl.crawl.path / names.LOG / names.log_entry(crawl.crawl_state.log.length - 1)).unlink()
    assert read_summary(crawl.crawl) is None and exact(read_log(crawl.crawl)) == exact(crawl.history())
    commit(crawl.crawl.path, Entry(ABANDON, 50, 2, reason="another history"))
    assert read_summary(crawl.crawl) is None, "the log is as long as it was, with another entry"


def test_the_witness_changes_with_the_entries_before_it(crawl):
    before = witness(crawl.crawl.path, crawl.crawl_state.log.length)
    path = crawl.crawl.path / names.LOG / names.log_entry(crawl.crawl_state.log.length - 2)
    path.write_bytes(path.read_bytes().replace(b"absorb", b"Absorb"))
    assert witness(crawl.crawl.path, crawl.crawl_state.log.length) != before and read_summary(crawl.crawl) is None


def test_a_summary_that_disagrees_with_the_log_is_reported(crawl):
    forged = {"live": {"0": 0, "1": 1}, "generations": {"0": [0], "1": [1]}}
    for fields in (forged, {"tables": []}, {"live": {}, "generations": {}}, {"inbox": []}, {"closed_below": 9}):
        crawl.crawl_state._summary_at = -1
        crawl.crawl_state.write_summary()
        assert not findings_of(crawl)
        rewrite(crawl, **fields)
        assert read_summary(crawl.crawl) is not None and len(findings_of(crawl)) == 1, fields


def test_a_disk_that_refuses_it_does_not_end_the_run(crawl, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    assert not write_summary(crawl.crawl, crawl.crawl_state.log)
    monkeypatch.undo()
    assert exact(read_summary(crawl.crawl)) == exact(crawl.history()), "the last one is still there"


def test_the_supervisor_writes_it_now_and_then(crawl, monkeypatch):
    monkeypatch.setattr(crawl_states, "SUMMARY_EVERY", 3)
    at = read_summary(crawl.crawl).length
    positions = []
    for number in range(7):
        crawl.seed([f"http://t.test/{number}"])
        positions.append(read_summary(crawl.crawl).length - at)
    assert positions == [0, 0, 3, 3, 3, 6, 6]
    assert len(crawl.crawl_state.log.recent) == 1, "entries in memory are those that no summary has"


def test_totals_are_those_of_the_summary_and_what_was_added(crawl):
    state = crawl.crawl_state.log
    state.summed.fetched["answered"] = 40
    state.summed.reasons["timeout_connect"] = 2
    state.summed.uncounted.append(77)
    write_summary(crawl.crawl, state)
    state = read_log(crawl.crawl)
    state.apply(Entry(CRAWL, 90, 2, {0: state.generation(0)}, {0: 90}, 1))
    totals = read_totals(crawl.crawl.path, state)
    assert totals.fetched == {"answered": 40, "failed": 0, "refused": 0, "bytes": 0}
    assert totals.reasons == {"timeout_connect": 2} and totals.uncounted == [77, 90]
    assert state.summed.uncounted == [77], "reading changes nothing"
    folder = crawl.crawl.path / names.cycle(77) / names.FETCHER
    folder.mkdir(parents=True)
    counts = {"answered": 1, "failed": 2, "refused": 3, "bytes": 4}
    (folder / names.MANIFEST).write_bytes(encode_json({"format": FORMAT, "files": {}, "counts": counts}))
    theirs = {"answered": 1, "failed": 0, "refused": 2, "bytes": 3}
    make_folder(folder.parent / names.EXTRACTOR)
    (folder.parent / names.EXTRACTOR / names.MANIFEST).write_bytes(
        encode_json({"format": FORMAT, "files": {}, "counts": {"link_sources": theirs}})
    )
    totals = read_totals(crawl.crawl.path, state)
    assert totals.fetched["answered"] == 41 and totals.uncounted == [90], "a manifest that came back counts"
    assert totals.link_sources == theirs


def test_a_summary_without_link_sources_is_of_a_crawl_that_had_none(crawl):
    value = read_json(summary_of(crawl))
    assert value.pop("link_sources") == dict.fromkeys(FETCHED, 0)
    summary_of(crawl).write_bytes(encode_json(value))
    state = read_summary(crawl.crawl)
    assert state is not None and state.summed.link_sources == dict.fromkeys(FETCHED, 0)
    state.summed.link_sources["answered"] = 7
    write_summary(crawl.crawl, state)
    assert read_log(crawl.crawl).summed.link_sources["answered"] == 7


def test_it_is_as_long_as_the_crawl_is_wide_not_old(crawl):
    def fields() -> int:
        state = crawl.crawl_state
        state.settle()
        crawl.delete(1)
        state.write_summary()
        value = encode_state(read_summary(crawl.crawl))
        return sum(len(part) for name, part in value.items() if name not in ("inbox",) and hasattr(part, "__len__"))

    sizes = []
    for number in range(12):
        crawl.seed([f"http://s{server}.test/{number}" for server in range(8)])
        crawl.absorb_all()
        sizes.append(fields())
    assert sizes[-1] == sizes[-4] == sizes[3]


def test_one_that_is_made_anew_waits_for_the_first_deletion(crawl, monkeypatch):
    monkeypatch.setattr(crawl_states, "SUMMARY_EVERY", 1)
    crawl.absorb_all()
    summary_of(crawl).unlink()
    crawl.crawl_state = again = CrawlState(crawl.crawl)
    again.refresh()
    assert again.is_rebuilt and not summary_of(crawl).exists(), "it would have all that was ever committed"
    crawl.delete(1)
    again.settle()
    again.write_summary()
    summary = read_summary(crawl.crawl)
    assert not summary.tables and not summary.unsettled and {len(one) for one in summary.generations.values()} <= {1, 2}


def touch(crawl, *positions):
    (crawl / names.LOG).mkdir(exist_ok=True)
    for position in positions:
        (crawl / names.LOG / names.log_entry(position)).touch()


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 8, 100, 129])
def test_the_end_of_the_log_is_found_by_probing(tmp_path, length):
    touch(tmp_path, *range(length))
    assert {find_end(tmp_path, known) for known in {0, length // 2, max(0, length - 1), length}} == {length}


@pytest.mark.parametrize("missing", [range(1), range(5, 6), range(40, 47), range(60, 90), range(98, 99)])
def test_a_gap_is_seen_by_probing(tmp_path, missing):
    touch(tmp_path, *(position for position in range(100) if position not in missing))
    with pytest.raises(Damaged, match="found a gap"):
        find_end(tmp_path, missing.start)


def test_an_entry_that_is_added_meanwhile_is_no_gap(tmp_path, monkeypatch):
    touch(tmp_path, 0, 1)
    looked = os.path.lexists

    def look(path):
        found = looked(path)
        if path.endswith(names.log_entry(2)) and not found:
            touch(tmp_path, 2, 3, 4)
        return found

    monkeypatch.setattr(os.path, "lexists", look)
    assert find_end(tmp_path) == 5


def test_a_commit_fills_no_gap(tmp_path):
    touch(tmp_path, 0, 2)
    with pytest.raises(Damaged, match="found a gap"):
        commit(tmp_path, Entry(SEED, 0, 1), known=1)
    commit(tmp_path, Entry(SEED, 0, 1))
    assert not (tmp_path / names.LOG / names.log_entry(1)).exists()


def plan_in(crawl, *cycles):
    for cycle in cycles:
        (crawl / names.cycle(cycle)).mkdir(parents=True)
        (crawl / names.cycle(cycle) / names.PLAN).touch()


def test_open_cycles_are_found_without_listing_them(tmp_path, monkeypatch):
    state = State(1)
    for cycle in (0, 1, 3, 6):
        state.apply(Entry(SEED, cycle, 1))
    state.apply(Entry(ABANDON, 7, 1))
    plan_in(tmp_path, 1, 2, 3, 5, 9, 9 + PROBED)
    (tmp_path / names.cycle(7)).mkdir()
    (tmp_path / names.cycle(7) / "file").touch()
    (tmp_path / names.cycle(10)).mkdir()  # what a crash before the plan leaves
    whole = open_cycles(tmp_path, state, whole=True)
    monkeypatch.setattr(names, "numbered", lambda *_: pytest.fail("a listing"))
    assert open_cycles(tmp_path, state) == whole == [2, 5, 9, 9 + PROBED]
    assert cycles_without_plan(tmp_path, state) == [7]


def test_a_log_that_skipped_many_numbers_does_not_hang(tmp_path):
    state = State(1)
    state.apply(Entry(SEED, names.NUMBER_END - 1, 1))
    plan_in(tmp_path, 5)
    assert open_cycles(tmp_path, state) == [5] and state.closed.count_missing() == names.NUMBER_END - 1
