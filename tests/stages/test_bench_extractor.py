"""bin/bench extractor.

What is computed from given numbers, the pages in their two forms, the peers, memory and parts of time.
"""

import os
import sys

import pytest

from bench.__main__ import benchmarks
from bench.extractor.corpus import Page, open_corpus, synthetic_pages, write_decoded, write_pages
from bench.extractor.figures import GOALS, share_lines, speed_figures
from bench.extractor.ours import Ours, children_of, resident_mb
from bench.extractor.peers import lxml_links, read_decoded, run_peer
from bench.extractor.timed import CUTTING, JOINING, POINTS, REST, SENDING, TABLES, Clock, time_parts
from bench.fetcher.figures import goal_lines
from bench.processes import Spent, on_cores, run_child, running
from contract.errors import BadInput
from tests.extractor_lab import Tables

CORES = sorted(os.sched_getaffinity(0))
HTML = (
    b"<!doctype html><meta charset=iso-8859-1><title>Caf\xe9</title><p><a href=b.html>b"
    b"</a> <a href='b.html#x'>b</a> <img src=c.png>"
)


@pytest.fixture
def pages(tmp_path):
    found = []
    for number in range(3):
        path = tmp_path / f"{number}.html"
        path.write_bytes(HTML)
        found.append(Page(f"http://docs.test/dir/{number}.html", path))
    return found


def test_modules_that_measure_nothing_are_no_benchmarks():
    assert {"coverage", "extractor", "fetcher", "verifier", "verifier-parameters"} <= set(benchmarks())
    assert not {"nginx", "pages", "processes"} & set(benchmarks())


def test_speed_is_a_median_and_a_ratio_is_the_median_of_ratios_of_each_repeat():
    one = [Spent(2.0, 1.9), Spent(4.0, 3.9), Spent(3.0, 2.0)]
    two = [Spent(1.0, 1.9), Spent(3.0, 2.0), Spent(1.5, 1.0)]
    unscanned = [Spent(3.0, 3.0), Spent(5.0, 5.0), Spent(4.0, 4.0)]
    peers = {"scrapy": [Spent(8.0, 8.0), Spent(20.0, 8.0), Spent(18.0, 8.0)]}
    figures = speed_figures(3_000, 300_000, one, two, unscanned, peers)
    assert (figures["pages_per_s"], figures["pages_per_s_2"], figures["scrapy_pages_per_s"]) == (1_000, 2_000, 167)
    assert figures["ratio_2"] == 2.0  # of 2, 1.33 and 2
    assert (figures["unscanned_pages_per_s"], figures["ratio_scanner"]) == (750, 1.33)  # of 1.5, 1.25 and 1.33
    assert figures["ratio_scrapy"] == 5.0  # of 4, 5 and 6
    assert figures["us_per_page"] == 667 and figures["us_per_link"] == 6.67


def test_goals_stand_beside_the_figures():
    lines = goal_lines(
        {"pages_per_s": 1_500, "ratio_scrapy": 3.9, "links_bytes_per_row": 10.1, "us_per_link": 5}, GOALS
    )
    assert [line.rpartition(": ")[2] for line in lines if "goal" in line] == ["met", "missed", "missed"]
    assert len(lines) == 4


def test_parts_of_time_are_told_with_the_largest_first():
    lines = share_lines({"small": 1.0, "large": 3.0}, 1_000_000)
    assert [line.split() for line in lines] == [["75.0%", "3.0", "us", "large"], ["25.0%", "1.0", "us", "small"]]


def test_time_goes_to_the_innermost_part(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 6.0, 10.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    clock = Clock()
    clock.run("outer", lambda: clock.run("inner", lambda: None))
    assert clock.parts_s == {REST: 1.0, "outer": 2.0 + 4.0, "inner": 3.0}


def test_every_part_is_timed_and_what_was_replaced_is_put_back(pages, tmp_path):
    before = [getattr(owner, name) for owner, name, _ in POINTS]
    pages[0].path.write_bytes(HTML + b"<unusual>")  # whose tree is built
    write_pages(pages, tmp_path / "pages")
    parts_s = time_parts(tmp_path / "pages", tmp_path / "out")
    assert set(parts_s) == {part for _, _, part in POINTS} | {CUTTING, JOINING, REST, SENDING, TABLES}
    assert all(taken_s > 0 for taken_s in parts_s.values())
    assert [getattr(owner, name) for owner, name, _ in POINTS] == before
    assert Tables(tmp_path / "out").counts["pages_parsed"] == len(pages)


def test_a_run_reads_all_pages_and_its_memory_is_seen(pages, tmp_path):
    write_pages(pages, tmp_path / "pages", ("", "b."))
    ours = Ours(tmp_path, 1, CORES)
    memory = ours.watch(tmp_path / "pages", 6)
    counts = ours.counts()
    assert (counts["listed"], counts["link_occurrences"], counts["followed"], counts["links_rows"]) == (6, 18, 6, 6)
    assert memory.worker <= memory.worker_with_files and memory.parent > 0
    assert ours.links_bytes() > 0


def test_the_same_urls_again_are_read_and_counted_once(pages, tmp_path):
    write_pages(pages, tmp_path / "pages", ("", ""))
    ours = Ours(tmp_path, 1, CORES)
    assert ours.run(tmp_path / "pages", 3).wall_s > 0
    assert ours.counts()["repeated_finals"] == 3


def test_peers_get_pages_in_utf_8_and_count_distinct_links(pages, tmp_path):
    write_decoded(pages, tmp_path / "decoded")
    decoded = read_decoded(tmp_path / "decoded")
    assert [url for url, _ in decoded] == [page.url for page in pages]
    assert "Café".encode() in decoded[0][1]
    assert lxml_links()(*decoded[0]) == 3
    spent, links = run_peer("lxml", tmp_path / "decoded", 3, CORES[0])
    assert links == 9 and spent.wall_s > 0


def test_a_corpus_is_thinned_evenly_and_must_be_one(tmp_path):
    for number in range(200):
        (tmp_path / f"{number:03d}.html").write_bytes(b"x" * 1_000)
    corpus = open_corpus(tmp_path, 100)
    assert len(corpus.pages) == 100
    assert corpus.pages[1] == Page("http://pages.test/002.html", tmp_path / "002.html")
    with pytest.raises(BadInput, match="found 0"):
        (tmp_path / "empty").mkdir()
        open_corpus(tmp_path / "empty", 100)


def test_synthetic_pages_stand_in_where_there_are_no_packages(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.extractor.corpus.SYNTHETIC_SERVERS", 20)
    found = synthetic_pages(tmp_path / "synthetic")
    write_pages(found, tmp_path / "pages")
    ours = Ours(tmp_path, 1, CORES)
    ours.run(tmp_path / "pages", len(found))
    assert ours.counts()["link_occurrences"] > len(found) > 20


def test_processes_are_kept_on_their_cores(tmp_path):
    with on_cores(CORES[:1]):
        run_child(
            [sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"], tmp_path / "log", tmp_path / "out"
        )
    assert (tmp_path / "out").read_text().strip() == str({CORES[0]})
    assert sorted(os.sched_getaffinity(0)) == CORES


def test_memory_of_the_living_and_the_dead(tmp_path):
    with running(
        [sys.executable, "-c", "print(1, flush=True); import signal; signal.pause()"], tmp_path / "log"
    ) as process:
        process.stdout.readline()
        assert process.pid in children_of(os.getpid())
        own, whole = resident_mb(process.pid)
        assert 1 < own < whole
    assert resident_mb(process.pid) == (0.0, 0.0) and children_of(process.pid) == []
