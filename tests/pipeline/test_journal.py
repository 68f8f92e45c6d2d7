"""What a real run leaves beside its files: journal, live.json and messages.log, and what bin/status makes of them."""

import json
import re
import time

import duckdb

from contract import names
from contract.crawl_folder import open_folder
from contract.journal_tail import read_tail
from contract.log import CRAWL, replay
from examine.crawl_figures import describe
from examine.run_files import read_live
from storage.publish import read_manifest

MESSAGE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) (\d+|-) (\w+|-) .+")


def test_a_run_leaves_a_line_per_attempt_with_what_it_used(first_cycle):
    tail = read_tail(first_cycle.path)
    assert tail.notes == [] and [line["event"] for line in tail.runs] == ["begin", "end"]
    assert tail.runs[1]["why"] and tail.runs[0]["run"] == tail.runs[1]["run"]
    (cycle,) = [entry.cycle for entry in replay(first_cycle.path, 2).entries if entry.kind == CRAWL]
    lines = [line for line in tail.stages if line["cycle"] == cycle]
    assert [line["stage"] for line in lines] == list(names.STAGES)
    assert all(line["exit_code"] == 0 and line["attempt"] == 1 and line["cpu_s"] > 0 for line in lines)
    begins, ends = ([line[name] for line in lines] for name in ("begin_ms", "end_ms"))
    assert all(begin <= end for begin, end in zip(begins, ends)) and begins == sorted(begins)
    assert tail.runs[0]["begin_ms"] <= begins[0] and ends[-1] <= tail.runs[1]["end_ms"]
    counts = read_manifest(first_cycle.path / names.cycle(cycle) / names.FETCHER)["counts"]
    fetched = next(line for line in lines if line["stage"] == names.FETCHER)
    assert (fetched["pages"], fetched["bytes"]) == (counts["answered"], counts["bytes"])
    source = f"read_json_auto('{first_cycle.path}/{names.JOURNAL}/*.jsonl')"
    assert duckdb.sql(f"select count(*) from {source}").fetchall() == [(len(tail.stages) + 2,)]


def test_the_end_of_a_run_is_in_live_json(first_cycle):
    live, note = read_live(first_cycle.path)
    assert note == "" and not live.is_alive and live.ended_at_ms and live.why and live.cycles == []
    assert live.command == "run-cycle" and live.counts == live.counts_committed and live.counts["cycles"] == 1


def test_every_message_has_all_its_parts(first_cycle):
    lines = (first_cycle.path / names.MESSAGES).read_text().splitlines()
    assert [line for line in lines if not MESSAGE.fullmatch(line)] == []
    assert any("planned" in line for line in lines) and any("not reached;" in line for line in lines)


def test_status_knows_the_rates_of_the_run(first_cycle):
    status = describe(open_folder(first_cycle.path), time.time_ns() // 1_000_000)
    assert status["rates"]["day"]["pages"] == status["fetched"]["answered"] > 0
    assert set(status["stages"]) == set(names.STAGES) and abs(sum(status["stages"].values()) - 1) < 0.01
    assert status["notes"] == [] and not any(found["kind"] == "run" for found in status["problems"])
    json.dumps(status)
