"""The files that say what runs did: journal, live.json and messages.log; with full disks and hostile leftovers."""

import json
import os
import re
import resource
import subprocess
import sys
from contextlib import contextmanager

import duckdb
import pytest

from supervise import journal as journal_module
from supervise import messages as messages_module
from supervise.events import ERROR
from supervise.journal import FIELDS, Journal
from supervise.live import Live, describe_end, write_live
from supervise.messages import Messages
from tests.made_up_flights import NOW_MS, NOW_S, every_kind, make_plan

PLAN = make_plan(17, 2)
STAGE = {"begin_ms": NOW_MS, "end_ms": NOW_MS + 1_500, "exit_code": 0, "cpu_s": 1.25, "memory_peak_bytes": 1 << 27}
EVIL = "\x1b[2J\n\udcff\N{RIGHT-TO-LEFT OVERRIDE}evil"


def make_journal(crawl, troubles=None):
    on_trouble = troubles.append if troubles is not None else fail_on_trouble
    return Journal(crawl, "run-1", "crawl", lambda: NOW_MS, on_trouble)


def fail_on_trouble(text):
    raise AssertionError(text)


def write_run(journal, stages=1):
    journal.begin()
    for attempt in range(1, stages + 1):
        journal.stage(PLAN, "fetcher", attempt, **STAGE, read_bytes=0, written_bytes=9, pages=4, bytes=800)
    journal.end("done")


def files_of(crawl):
    return sorted((crawl / "journal").iterdir())


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def file_size_limit(most_bytes):
    """A disk that is full as far as this process can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def put_hostile(kind, path):
    path.parent.mkdir(exist_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/full")
    elif kind == "dangling":
        path.symlink_to(path.parent / "elsewhere")
    else:
        path.symlink_to(path.name)


HOSTILE = pytest.mark.parametrize("kind", ["folder", "pipe", "link", "dangling", "loop"])


def test_a_run_is_one_line_per_event_with_all_fields(tmp_path):
    write_run(make_journal(tmp_path), stages=2)
    (path,) = files_of(tmp_path)
    assert path.name == "00000000.jsonl"
    begin, first, second, end = lines_of(path)
    assert all(tuple(line) == FIELDS for line in (begin, first, second, end))
    assert [line["event"] for line in (begin, first, second, end)] == ["begin", "stage", "stage", "end"]
    assert (first["cycle"], first["block"], first["attempt"], second["attempt"]) == (17, 2, 1, 2)
    assert (begin["begin_ms"], end["end_ms"], end["why"], begin["cycle"]) == (NOW_MS, NOW_MS, "done", None)


def test_the_next_run_appends(tmp_path):
    for _ in range(2):
        write_run(make_journal(tmp_path))
    (path,) = files_of(tmp_path)
    assert len(lines_of(path)) == 6


@pytest.mark.parametrize("torn", ['{"event": "st', "\0\0\0\0", "x"])
def test_a_torn_last_line_costs_no_other(tmp_path, torn):
    write_run(make_journal(tmp_path))
    (path,) = files_of(tmp_path)
    with path.open("a") as file:
        file.write(torn)
    write_run(make_journal(tmp_path))
    assert len(lines_of(path)) == 6


def test_a_long_unfinished_line_is_ended_not_cut(tmp_path):
    (tmp_path / "journal").mkdir()
    path = tmp_path / "journal/00000000.jsonl"
    path.write_bytes(b"x" * 100_000)
    write_run(make_journal(tmp_path))
    first, *others = path.read_text().splitlines()
    assert len(first) == 100_000 and len([json.loads(line) for line in others]) == 3


def test_files_are_rotated_and_old_ones_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "FILE_MAX_BYTES", 1_000)
    monkeypatch.setattr(journal_module, "FILES_KEPT", 3)
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal/notes.txt").write_text("mine")
    write_run(make_journal(tmp_path), stages=30)
    paths = files_of(tmp_path)
    assert len(paths) in (4, 5) and (tmp_path / "journal/notes.txt").exists()
    assert all(path.stat().st_size < 2_000 for path in paths)
    assert lines_of(paths[-2])[-1]["event"] == "end"
    numbers = [int(path.stem) for path in paths[:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] > 3


def test_duckdb_reads_the_journal(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "FILE_MAX_BYTES", 1_000)
    write_run(make_journal(tmp_path), stages=8)
    source = f"read_json_auto('{tmp_path}/journal/*.jsonl')"
    assert duckdb.sql(f"select count(*) from {source}").fetchall() == [(10,)]
    rows = duckdb.sql(
        f"select stage, sum(end_ms - begin_ms), sum(cpu_s), sum(pages), sum(bytes) from {source} "
        "where event = 'stage' group by stage"
    ).fetchall()
    assert rows == [("fetcher", 12_000, 10.0, 32, 6_400)]
    assert set(duckdb.sql(f"select * from {source}").columns) == set(FIELDS)


def test_duckdb_reads_a_journal_whose_last_line_is_torn(tmp_path):
    """With the option that docs/operations.md has in its queries."""
    write_run(make_journal(tmp_path))
    with (tmp_path / "journal/00000000.jsonl").open("a") as file:
        file.write('{"event": "sta')
    source = f"read_json_auto('{tmp_path}/journal/*.jsonl', ignore_errors = true)"
    assert duckdb.sql(f"select count(*) from {source} where event is not null").fetchall() == [(3,)]


def test_the_queries_of_the_documents_run_as_they_stand(tmp_path, monkeypatch, request):
    journal = make_journal(tmp_path / "brazil")
    (tmp_path / "brazil").mkdir()
    write_run(journal)
    journal.stage(PLAN, "fetcher", 2, **{**STAGE, "exit_code": -9}, pages=2)
    text = (request.config.rootpath / "docs/operations.md").read_text()
    queries = [query for query in re.findall(r'duckdb -c "([^"]*)"', text) if "journal/" in query]
    monkeypatch.chdir(tmp_path)
    busy, dead = [duckdb.sql(query).fetchall() for query in queries]
    assert busy == [("fetcher", 2, 3.0, 2.5, 134, 4)]
    assert [row[1:] for row in dead] == [(17, 2, "fetcher", 2, -9)]


@HOSTILE
def test_a_thing_in_the_place_of_the_file_is_left_alone(tmp_path, kind):
    put_hostile(kind, tmp_path / "journal/00000003.jsonl")
    write_run(make_journal(tmp_path))
    assert len(lines_of(tmp_path / "journal/00000004.jsonl")) == 3
    assert not (tmp_path / "journal/elsewhere").exists()


@pytest.mark.parametrize("kind", ["file", "pipe", "dangling", "loop"])
def test_without_a_folder_the_crawl_goes_on(tmp_path, kind):
    place = tmp_path / "journal"
    place.write_text("") if kind == "file" else put_hostile(kind, place)
    troubles = []
    write_run(make_journal(tmp_path, troubles))
    assert len(troubles) == 1 and "the crawl goes on" in troubles[0]


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path):
    journal = make_journal(tmp_path)
    write_run(journal)
    (tmp_path / "journal/00000000.jsonl").unlink()
    (tmp_path / "journal").rmdir()
    write_run(journal)
    assert len(lines_of(tmp_path / "journal/00000000.jsonl")) == 3


def test_a_full_disk_costs_lines_and_is_told_once(tmp_path):
    troubles = []
    journal = make_journal(tmp_path, troubles)
    write_run(journal, stages=3)
    path = tmp_path / "journal/00000000.jsonl"
    with file_size_limit(path.stat().st_size + 100):
        write_run(journal, stages=3)
    write_run(journal, stages=3)
    assert len(troubles) == 1 and "lines of the journal are lost" in troubles[0]
    assert len(lines_of(path)) == 10


def test_live_is_replaced_whole(tmp_path):
    live = Live("run-1", "crawl").describe(every_kind(), NOW_S, NOW_MS)
    assert write_live(tmp_path / "live.json", live) == ""
    assert write_live(tmp_path / "live.json", describe_end(live, NOW_MS, "done")) == ""
    assert json.loads((tmp_path / "live.json").read_bytes())["why"] == "done"
    assert [path.name for path in tmp_path.iterdir()] == ["live.json"]


def test_live_that_cannot_be_written_is_no_error(tmp_path):
    live = Live("run-1", "crawl").describe(every_kind(), NOW_S, NOW_MS)
    write_live(tmp_path / "live.json", live)
    with file_size_limit(100):
        assert "File too large" in write_live(tmp_path / "live.json", {"run": "x" * 10_000})
    assert json.loads((tmp_path / "live.json").read_bytes()) == live, "the old one stays whole"
    assert write_live(tmp_path / "missing/live.json", live)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/x").write_text("")
    assert write_live(tmp_path / "folder", live)


@HOSTILE
def test_live_replaces_whatever_is_there(tmp_path, kind):
    put_hostile(kind, tmp_path / "live.json")
    assert bool(write_live(tmp_path / "live.json", {"run": "x"})) is (kind == "folder")


def test_a_message_has_time_level_cycle_stage_and_text(tmp_path):
    messages = Messages(tmp_path, clock=lambda: NOW_MS / 1000 + 0.25)
    messages.report("retry", plan=PLAN, stage="fetcher", code=-9, wait_s=2.0)
    messages.line(EVIL, ERROR)
    first, second = (tmp_path / "messages.log").read_text().splitlines()
    assert first.split(" ", 4) == [
        "2027-01-15T08:00:00.250Z",
        "WARNING",
        "17",
        "fetcher",
        "the fetcher of cycle 17 (block 2) ended by signal 9 (SIGKILL); it runs again in 2 s",
    ]
    assert second.split(" ", 4)[1:4] == ["ERROR", "-", "-"] and second.isprintable()


def test_messages_are_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr(messages_module, "FILE_MAX_BYTES", 500)
    messages = Messages(tmp_path)
    for number in range(100):
        messages.line(f"number {number}")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[-4:] == [f"messages.log.{number}" for number in range(1, 5)] and len(names) in (4, 5)
    assert all(path.stat().st_size < 600 for path in tmp_path.iterdir())
    newest = (tmp_path / "messages.log.1").read_text().splitlines()[-1]
    assert int(newest.split()[-1]) >= 90


def test_the_bound_on_messages_holds_where_they_cannot_be_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr(messages_module, "FILE_MAX_BYTES", 500)
    (tmp_path / "messages.log.1").mkdir()
    messages = Messages(tmp_path)
    for number in range(100):
        messages.line(f"number {number}")
    assert not (tmp_path / "messages.log").exists() or (tmp_path / "messages.log").stat().st_size < 600


@HOSTILE
def test_messages_never_hang_or_fail(tmp_path, kind):
    put_hostile(kind, tmp_path / "messages.log")
    Messages(tmp_path).line("lost")
    assert not (tmp_path / "elsewhere").exists()


def test_messages_on_a_full_disk_are_lost_and_no_line_is_torn(tmp_path):
    messages = Messages(tmp_path)
    messages.line("first")
    size = (tmp_path / "messages.log").stat().st_size
    with file_size_limit(size + 10):
        messages.line("lost")
    messages.line("last")
    assert [line.split()[-1] for line in (tmp_path / "messages.log").read_text().splitlines()] == ["first", "last"]


SHOW = """
import sys
from contract.config import Config
from contract.terminal import guard
from supervise.display import Display
from tests.made_up_flights import every_kind
guard()
flights = every_kind()
with Display(False, Config(), flights) as display:
    for number in range(2000):
        display.line(f"line {number} " + "x" * 100)
        display.progress(117)
        display.report("waits", text="x")
print("done")
"""


@pytest.mark.parametrize("trouble", ["closed", "full", "pipe"])
@pytest.mark.sampled(1)
def test_a_broken_standard_error_does_not_end_the_run(trouble, request):
    read, write = os.pipe()
    if trouble == "closed":
        options = {"preexec_fn": lambda: os.close(2)}
    elif trouble == "full":
        options = {"stderr": open("/dev/full", "w")}
    else:
        os.close(read)
        options = {"stderr": write}
    root = request.config.rootpath
    done = subprocess.run([sys.executable, "-c", SHOW], cwd=root, stdout=subprocess.PIPE, text=True, **options)
    assert (done.returncode, done.stdout) == (0, "done\n")
