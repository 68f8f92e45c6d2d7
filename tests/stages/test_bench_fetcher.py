"""bin/bench fetcher: what is computed from given numbers, the pages that are chosen, the servers that never answer."""

import math
import select
import socket
import sys
import time
from contextlib import closing

import pytest

from bench.fetcher.figures import goal_lines, rate_of, speed_figures, utilisation
from bench.fetcher.idle import page_rate, silent
from bench.fetcher.ours import Answer
from bench.fetcher.peers import read_wrk
from bench.fetcher.shares import REST, share
from bench.nginx import make_sites, write_hosts
from bench.pages import SIZE_MAX_BYTES, SIZE_MIN_BYTES, choose_pages, make_list
from bench.processes import Child
from contract.errors import BadInput, TryLater


def test_rate_and_cpu_of_a_run():
    assert rate_of(20_000, 5.0, 6.0) == (4_000, pytest.approx(300))


def test_speed_is_a_median_and_a_ratio_is_the_median_of_ratios_of_each_repeat():
    figures = speed_figures(
        [(3_000, 300), (2_000, 310), (4_000, 320)],
        [(300, 2_000), (400, 2_100), (500, 2_200)],
        [(100, 1), (200, 2), (300, 3)],
        [10_000, 8_000, 16_000],
    )
    assert (
        figures["pages_per_s"],
        figures["cpu_us_per_page"],
        figures["scrapy_pages_per_s"],
        figures["wrk_pages_per_s"],
    ) == (3_000, 310, 400, 10_000)
    assert figures["ratio_scrapy"] == 8.0  # of 10, 5 and 8
    assert figures["ratio_scrapy_crawling"] == 13.3  # of 30, 10 and 13.3
    assert figures["ratio_wrk"] == 0.25  # of 0.3, 0.25 and 0.25


def test_utilisation_counts_answers_of_the_window_against_what_the_pauses_allow():
    share_of_possible, answered, possible = utilisation([0.5, 1.0, 5.0, 7.9, 8.0], [0.0, 1.0], 1.0, (1.0, 8.0))
    assert answered == 3
    assert possible == pytest.approx(7 * (1 / 1 + 1 / 2))
    assert share_of_possible == pytest.approx(3 / 10.5)


def test_goals_stand_beside_the_figures_that_were_measured():
    lines = goal_lines({"pages_per_s": 3_000, "cpu_us_per_page": 331, "ratio_wrk": 0.2})
    assert [line.split()[0] for line in lines] == ["pages_per_s", "cpu_us_per_page", "ratio_wrk"]
    assert (
        lines[0].endswith("at least 3,000: met") and lines[1].endswith("at most 330: missed") and "goal" not in lines[2]
    )


def test_rate_of_pages_is_from_the_first_request_to_the_last_answer_of_the_list():
    answers = [Answer("a", 1_000, 1_100), Answer("robots", 0, 10), Answer("b", 1_200, 1_500)]
    assert page_rate(answers, {"a", "b"}, 0, math.inf) == (4.0, 0)
    assert page_rate(answers, {"a", "b"}, 1_100, 2_000) == (pytest.approx(1 / 0.3), 0)
    with pytest.raises(TryLater, match="on record"):
        page_rate(answers, {"a", "b", "c"}, 0, math.inf)
    with pytest.raises(TryLater, match="more pages"):
        page_rate(answers, {"a", "b"}, 2_000, math.inf)


def test_pages_that_had_to_wait_for_a_silent_server_are_counted_apart():
    pages = [Answer(str(number), 1_000, 2_000) for number in range(19)] + [Answer("late", 7_000, 7_100)]
    urls = {page.url for page in pages}
    assert page_rate(pages, urls, 0, 5_000) == (19.0, 1)
    with pytest.raises(TryLater, match="20 after"):
        page_rate(pages, urls, 0, 500)


def test_shares_of_a_profile_give_small_c_functions_to_their_callers():
    called = [
        ["~:<method 'socket_action' of 'pycurl.CurlMulti' objects>", 5, 2.5],
        ["~:<built-in method builtins.len>", 5, 1.5],
    ]
    profile = {
        "call_cost_s": [0.1, 0.2],
        "functions": [
            ["/x/stages/fetcher/engine.py:wait", 10, 4.0, called],
            *([*one, []] for one in called),
            ["/x/stages/fetcher/download.py:run", 1, 3.1, []],
        ],
    }
    assert share(profile) == pytest.approx({REST: 3 / 7, "exchange and engine": 2 / 7, "libcurl": 2 / 7})


def test_pages_within_the_bounds_are_chosen(tmp_path):
    (tmp_path / "a b").mkdir()
    for name, size_bytes in (
        ("a b/one.html", SIZE_MIN_BYTES),
        ("two.htm", SIZE_MAX_BYTES),
        ("short.html", SIZE_MIN_BYTES - 1),
        ("long.html", SIZE_MAX_BYTES + 1),
        ("picture.png", 5_000),
    ):
        (tmp_path / name).write_bytes(b"x" * size_bytes)
    (tmp_path / "link.html").symlink_to("two.htm")
    pages = choose_pages(tmp_path)
    assert pages.paths == ["/a%20b/one.html", "/two.htm"]
    assert pages.mean_bytes == (SIZE_MIN_BYTES + SIZE_MAX_BYTES) / 2


def test_a_list_takes_the_servers_in_turn_and_no_url_twice(tmp_path):
    for number in range(7):
        (tmp_path / f"{number}.html").write_bytes(b"x" * SIZE_MIN_BYTES)
    pages = choose_pages(tmp_path)
    urls = make_list(pages, ["http://a", "http://b", "http://c"], 20)
    assert len(set(urls)) == 20
    assert [url[:8] for url in urls[:4]] == ["http://a", "http://b", "http://c", "http://a"]
    with pytest.raises(BadInput):
        make_list(pages, ["http://a"], 8)


def test_what_wrk_prints():
    assert read_wrk("Running 1s test\nRequests/sec:  30218.74\nTransfer/sec:    820.01MB\n") == 30218.74
    with pytest.raises(TryLater):
        read_wrk("  Non-2xx or 3xx responses: 12\nRequests/sec:  30218.74\n")


def test_silent_servers_accept_and_hang_up_only_when_they_are_ended(tmp_path):
    sites = make_sites("silent", 1, 3)
    with silent(sites, 3, tmp_path) as servers:
        asked = [socket.create_connection((site.address, int(servers.port)), timeout=300) for site in sites]
        for connection in asked[:-1]:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(TryLater):
            servers.open_at_ms()
        asked[-1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert select.select([servers.output], [], [], 30)[0]
        assert abs(servers.open_at_ms() - time.time() * 1000) < 60_000
        asked[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            asked[0].recv(1)
        asked[0].settimeout(300)
    for connection in asked:
        with closing(connection):
            try:
                assert connection.recv(1) == b""
            except ConnectionResetError:
                pass  # the process ended before it had read the request


def test_sites_have_names_and_addresses_of_their_own(tmp_path):
    sites = make_sites("site", 0, 1_500)
    assert len({site.name for site in sites}) == len({site.address for site in sites}) == 1_500
    write_hosts(tmp_path / "hosts", sites[:1])
    assert (tmp_path / "hosts").read_text() == "127.0.1.1 site-0000.bench.test\n"


def test_a_child_tells_what_it_spent_and_why_it_failed(tmp_path):
    spent = Child([sys.executable, "-c", "sum(range(3_000_000))"], tmp_path / "log").wait()
    assert spent.cpu_s > 0 and spent.wall_s > 0
    with pytest.raises(TryLater, match="the reason"):
        Child([sys.executable, "-c", "raise SystemExit('the reason')"], tmp_path / "log").wait()
