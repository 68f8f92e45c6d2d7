"""The hostile server and the slow servers by raw sockets: they do what they say, and their record tells it."""

import json
import selectors
import socket
import ssl
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from synthweb.hostile import HostileServer
from synthweb.latency import LATENCY_MAX_MS, LATENCY_MIN_MS, LatencyServers, name_of
from synthweb.manners import ACCEPT, HANDSHAKE, MANNERS, PATH, ROBOTS
from synthweb.manners.encodings import BOMB_BYTES, bomb

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0  # reached only where it hangs
SHORT_S = 0.3  # to see that nothing comes


@pytest.fixture(scope="module")
def server():
    with HostileServer(tls=True) as hostile:
        yield hostile


def connect(server: HostileServer, manner: str, scheme: str = "http") -> socket.socket:
    return socket.create_connection((server.hosts()[f"{manner}.hostile.test"], server.ports[scheme]), PATIENCE_S)


def request(manner: str, target: str = "") -> bytes:
    return f"GET {target or '/' + manner} HTTP/1.1\r\nHost: {manner}.hostile.test:1\r\n\r\n".encode()


def read_all(connection: socket.socket, how: str, end: bytes = b"") -> bytes:
    """What comes, when it ends as told.

    Close, reset, silence (no byte for a while after `end`), more (1 MB and not yet).
    """
    got, found = bytearray(), "more"
    while len(got) < 1 << 20:
        connection.settimeout(SHORT_S if how == "silence" and got.endswith(end) else PATIENCE_S)
        try:
            piece = connection.recv(65_536)
        except (TimeoutError, ConnectionResetError) as error:
            found = "silence" if isinstance(error, TimeoutError) else "reset"
            break
        if not piece:
            found = "close"
            break
        got += piece
    assert found == how, bytes(got[:1_000])
    return bytes(got)


def ask(server: HostileServer, manner: str, target: str = "", how: str = "close", end: bytes = b"") -> bytes:
    with connect(server, manner) as connection:
        connection.sendall(request(manner, target))
        return read_all(connection, how, end)


@pytest.mark.parametrize(
    ("manner", "beginning", "end", "how"),
    [
        ("plain", b"HTTP/1.1 200 OK\r\n", b"<p>hello</p>", "silence"),
        ("drip-body", b"HTTP/1.1 200 OK\r\n", b"\r\n\r\nx", "silence"),
        ("drip-head", b"H", b"H", "silence"),
        ("endless-body", b"HTTP/1.1 200 OK\r\n", b"", "more"),
        ("endless-header-line", b"HTTP/1.1 200 OK\r\nX-Long: xxx", b"xxx", "more"),
        ("endless-interims", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100", b"", "more"),
        ("chunk-extension-long", b"HTTP/1.1 200 OK\r\n", b"xxx", "more"),
        ("chunk-negative", b"HTTP/1.1 200 OK\r\n", b"-5\r\nhello\r\n0\r\n\r\n", "close"),
        (
            "length-overflow",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 18446744073709551621\r\n",
            b"hello",
            "close",
        ),
        ("close-before-head", b"", b"", "close"),
        ("close-within-head", b"HTTP/1.1 200 OK\r\nContent-Ty", b"", "close"),
        ("reset-before-head", b"", b"", "reset"),
        ("reset-after-head", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"\r\n\r\n", "reset"),
        ("silence", b"", b"", "silence"),
        ("header-nul", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-N\0ame: va\0lue\r\n\r\n", b"hello", "close"),
        ("version-0.9", b"<p>hello", b"</p>\n", "close"),
        ("second-answer", b"HTTP/1.1 200 OK\r\n", b"smuggled", "silence"),
        ("redirect-file", b"HTTP/1.1 302 Found\r\n", b"file:///etc/passwd\r\n\r\n", "close"),
        ("later-429-huge", b"HTTP/1.1 429 ", b"later", "silence"),
    ],
)
def test_manners_send_what_they_say(server, manner, beginning, end, how):
    got = ask(server, manner, how=how, end=end)
    assert got.startswith(beginning) and got.endswith(end)


def test_every_manner_is_met_at_a_place_of_its_own():
    """All of them at the same time."""
    with HostileServer() as server:
        meet_every_manner(server)


def meet_every_manner(server: HostileServer) -> None:
    addresses = server.hosts()
    assert len(set(addresses.values())) == len(MANNERS) > 150 and all(
        text.startswith("127.") for text in addresses.values()
    )
    kinds = {
        kind: [name for name, manner in MANNERS.items() if manner.moment == kind]
        for kind in (PATH, ROBOTS, ACCEPT, HANDSHAKE)
    }
    assert all(len(names) >= 5 for names in kinds.values())
    with selectors.DefaultSelector() as waiting:
        for name in MANNERS:
            connection = connect(server, name)
            connection.sendall(request(name, "/robots.txt" if MANNERS[name].moment in (ROBOTS, ACCEPT) else ""))
            waiting.register(connection, selectors.EVENT_READ, name)
        answered, until_s = set(), time.monotonic() + PATIENCE_S
        quiet = {"silence", "robots-silence"}
        while len(answered) < len(MANNERS) - len(quiet) and time.monotonic() < until_s:
            for key, _ in waiting.select(1.0):
                waiting.unregister(key.fileobj)
                key.fileobj.close()
                answered.add(key.data)
        assert set(MANNERS) - answered == quiet
        for key in list(waiting.get_map().values()):
            key.fileobj.close()
    visits = server.visits
    assert len(visits) == len(MANNERS)
    assert {visit.manner for visit in visits} == {""} | set(kinds[PATH]) | set(kinds[ROBOTS])
    assert all(visit.host == f"{visit.manner}.hostile.test" for visit in visits if visit.manner)


def test_a_manner_before_the_request_waits_for_robots(server):
    for manner, expected in (("accept-silence", "silence"), ("accept-close", "close"), ("accept-reset", "reset")):
        assert ask(server, manner, "/robots.txt").startswith(b"HTTP/1.1 404 ")
        with connect(server, manner) as connection:
            connection.sendall(request(manner) if expected == "reset" else b"")
            assert read_all(connection, expected) == b""
        assert server.visits_of(manner)[-1].target == ""
    with HostileServer(robots_first=False) as at_once, connect(at_once, "accept-close") as connection:
        assert read_all(connection, "close") == b""


def test_a_kept_connection_is_closed_by_the_next_request(server):
    for manner, expected in (
        ("keep-then-close-on-next", "close"),
        ("keep-then-reset-on-next", "reset"),
        ("keep-then-silence", "silence"),
    ):
        with connect(server, manner) as connection:
            connection.sendall(request(manner))
            assert read_all(connection, "silence", b"hello")
            connection.sendall(request(manner, "/next"))
            assert read_all(connection, expected) == b""
        first, second = server.visits_of(manner)[-2:]
        assert (first.connection, second.target) == (second.connection, "/next")
        assert first.started_s <= first.ended_s <= second.started_s and second.open_connections == 1


def test_redirects_of_robots_end_where_they_say(server):
    for manner, hops in (("robots-redirects-5", 5), ("robots-redirects-6", 6), ("robots-redirect-host", 1)):
        host, target = manner, "/robots.txt"
        for _ in range(hops):
            got = ask(server, host, target)
            location = got.partition(b"Location: ")[2].partition(b"\r\n")[0].decode()
            host = location.partition("://")[2].partition(".")[0] or host
            target = location[location.index("/robots.txt") :]
        assert b"Disallow: /private" in ask(server, host, target)
    assert b"?11\r\n" in ask(server, "redirect-loop", "/redirect-loop?10")


def test_bombs_unpack_to_what_they_say():
    for encoding, bits in (("gzip", 31), ("deflate", 15)):
        packed, size = bomb(encoding), 0
        unpacker = zlib.decompressobj(bits)
        while packed:
            size += len(unpacker.decompress(packed, 1 << 24))
            packed = unpacker.unconsumed_tail
        assert size == BOMB_BYTES and unpacker.eof
    assert len(bomb("br")) < 1_000 and len(bomb("zstd")) < 10_000 and len(bomb("gzip, gzip")) < 1_000


def shake_hands(server: HostileServer, manner: str) -> bytes:
    context = ssl.create_default_context(cadata=server.certificates.authority_pem.decode())
    with connect(server, manner, "https") as plain:
        with context.wrap_socket(plain, server_hostname=f"{manner}.hostile.test") as connection:
            connection.sendall(request(manner, "/robots.txt"))
            return connection.recv(65_536)


@pytest.mark.parametrize(
    ("manner", "trouble"),
    [
        ("tls-expired", "certificate has expired"),
        ("tls-not-yet", "certificate is not yet valid"),
        ("tls-wrong-name", "Hostname mismatch"),
        ("tls-self-signed", "self-signed certificate"),
        ("tls-unknown-authority", "unable to get local issuer"),
        ("tls-plain", "WRONG_VERSION_NUMBER|wrong version number"),
        ("tls-rubbish", "SSL"),
        ("tls-cut", "EOF"),
    ],
)
def test_handshakes_are_good_once_and_then_bad(server, manner, trouble):
    assert shake_hands(server, manner).startswith(b"HTTP/1.1 404 ")
    with pytest.raises(ssl.SSLError, match=trouble):
        shake_hands(server, manner)


def test_the_command_lists_the_manners_and_leaves_a_record(tmp_path):
    listed = subprocess.run(
        [sys.executable, "-m", "synthweb", "hostile", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [name for name in MANNERS if f"  {name} " not in listed.stdout] == []
    ready = start_and_ask(tmp_path, ["hostile"], lambda ready: ("127.0.0.1", ready["port"]), "/chunk-cut")
    assert (
        ready["urls"]["silence"] == f"http://silence.hostile.test:{ready['port']}/silence" and ready["tls_port"] is None
    )
    [line] = map(json.loads, (tmp_path / "access.jsonl").read_text().splitlines())
    assert (line["manner"], line["target"], line["address"]) == ("chunk-cut", "/chunk-cut", "127.0.0.1")
    assert line["started_ms"] <= line["ended_ms"]
    assert "127.77.0.1 " in (tmp_path / "hosts").read_text() and not (tmp_path / "ready.json").exists()


def start_and_ask(folder: Path, words: list[str], place, target: str) -> dict:
    """Runs a command of servers, asks it one thing, ends it; what its ready.json held."""
    command = [sys.executable, "-m", "synthweb", *words, "--state", str(folder), "--until-eof"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            until_s = time.monotonic() + PATIENCE_S
            while not (folder / "ready.json").exists() and time.monotonic() < until_s:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.05)
            ready = json.loads((folder / "ready.json").read_text())
            with socket.create_connection(place(ready), PATIENCE_S) as connection:
                connection.sendall(f"GET {target} HTTP/1.1\r\nHost: one.test\r\nConnection: close\r\n\r\n".encode())
                while connection.recv(65_536):
                    pass
            process.stdin.close()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
    return ready


def test_each_slow_server_takes_its_own_time():
    noted = []
    with LatencyServers(50, seed=3, scale=0.1, note=lambda *line: noted.append(line)) as web:
        hosts, latencies_ms = web.hosts(), web.latencies_ms
        assert web.latencies_ms == draw_again(50, 3)
        assert (
            LATENCY_MIN_MS / 10 <= min(latencies_ms.values()) < 15
            and 100 < max(latencies_ms.values()) <= LATENCY_MAX_MS / 10
        )
        connections = {
            name: socket.create_connection((address, web.port), PATIENCE_S) for name, address in hosts.items()
        }
        for target in ("/robots.txt", "/a"):
            for name, connection in connections.items():
                connection.sendall(
                    f"GET {target} HTTP/1.1\r\nHost: {name}:{web.port}\r\nUser-Agent: x\r\n\r\n".encode()
                )
            for name, connection in connections.items():
                got = connection.recv(65_536)
                assert got.startswith(b"HTTP/1.1 404" if target == "/robots.txt" else b"HTTP/1.1 200")
                assert target == "/robots.txt" or name.encode() in got and got.endswith(b"</a>\n")
        connections[name_of(0)].sendall(b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert read_all(connections[name_of(0)], "close").count(b"HTTP/1.1 200 OK") == 2
        for connection in connections.values():
            connection.close()
    assert len(noted) == web.requests == 102 and web.cpu_s < 1
    for started_ms, ended_ms, address, host, _, _, _ in noted[:100]:
        assert hosts[host] == address and ended_ms - started_ms >= latencies_ms[host] - 0.01


def draw_again(servers: int, seed: int) -> dict[str, float]:
    with LatencyServers(servers, seed, scale=0.1) as again:
        return again.latencies_ms


def test_the_command_of_slow_servers_leaves_a_record(tmp_path):
    ready = start_and_ask(
        tmp_path, ["latency", "--servers", "300", "--seed", "2"], lambda ready: ("127.80.1.1", ready["port"]), "/page"
    )
    assert len(ready["latencies_ms"]) == 300 and "127.80.1.1 latency-00250.test\n" in (tmp_path / "hosts").read_text()
    [line] = map(json.loads, (tmp_path / "access.jsonl").read_text().splitlines())
    assert line["ended_ms"] - line["started_ms"] >= ready["latencies_ms"]["latency-00250.test"] - 0.01
    assert set(line) == {
        "started_ms",
        "ended_ms",
        "started_wall_ms",
        "address",
        "host",
        "target",
        "status",
        "user_agent",
    }
