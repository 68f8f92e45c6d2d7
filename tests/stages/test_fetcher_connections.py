"""Open connections and what is kept of them.

Never more than allowed, in all and to one address, as servers count them.
"""

import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from ipaddress import ip_address
from itertools import pairwise

import pytest

from stages.fetcher.slots import FileSlots, network_of, slot_of
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    ROOT,
    Connections,
    Gathered,
    RawServer,
    fetch,
    finals_in,
    ok,
    outcome_of,
)

HOSTS = {"one.test": "127.0.0.1"}


def answer_plain(seen):
    return NO_ROBOTS if seen.target == "/robots.txt" else ok()


def test_never_more_connections_than_allowed_those_at_rest_included(tmp_path):
    hosts = {f"h{number}.test": f"127.0.0.{number + 1}" for number in range(24)}
    with RawServer(Gathered(5, answer_plain), "0.0.0.0") as server:
        result = fetch(tmp_path / "out", urls_at(server, hosts), hosts, connections_max=5, delay_s=0.05)
        assert result.counts["answered"] == 3 * len(hosts), "a full budget makes URLs wait, never fail"
        assert result.counts["failed"] == 0 and server.connections.most == 5
    with RawServer(Gathered(len(hosts), answer_plain), "0.0.0.0") as server:
        fetch(tmp_path / "more", urls_at(server, hosts), hosts, connections_max=40, delay_s=0.05)
        assert server.connections.most == len(hosts), "with room, every host has one"
        assert Counter(server.connections.most_of_address.values()) == {1: len(hosts)}


def urls_at(server: RawServer, hosts: dict[str, str]) -> list[str]:
    return [f"http://{name}:{server.port}/{number}" for number in range(3) for name in hosts]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_never_more_connections_to_an_address_whatever_names_and_ports_it_has(tmp_path, most):
    connections = Connections()
    with ExitStack() as stack:
        servers = [stack.enter_context(RawServer(answer_plain, connections=connections)) for _ in range(2)]
        hosts = {f"h{number}.test": "127.0.0.1" for number in range(4)}
        urls = [f"http://{name}:{server.port}/{number}" for number in range(4) for name in hosts for server in servers]
        result = fetch(tmp_path / "out", urls, hosts, connections_per_address_max=most, delay_s=0.002)
        assert result.counts["answered"] == len(urls)
        assert connections.most == most and [server.busy_most for server in servers] == [1, 1]
        asked_on = Counter((seen.host, server.port, seen.connection) for server in servers for seen in server.seen)
        kept = {name for name, requests in asked_on.items() if requests > 1}
        assert len(kept) >= most - 1 and max(asked_on.values()) == (1 if most == 1 else 5)


def test_a_connection_is_kept_until_the_last_request_which_closes_it(tmp_path):
    with RawServer(answer_plain) as server:
        fetch(tmp_path / "out", [f"http://one.test:{server.port}/{n}" for n in range(10)], HOSTS)
        assert {seen.connection for seen in server.seen} == {1} and len(server.seen) == 11
        assert [b"Connection: close" in seen.raw for seen in server.seen] == [False] * 10 + [True]


def test_a_server_that_says_close_is_not_asked_again_on_that_connection(tmp_path):
    def answer(seen):
        return NO_ROBOTS if seen.target == "/robots.txt" else ok(b"hello", "Connection: close")

    with RawServer(answer) as server:
        result = fetch(tmp_path / "out", [f"http://one.test:{server.port}/{n}" for n in range(4)], HOSTS)
        assert result.counts["answered"] == 4 and result.counts["requests"] == 5
        assert [seen.connection for seen in server.seen] == [1, 1, 2, 3, 4], "the server itself would have gone on"


class Cutter:
    """Closes a kept connection on the request for `target`, once, having read it."""

    def __init__(self, target: str, answer=answer_plain):
        self._target = target
        self._answer = answer
        self._is_armed = True

    def __call__(self, seen):
        if seen.target == self._target and self._is_armed:
            self._is_armed = False
            return lambda connection: connection.shutdown(socket.SHUT_RDWR)
        return self._answer(seen)


def test_a_request_that_met_a_dead_connection_is_repeated_once_after_the_pause(tmp_path):
    with RawServer(Cutter("/2")) as server:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(5)]
        result = fetch(tmp_path / "out", urls, HOSTS, delay_s=0.25)
        assert server.targets == ["/robots.txt", "/0", "/1", "/2", "/2", "/3", "/4"]
        assert all(after.started_s - before.ended_s >= 0.25 for before, after in pairwise(server.seen))
        assert server.seen[3].connection == server.seen[0].connection != server.seen[4].connection
    assert result.counts["answered"] == 5 and set(finals_in(tmp_path / "out")) == set(urls)


def test_a_robots_txt_that_met_a_dead_connection_is_repeated_once_after_the_pause(tmp_path):
    """Its redirect leads to another path of the same server, on the connection that robots.txt itself was asked on."""

    def answer(seen):
        if seen.target == "/robots.txt":
            return b"HTTP/1.1 301 Moved\r\nLocation: /rules.txt\r\nContent-Length: 0\r\n\r\n"
        return ok(b"User-agent: *\nDisallow: /private\n") if seen.target == "/rules.txt" else ok()

    with RawServer(Cutter("/rules.txt", answer)) as server:
        urls = [f"http://one.test:{server.port}/{target}" for target in ("private", "page")]
        result = fetch(tmp_path / "out", urls, HOSTS, delay_s=0.25)
        assert server.targets == ["/robots.txt", "/rules.txt", "/rules.txt", "/page"]
        assert server.seen[0].connection == server.seen[1].connection
        assert all(after.started_s - before.ended_s >= 0.25 for before, after in pairwise(server.seen))
    assert result.counts["answered"] == 1 and outcome_of(finals_in(tmp_path / "out")[urls[0]]) == ("refused", "robots")


def test_a_fresh_connection_that_is_cut_is_a_failure_like_any_other(tmp_path):
    def cut(connection):
        connection.shutdown(socket.SHUT_RDWR)

    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else cut) as server:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(2)]
        fetch(tmp_path / "out", urls, HOSTS)
        # The first meets a kept connection, and is repeated; from then on each has one of its own.
        assert server.targets == ["/robots.txt", "/0", "/0", "/1"]
    assert {outcome_of(record) for record in finals_in(tmp_path / "out").values()} == {("failed", "empty")}


def test_a_kept_connection_does_not_cost_a_place_after_its_server_is_left_alone(tmp_path):
    """Two hosts of one address keep a connection in turn: the first one's is not counted for ever."""

    def answer(seen):
        if seen.target == "/robots.txt":
            return NO_ROBOTS
        return b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n" if seen.host == "bad.test" else ok()

    with RawServer(answer) as server:
        urls = [f"http://bad.test:{server.port}/{n}" for n in range(6)] + [
            f"http://good.test:{server.port}/{n}" for n in range(12)
        ]
        fetch(
            tmp_path / "out",
            urls,
            {"bad.test": "127.0.0.1", "good.test": "127.0.0.1"},
            server_failures_max=2,
            delay_s=0.002,
        )
        assert server.connections.most <= 2
        connections = [seen.connection for seen in server.seen if seen.host == "good.test"]
        assert len(connections) == 13 and len(set(connections)) <= 6, connections


HOLDER = """
import sys
from pathlib import Path
from stages.fetcher.slots import FileSlots
slots = FileSlots(Path(sys.argv[1]))
for line in sys.stdin:
    verb, slot, *moment = line.split()
    print(slots.hold(int(slot)) if verb == "hold" else slots.release(int(slot), int(moment[0])), flush=True)
"""


class Holder:
    """Another process with the same table."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def do(self, *words) -> str:
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)


def test_two_processes_never_hold_one_slot_and_the_dead_hold_none(tmp_path):
    slot, other = (slot_of(network_of(ip_address(text))) for text in ("192.0.2.1", "192.0.2.2"))
    first, second = Holder(tmp_path / "slots"), Holder(tmp_path / "slots")
    mine = FileSlots(tmp_path / "slots")
    try:
        assert first.do("hold", slot) == "True" and second.do("hold", slot) == "False" and not mine.hold(slot)
        assert second.do("hold", other) == "True", "a lock is on its own slot only"
        first.do("release", slot, 12_345)
        assert mine[slot] == 12_345 and second.do("hold", slot) == "True" and first.do("hold", slot) == "False"
        second.end()
        assert mine.hold(slot) and first.do("hold", slot) == "False"
        assert mine.hold(slot), "two addresses of one process share a slot's lock"
        mine.release(slot, 20_000)
        assert first.do("hold", slot) == "False", "held until the last of them is done"
        mine.release(slot, None)
        assert mine[slot] == 20_000 and first.do("hold", slot) == "True"
    finally:
        mine.close()
        first.end()
        second.end()
