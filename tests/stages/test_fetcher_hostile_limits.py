"""Hostile servers one at a time: dead connections, unasked bytes, limits of time and length, rubbish of every kind."""

import random
import tracemalloc
from contextlib import ExitStack

import pytest

from contract.tables import ANSWERED, FAILED, REFUSED
from stages.fetcher.bodies import Bodies, Body
from synthweb.hostile import HostileServer
from tests.fetcher_lab import RawServer, fetch, finals_in, ok, outcome_of, pages_of
from tests.stages.test_fetcher_hostile import SETTINGS, all_named


def test_a_kept_connection_that_turns_out_dead_costs_no_url(tmp_path):
    """The request that the server had read already is sent again on a connection of its own.

    The URL still ends once.
    """
    with HostileServer() as server:
        names = [*all_named("keep-then-c"), "keep-then-reset-on-next", "second-answer", "keep"]
        urls = {(name, target): server.url(name, target) for name in names for target in (f"/{name}", "/2", "/3")}
        fetch(tmp_path / "out", list(urls.values()), server.hosts(), **SETTINGS)
        finals = finals_in(tmp_path / "out")
        for (name, target), url in urls.items():
            cut = name == "keep-then-cut" and target == "/2"
            assert outcome_of(finals[url]) == ((FAILED, "disconnect") if cut else (ANSWERED, "")), url
            assert b"smuggled" not in finals[url].block
            assert [visit.target for visit in server.visits_of(name)].count(target) <= 2
        assert [visit.target for visit in server.visits_of("keep")] == ["/keep", "/2", "/3"]
        assert len({visit.connection for visit in server.visits_of("keep")}) == 1


def test_bytes_that_nobody_asked_for_are_not_the_next_answer(tmp_path):
    with HostileServer() as server:
        urls = [server.url("second-answer-late", target) for target in ("/second-answer-late", "/2")]
        fetch(tmp_path / "out", urls, server.hosts(), **SETTINGS, delay_s=1.5)
    finals = finals_in(tmp_path / "out")
    assert [outcome_of(finals[url]) for url in urls] == [(ANSWERED, "")] * 2
    assert b"smuggled" not in finals[urls[1]].block


def test_a_body_of_tiny_pieces_costs_no_more_than_its_size(tmp_path):
    bodies = Bodies(tmp_path, memory_max_bytes=50_000)
    body = Body(bodies)
    tracemalloc.start()
    try:
        for _ in range(20_000):
            body.append(b"ab")
        assert tracemalloc.get_traced_memory()[1] < 150_000 and bodies.memory_bytes == 40_000
        assert body.whole() == b"ab" * 20_000
        for _ in range(20_000):
            body.append(b"cd")
        assert tracemalloc.get_traced_memory()[0] < 50_000 and bodies.memory_bytes == 0  # in a file by now
    finally:
        tracemalloc.stop()
    assert body.whole() == b"ab" * 20_000 + b"cd" * 20_000
    body.release()


@pytest.mark.long
def test_limits_of_time_type_and_length(tmp_path):
    with HostileServer() as server:
        urls = {name: server.url(name) for name in ("silence", "drip-body", "length-giant", "plain", "accept-silence")}
        settings = SETTINGS | {
            "total_timeout_s": 2.0,
            "connect_timeout_s": 2.0,
            "length_max_bytes": 1_000,
            "accept_types": ("text/plain",),
        }
        fetch(tmp_path / "out", list(urls.values()), server.hosts(), **settings)
        finals = finals_in(tmp_path / "out")
        found = {name: outcome_of(finals[url]) for name, url in urls.items()}
        assert found == {
            "silence": (FAILED, "timeout_total"),
            "accept-silence": (FAILED, "timeout_total"),
            "drip-body": (REFUSED, "excluded_type"),
            "length-giant": (REFUSED, "excluded_type"),
            "plain": (REFUSED, "excluded_type"),
        }
        fetch(
            tmp_path / "2",
            [urls["length-giant"], urls["drip-body"]],
            server.hosts(),
            **(settings | {"accept_types": ()}),
        )
        finals = finals_in(tmp_path / "2")
        assert outcome_of(finals[urls["length-giant"]]) == (REFUSED, "too_big")
        assert outcome_of(finals[urls["drip-body"]]) == (FAILED, "timeout_total")


def test_failures_that_pass_are_tried_again(tmp_path):
    with HostileServer() as server:
        urls = {name: server.url(name) for name in ("fail-once", "later-once", "fail-500", "status-rubbish", "silence")}
        fetch(tmp_path / "out", list(urls.values()), server.hosts(), **(SETTINGS | {"retries_max": 1, "slow_s": 2.0}))
        finals = finals_in(tmp_path / "out")
        assert {name: outcome_of(finals[url]) for name, url in urls.items()} == {
            "fail-once": (ANSWERED, ""),
            "later-once": (ANSWERED, ""),
            "fail-500": (FAILED, "http_5xx"),
            "status-rubbish": (FAILED, "bad_http"),
            "silence": (FAILED, "too_slow"),
        }
        first, second = server.visits_of("later-once")
        assert second.started_s - first.ended_s >= 0.99  # Retry-After: 1
        assert {name: len(server.visits_of(name)) for name in urls} == {
            "fail-once": 2,
            "later-once": 2,
            "fail-500": 2,
            "status-rubbish": 1,
            "silence": 1,
        }


WORDS = [
    b"HTTP/1.1 200 OK",
    b"HTTP/1.0 404 ",
    b"HTTP/1.1 100 Continue",
    b"HTTP/2 200",
    b"Content-Length: 5",
    b"Content-Length: 4294967296",
    b"Transfer-Encoding: chunked",
    b"Content-Encoding: gzip",
    b"Location: /x",
    b"Connection: keep-alive",
    b"WARC/1.1",
    b":",
    b"0",
    b"5",
    b"ffffffffffffffff",
    b"hello",
    b"\0",
    b"\xff\xfe",
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b"1\r\nx\r\n",
]


def write_rubbish(rng: random.Random) -> bytes:
    """Bytes of any kind, pieces of HTTP in any order, or a good answer with some bytes changed, lost or put in."""
    kind = rng.randrange(3)
    if kind == 0:
        return rng.randbytes(rng.randrange(400))
    if kind == 1:
        return b"".join(
            rng.choice(WORDS) + rng.choice((b"\r\n", b"", b"\r\n", b"\n")) for _ in range(rng.randrange(1, 25))
        )
    data = bytearray(ok(b"hello" * rng.randrange(1, 50), "Content-Type: text/html", "X-One: two"))
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(data))
        change = rng.randrange(3)
        data[place : place + (change != 0)] = rng.randbytes(change % 2 + (change == 0) * rng.randrange(3))
    return bytes(data)


def test_rubbish_of_every_kind_ends_in_a_record_each(tmp_path):
    rng = random.Random("rubbish/1")
    hosts, urls = {f"host{number}.test": f"127.0.{number}.1" for number in range(8)}, []
    with ExitStack() as servers:
        for name, address in hosts.items():
            pages = {f"/{number}": write_rubbish(rng) for number in range(50)}
            server = servers.enter_context(RawServer(pages_of(pages), address=address))
            urls += [f"http://{name}:{server.port}{target}" for target in pages]
        result = fetch(tmp_path / "out", urls, hosts, **(SETTINGS | {"slow_s": 2.0}))
    assert set(finals_in(tmp_path / "out")) == set(urls) and result.not_reached == []
    assert len({outcome_of(record) for record in finals_in(tmp_path / "out").values()}) >= 3
