"""The demonstration as a new user runs it: exactly the whole web is collected, and other tools open every file."""

import fcntl
import json
import os
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import pytest
from fastwarc.warc import ArchiveIterator

from contract import names
from contract.blocks import interval
from storage.publish import MANIFEST
from supervise.demo import WEB_SEED, WEB_SERVERS
from synthweb import Web
from tests.pipeline.judge import (
    ROOT,
    access_record,
    asked_twice,
    assert_obedient,
    assert_one_at_a_time,
    assert_truth,
    committed_cycles,
)

DELAY_MS = 10


pytestmark = pytest.mark.long  # the web of the demonstration takes a minute


@pytest.fixture(scope="module")
def demo(make_once):
    folder = make_once("demonstration", run_demo)
    return folder / "demo", (folder / "output").read_text()


def run_demo(folder: Path) -> None:
    run = subprocess.run(
        [ROOT / "bin/run-cycle", "--demo"], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert run.returncode == 0, run.stderr
    (folder / "output").write_text(run.stdout)


@pytest.fixture(scope="module")
def web(demo):
    return Web(WEB_SEED, WEB_SERVERS, int((demo[0] / "web" / "port").read_text()))


@pytest.fixture(scope="module")
def crawl(demo) -> Path:
    return demo[0] / "crawl"


def run(*command) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "bin" / command[0], *command[1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_the_whole_web_is_collected_each_page_once(crawl, web):
    assert_truth(crawl, web)


def test_the_servers_saw_a_polite_crawler(demo, web):
    record = access_record(demo[0] / "web", web.port)
    assert_obedient(record, web)
    assert not asked_twice(record)
    assert_one_at_a_time(record, DELAY_MS)


def test_it_tells_what_it_did_and_what_to_try(demo):
    folder, output = demo
    assert "done: nothing is waiting" in output
    for line in output.splitlines():
        if line.startswith("  bin/") and "--crawl mine" not in line:  # one that does not exist
            command = line.split()
            shown = subprocess.run([ROOT / command[0], *command[1:]], cwd=folder.parent, capture_output=True, text=True)
            assert shown.returncode == 0 and shown.stdout, (line, shown.stderr)


def test_the_crawl_grew(crawl):
    status = json.loads(run("status", "--crawl", crawl, "--json").stdout)
    assert status["blocks"] > 2 and status["entries"]["grow"] == status["blocks"] - 2
    assert status["states"]["waiting"] == status["states"]["prescheduled"] == 0


def test_a_second_demonstration_at_the_same_time_says_that_one_is_running(tmp_path):
    (tmp_path / "demo").mkdir()
    held = os.open(tmp_path / "demo", os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)  # as the first one does
    second = subprocess.run(
        [ROOT / "bin/run-cycle", "--demo"], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    os.close(held)
    assert (
        second.returncode == 75
        and "a demonstration is running" in second.stderr
        and len(second.stderr.splitlines()) == 1
    )
    assert not (tmp_path / "demo" / "web" / "ready.json").exists() and not (tmp_path / "demo" / "crawl").exists()


def test_the_demonstration_has_its_own_folder(tmp_path):
    command = [ROOT / "bin/run-cycle", "--demo", "--crawl", "crawl"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 64 and "--demo makes its own" in refused.stderr and not (tmp_path / "demo").exists()


def test_a_second_demo_finds_nothing_left(demo):
    again = subprocess.run(
        [ROOT / "bin/run-cycle", "--demo"], cwd=demo[0].parent, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert again.returncode == 0 and "nothing is waiting" in again.stdout


def test_the_books_agree(crawl):
    checked = run("check", "--crawl", crawl)
    assert checked.returncode == 0, checked.stdout


def test_duckdb_opens_every_table(crawl):
    tables = sorted(crawl.rglob("*.parquet"))
    kinds = {path.name for path in tables}
    assert kinds >= {
        names.URL_LIST,
        names.SERVERS,
        names.COLLECTED,
        names.EXTRACTED,
        names.METADATA,
        names.FAILURES,
        names.LINKS,
        names.AUX,
        "servers.parquet",
    }
    for path in tables:
        duckdb.sql(f"select count(*) from '{path}'").fetchall()
    answered = duckdb.sql(
        f"select count(*) from '{crawl}/cycles/*/extractor/{names.COLLECTED}' where outcome = 'answered'"
    ).fetchall()
    metadata = duckdb.sql(f"select count(*) from '{crawl}/cycles/*/extractor/{names.METADATA}'").fetchall()
    assert answered == metadata


def test_fastwarc_opens_every_page_file(crawl):
    responses = 0
    for path in sorted(crawl.rglob("*.warc.zst")):
        with open(path, "rb") as stream:
            for record in ArchiveIterator(stream, parse_http=False):
                responses += (
                    record.headers.get("WARC-Type") == "response" and record.headers.get("Coletor-Final") == "yes"
                )
    assert responses >= 4000


def test_show_prints_each_kind_of_file(crawl):
    last = names.cycle(committed_cycles(crawl)[-1])
    generation = sorted((crawl / "R").glob("[0-9]*/[0-9]*"))[-1]
    kinds = [
        *crawl.glob(f"{last}/*/*.parquet"),
        *crawl.glob(f"{last}/verifier/*.json"),
        *crawl.glob(f"{last}/*.json"),
        *crawl.glob(f"{last}/fetcher/*/*.warc.zst"),
        crawl / last,
        crawl / last / "extractor",
        generation,
        generation / "key.npy",
        generation / "collected_content_digest.npy",
        next((crawl / names.TEXT).iterdir()),
        crawl / names.LOG,
        crawl / names.LOG / "00000000.json",
        crawl / names.CRAWL_FILE,
        crawl / names.CONFIGURATION,
        crawl / names.SUFFIX_LIST,
        crawl / names.SLOTS,
        crawl / names.CORRUPT,
    ]
    for number, path in enumerate(kinds):
        plain, lines = run("show", path), run("show", path, "--json", "--limit", "3") if number % 3 == 0 else None
        assert plain.returncode == 0 and plain.stdout, (path, plain.stderr)
        if lines is None:
            continue
        assert lines.returncode == 0, (path, lines.stderr)
        for line in lines.stdout.splitlines():
            json.loads(line)


def test_the_last_cycle_of_a_block_is_the_same_bytes_again(crawl, tmp_path):
    """Extractor, verifier and scheduler are functions of their plan and input files."""
    last = committed_cycles(crawl)[-1]
    for stage in (names.SCHEDULER, names.EXTRACTOR):
        again = run(stage, "--crawl", crawl, "--cycle", str(last), "--out", tmp_path / stage)
        assert again.returncode == 0, again.stderr
        assert_same(crawl / names.cycle(last) / stage, tmp_path / stage)
    again = run("verifier", "--crawl", crawl, "--cycle", str(last), "--out", tmp_path / "all")
    assert again.returncode == 0, again.stderr
    made = [path.relative_to(tmp_path / "all") for path in (tmp_path / "all").rglob("*") if path.is_file()]
    assert any(path.name == "key.npy" for path in made) and any(path.name == names.AUX for path in made)
    for name in made:
        if (crawl / name).exists() or name.name != names.AUX:  # AUX that all blocks have absorbed may be gone
            assert (crawl / name).read_bytes() == (tmp_path / "all" / name).read_bytes(), name


def assert_same(left: Path, right: Path) -> None:
    files = {path.relative_to(left) for path in left.rglob("*") if path.is_file()}
    assert files == {path.relative_to(right) for path in right.rglob("*") if path.is_file()}
    for name in files:
        assert (left / name).read_bytes() == (right / name).read_bytes(), name


def test_every_key_is_in_one_block_only(crawl):
    """As bin/check, but without its code: by numpy and DuckDB on the files."""
    status = json.loads(run("status", "--crawl", crawl, "--json").stdout)
    seen = []
    for block in status["by_block"]:
        folder = crawl / names.generation(block["block"], block["generation"])
        keys = np.load(folder / "key.npy")
        runs = duckdb.sql(
            f"select sum(known)::bigint from '{folder}/servers.parquet' group by domain_key order by domain_key"
        ).fetchall()
        ends = np.cumsum([rows for (rows,) in runs])
        assert ends[-1] == len(keys) and all((run[1:] > run[:-1]).all() for run in np.split(keys, ends[:-1]))
        low, high = interval(block["block"], status["blocks"])
        outside = duckdb.sql(
            f"select count(*) from '{folder}/servers.parquet' where domain_key < {low} or domain_key > {high - 1}"
        ).fetchall()
        assert outside == [(0,)] and (folder / MANIFEST).exists()
        seen.append(keys)
    every = np.concatenate(seen)
    assert len(np.unique(every)) == len(every)
