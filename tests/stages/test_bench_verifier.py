"""bin/bench verifier.

The peers against a Python set, what is computed from numbers, and a whole quick run.
"""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from bench.fetcher.figures import goal_lines
from bench.verifier.batch import Batch, first_of_each, pack, to_lines
from bench.verifier.field import Field
from bench.verifier.figures import GOALS, goal_figures, mark_row, table_lines, thesis_lines
from bench.verifier.limit import time_limit
from bench.verifier.options import Limits, read_marks, read_peers
from bench.verifier.ours import Ours, size_of
from bench.verifier.peers import PEERS, Missing, open_peer
from bench.verifier.plot import draw
from bench.verifier.rate import between, rates
from bench.verifier.run import how_far
from bench.verifier.stream import Shape, Stream
from contract.blocks import interval
from contract.config import Config
from contract.names import generation

ROOT = Path(__file__).resolve().parents[2]
SMALL = Shape(servers=2_000, collected=300, extracted=3_000)
EVERYTHING = (0, 1 << 64)


def play(stream: Stream, cycles: int):
    """Batches of whole cycles, as if there were one block."""
    for cycle in range(cycles):
        urls, collected = stream.extract(cycle), stream.collect(*EVERYTHING)
        yield (
            urls,
            Batch(
                urls.key,
                urls.server,
                partial(stream.urls_of, urls.server, urls.number),
                collected.key,
                partial(stream.urls_of, collected.server, collected.number),
            ),
        )
        stream.note_turn(*EVERYTHING, collected)


def test_a_peer_that_is_not_installed_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "berkeleydb", None)
    monkeypatch.delitem(sys.modules, "bench.verifier.peers.bdb", raising=False)
    with pytest.raises(Missing, match="apt-get install libdb5.3-dev"):
        open_peer("bdb", tmp_path / "bdb", 64 << 20)


OPTIONAL = {"bdb": "berkeleydb"}  # no part of an extra: it is built against a library of the system
INSTALLED = [name for name in PEERS if name not in OPTIONAL or importlib.util.find_spec(OPTIONAL[name])]


@pytest.mark.parametrize("name", INSTALLED)
def test_every_peer_finds_what_a_set_finds(name, tmp_path):
    peer = open_peer(name, tmp_path / name, 64 << 20)
    stream, known, found, expected = Stream(SMALL), set(), [], []
    for cycle, (_, batch) in enumerate(play(stream, 5)):
        new = set(batch.keys.tolist()) - known
        known |= new
        if cycle == 1:
            fresh = np.array(sorted(new), np.uint64)
            line_of, server_of_key = (
                dict(zip(batch.keys.tolist(), batch.lines)),
                dict(zip(batch.keys.tolist(), batch.servers.tolist())),
            )
            peer.load(
                fresh,
                [line_of[key] for key in fresh.tolist()],
                np.array([server_of_key[key] for key in fresh.tolist()], np.uint32),
            )
            if peer.answers_late:
                found.append(peer.unique - len(new))
                peer.unique = 0
            continue
        if cycle == 3:
            peer.close()
            if peer.answers_late:
                found.append(peer.unique)
            peer = open_peer(name, tmp_path / name, 64 << 20)
        twice = Batch(
            *(np.concatenate([part, part[:50]]) for part in (batch.keys, batch.servers)),
            partial(pa.concat_arrays, [batch.texts, batch.texts[:50]]),
            batch.collected,
            partial(getattr, batch, "collected_texts"),
        )
        found.append(peer.take(twice))
        expected.append(len(new))
        peer.settle()
    peer.close()
    if peer.answers_late:
        assert sum(found) + peer.unique == sum(expected)
    else:
        assert found == expected


def test_keys_as_bytes_sort_as_numbers():
    keys = np.array([2**63, 1, 2**64 - 1, 256, 1], np.uint64)
    distinct, places = first_of_each(keys)
    assert sorted(pack(distinct)) == pack(distinct) and places.tolist() == [1, 3, 0, 2]
    assert to_lines(pa.array(["a", "é"])) == [b"a", "é".encode()]


def test_a_row_has_medians_and_ratios_of_the_step():
    window = [
        {
            "seconds": {"ours": 2.0, "step": step, "limit": 0.5, "rocksdb": rocksdb, "sqlite": 9.0, "drum": 0.1},
            "rss_mb": 100.4,
            "rss_with_files_mb": 200,
            "cpu_s": 2,
            "rows": 10,
            "known_share": 0.7,
            "parts_s": {},
        }
        for step, rocksdb in ((1.0, 2.0), (2.0, 5.0), (3.0, 12.0))
    ]
    row = mark_row(window, {"drum": (1.0, 4.0)})
    assert (row["ours_s"], row["step_s"], row["rocksdb_s"], row["lmdb_s"]) == (2.0, 2.0, 5.0, None)
    assert row["ratio_rocksdb"] == 2.5 and row["ratio_sqlite"] == 4.5  # medians of 2, 2.5, 4 and of 9, 4.5, 3
    assert (row["ratio_fastest"], row["fastest"]) == (0.5, "drum")
    assert (row["ratio_fastest_answering"], row["fastest_answering"]) == (2.5, "rocksdb")
    assert (row["drum_s"], row["drum_at_once_s"], row["ratio_limit"]) == (1.0, 4.0, 4.0)
    assert mark_row(window, {})["drum_s"] is None  # without its merges a batch of DRUM tells nothing
    for cycle in window:
        cycle["seconds"]["step"] = None
    assert mark_row(window, {})["ratio_rocksdb"] == 2.5 and mark_row(window, {})["ratio_of"] == "ours"


def rows_of(**seconds):
    return {
        mark: {
            "ours_s": value,
            "step_s": None,
            "limit_s": 0.1,
            "bytes_per_url": 40.0,
            "rss_mb": 300,
            "blocks": 8,
            "ours_mean_s": value,
            "ours_max_s": value,
            "ratio_fastest": 2.0,
            "known": float(mark) * 1e6,
            "ratio_rocksdb": value,
            "drum_s": 2 * value,
            "ratio_limit": 2.0,
        }
        for mark, value in seconds.items()
    }


def test_goals_are_about_the_marks_that_were_measured():
    rows = rows_of(**{"20": 2.0, "100": 2.5, "350": 4.0})
    figures = goal_figures(rows)
    assert (figures["growth_350"], figures["ratio_rocksdb_least"]) == (2.0, 2.0)
    verdicts = [line.split()[0] for line in goal_lines(figures, GOALS) if line.endswith("missed")]
    assert verdicts == ["growth_350", "ratio_fastest_100", "ratio_rocksdb_least"]
    assert "growth_350" not in goal_figures(rows_of(**{"20": 2.0}))
    assert len(table_lines(rows)) == 4 and len(thesis_lines(rows)) == 1 + 4  # VEUNI's first mark was not ours
    plot = ElementTree.fromstring(draw({"crawls": rows, "thesis": rows}))
    assert (
        len([part for part in plot if part.tag.endswith("polyline")]) == 8
    )  # ours, limit and DRUM on both, VEUNI and DRUM of the thesis


def test_hours_and_pages_over_a_crawl_s_life():
    cycles = [(1e6, 1.0), (2e6, 3.0), (3e6, 5.0)]
    table = rates(
        cycles, {"1": {"known": 1e6, "drum_s": 10.0}, "3": {"known": 3e6, "drum_s": 30.0}}, 100_000, stages_s=7.0
    )
    assert table["3"]["cycles"] == 3
    assert table["3"]["ours_hours_thesis_stages"] == round((9 + 810) / 3600, 3)
    assert table["3"]["ours_pages_per_s_our_stages"] == 10_000.0  # 300,000 pages in 9 + 21 s
    assert table["3"]["drum_pages_per_s_our_stages"] == round(300_000 / (10 + 20 + 30 + 21), 1)
    assert between([(1, 10), (3, 30)], 2) == 20 and between([(1, 10), (3, 30)], 9) == 30


def test_bad_options_say_what_was_expected():
    assert read_marks("20,1") == (1.0, 20.0) and read_peers("none") == ()
    for read, text, words in (
        (read_marks, "x", "expected millions"),
        (read_marks, "0", "above 0"),
        (read_peers, "oracle", "no such peer: oracle"),
    ):
        with pytest.raises(Exception, match=words):
            read(text)


def bench(*words, cwd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-P", "-m", "bench", *map(str, words)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_quick_run_prints_tables_and_writes_the_promised_keys(tmp_path):
    told = tmp_path / "figures.json"
    done = bench(
        "verifier",
        "--quick",
        "--fill",
        "--stream",
        "crawls",
        "--peers",
        "drum,rocksdb,lmdb,sqlite,central",
        "--rate",
        "--json",
        told,
        "--plot",
        tmp_path / "plot.svg",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(told.read_text())
    for mark in ("0.02", "0.06"):
        assert {
            "ours_s",
            "step_s",
            "limit_s",
            "drum_s",
            "rocksdb_s",
            "lmdb_s",
            "sqlite_s",
            "bdb_s",
            "ratio_fastest",
            "bytes_per_url",
            "rss_mb",
            "blocks",
        } <= set(figures[mark])
        assert figures[mark]["ours_s"] > 0 and figures[mark]["known"] >= float(mark) * 1e6
    assert figures["0.06"]["ours_max_s"] >= figures["0.06"]["ours_mean_s"] > 0
    assert figures["0.06"]["blocks"] > 2 and figures["0.06"]["splits"] > 0
    peers = figures["crawls_peers"]
    assert not [
        noted
        for noted in peers.values()
        if "disagrees" in noted or "not installed" not in noted.get("out", "not installed")
    ]
    assert peers["sqlite"]["known"] == peers["drum"]["known"] > 60_000
    assert "270 s per cycle" in done.stdout and (tmp_path / "plot.svg").read_text().startswith("<svg")


def test_a_run_that_was_killed_goes_on_and_finds_the_same(tmp_path):
    words = [
        "verifier",
        "--cycle-urls",
        "20000",
        "--at",
        "0.03",
        "--stream",
        "crawls",
        "--peers",
        "sqlite",
        "--cycles",
        "1",
        "--folder",
        tmp_path / "work",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "bench", *map(str, words)],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "cycle 0" in process.stderr.readline()
    process.kill()
    process.wait()
    process.stderr.close()
    done = bench(*words, "--json", tmp_path / "figures.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cycle 0" not in done.stderr
    assert "disagrees" not in json.loads((tmp_path / "figures.json").read_text())["crawls_peers"]["sqlite"]
    other = bench(
        "verifier", "--stream", "crawls", "--peers", "none", "--fill", "--folder", tmp_path / "work", cwd=tmp_path
    )
    assert other.returncode == 64 and "--fresh" in other.stderr


def test_the_verifier_s_own_times_are_taken_where_it_tells_them(tmp_path, monkeypatch):
    script = tmp_path / "verifier"
    script.write_text(f"""#!/bin/sh
if [ "$1" = --help ]; then echo "--times FILE"; exit; fi
"{ROOT}/bin/verifier" "$1" "$2" "$3" "$4" && printf '{{"step": 0.25, "total": 0.5}}' > "$6"
""")
    script.chmod(0o755)
    monkeypatch.setattr("bench.verifier.ours.VERIFIER", script)
    stream, ours = Stream(SMALL), Ours(tmp_path / "ours", Config())
    plan = ours.begin()
    urls = stream.extract(plan.cycle)
    turned = ours.turn(plan, stream, urls, stream.collect(*interval(plan.block, plan.blocks)))
    assert turned.step_s == 0.25 and turned.parts_s["total"] == 0.5 and turned.total_s > 0.05 and turned.rss_mb > 10
    low, high = interval(plan.block, plan.blocks)
    assert ours.known() == sum(low <= key < high for key in stream.domain_key[urls.server].tolist())
    whole, live = ours.bytes_on_disk()
    assert whole >= live > 8 * ours.known()
    assert time_limit(tmp_path / "ours/crawl" / generation(plan.block, plan.cycle), urls.key, tmp_path / "limit") > 0


def test_peers_that_pass_a_limit_are_out_and_their_files_are_gone(tmp_path):
    stream, notes = Stream(SMALL), {}
    field = Field(
        tmp_path,
        tmp_path / "peers",
        Limits(("sqlite", "drum", "lookup"), 60.0, 3_600.0, 64 << 20, 1 << 40, fill=True, cycles=1),
        notes,
    )
    batches = play(stream, 3)
    urls, _ = next(batches)
    field.put_off(0, urls.server.astype(np.uint64) << np.uint64(32) | urls.number)
    field.fill(stream)
    (urls, batch), new = next(batches), int(stream.counts.sum()) - SMALL.extracted
    assert set(field.take(batch, new, SMALL.extracted)) == {"sqlite", "drum", "lookup"}
    assert not any("out" in noted or "disagrees" in noted for noted in notes.values())
    assert set(field.share_merges(len(batch))) == {"drum"}
    field.keep_within(1 << 40)
    assert not any("out" in noted for noted in notes.values())
    largest = max(notes, key=lambda name: size_of(tmp_path / "peers" / name))
    field.keep_within(size_of(tmp_path) - 1)
    assert [name for name, noted in notes.items() if "disk" in noted.get("out", "")] == [largest]
    assert not (tmp_path / "peers" / largest).exists()
    _, batch = next(batches)
    field._limits = replace(field._limits, peer_s=0.0)
    field.take(batch, -1, 0)
    assert all("out" in noted for noted in notes.values()) and not list((tmp_path / "peers").glob("*/*"))
    assert "disagrees" in notes["sqlite" if largest != "sqlite" else "lookup"]


@pytest.mark.parametrize(
    "noted, said",
    [
        ({"known": 20_000_000}, "went all the way"),
        ({"known": 5_000_000}, "not asked beyond 5.00 million"),
        ({}, "not asked beyond 0.00 million"),
        ({"known": 5_000_000, "out": "a cycle took 70 s"}, "out after 5.00 million: a cycle took 70 s"),
    ],
)
def test_how_far_a_peer_got(noted, said):
    assert how_far(noted, 20_000_000) == said
