"""bin/bench ring: what is computed from given numbers, and a contest of all that runs without npm on a tiny web."""

import json
import os
from pathlib import Path

import pytest
from PIL import Image

from bench.nginx import Host, write_configuration
from bench.ring.busy import busy_share, idle_share, length_within, union, waiting_times, window_of
from bench.ring.contest import Contest, make_tools
from bench.ring.figures import OURS, SEQUENTIAL, TUNED, Run, contest_figures, table_lines
from bench.ring.gantt import BUSY_ROW, LEFT, RIGHT, ROWS_MAX, WIDTH, draw, lay_out
from bench.ring.journal import Attempt, read_journal
from bench.ring.memory import SUPERVISOR, WARM, WORKERS, Sample, flatness, kind_of
from bench.ring.web import Asked, allot, build_hosts, compare, count_by_folder, make_sites, read_asked, serving_web
from contract import names
from synthweb.latency import page_of

LOG = "127.60.1.1:81\t/a\t200\ttext/html\t\tx\n127.60.1.1:81\t/robots.txt\t200\ttext/plain\t\tx\n"
LINE = {
    "event": "stage", "run": "r", "command": "crawl", "cycle": 7, "kind": "crawl", "stage": names.FETCHER, "block": 2,
    "attempt": 1, "begin_ms": 10, "end_ms": 30, "exit_code": 0, "cpu_s": 0.1, "memory_peak_bytes": 5, "read_bytes": 0,
    "written_bytes": 0, "pages": 12, "bytes": 99, "why": None,
}  # fmt: skip


def fetch(begin_ms: int, end_ms: int, pages: int, cycle: int = 1, block: int = 0) -> Attempt:
    return Attempt(cycle, block, names.FETCHER, begin_ms, end_ms, pages)


def test_what_was_asked_has_names_whether_a_tool_used_names_or_addresses():
    text = LOG + "one.test:81\t/b\t404\ttext/html\t\ty\none.test:81\t/a\t200\ttext/html\t\ty\n"
    asked = read_asked(text, {"127.60.1.1": "one.test"})
    assert asked == Asked(frozenset({"http://one.test:81/a", "http://one.test:81/b"}), requests=4, found=1)


def test_sets_of_urls_are_compared_both_ways():
    assert compare(frozenset("abc"), frozenset("bcd")) == (["a"], ["d"])
    urls = ["http://a:1/x/1", "http://b:1/x/2", "http://b:1/3"]
    assert count_by_folder(urls).most_common() == [("x", 2), ("", 1)]


@pytest.mark.parametrize("sites, each", [(60, 1), (12, 5), (6, 10)])
def test_each_manual_is_served_as_often_as_the_others(sites, each):
    allotted = allot(sites, 12, 5)
    assert len(allotted) == sites and {len(numbers) for numbers in allotted} == {each}
    assert {number: sum(numbers.count(number) for numbers in allotted) for number in range(12)} == dict.fromkeys(
        range(12), 5
    )


def test_time_is_counted_once_where_intervals_overlap():
    assert union([(5, 9), (0, 3), (2, 4), (9, 10)]) == [(0, 4), (5, 10)]
    assert length_within([(0, 4), (3, 6), (8, 20)], (2, 10)) == 6
    assert length_within([], (0, 1)) == 0


def test_busy_is_the_share_of_time_with_a_fetcher_until_less_than_a_list_is_left():
    attempts = [fetch(0, 40, 100), fetch(30, 50, 100), fetch(90, 100, 90), fetch(500, 510, 10)]
    assert window_of(attempts) == (0, 100)  # the mean list has 75 URLs, and 10 are left
    assert busy_share(attempts) == 0.6
    assert busy_share(attempts, (0, 200)) == 0.3
    assert busy_share([Attempt(1, 0, names.VERIFIER, 0, 9)]) is None


def test_idle_is_the_time_in_which_urls_wait_that_no_list_has_and_no_fetcher_works():
    attempts = [
        Attempt(1, 0, names.VERIFIER, 0, 10),  # leaves 50
        Attempt(2, 0, names.SCHEDULER, 20, 30),
        fetch(30, 60, 50, cycle=2),
        Attempt(2, 0, names.VERIFIER, 60, 80),  # leaves 5
        Attempt(3, 0, names.SCHEDULER, 90, 100),
        fetch(100, 110, 5, cycle=3),
    ]
    assert waiting_times(attempts, {1: 50, 2: 5}) == [(10, 30), (80, 100)]
    assert idle_share(attempts, {1: 50, 2: 5}, (0, 100)) == 0.4
    assert idle_share([*attempts, fetch(85, 95, 0, cycle=4, block=1)], {1: 50, 2: 5}, (0, 100)) == 0.3


def test_a_journal_is_read_in_the_order_of_begins_and_only_attempts_count(tmp_path):
    (tmp_path / names.JOURNAL).mkdir()
    rows = [{**LINE, "begin_ms": 20}, LINE, {**LINE, "event": "end", "stage": None}, {**LINE, "pages": None}]
    (tmp_path / names.JOURNAL / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_journal(tmp_path) == [fetch(10, 30, 12, 7, 2), fetch(10, 30, 0, 7, 2), fetch(20, 30, 12, 7, 2)]
    assert read_journal(tmp_path / "none") == []


def test_a_chart_has_a_row_per_cycle_and_one_for_all_fetchers(tmp_path):
    attempts = [
        Attempt(1, 0, names.SCHEDULER, 1_000, 2_000),
        fetch(2_000, 5_000, 9),
        fetch(4_000, 11_000, 9, cycle=2, block=1),
    ]
    chart = lay_out(attempts)
    assert chart.rows == [BUSY_ROW, "1 (R_0)", "2 (R_1)"]
    first, *others = chart.bars
    assert (first.left, first.right) == (others[1].left, WIDTH - RIGHT) and len(others) == 3
    assert others[0].left == LEFT and others[0].right == others[1].left
    assert [label for _, label in chart.ticks] == [str(second) for second in range(11)]
    assert len({bar.top for bar in chart.bars}) == 3
    draw(attempts, "a title", tmp_path / "chart.png")
    with Image.open(tmp_path / "chart.png") as image:
        assert image.size == (chart.width, chart.height)
        assert image.getpixel((round(first.left) + 5, round(first.top) + 5)) == (0x1F, 0x77, 0xB4)


def test_a_chart_of_many_cycles_has_a_row_per_block():
    chart = lay_out([fetch(10 * cycle, 10 * cycle + 5, 1, cycle, cycle % 3) for cycle in range(ROWS_MAX + 1)])
    assert chart.rows == [BUSY_ROW, "R_0", "R_1", "R_2"]


def test_ratios_are_of_medians_and_a_tool_that_asked_for_other_urls_has_none():
    runs = {
        OURS: [Run(100, 1.0, 0.2), Run(100, 2.0, 0.3), Run(100, 4.0, 0.1)],
        "wget": [Run(100, 4.0, 0.4)],
        "spider": [Run(50, 1.0, 1.0)],
        "scrapy": [],
    }
    figures = contest_figures("60", runs, {"spider": "no ratio"})
    assert figures == {"60.pages_per_s": 50, "60.cpu_ms_per_page": 2, "60.ratio_wget": 2, "60.cpu_ratio_wget": 0.5}
    lines = table_lines({OURS: "ours", "scrapy": "Scrapy"}, runs, {"scrapy": "failed"})
    assert "1.0 2.0 4.0" in lines[1] and lines[2].split() == ["Scrapy", "-", "-", "failed"]


def test_processes_are_told_apart_by_their_titles():
    stage = ["python -m stages.extractor --cycle 7"]
    assert kind_of(["python"], "", True) == SUPERVISOR
    assert kind_of(["python", "-m", "supervise.warm_process"], SUPERVISOR, False) == WARM
    assert kind_of(stage, WARM, False) == names.EXTRACTOR
    assert kind_of(stage, names.EXTRACTOR, False) == WORKERS


def test_memory_is_flat_where_the_last_third_is_like_the_second():
    samples = [Sample(at, {"flat": 100, "grows": 100 + 10 * at}) for at in range(31)]
    ratios = flatness(samples)
    assert ratios["flat"] == 1 and ratios["grows"] == pytest.approx(400 / 290)
    assert flatness([]) == {}


def test_pages_of_slow_servers_lead_to_each_page_once():
    targets = ["/"] + [f"/{page}" for page in range(1, 40)]
    links = [word for target in targets for word in page_of(3, target, 39).decode().split("href=/")[1:]]
    assert sorted(int(link.split(">")[0]) for link in links) == list(range(1, 40))


def test_a_host_with_a_certificate_speaks_tls(tmp_path):
    host = Host(tmp_path, ["127.0.0.1"], "a.test", certificate=tmp_path / "a.pem")
    text = write_configuration([host], 81, tmp_path, None)
    assert "listen 127.0.0.1:81 ssl backlog=4096;" in text and f"ssl_certificate_key {tmp_path / 'a.pem'};" in text


def write_manual(folder: Path, pages: int) -> Path:
    """An index with links to pages, each with a link to the next, and one that leads nowhere."""
    folder.mkdir()
    links = "".join(f"<a href=page-{number}.html>{number}</a>\n" for number in range(pages))
    (folder / "index.html").write_text(f"<!doctype html><title>index</title>{links}<a href=/missing>x</a>\n")
    for number in range(pages):
        (folder / f"page-{number}.html").write_text(
            f"<!doctype html><title>{number}</title><a href=deep-{number}.html>deep</a><img src=picture.png>\n"
        )
        (folder / f"deep-{number}.html").write_text("<!doctype html><title>deep</title><p>the end\n")
    return folder


def test_a_site_with_several_manuals_has_an_index_of_them(tmp_path):
    manuals = [write_manual(tmp_path / str(number), 1) for number in range(2)]
    hosts = build_hosts(make_sites(2), manuals, 2, tmp_path / "sites")
    assert [host.root for host in hosts] == [tmp_path / "sites" / site.name for site in make_sites(2)]
    assert (hosts[1].root / "1" / "page-0.html").exists() and '"0/"' in (hosts[1].root / "index.html").read_text()
    assert [host.root for host in build_hosts(make_sites(4), manuals, 2, tmp_path / "x")] == manuals * 2


def test_a_contest_on_a_tiny_web(tmp_path, needs, monkeypatch):
    """Ours and wget ask for the same URLs, and get their figures."""
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + "/usr/sbin")
    needs("nginx"), needs("wget")
    manuals = [write_manual(tmp_path / f"manual-{number}", 4) for number in range(2)]
    made = make_tools(tmp_path / "tools", ("wget", "wget_2"))
    tools = {name: tool for name, tool in made.items() if name not in (TUNED, SEQUENTIAL)}
    with serving_web(2, tmp_path / "web", manuals, copies=2) as web:
        contest = Contest("12", web, tools, tmp_path / "tools" / OURS / "crawl")
        figures = contest.run(1)
    # On each of two names: an index, two manuals of an index, four pages and four deep ones, and what is missing.
    assert figures["12.urls"] == 2 * (1 + 2 * (1 + 4 + 4) + 1)
    assert figures["12.differences"] == dict.fromkeys(tools, 0) and contest.differing == {}
    assert {name: len(runs) for name, runs in contest.runs.items()} == dict.fromkeys(tools, 1)
    assert {"12.ratio_wget", "12.ratio_wget_2", "12.cpu_ratio_wget"} <= figures.keys()
    assert 0 < figures["12.fetcher_busy"] <= 1
    attempts = read_journal(tmp_path / "tools" / OURS / "crawl")
    assert sum(attempt.pages for attempt in attempts if attempt.stage == names.FETCHER) == figures["12.urls"]
