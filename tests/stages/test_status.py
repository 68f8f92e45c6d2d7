"""bin/status on folders with live.json and journals of all sorts: what it prints, and that nothing hostile ends it."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from contract import names
from contract.crawl_folder import hold_lock, open_folder
from contract.journal_tail import LINES_MAX, read_tail
from examine.crawl_figures import describe
from examine.run_files import read_live
from examine.status_page import make_page
from supervise.journal import Journal
from supervise.live import Live, describe_end, write_live
from tests.made_up_flights import NOW_MS, NOW_S, every_kind, make_plan

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests/golden/crawl"
# Of the version before live.json and the journal; programs of others read them.
KEYS = (
    *("began_at_ms", "blocks", "by_block", "commits", "configuration", "crawl", "crawl_id", "damage", "entries"),
    *("fetched", "inbox", "known", "open", "reasons", "running", "server_failures", "servers", "servers_failing"),
    *("servers_given_up", "states", "uncounted", "without_plan"),
)
BLOCK_KEYS = (
    *("block", "collected", "domains", "earliest_due_ms", "generation", "known", "seen", "server_failures", "servers"),
    *("servers_failing", "servers_given_up", "states", "waiting"),
)


@pytest.fixture
def crawl(tmp_path):
    return Path(shutil.copytree(GOLDEN, tmp_path / "crawl"))


def status_of(crawl, now_ms=NOW_MS):
    return describe(open_folder(crawl), now_ms)


def page_of(crawl, **options):
    return "\n".join(make_page(status_of(crawl), **options))


def run_status(crawl, *options):
    return subprocess.run([ROOT / "bin/status", "--crawl", crawl, *options], capture_output=True, text=True)


def write_alive(crawl, **changes):
    live = Live("run-1", "crawl").describe(every_kind(), NOW_S, NOW_MS - 500)
    assert write_live(crawl / names.LIVE, {**live, **changes}) == ""
    return live


def write_journal(crawl, pages=600, ago_ms=1_800_000, lasted_ms=600_000):
    journal = Journal(crawl, "run-1", "crawl", lambda: NOW_MS - ago_ms)
    journal.begin()
    begin_ms = NOW_MS - ago_ms
    journal.stage(make_plan(1), "fetcher", 1, begin_ms, begin_ms + lasted_ms, 0, pages=pages, bytes=pages * 1_000)
    journal.stage(make_plan(1), "extractor", 1, begin_ms + lasted_ms, begin_ms + 2 * lasted_ms, 0)
    return journal


def test_json_keeps_its_keys(crawl):
    done = run_status(crawl, "--json")
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert [key for key in KEYS if key not in status] == []
    blocks = [block for block in status["by_block"] if block["generation"] is not None]
    assert blocks and [key for block in blocks for key in BLOCK_KEYS if key not in block] == []
    assert status["waiting"] == sum(block["waiting"] for block in blocks)
    assert status["disk"]["total_bytes"] > status["disk"]["free_bytes"] > 0
    assert status["live"] is None and status["rates"]["hour"]["pages_per_s"] is None


def test_a_crawl_without_a_run(crawl):
    page = page_of(crawl)
    assert "not running" in page and "rates     not known: there is no journal" in page
    assert "estimate  n" in page and "disk " in page and "(--blocks lists them)" in page
    assert "generation" not in page
    assert "block  generation" in page_of(crawl, with_blocks=True)


def test_a_live_run_shows_its_cycles_and_rates(crawl):
    write_alive(crawl)
    write_journal(crawl)
    lock = hold_lock(open_folder(crawl))
    try:
        page = page_of(crawl)
        status = status_of(crawl)
    finally:
        os.close(lock)
    assert "running now" in page
    assert "now       bin/crawl for 1 min: 8 cycles in flight" in page
    assert "          cycle 117  block 2/8  fetching: 800 of 2,000 URLs, 12 failed, 96 in flight" in page
    assert "          cycle 121  block 5/8  fetching: waits for politeness: 12 hosts rest, the next in 3 s" in page
    assert "and 870 pages, 10.0 MB of cycles in flight" in page
    assert "over 30 min, since the journal begins" in page
    assert status["rates"]["hour"]["pages"] == 600 + 780 + 90
    assert list(status["stages"]) == ["fetcher", "extractor", "verifier", "scheduler"]
    assert status["problems"] == [] or {found["kind"] for found in status["problems"]} <= {"disk"}


def test_a_run_that_was_killed_is_wrong_and_open_cycles_are_shown(crawl):
    write_alive(crawl, pid=os.getpid(), pid_began_ticks=1)  # this process began at another moment
    page = page_of(crawl)
    assert "wrong     the run of bin/crawl" in page and "in flight" not in page
    assert f"what to do: bin/crawl --crawl {crawl} resumes it" in page


def test_a_run_that_ended_says_why(crawl):
    live = Live("run-1", "crawl").describe(every_kind(), NOW_S, NOW_MS)
    write_live(crawl / names.LIVE, describe_end(live, NOW_MS, "done: nothing is waiting"))
    assert ": done: nothing is waiting" in page_of(crawl)


HOSTILE_LIVE = {
    "list": "[]",
    "text": '"x"',
    "null": "null",
    "number": "1",
    "torn": '{"run": "x", ',
    "empty": "",
    "deep": "[" * 100_000,
    "huge": '{"run": "' + "x" * (2 << 20) + '"}',
    "bytes": "\x00\x01\x02",
    "large number": '{"pid": 1' + "0" * 5_000 + "}",
}
WRONG = {
    "pid": "7",
    "run": 5,
    "cycles": 7,
    "counts": [],
    "rates": None,
    "began_at_ms": 1e999,
    "written_at_ms": -1,
    "ended_at_ms": "never",
    "sleeps_until_ms": {},
    "why": 5,
    "command": None,
    "pid_began_ticks": "x",
}
FORGED = ("", "seed", "crawl; rm -rf /", "run-cycle --drop-open", "\x1b]0;owned\x07", ["crawl"])


@pytest.mark.parametrize("kind", HOSTILE_LIVE)
def test_a_live_file_that_no_run_wrote_is_ignored_with_a_note(crawl, kind):
    (crawl / names.LIVE).write_text(HOSTILE_LIVE[kind])
    live, note = read_live(crawl)
    assert live is None and "it is ignored" in note and len(note) < 1_000
    assert "wrong     " in page_of(crawl) and "live.json" in page_of(crawl)


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_the_wrong_type_makes_live_json_useless(crawl, name):
    write_alive(crawl, **{name: WRONG[name]})
    live, note = read_live(crawl)
    assert live is None and "it is ignored" in note


@pytest.mark.parametrize("command", FORGED, ids=repr)
def test_a_command_that_makes_no_runs_makes_live_json_useless(crawl, command):
    write_alive(crawl, command=command)
    live, note = read_live(crawl)
    assert live is None and "it is ignored" in note


def test_figures_that_do_not_fit_are_ignored(crawl):
    live = write_alive(crawl)
    live["cycles"][0]["figures"] = {"pages": 10**400, "bytes": -1, "listed": 5, "waiting": 1.5}
    write_live(crawl / names.LIVE, live)
    assert read_live(crawl)[0].cycles[0]["figures"] == {"listed": 5}
    assert "wrong     " in page_of(crawl)


@pytest.mark.parametrize("name", ["cycle", "figures", "text", "share", "stage", "memory_bytes"])
def test_a_cycle_of_the_wrong_type_makes_live_json_useless(crawl, name):
    live = write_alive(crawl)
    live["cycles"][0][name] = [7] if name != "text" else 7
    write_live(crawl / names.LIVE, live)
    assert read_live(crawl)[0] is None
    live["cycles"][0].pop(name)
    write_live(crawl / names.LIVE, live)
    assert read_live(crawl)[0] is None


@pytest.mark.parametrize("place", [names.LIVE, f"{names.JOURNAL}/00000000.jsonl", names.LOCK])
@pytest.mark.parametrize("kind", ["pipe", "folder", "loop"])
def test_another_thing_in_the_place_of_a_file_is_no_wait(crawl, place, kind):
    path = crawl / place
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.mkdir() if kind == "folder" else path.symlink_to(path.name)
    status = status_of(crawl)
    assert len(status["notes"]) == (place != names.LOCK) and status["running"] is False


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_a_journal_that_is_no_folder_is_no_error(crawl, kind):
    path = crawl / names.JOURNAL
    path.write_text("x") if kind == "file" else os.mkfifo(path)
    assert status_of(crawl)["journal_since_ms"] is None


def test_lines_that_no_run_wrote_are_ignored_and_the_others_count(crawl):
    write_journal(crawl)
    path = crawl / names.JOURNAL / "00000000.jsonl"
    good = path.read_bytes()
    stage = json.loads(good.splitlines()[1])
    bad = [b"{}", b"[1]", b"\xff\xfe", b"[" * 50_000, b'"x"', b"null"]
    bad += [json.dumps({**stage, name: value}).encode() for name, value in (("cycle", "7"), ("end_ms", None))]
    bad += [json.dumps({**stage, name: value}).encode() for name, value in (("pages", []), ("begin_ms", 10**30))]
    path.write_bytes(b"\n\n".join(bad) + b"\n" + good + b'{"event": "sta')
    tail = read_tail(crawl)
    assert (len(tail.stages), len(tail.runs)) == (2, 1)
    assert tail.notes == [f"{crawl / names.JOURNAL}: {len(bad)} lines are not as a run writes them; they are ignored"]


def test_only_the_end_of_the_journal_is_read(crawl):
    journal = write_journal(crawl)
    for number in range(2_000):
        journal.stage(make_plan(number), "verifier", 1, NOW_MS - 5_000, NOW_MS - 4_000, 0)
    tail = read_tail(crawl, most_bytes=100_000)
    assert 100 < len(tail.stages) < 400 and tail.notes == []
    assert tail.stages[-1]["cycle"] == 1_999 and tail.since_ms == NOW_MS - 5_000
    shutil.copy(crawl / names.JOURNAL / "00000000.jsonl", crawl / names.JOURNAL / "00000001.jsonl")
    assert len(read_tail(crawl).stages) == 4_004


def test_a_clock_that_was_set_back_is_no_error(crawl):
    write_journal(crawl, ago_ms=-3_600_000, lasted_ms=1_000)
    status = status_of(crawl)
    assert status["rates"]["hour"]["pages_per_s"] is None and make_page(status)


def test_errors_have_an_example_each(crawl):
    status = status_of(crawl)
    assert {row["reason"] for row in status["errors"]} >= set(status["reasons"])
    assert all(row["example"] for row in status["errors"] if row["servers_failing"] or row["servers_given_up"])
    lines = [line for line in make_page(status, width=60) if ", such as " in line or line.startswith("errors")]
    assert all(len(line) <= 60 for line in lines)


def test_prometheus_replaces_the_file(crawl, tmp_path):
    target = tmp_path / "coletor.prom"
    target.write_text("old")
    before = target.stat().st_ino
    done = run_status(crawl, "--prometheus", target)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert f'coletor_running{{crawl="{crawl}"}} 0' in target.read_text() and target.stat().st_ino != before
    missing = run_status(crawl, "--prometheus", tmp_path / "missing/x.prom")
    assert missing.returncode == 64 and "expected a folder that exists" in missing.stderr
    assert run_status(crawl, "--prometheus", target, "--json").returncode == 64
    before = (crawl / "crawl.json").read_bytes()
    inside = run_status(crawl, "--prometheus", crawl / "crawl.json")
    assert inside.returncode == 64 and "is inside the crawl folder" in inside.stderr
    assert (crawl / "crawl.json").read_bytes() == before


def test_it_takes_no_lock_that_a_run_could_notice(crawl):
    """A run that holds the lock keeps it, and one that begins while status looks gets it."""
    lock = hold_lock(open_folder(crawl))
    for _ in range(20):
        assert status_of(crawl)["running"] is True
    os.close(lock)
    assert status_of(crawl)["running"] is False
    os.close(hold_lock(open_folder(crawl)))


def test_a_page_is_harmless_at_a_terminal(crawl):
    live = write_alive(crawl)
    evil = "\x1b]0;owned\x07"
    live["cycles"][0]["text"] = evil
    write_live(crawl / names.LIVE, live)
    assert read_live(crawl)[0].cycles[0]["text"] == evil
    assert all(line.isprintable() for line in make_page(status_of(crawl)))


@pytest.mark.parametrize("name", ["journal/00000000.jsonl", names.LIVE, names.MESSAGES])
@pytest.mark.sampled(1)
def test_show_prints_the_files_of_runs(crawl, name):
    write_alive(crawl)
    write_journal(crawl)
    (crawl / names.MESSAGES).write_text("2027-01-15T08:00:00.250Z INFO 1 - cycle 1 begins\n")
    with (crawl / "journal/00000000.jsonl").open("a") as file:
        file.write('{"torn')
    shown = subprocess.run([ROOT / "bin/show", "--crawl", crawl, name], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    wanted = {"journal/00000000.jsonl": ['{"torn', "stage "], names.LIVE: ["117", "run-1"]}
    assert all(words in shown.stdout for words in wanted.get(name, ["cycle 1 begins"])), shown.stdout
    os.unlink(crawl / name)
    os.mkfifo(crawl / name)
    shown = subprocess.run([ROOT / "bin/show", "--crawl", crawl, name], capture_output=True, text=True)
    assert shown.returncode == 65 and "Traceback" not in shown.stderr, shown.stderr


def test_it_is_quick_whatever_the_journal_holds(crawl):
    """A bound far above what it takes; the journal alone has 60 MB."""
    write_journal(crawl)
    path = crawl / names.JOURNAL / "00000000.jsonl"
    lines = path.read_bytes()
    for number in range(1, 5):
        (crawl / names.JOURNAL / f"{number:08d}.jsonl").write_bytes(lines * (15_000_000 // len(lines)))
    began = time.process_time()
    status_of(crawl)
    assert time.process_time() - began < 10


@pytest.mark.parametrize("line", [b"\n", b"x\n"])
def test_short_lines_of_the_journal_are_not_all_looked_at(crawl, line):
    write_journal(crawl)
    path = crawl / names.JOURNAL / "00000000.jsonl"
    lines = path.read_bytes()
    path.write_bytes(line * ((4 << 20) // len(line)) + lines)
    tail = read_tail(crawl)
    assert (len(tail.stages), len(tail.runs)) == (2, 1)
    ignored = 0 if line == b"\n" else LINES_MAX - 3
    assert [note for note in tail.notes if f" {ignored} lines" in note] == tail.notes and bool(tail.notes) == bool(
        ignored
    )
