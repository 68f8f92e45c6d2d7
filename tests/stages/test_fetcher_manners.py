"""What servers that ask for patience, fail or never end get: pauses, retries, and the end of the cycle."""

import json
import signal
import socket
import threading
import time
from email.utils import formatdate
from itertools import pairwise

import pytest

from contract import warc
from contract.pause import SLOW_LEAST_MS, SLOW_MOST_MS
from stages.fetcher.bodies import Bodies
from stages.fetcher.exchange import Exchange, Limits, Origin
from stages.fetcher.resume import read_history
from stages.fetcher.server_queues import HostWork, Known
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    Gathered,
    RawServer,
    fetch,
    finals_in,
    ok,
    outcome_of,
    override,
    records_in,
    run_fetcher,
    start_fetcher,
)

HOSTS = {"one.test": "127.0.0.1"}
NOBODY = "127.0.0.9"  # listens on no port of the servers here, which have one address
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


def gaps_s(seen: list) -> list[float]:
    """Between the end of each answer and the start of the next request."""
    ordered = sorted(seen, key=lambda one: one.started_s)
    return [after.started_s - before.ended_s for before, after in pairwise(ordered)]


def assert_books_balance(result, folder) -> None:
    counts = result.counts
    assert counts["listed"] == sum(counts[name] for name in ("answered", "failed", "refused", "not_reached"))
    found = [outcome_of(record)[0] for record in finals_in(folder).values()]
    assert [found.count(name) for name in ("answered", "failed", "refused")] == [
        counts[name] for name in ("answered", "failed", "refused")
    ]
    assert len(result.not_reached) == counts["not_reached"]


class Script:
    """Answers each target with its answers in turn, the last one for ever; what is not there is a page."""

    def __init__(self, **answers: list):
        self._answers = {f"/{name}": list(given) for name, given in answers.items()}

    def __call__(self, seen):
        if seen.target == "/robots.txt":
            return NO_ROBOTS
        left = self._answers.get(seen.target, [ok()])
        return left.pop(0) if len(left) > 1 else left[0]


# --- time ---


def test_the_cycle_ends_with_transfers_in_flight_and_the_rest_not_reached(tmp_path):
    """A transfer that never ends takes its total_timeout_s; nothing is begun when the time is over."""

    def stall(connection):
        connection.recv(1)

    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else stall, "0.0.0.0") as server:
        hosts = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(5)}
        urls = [f"http://{name}:{server.port}/{number}" for number in range(3) for name in hosts]
        before_s = time.monotonic()
        result = fetch(tmp_path / "out", urls, hosts, cycle_max_s=1.0, total_timeout_s=1.5)
        assert time.monotonic() - before_s >= 1.5
        begun = [seen.host for seen in server.seen if seen.target != "/robots.txt"]
    assert 1 <= len(begun) == len(set(begun)) <= 5, "one transfer per host, and none when the time is over"
    assert result.counts["failed"] == len(begun) and result.counts["not_reached"] == 15 - len(begun)
    assert_books_balance(result, tmp_path / "out")


def test_the_cycle_ends_although_bandwidth_would_keep_its_transfers_for_minutes(tmp_path):
    with RawServer(Script(long=[ok(bytes(1_000_000))])) as server:
        before_s = time.monotonic()
        url = f"http://one.test:{server.port}/long"
        result = fetch(
            tmp_path / "out", [url], HOSTS, cycle_max_s=0.3, total_timeout_s=0.5, bandwidth_max_bytes_per_s=2_000
        )
        assert time.monotonic() - before_s < 250, "the whole body would take 500 s"
    assert result.not_reached == [(url, "")]
    assert_books_balance(result, tmp_path / "out")


def test_a_crawl_delay_beyond_the_cycle_is_never_hurried(tmp_path):
    def answer(seen):
        return ok(b"User-agent: *\nCrawl-delay: 2\n") if seen.target == "/robots.txt" else ok()

    with RawServer(answer) as server:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(3)]
        fetch(tmp_path / "one", urls[:1], HOSTS)
        assert server.targets == ["/robots.txt", "/0"] and gaps_s(server.seen)[0] >= 2.0
        before_s, rules = time.monotonic(), b"User-agent: *\nCrawl-delay: 3000\n"
        known = {f"http://one.test:{server.port}": Known(robots_text=rules)}
        result = fetch(tmp_path / "out", urls, HOSTS, known=known, cycle_max_s=2500.0)
        assert server.targets == ["/robots.txt", "/0", "/0"]
        assert time.monotonic() - before_s < PATIENCE_S, "nobody waits for what cannot come"
    assert [url for url, _ in result.not_reached] == urls[1:]


@pytest.mark.long
def test_fifty_hosts_of_one_address_hold_up_nobody_else(tmp_path):
    hosts = {f"crowd{number}.test": "127.0.0.1" for number in range(200)} | {"alone.test": "127.0.0.2"}
    with RawServer(Script(), "0.0.0.0") as server:
        urls = [f"http://{name}:{server.port}/{n}" for n in range(2) for name in hosts if name != "alone.test"]
        urls += [f"http://alone.test:{server.port}/{n}" for n in range(8)]
        result = fetch(tmp_path / "out", urls, hosts, delay_s=0.05, cycle_max_s=4.0)
        crowd = [seen for seen in server.seen if seen.address == "127.0.0.1"]
        alone = [seen for seen in server.seen if seen.address == "127.0.0.2"]
        assert len(alone) == 9 and min(gaps_s(alone)) >= 0.05 and min(gaps_s(crowd)) >= 0.05
        assert len(crowd) >= 10 and len({seen.host for seen in crowd}) >= len(crowd) - 1, "each in its turn"
        assert alone[-1].started_s < crowd[-1].started_s
    assert result.counts["not_reached"] > 0
    assert_books_balance(result, tmp_path / "out")


# --- slowing down ---


@pytest.mark.parametrize("status,form", [("429 Slow", "seconds"), ("503 Busy", "date")])
@pytest.mark.sampled(1)
def test_retry_after_is_obeyed(tmp_path, status, form):
    asked_until_s = []

    def answer(seen):
        if seen.target != "/first" or asked_until_s:
            return Script()(seen)
        until_s = int(time.time()) + 2  # a date has no fractions
        asked_until_s.append(until_s if form == "date" else time.time() + 1)
        value = formatdate(until_s, usegmt=True) if form == "date" else "1"
        return f"HTTP/1.1 {status}\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n".encode()

    offset_s = time.time() - time.monotonic()
    with RawServer(answer, "0.0.0.0") as server:
        hosts = HOSTS | {"other.test": "127.0.0.2"}
        urls = [f"http://one.test:{server.port}/{name}" for name in ("first", "second")]
        urls += [f"http://other.test:{server.port}/{n}" for n in range(3)]
        result = fetch(tmp_path / "out", urls, hosts, retries_max=1)
        mine = [seen for seen in server.seen if seen.host == "one.test"]
        assert [seen.target for seen in mine] == ["/robots.txt", "/first", "/second", "/first"]
        assert mine[2].started_s + offset_s >= asked_until_s[0], "not a moment before"
        assert all(seen.started_s < mine[2].started_s for seen in server.seen if seen.host == "other.test")
    assert result.counts["answered"] == 5
    assert_books_balance(result, tmp_path / "out")


def test_a_retry_after_beyond_the_cycle_sends_the_rest_back(tmp_path):
    later = b"HTTP/1.1 429 Slow\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"
    with RawServer(Script(first=[later, ok()])) as server:
        urls = [f"http://one.test:{server.port}/{name}" for name in ("first", "second")]
        result = fetch(tmp_path / "out", urls, HOSTS, retries_max=3)
        assert server.targets == ["/robots.txt", "/first"]
    assert outcome_of(finals_in(tmp_path / "out")[urls[0]]) == ("failed", "http_429"), "its last failure counts"
    assert [url for url, _ in result.not_reached] == urls[1:] and result.counts["requests"] == 2
    assert_books_balance(result, tmp_path / "out")


def test_a_refusal_makes_the_pause_longer_and_answers_shorter_again(tmp_path):
    with RawServer(Script(a=[BUSY])) as server:
        urls = [f"http://one.test:{server.port}/{name}" for name in "abcd"]
        fetch(tmp_path / "out", urls, HOSTS, delay_s=0.1)
        gaps = dict(zip((seen.target for seen in server.seen[1:]), gaps_s(server.seen)))
    assert gaps["/b"] >= 1.0 and gaps["/c"] >= 0.5 and 0.25 <= gaps["/d"] < 1.0, "half is forgiven with each answer"


def test_retry_after_as_a_date_is_never_rounded_down(tmp_path):
    exchange = Exchange(Origin("http://a", "127.0.0.1", "C/1"), "http://a/", Limits(1000, 10), Bodies(tmp_path, 100))
    date_s = 1_800_000_000
    for line in (b"HTTP/1.1 503 Busy\r\n", f"Retry-After: {formatdate(date_s, usegmt=True)}\r\n".encode(), b"\r\n"):
        exchange.take_header(line)
    for wait_ms in (1, 400, 999, 1000, 1001, 1400, 1600):
        assert exchange.retry_after_s(date_s * 1000 - wait_ms) * 1000 >= wait_ms
    assert exchange.retry_after_s(date_s * 1000 + 5000) == 0


@pytest.mark.parametrize("delay_ms,crawl_delay_ms", [(5_000, 0), (0, 5_000), (5_000, 3_000)])
def test_the_pause_doubles_also_from_a_long_delay(delay_ms, crawl_delay_ms):
    host = HostWork("one.test")
    host.rest_at_least(crawl_delay_ms)
    host.slow_down(0, 0, delay_ms)
    assert host.ready_at_ms == 10_001


def test_a_server_s_slowness_by_a_clock_of_its_own():
    host, now_ms, pauses = HostWork("one.test"), 0, []
    for _ in range(14):
        host.slow_down(now_ms, 0, 100)
        pauses.append(host.ready_at_ms - now_ms - 1)
        now_ms = host.ready_at_ms
    assert pauses[0] == SLOW_LEAST_MS and pauses[-1] == SLOW_MOST_MS
    assert all(after == min(2 * before, SLOW_MOST_MS) for before, after in pairwise(pauses))
    host.slow_down(now_ms, 7200, 100)
    assert host.ready_at_ms == now_ms + 7_200_001, "what the server says, where that is longer"
    now_ms, forgiven = host.ready_at_ms, []
    for _ in range(14):
        host.speed_up(now_ms)
        forgiven.append(max(0, host.ready_at_ms - now_ms - 1))
        now_ms = max(now_ms, host.ready_at_ms)
    assert forgiven[0] == SLOW_MOST_MS // 2 and forgiven[-1] == 0 and forgiven == sorted(forgiven, reverse=True)


def test_failures_in_a_row_set_the_server_aside_for_the_cycle(tmp_path):
    broken = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"
    with RawServer(Script(a=[broken], b=[broken], d=[broken], e=[broken], f=[broken]), "0.0.0.0") as server:
        urls = [f"http://one.test:{server.port}/{name}" for name in "abcdefgh"] + [
            f"http://two.test:{server.port}/{n}" for n in range(9)
        ]
        result = fetch(tmp_path / "out", urls, HOSTS | {"two.test": "127.0.0.2"}, server_failures_max=3)
        assert [seen.target[1:] for seen in server.seen if seen.host == "one.test"] == ["robots.txt", *"abcdef"]
    assert result.counts["failed"] == 5 and [url for url, _ in result.not_reached] == urls[6:8]
    assert result.counts["answered"] == 10
    assert_books_balance(result, tmp_path / "out")


def test_a_slow_answer_is_followed_by_a_pause_of_its_length(tmp_path):
    with RawServer(Script(), dwell_s=0.2) as server:
        fetch(
            tmp_path / "out",
            [f"http://one.test:{server.port}/{n}" for n in range(3)],
            HOSTS,
            delay_response_factor=2.0,
            delay_s=0.05,
        )
        for before, after in pairwise(server.seen):
            assert after.started_s - before.ended_s >= 2.0 * (before.ended_s - before.started_s) - 0.005


@pytest.mark.parametrize(
    "scope,hosts,rests",
    [
        (("host", "domain"), {"a.dom.test": "127.0.0.1", "b.dom.test": "127.0.0.2"}, True),
        (("host",), {"a.dom.test": "127.0.0.1", "b.dom.test": "127.0.0.2"}, False),
        (("host",), {"a.one.test": "127.0.0.1", "b.two.test": "127.0.0.1"}, False),
        (("address",), {"a.one.test": "127.0.0.1", "b.two.test": "127.0.0.1"}, True),
    ],
)
def test_delay_scope_says_who_rests_together(tmp_path, scope, hosts, rests):
    with RawServer(Script(), "0.0.0.0", dwell_s=0.02) as server:
        urls = [f"http://{name}:{server.port}/{n}" for n in range(2) for name in hosts]
        fetch(tmp_path / "out", urls, hosts, delay_s=0.3, delay_scope=scope)
        gaps = gaps_s(server.seen)
        assert len(server.seen) == 6 and (min(gaps) >= 0.3 if rests else min(gaps) < 0.3), gaps
        if len(set(hosts.values())) == 1 or "domain" in scope:
            assert server.busy_most == 1, "one at a time in any case"
        for name in hosts:
            own = gaps_s([seen for seen in server.seen if seen.host == name])
            assert min(own) >= 0.3


def test_an_address_s_pause_alone_leaves_hosts_elsewhere_alone(tmp_path):
    """The host itself has no pause, where only the address is named.

    Its page follows its robots.txt by the address's.
    """
    with RawServer(Gathered(6, Script()), "0.0.0.0") as server:  # answers once all six are asked, side by side
        hosts = {f"h{number}.dom.test": f"127.0.0.{number + 1}" for number in range(6)}
        fetch(
            tmp_path / "out",
            [f"http://{name}:{server.port}/" for name in hosts],
            hosts,
            delay_s=0.5,
            delay_scope=("address",),
        )
        assert all(min(gaps_s([seen for seen in server.seen if seen.host == name])) >= 0.5 for name in hosts)
        assert len(server.seen) == 12 and server.busy_most >= 6


# --- retries ---


def test_temporary_failures_are_asked_again_behind_the_others_after_the_pause(tmp_path):
    broken = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"
    with RawServer(Script(once=[broken, ok()], always=[broken])) as server:
        urls = [f"http://one.test:{server.port}/{name}" for name in ("once", "always", "a", "b")]
        result = fetch(tmp_path / "out", urls, HOSTS, retries_max=2, delay_s=0.1)
        assert server.targets[1:] == ["/once", "/always", "/a", "/b", "/once", "/always", "/always"]
        assert min(gaps_s(server.seen)) >= 0.1
    finals = finals_in(tmp_path / "out")
    assert [outcome_of(finals[url])[0] for url in urls] == ["answered", "failed", "answered", "answered"]
    tries = [
        record.get(warc.FINAL)
        for record in records_in(tmp_path / "out")
        if record.type == "response" and record.url == urls[1]
    ]
    assert tries == ["", "", warc.YES]
    assert result.counts["requests"] == 8 and result.counts["failed"] == 1
    assert_books_balance(result, tmp_path / "out")


def test_the_end_of_the_cycle_makes_the_last_failure_final(tmp_path):
    """Its server asks for a pause that is longer than the cycle."""
    with RawServer(Script(a=[BUSY.replace(b"Busy", b"Busy\r\nRetry-After: 3000")])) as server:
        urls = [f"http://one.test:{server.port}/{name}" for name in "ab"]
        lines = []
        result = fetch(tmp_path / "out", urls, HOSTS, retries_max=5, cycle_max_s=2000.0, lines=lines)
        assert server.targets == ["/robots.txt", "/a"]
    assert outcome_of(finals_in(tmp_path / "out")[urls[0]]) == ("failed", "http_5xx")
    assert result.counts["failed"] == 1 and [url for url, _ in result.not_reached] == urls[1:]
    assert [line[:2] for line in lines] == [(urls[0], "http_5xx")]
    assert_books_balance(result, tmp_path / "out")


def test_killed_between_a_failure_and_its_retry_the_books_stay_exact(tmp_path):
    broken, held = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", threading.Event()
    script = Script(a=[broken, broken, ok()], b=[broken])

    def answer(seen):
        if seen.target == "/c" and not held.is_set():
            return lambda connection: held.wait(PATIENCE_S)
        return script(seen)

    hosts_file, out = tmp_path / "hosts", tmp_path / "out"
    hosts_file.write_text("127.0.0.1 one.test\n")
    with RawServer(answer) as server:
        urls = [f"http://one.test:{server.port}/{name}" for name in "abcd"]
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        command = [
            tmp_path / "urls.txt",
            "--out",
            out,
            *override(
                delay_s=0.02,
                hosts_file=hosts_file,
                allow_private_addresses=True,
                retries_max=2,
                sync_every_pages=1,
                server_failures_max=100,
            ),
        ]
        process = start_fetcher(*command)
        server.wait_for(4)  # robots.txt, two failures, and the one that is held
        deadline_s = time.monotonic() + PATIENCE_S
        while {past.url for past in read_history(out, cut=False).past if not past.is_robots} != set(urls[:2]):
            assert time.monotonic() < deadline_s
            threading.Event().wait(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        held.set()
        assert not finals_in(out), "tried, and not at an end"
        done = run_fetcher(*command)
        assert done.returncode == 0, done.stderr
        assert server.targets.count("/a") == 3 and server.targets.count("/b") == 3, "the tries before the kill count"
    finals = finals_in(out)
    assert [outcome_of(finals[url])[0] for url in urls] == ["answered", "failed", "answered", "answered"]
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == sorted(urls)
    counts = json.loads((out / "manifest.json").read_text())["counts"]
    assert (counts["listed"], counts["answered"], counts["failed"], counts["not_reached"]) == (4, 3, 1, 0)
    assert counts["requests"] == 9 and counts["robots_requests"] == 1


# --- addresses ---


@pytest.mark.parametrize("retries_max", [0, 1])
def test_the_next_address_of_a_name_is_asked_when_one_refuses(tmp_path, retries_max):
    with RawServer(Script(), "127.0.0.2") as server:
        urls = [f"http://two.test:{server.port}/{n}" for n in range(3)]
        result = fetch(
            tmp_path / "out", urls, {"two.test": f"{NOBODY} 127.0.0.2"}, delay_s=0.05, retries_max=retries_max
        )
        assert server.targets == ["/robots.txt", "/0", "/1", "/2"] and min(gaps_s(server.seen)) >= 0.05
    assert result.counts["answered"] == 3
    assert_books_balance(result, tmp_path / "out")


def test_a_name_all_of_whose_addresses_refuse_is_given_up(tmp_path):
    with socket.create_server(("127.0.0.2", 0)) as unused:
        port = unused.getsockname()[1]
    before_s = time.monotonic()
    result = fetch(tmp_path / "out", [f"http://two.test:{port}/"], {"two.test": f"{NOBODY} 127.0.0.2"}, retries_max=5)
    assert result.counts["not_reached"] == 1 and result.not_reached[0][1] == "connection_refused"
    assert time.monotonic() - before_s < PATIENCE_S, "the cycle would wait so long"
