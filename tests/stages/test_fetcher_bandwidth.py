"""Bytes per second: the bucket alone by a clock of its own, and what servers and processes see of it."""

import os
import random
import signal
import time

import pytest

from stages.fetcher.bandwidth import BURST_S, Bandwidth
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    RawServer,
    fetch,
    finals_in,
    ok,
    outcome_of,
    override,
    start_fetcher,
)

READ_BYTES = 16 << 10  # by one transfer at a time, under a limit
WINDOW_S = 10.0


@pytest.mark.parametrize("rate", [20_000, 1_000_000, 200_000_000])
def test_the_bucket_keeps_its_rate_over_any_ten_seconds(rate):
    """Reads of any size whenever it allows one, for a minute of its own time, with quiet times between."""
    dice, bucket, now_s, reads = random.Random(rate), Bandwidth(rate), 1000.0, []
    while now_s < 1060.0:
        if (wait_s := bucket.wait_s(now_s)) > 0:
            now_s += wait_s
        elif dice.random() < 0.0005:
            now_s += dice.uniform(0.0, 3.0)
        else:
            size_bytes = dice.randrange(1, rate // 100)
            bucket.take(size_bytes)
            reads.append((now_s, size_bytes))
            now_s += dice.uniform(0.0, 0.001)
        now_s += 1e-9  # no clock stands still
    first, in_window, most = 0, 0, 0
    for moment_s, size_bytes in reads:
        in_window += size_bytes
        while reads[first][0] <= moment_s - WINDOW_S:
            in_window -= reads[first][1]
            first += 1
        most = max(most, in_window)
    assert rate * WINDOW_S * 0.9 <= most <= rate * WINDOW_S * 1.05


def test_the_bucket_forgives_nothing_and_saves_up_little():
    bucket = Bandwidth(1000)
    assert bucket.wait_s(5.0) == 0.0
    bucket.take(10_000)
    burst_bytes = 1000 * BURST_S
    assert bucket.wait_s(5.0) == pytest.approx((10_000 - burst_bytes) / 1000)
    assert bucket.wait_s(6.0) == pytest.approx((9_000 - burst_bytes) / 1000)
    assert bucket.wait_s(10_000.0) == 0.0
    bucket.take(round(burst_bytes) + 1)
    assert bucket.wait_s(10_000.0) > 0, "no more than the burst was saved up in hours"
    unlimited = Bandwidth(0)
    unlimited.take(1 << 60)
    assert unlimited.wait_s(0.0) == 0.0


def test_many_bodies_together_keep_to_the_limit_and_none_is_blamed_for_it(tmp_path):
    """All of the time limits are far shorter than a throttled transfer takes.

    A busy machine makes any fetch longer: how much of the limit is used is compared with a fetch without one, and the
    best of three counts.
    """
    rate, body = 1_000_000, os.urandom(120_000)
    hosts = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(8)}
    limits = {"total_timeout_s": 0.8, "slow_s": 0.4, "slow_bytes_per_s": rate}
    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else ok(body), "0.0.0.0") as server:
        urls = [f"http://{name}:{server.port}/{number}" for number in range(3) for name in hosts]

        def fetch_all(name: str, **settings) -> tuple[float, int]:
            before_s = time.monotonic()
            result = fetch(tmp_path / name, urls, hosts, **settings)
            took_s = time.monotonic() - before_s
            finals = finals_in(tmp_path / name)
            assert [outcome_of(finals[url]) for url in urls] == [("answered", "")] * len(urls)
            assert all(finals[url].block.endswith(body) for url in urls)
            return took_s, result.counts["bytes"]

        free_s, _ = fetch_all("free")
        lost_s = []
        for attempt in range(3):
            took_s, total_bytes = fetch_all(f"limited{attempt}", bandwidth_max_bytes_per_s=rate, **limits)
            allowed = rate * (took_s + BURST_S) * 1.05 + len(hosts) * READ_BYTES
            assert total_bytes <= allowed, f"{total_bytes / took_s:.0f} bytes per second"
            lost_s.append(took_s - total_bytes / (0.6 * rate))
            if lost_s[-1] <= 5 * free_s:
                break
    assert min(lost_s) <= 5 * free_s, f"less than 0.6 of the limit is used: {lost_s}, without a limit {free_s:.2f} s"


@pytest.mark.long
def test_hosts_that_wait_for_bandwidth_cost_no_processor(tmp_path):
    """Under a limit that takes seconds, the same pages cost about as much of a processor as without one."""
    hosts, rate = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(100)}, 2_500
    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else ok(), "0.0.0.0") as server:

        def fetch_all(name: str, bandwidth: int) -> tuple[float, int]:
            before_s = time.process_time()
            result = fetch(
                tmp_path / name,
                [f"http://{name}:{server.port}/" for name in hosts],
                hosts,
                bandwidth_max_bytes_per_s=bandwidth,
            )
            assert result.counts["answered"] == len(hosts)
            return time.process_time() - before_s, result.counts["bytes"]

        free_s, _ = fetch_all("free", 0)
        limited_s, total_bytes = fetch_all("limited", rate)
    waited_s = total_bytes / rate
    assert waited_s > 3 and limited_s - free_s < 0.5 * waited_s, (
        f"{limited_s:.2f} s of processor, without a limit {free_s:.2f} s"
    )


def test_a_server_that_is_slow_by_itself_is_still_found_out_under_a_limit(tmp_path):
    def drip(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
        connection.recv(1)  # until the fetcher tires of it

    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else drip) as server:
        url = f"http://one.test:{server.port}/"
        fetch(tmp_path / "out", [url], {"one.test": "127.0.0.1"}, bandwidth_max_bytes_per_s=1_000_000, slow_s=0.3)
    assert outcome_of(finals_in(tmp_path / "out")[url]) == ("failed", "too_slow")


def test_bodies_that_are_cut_off_at_their_size_end_well_under_a_limit(tmp_path):
    body = os.urandom(100_000)
    hosts = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(4)}
    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else ok(body), "0.0.0.0") as server:
        urls = [f"http://{name}:{server.port}/" for name in hosts]
        fetch(tmp_path / "out", urls, hosts, bandwidth_max_bytes_per_s=200_000, body_max_bytes=50_000)
    for record in finals_in(tmp_path / "out").values():
        assert outcome_of(record) == ("answered", "") and record.get("WARC-Truncated") == "length"
        assert record.block.endswith(b"\r\n\r\n" + body[:50_000])


@pytest.mark.long
def test_a_signal_ends_a_throttled_run_in_time(tmp_path):
    hosts_file = tmp_path / "hosts"
    hosts_file.write_text("127.0.0.1 one.test\n127.0.0.2 two.test\n")
    with RawServer(
        lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else ok(bytes(2_000_000)), "0.0.0.0"
    ) as server:
        (tmp_path / "urls.txt").write_text(
            "".join(f"http://{name}.test:{server.port}/{n}\n" for n in range(5) for name in ("one", "two"))
        )
        process = start_fetcher(
            tmp_path / "urls.txt",
            "--out",
            tmp_path / "out",
            *override(delay_s=0, hosts_file=hosts_file, allow_private_addresses=True, bandwidth_max_bytes_per_s=50_000),
        )
        server.wait_for(4)
        before_s = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 75 and "interrupted: run it again to resume" in err
        assert time.monotonic() - before_s < 200, "3 s of grace, and what ending takes; the list would take 400 s"
