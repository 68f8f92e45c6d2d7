"""What goes over the wire and what is stored of it: requests, answers of every kind, and every reason of failure."""

import errno
import gzip
import io
import random
import resource
import socket
import ssl
import subprocess
import sys
import threading

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from contract import names, warc
from contract.url import server_of
from contract.warc import parse_response
from stages.fetcher.bodies import Bodies
from stages.fetcher.descriptors import DESCRIPTORS_SPARE, allow_connections
from stages.fetcher.engine import reason_of
from stages.fetcher.exchange import Exchange, Limits, Origin
from stages.fetcher.identity import find_version
from stages.fetcher.server_queues import Known
from storage.frames import Members
from tests.fetcher_lab import (
    NO_ROBOTS,
    PATIENCE_S,
    RawServer,
    fetch,
    fetch_one,
    finals_in,
    ok,
    outcome_of,
    pages_of,
    records_in,
    tls_context,
)

__all__ = ["tls_context"]
ODD_PATHS = [
    "/",
    "/a%20b?x=1&y=%zz",
    "/x|y[1]?q=[2]&r='\"^",
    "/a/../b/./c" * 3,
    "/~@:!$&'()*+,;=",
    "/a//b?",
    "/?" + "q" * 7000,
]


@pytest.mark.parametrize("compression", ["zstd", "gzip"])
def test_the_request_record_is_the_bytes_that_the_server_received(tmp_path, compression):
    with RawServer(lambda seen: ok()) as server:
        urls = [f"http://one.test:{server.port}{path}" for path in ODD_PATHS]
        fetch(tmp_path / "out", urls, {"one.test": "127.0.0.1"}, warc_compression=compression)
        stored = [record.block for record in records_in(tmp_path / "out") if record.type == "request"]
        assert stored == [seen.raw for seen in server.seen]
    assert stored[0].startswith(b"GET /robots.txt HTTP/1.1\r\nHost: one.test:")
    assert f"\r\nUser-Agent: Coletor/{find_version()} (+https://example.org/bot)\r\n".encode() in stored[1]
    assert [block.split(b" ")[1].decode() for block in stored[1:]] == ODD_PATHS


def test_an_exchange_is_a_request_and_its_response_next_to_each_other(tmp_path):
    record = fetch_one(tmp_path / "out", ok(b"<p>", "X-A: 1"))
    info, *exchanges = records_in(tmp_path / "out")
    assert info.type == "warcinfo" and b"\r\nattempt: 1\r\n" in info.block and b"\r\nrobots: obey\r\n" in info.block
    assert [one.type for one in exchanges] == ["request", "response"] * 2
    robots, page = exchanges[1], exchanges[3]
    assert page == record and page.get("WARC-Concurrent-To") == exchanges[2].get("WARC-Record-ID")
    assert (
        robots.get(warc.ROBOTS_FOR) == server_of(page.url)
        and not robots.get(warc.FINAL)
        and outcome_of(robots) == ("answered", "")
    )
    assert page.get(warc.FINAL) == "yes" and not page.get(warc.ROBOTS_FOR)
    assert page.block == ok(b"<p>", "X-A: 1")
    assert page.get("WARC-Payload-Digest") == warc.sha1_digest(b"<p>")
    assert page.get("WARC-IP-Address") == "127.0.0.1" and warc.parse_date(page.get("WARC-Date")) > 0
    assert set(warc.parse_times(page.get(warc.TIMES))) == set(warc.TIME_NAMES)


def test_chunks_are_joined_and_what_no_longer_holds_is_renamed(tmp_path):
    chunked = (
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"
        b"Content-Encoding: gzip\r\nSet-Cookie: a=b\r\n\r\n"
    )
    body = gzip.compress(b"text " * 100, mtime=0)
    pieces = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(piece), piece) for piece in (body[:7], body[7:]))
    record = fetch_one(tmp_path / "out", chunked + pieces + b"0\r\nX-Trailer: 1\r\n\r\n")
    assert record.block == (
        b"HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n"
        b"Set-Cookie: a=b\r\n\r\n" + body
    )
    assert outcome_of(record) == ("answered", "")


def test_bare_line_feeds_become_line_ends_that_readers_know(tmp_path):
    record = fetch_one(tmp_path / "out", b"HTTP/1.0 200 OK\nX: y\n\nbody\n\nmore")
    assert parse_response(record.block) == (200, [("X", "y")], b"body\n\nmore")


def test_no_cookie_is_kept_and_no_redirect_followed(tmp_path):
    def answer(seen):
        return b"HTTP/1.1 302 Found\r\nLocation: /b\r\nSet-Cookie: k=v; Path=/\r\nContent-Length: 0\r\n\r\n"

    with RawServer(answer) as server:
        url = f"http://one.test:{server.port}"
        fetch(tmp_path / "out", [f"{url}/a", f"{url}/c"], {"one.test": "127.0.0.1"})
        assert server.targets[-2:] == ["/a", "/c"]
        assert not any(b"cookie" in seen.raw.lower() for seen in server.seen)


def test_a_long_body_is_cut_and_is_an_answer(tmp_path):
    record = fetch_one(tmp_path / "out", ok(b"x" * 5000), body_max_bytes=1000)
    assert outcome_of(record) == ("answered", "") and record.get("WARC-Truncated") == "length"
    assert parse_response(record.block).body == b"x" * 1000
    exact = fetch_one(tmp_path / "exact", ok(b"x" * 1000), body_max_bytes=1000)
    assert not exact.get("WARC-Truncated") and len(parse_response(exact.block).body) == 1000


def hold(connection: socket.socket) -> None:
    connection.recv(1)  # until the client gives up


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def then(data: bytes, act):
    def answer(connection):
        connection.sendall(data)
        act(connection)

    return answer


@pytest.mark.parametrize(
    "answer, reason, truncated",
    [
        (b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", "http_5xx", ""),
        (b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", "http_429", ""),
        (b"", "empty", None),
        (b"HTTP/1.1 101 Switch\r\n\r\n", "empty", None),
        (reset, "disconnect", None),
        (b"HTTP/1.1 200 OK\r\nX: y\r\n", "disconnect", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart", "disconnect", "disconnect"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\npart", "disconnect", "disconnect"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\npart", "bad_http", "unspecified"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "bad_http", None),
        (b"HTTP/1.1 20 x\r\n\r\n", "bad_http", None),
        (b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", "bad_http", None),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 2000 + b"\r\n", "too_long_headers", None),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 120_000 + b"\r\n\r\n", "too_long_headers", None),
        (b"HTTP/1.1 100 Go on\r\n\r\n" * 1000, "too_long_headers", None),
        (hold, "timeout_total", None),
        (then(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart", hold), "timeout_total", "time"),
    ],
)
@pytest.mark.sampled(8)
def test_a_failure_has_its_reason_and_keeps_what_came_after_the_head(tmp_path, answer, reason, truncated):
    total_s = 1.0 if reason == "timeout_total" else 120.0
    record = fetch_one(tmp_path / "out", answer, header_max_bytes=8192, total_timeout_s=total_s)
    assert outcome_of(record) == ("failed", reason)
    if truncated is None:
        message = record.get(warc.MESSAGE)
        assert record.type == "metadata" and message
        assert record.block == f"outcome: failed\r\nreason: {reason}\r\nmessage: {message}\r\n".encode()
    else:
        assert record.type == "response" and record.get("WARC-Truncated") == truncated


def test_servers_that_are_not_there_or_not_allowed(tmp_path):
    known = {}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    urls = [f"http://refusing.test:{closed}/", "http://nowhere.test/", "http://127.0.0.1:1/", "http://[::ffff:a00:1]/"]
    with_robots(known, urls)
    hosts = {"refusing.test": "127.0.0.1"}
    fetch(tmp_path / "a", urls[:2], hosts, known=known)
    result = fetch(tmp_path / "b", urls[2:], hosts, known=known, allow_private_addresses=False)
    found = {url: outcome_of(record) for folder in "ab" for url, record in finals_in(tmp_path / folder).items()}
    assert found == {
        urls[0]: ("failed", "connection_refused"),
        urls[1]: ("failed", "dns"),
        urls[2]: ("refused", "forbidden_address"),
        urls[3]: ("refused", "forbidden_address"),
    }
    assert result.counts["requests"] == 0 and result.counts["refused"] == 2


def with_robots(known: dict, urls: list[str]) -> None:
    known.update((server_of(url), Known(robots_text=b"")) for url in urls)


def test_tls_is_verified_and_its_request_is_stored(tmp_path, tls_context):
    with RawServer(pages_of({"/": ok(b"safe")}), tls=tls_context) as server:
        good, wrong = f"https://tls.test:{server.port}/", f"https://other.test:{server.port}/"
        fetch(tmp_path / "out", [good, wrong], {"tls.test": "127.0.0.1", "other.test": "127.0.0.1"})
        records = records_in(tmp_path / "out")
        requests = [record.block for record in records if record.type == "request"]
        assert requests == [seen.raw for seen in server.seen]
    assert parse_response(finals_in(tmp_path / "out")[good].block).body == b"safe"
    failed = next(record for record in records if record.url == wrong + "robots.txt")
    assert (
        outcome_of(failed) == ("failed", "tls")
        and failed.get(warc.ROBOTS_FOR) == wrong.removesuffix("/")
        and not failed.get(warc.FINAL)
    )


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def answer_by_http2(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Answers two requests on one connection: 404 for robots.txt, then a page (RFC 9113, RFC 7541)."""
    connection, _ = listener.accept()
    with context.wrap_socket(connection, server_side=True) as tls:
        stream = tls.makefile("rb")
        stream.read(24)  # the preface
        tls.sendall(frame(4, 0, 0, b""))
        for headers, body in [(b"\x8d", b""), (b"\x88\x00\x01x\x01y", b"second")]:
            head = bytes(4)
            while head[3] != 1:
                head = stream.read(9)
                stream.read(int.from_bytes(head[:3], "big"))
            number = int.from_bytes(head[5:], "big")
            tls.sendall(frame(1, 4, number, headers) + frame(0, 1, number, body))
        stream.read()


def test_http2_is_written_as_http1(tmp_path, tls_context):
    tls_context.set_alpn_protocols(["h2"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        thread = threading.Thread(target=answer_by_http2, args=(listener, tls_context), daemon=True)
        thread.start()
        url = f"https://tls.test:{listener.getsockname()[1]}/"
        fetch(tmp_path / "out", [url], {"tls.test": "127.0.0.1"})
        thread.join(PATIENCE_S)
    *_, request, response = records_in(tmp_path / "out")
    assert request.get("WARC-Protocol") == response.get("WARC-Protocol") == "h2"
    assert request.block.startswith(b"GET / HTTP/1.1\r\nHost: tls.test:") and b"Connection" not in request.block
    assert response.block == b"HTTP/1.1 200 \r\nx: y\r\n\r\nsecond"


def test_an_ipv6_address_is_asked_and_recorded(tmp_path):
    try:
        server = RawServer(pages_of({"/": ok()}), address="::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with server:
        urls = [f"http://[::1]:{server.port}/", f"http://six.test:{server.port}/"]
        fetch(tmp_path / "out", urls, {"six.test": "::1"})
    assert [record.get("WARC-IP-Address") for record in finals_in(tmp_path / "out").values()] == ["::1", "::1"]


def test_garbage_never_stops_the_fetcher(tmp_path):
    dice = random.Random(7)
    starts = [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 ",
        b"HTTP/2 200\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 301 x\r\nLocation: ",
    ]
    answers = [
        dice.choice(starts) + dice.randbytes(dice.randrange(300)) + dice.choice([b"", b"\r\n\r\n"]) for _ in range(150)
    ]
    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else answers[int(seen.target[1:])]) as server:
        urls = [f"http://h{number % 10}.test:{server.port}/{number}" for number in range(len(answers))]
        fetch(
            tmp_path / "out", urls, {f"h{number}.test": "127.0.0.1" for number in range(10)}, server_failures_max=1000
        )
    finals = finals_in(tmp_path / "out")
    assert set(finals) == set(urls)
    for record in finals.values():
        parse_response(record.block)
    assert {outcome_of(record)[0] for record in finals.values()} == {"answered", "failed"}


def test_garbage_as_robots_never_stops_the_fetcher(tmp_path):
    dice = random.Random(8)

    def answer(seen):
        return ok(dice.randbytes(200), dice.choice(["Content-Encoding: gzip", "X: y", "Content-Encoding: deflate"]))

    with RawServer(answer) as server:
        hosts = {f"h{number}.test": "127.0.0.1" for number in range(30)}
        result = fetch(tmp_path / "out", [f"http://{name}:{server.port}/" for name in hosts], hosts)
    assert result.counts["answered"] + result.counts["refused"] == 30


@pytest.mark.parametrize("compression", ["zstd", "gzip"])
def test_other_tools_open_the_files(tmp_path, compression):
    with RawServer(pages_of({f"/{n}": ok(b"page %d" % n, "Content-Type: text/html") for n in range(5)})) as server:
        urls = [f"http://one.test:{server.port}/{n}" for n in range(5)] + ["http://nowhere.test/"]
        fetch(tmp_path / "out", urls, {"one.test": "127.0.0.1"}, warc_compression=compression, warc_file_max_bytes=3000)
    paths = sorted((tmp_path / "out" / names.PAGES).iterdir())
    assert len(paths) > 1
    bodies = []
    for path in paths:
        if compression == "gzip":
            check = subprocess.run(
                [sys.executable, "-m", "warcio.cli", "check", "-v", str(path)], capture_output=True, text=True
            )
            assert check.returncode == 0 and "digest pass" in check.stdout, check.stdout + check.stderr
        for record in ArchiveIterator(io.BytesIO(path.read_bytes()), verify_digests=True):
            if record.record_type == WarcRecordType.response and record.http_headers.status_code == 200:
                bodies.append(record.reader.read())
        assert Members(memoryview(path.read_bytes())).read(0, 1 << 20)[0].startswith(b"WARC/1.1\r\nWARC-Type: warcinfo")
    assert bodies == [b"page %d" % n for n in range(5)]


def test_every_libcurl_error_has_a_reason():
    reasons = {reason_of(code, "") for code in range(1, 120)}
    assert reasons == {
        "dns",
        "unreachable",
        "timeout_connect",
        "empty",
        "disconnect",
        "too_long_headers",
        "tls",
        "bad_http",
    }
    assert reason_of(7, "", errno.ECONNREFUSED) == "connection_refused"


def test_a_header_section_may_come_in_any_pieces(tmp_path):
    exchange = Exchange(Origin("http://a", "127.0.0.1", "C/1"), "http://a/", Limits(100, 10), Bodies(tmp_path, 100))
    for line in (b"HTTP/1.1 200\n", b"A: b\r\r\n", b"\r\r\n", b"\r\n", b"Trailer: " + b"x" * 500):
        assert exchange.take_header(line) is None
    exchange.end("")
    assert exchange.response_head() == b"HTTP/1.1 200\r\nA: b\r\n\r\n" and exchange.outcome == "answered"


def test_the_limit_on_open_files_limits_the_connections():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
        assert allow_connections(300) == 300  # raised
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 300 + DESCRIPTORS_SPARE
        assert allow_connections(before[1] + 1000) == before[1] - DESCRIPTORS_SPARE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
