"""What of answers is taken, and what of the machine is used for it: cut off at the head, memory, disk, many servers."""

import hashlib
import json
import re
import subprocess
import sys
import threading

import pytest

from contract import names, warc
from stages.fetcher.descriptors import DESCRIPTORS_SPARE
from synthweb.latency import LatencyServers
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    ROOT,
    Gathered,
    RawServer,
    fetch,
    finals_in,
    ok,
    outcome_of,
    override,
    pages_of,
    run_fetcher,
)

HOSTS = {"one.test": "127.0.0.1"}
ENDLESS_BYTES = 64 << 20
SPILLED, BODY_BYTES = 30, 2_000_000


class Endless:
    """Sends a head and then a body without end, and tells how much of it went out before the client hung up."""

    def __init__(self, *headers: str, status: str = "200 OK"):
        self._head = "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode()
        self.sent_bytes = 0
        self.is_over = threading.Event()

    def __call__(self, connection):
        try:
            connection.sendall(self._head)
            while self.sent_bytes < ENDLESS_BYTES:
                self.sent_bytes += connection.send(bytes(16_384))
        finally:
            self.is_over.set()


@pytest.mark.parametrize(
    "header,reason", [("Content-Type: video/mp4", "excluded_type"), (f"Content-Length: {1 << 40}", "too_big")]
)
def test_what_is_not_wanted_is_cut_off_at_the_head(tmp_path, header, reason):
    endless = Endless(header, "X-Kept: yes")
    with RawServer(lambda seen: endless if seen.target == "/page" else NO_ROBOTS) as server:
        url = f"http://one.test:{server.port}/page"
        fetch(tmp_path / "out", [url], HOSTS, accept_types=("text/",), length_max_bytes=1 << 20)
        assert endless.is_over.wait(PATIENCE_S) and endless.sent_bytes < 8 << 20, "what fits into two sockets' buffers"
    record = finals_in(tmp_path / "out")[url]
    answer = warc.parse_response(record.block)
    assert outcome_of(record) == ("refused", reason) and record.get("WARC-Truncated") == "unspecified"
    assert answer.status == 200 and answer.get("x-kept") == "yes" and len(answer.body) == 0


def test_robots_txt_redirects_and_errors_are_taken_whatever_they_say(tmp_path):
    rules = b"User-agent: *\nDisallow: /private\n" + b"#" * 2000
    video = "Content-Type: video/mp4"
    pages = {
        "/robots.txt": ok(rules, video),
        "/wanted": ok(b"x" * 900, "Content-Type: TEXT/html; charset=x"),
        "/untold": ok(b"y" * 900),
        "/moved": b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Type: video/mp4\r\nContent-Length: 2000\r\n\r\n"
        + bytes(2000),
        "/gone": b"HTTP/1.1 404 Gone\r\nContent-Type: video/mp4\r\nContent-Length: 2000\r\n\r\n" + bytes(2000),
        "/type": ok(b"z" * 9, video),
        "/long": ok(b"z" * 1001, "Content-Type: text/html"),
    }
    with RawServer(lambda seen: pages[seen.target]) as server:
        urls = {
            target: f"http://one.test:{server.port}{target}"
            for target in [*pages, "/private"]
            if target != "/robots.txt"
        }
        result = fetch(tmp_path / "out", list(urls.values()), HOSTS, accept_types=("text/",), length_max_bytes=1000)
    finals = finals_in(tmp_path / "out")
    assert {target: outcome_of(finals[url]) for target, url in urls.items()} == {
        "/wanted": ("answered", ""),
        "/untold": ("answered", ""),
        "/moved": ("answered", ""),
        "/gone": ("answered", ""),
        "/type": ("refused", "excluded_type"),
        "/long": ("refused", "too_big"),
        "/private": ("refused", "robots"),
    }
    assert len(warc.parse_response(finals[urls["/moved"]].block).body) == 2000
    assert result.counts["refused"] == 3 and result.counts["failed"] == 0


def body_of(number: int) -> bytes:
    """As good as random, which no compression makes smaller."""
    return hashlib.shake_128(b"%d" % number).digest(BODY_BYTES)


class Together:
    """Holds every page back until all of them are asked for."""

    def __init__(self, pages: int, body=body_of):
        self._barrier = threading.Barrier(pages)
        self._body = body
        self.is_over = False  # from then on each is answered at once

    def __call__(self, seen):
        if seen.target == "/robots.txt":
            return NO_ROBOTS
        if not self.is_over:
            self._barrier.wait(PATIENCE_S)
        return ok(self._body(int(seen.target[1:])))


MEASURED = """
import runpy, sys
try:
    runpy.run_module("stages.fetcher", run_name="__main__", alter_sys=True)
finally:
    sys.stderr.write(open("/proc/self/status").read())
"""  # not ru_maxrss, which counts what the process was before exec: this one


def fetch_measured(
    tmp_path, urls: list[str], hosts: dict[str, str], **settings
) -> tuple[subprocess.CompletedProcess, float]:
    """The command as a process; and its peak memory in MB."""
    (tmp_path / "hosts").write_text("".join(f"{address} {name}\n" for name, address in hosts.items()))
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    words = [
        tmp_path / "urls.txt",
        "--out",
        tmp_path / "out",
        *override(
            delay_s=0, hosts_file=tmp_path / "hosts", allow_private_addresses=True, delay_response_factor=0, **settings
        ),
    ]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    return done, int(re.search(r"VmHWM:\s+(\d+) kB", done.stderr)[1]) / 1024


def test_bodies_beyond_their_memory_go_through_files_and_stay_whole(tmp_path):
    hosts = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(SPILLED)}
    peaks_mb = {}
    for count in (1, SPILLED):
        folder = tmp_path / str(count)
        folder.mkdir()
        with RawServer(Together(count), "0.0.0.0") as server:
            urls = [f"http://{name}:{server.port}/{number}" for number, name in enumerate(hosts)][:count]
            done, peaks_mb[count] = fetch_measured(folder, urls, hosts, bodies_memory_max_bytes=1_000_000)
            assert done.returncode == 0, done.stderr
        finals = finals_in(folder / "out")
        for number, url in enumerate(urls):
            assert outcome_of(finals[url]) == ("answered", "")
            assert (
                hashlib.sha1(warc.parse_response(finals[url].block).body).digest()
                == hashlib.sha1(body_of(number)).digest()
            )
    assert peaks_mb[SPILLED] - peaks_mb[1] < 25, f"{peaks_mb}: 60 MB of bodies"


def test_a_disk_that_fills_while_bodies_go_there_ends_the_attempt_and_not_the_next(tmp_path, small_disk):
    """Bodies that compress to nothing: only on their way they need room."""

    def body(number: int) -> bytes:
        return bytes([number]) * BODY_BYTES

    resize = small_disk(tmp_path / "disk", 3_000)
    hosts = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(4)}
    (tmp_path / "hosts").write_text("".join(f"{address} {name}\n" for name, address in hosts.items()))
    together = Together(4, body)
    with RawServer(together, "0.0.0.0") as server:
        urls = [f"http://{name}:{server.port}/{number}" for number, name in enumerate(hosts)]
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        command = [
            tmp_path / "urls.txt",
            "--out",
            tmp_path / "disk" / "out",
            *override(
                delay_s=0, hosts_file=tmp_path / "hosts", allow_private_addresses=True, bodies_memory_max_bytes=1000
            ),
        ]
        full = run_fetcher(*command)
        assert full.returncode == 75 and "No space left on device" in full.stderr and "run it again" in full.stderr, (
            full.stderr
        )
        assert "Traceback" not in full.stderr and not (tmp_path / "disk" / "out" / names.MANIFEST).exists()
        resize(100_000)
        together.is_over = True
        done = run_fetcher(*command)
    assert done.returncode == 0, done.stderr
    finals = finals_in(tmp_path / "disk" / "out")
    assert [warc.parse_response(finals[url].block).body == body(number) for number, url in enumerate(urls)] == [
        True
    ] * 4


@pytest.mark.long
def test_a_low_limit_on_open_files_lowers_what_is_kept_as_well(tmp_path):
    """Connections at rest are open files too; without room for them URLs fail, and then page files."""
    room = 8
    hosts = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(150)}
    with RawServer(Gathered(room, pages_of({"/0": ok(), "/1": ok()})), "0.0.0.0") as server:
        urls = [f"http://{name}:{server.port}/{number}" for number in range(2) for name in hosts]
        (tmp_path / "hosts").write_text("".join(f"{address} {name}\n" for name, address in hosts.items()))
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        words = [
            tmp_path / "urls.txt",
            "--out",
            tmp_path / "out",
            *override(
                delay_s=0.3, hosts_file=tmp_path / "hosts", allow_private_addresses=True, delay_response_factor=0
            ),
        ]
        done = subprocess.run(
            [
                "/bin/sh",
                "-c",
                f'ulimit -n {DESCRIPTORS_SPARE + room} && exec "$0" -m stages.fetcher "$@"',
                sys.executable,
                *map(str, words),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0 and f"leaves room for {room} connections" in done.stderr, done.stderr
        assert server.connections.most == room
    counts = json.loads((tmp_path / "out" / names.MANIFEST).read_text())["counts"]
    assert counts["answered"] == len(urls) and counts["failed"] == 0


@pytest.mark.long
def test_bodies_on_disk_are_open_files_that_the_limit_is_raised_for(tmp_path):
    count = DESCRIPTORS_SPARE + 40
    hosts = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(count)}
    with RawServer(Together(count, lambda number: bytes([number]) * 60_000), "0.0.0.0") as server:
        urls = [f"http://{name}:{server.port}/{number}" for number, name in enumerate(hosts)]
        (tmp_path / "hosts").write_text("".join(f"{address} {name}\n" for name, address in hosts.items()))
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        words = [
            tmp_path / "urls.txt",
            "--out",
            tmp_path / "out",
            *override(
                delay_s=0,
                hosts_file=tmp_path / "hosts",
                allow_private_addresses=True,
                connections_max=count,
                transfers_max=count,
                bodies_memory_max_bytes=0,
            ),
        ]
        done = subprocess.run(
            ["/bin/sh", "-c", 'ulimit -S -n 256 && exec "$0" -m stages.fetcher "$@"', sys.executable, *map(str, words)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, done.stderr
    assert len(finals_in(tmp_path / "out")) == count


def test_thousands_of_servers_in_bounded_memory(tmp_path):
    with LatencyServers(1_500, seed=3, scale=0.2) as web:
        hosts = web.hosts()
        urls = [f"http://{name}:{web.port}/{number}" for number in range(2) for name in hosts]
        done, peak_mb = fetch_measured(tmp_path, urls, hosts)
    assert done.returncode == 0, done.stderr
    counts = json.loads((tmp_path / "out" / names.MANIFEST).read_text())["counts"]
    assert counts["answered"] == len(urls) and counts["requests"] == len(urls) + len(hosts) == web.requests
    assert peak_mb < 200, "10,000 servers and 20,000 URLs take as much: connections and transfers are bounded"
