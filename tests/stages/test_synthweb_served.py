"""Judges the judge: an independent crawler arrives at the truth of synthweb, and its server behaves."""

import codecs
import gzip
import http.client
import re
import signal
import socket

import ada_url
import pytest
import trio
from protego import Protego
from selectolax.lexbor import LexborHTMLParser

import synthweb.__main__
from synthweb import Rules, Web
from synthweb.__main__ import main
from tests.served_web import AGENT, PATIENCE_S, SMALL_SERVERS, Served, canonical


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("web"), SMALL_SERVERS, seed=9)
    yield served
    served.end()


# --- an independent crawler --------------------------------------------------------------------------------


def decode(body: bytes, content_type: str) -> str:
    if body.startswith(codecs.BOM_UTF8):
        return body.decode("utf-8-sig", "replace")
    head = body[:1024].decode("latin-1")
    declared = re.search(r"charset=([\w-]+)", content_type) or re.search(r'charset="?([\w-]+)', head)
    return body.decode(declared[1] if declared else "utf-8", "replace")


def links_of(url: str, headers: dict[str, str], body: bytes) -> set[str | None]:
    if "location" in headers:
        return {canonical(headers["location"], url)}
    if headers["content-type"].startswith("text/plain"):
        return {canonical(text, url) for text in re.findall(r"http://\S+", body.decode())}
    if not headers["content-type"].startswith("text/html") or not body:
        return set()
    tree = LexborHTMLParser(decode(body, headers["content-type"]))
    base = tree.css_first("base[href]")
    if base is not None:
        url = canonical(base.attributes["href"], url)
    texts = []
    for node in tree.css("a[href], area[href]"):
        if "nofollow" not in (node.attributes.get("rel") or "").lower().split():
            texts.append(node.attributes["href"])
    texts += [node.attributes["src"] for node in tree.css("iframe[src], frame[src]")]
    for node in tree.css("meta"):
        content = node.attributes.get("content") or ""
        if (node.attributes.get("http-equiv") or "").lower() == "refresh":
            texts.append(re.search(r"(?i)url=(.*)", content, re.DOTALL)[1])
        if (node.attributes.get("name") or "").lower() == "robots" and "nofollow" in content.lower():
            return set()
    return {canonical(text or "", url) for text in texts}


def crawl(served: Served) -> tuple[set[str], set[str]]:
    """What is collected and what robots.txt forbids, with at most three requests per URL."""
    rules, collected, forbidden = Rules(), set(), set()
    readers: dict[str, Protego | None] = {}
    seen = set(served.ready["seeds"])
    waiting = list(served.ready["seeds"])
    while waiting:
        url = waiting.pop()
        parts = ada_url.URL(url)
        if parts.hostname not in readers:
            answer = ask(served, parts.hostname, "/robots.txt")
            readers[parts.hostname] = answer and Protego.parse("" if answer[0] == 404 else answer[2].decode())
        reader = readers[parts.hostname]
        if reader is None:
            continue
        if not reader.can_fetch(url, AGENT):
            forbidden.add(url)
            continue
        answer = ask(served, parts.hostname, parts.pathname + parts.search)
        if answer is None:
            continue
        collected.add(url)
        for link in links_of(url, *answer[1:]):
            if link and link not in seen and rules.admits(link):
                seen.add(link)
                waiting.append(link)
    return collected, forbidden


def ask(served: Served, host: str, target: str):
    if host not in served.hosts:
        return None
    for _ in range(3):
        try:
            status, headers, body = served.get(host, target)
        except (ConnectionError, http.client.RemoteDisconnected):
            continue
        if status != 429 and status < 500:
            return status, headers, gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
    return None


def test_an_independent_crawler_arrives_at_the_truth(tmp_path):
    served = Served(tmp_path, SMALL_SERVERS, seed=8)
    try:
        collected, forbidden = crawl(served)
        walk = served.web.walk()
        assert collected == set(walk.collected)
        assert forbidden == walk.forbidden
        asked = {f"http://{line['host']}:{served.ready['port']}{line['target']}" for line in served.access()}
        assert asked.isdisjoint(walk.forbidden | walk.unasked | set(walk.refused))
        assert {line["status"] for line in served.access()} >= {0, 200, 404, 429, 500, 502, 503}
    finally:
        assert served.end() == 0


# --- the server --------------------------------------------------------------------------------------------


def statuses(served: Served, role: str, target: str, requests: int) -> list[int]:
    host = next(host for host, server in served.web.servers.items() if server.role == role)
    return [served.get(host, target)[0] for _ in range(requests)]


@pytest.mark.parametrize(
    ("role", "target", "expected"),
    [
        ("recovers-once", "/instavel", [503, 200, 200]),
        ("recovers-twice", "/instavel", [500, 500, 200]),
        ("too-many-requests", "/instavel", [429, 200, 200]),
        ("fails-forever", "/instavel", [502, 502, 502]),
        ("robots-late", "/robots.txt", [503, 200, 200]),
        ("robots-never", "/robots.txt", [503, 503, 503]),
    ],
)
def test_recovery_counts_requests_since_the_start(served, role, target, expected):
    assert statuses(served, role, target, 3) == expected


def test_dead_servers_are_dead_each_in_its_way(served):
    host_of = {server.role: host for host, server in served.web.servers.items()}
    assert host_of["nameless"] not in served.hosts
    with pytest.raises(ConnectionRefusedError):
        served.get(host_of["refused"], "/")
    with pytest.raises(http.client.RemoteDisconnected):
        served.get(host_of["silent"], "/")


def test_gzip_only_for_those_who_accept_it(served):
    page = next(p for s in served.web.servers.values() if s.role == "ordinary" for p in s.pages.values() if p.gzipped)
    _, zipped_headers, zipped = served.get(page.url.host, page.url.target())
    _, plain_headers, plain = served.get(page.url.host, page.url.target(), accept="identity")
    assert zipped_headers["content-encoding"] == "gzip" and "content-encoding" not in plain_headers
    assert gzip.decompress(zipped) == plain == served.web.answer(page.url.host, page.url.target()).body


def talk(served: Served, address: str, data: bytes) -> bytes:
    with socket.create_connection((address, served.ready["port"]), timeout=PATIENCE_S) as connection:
        connection.sendall(data)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


def test_one_connection_carries_several_requests(served):
    host = next(host for host, server in served.web.servers.items() if server.role == "ordinary")
    request = f"GET /robots.txt HTTP/1.1\r\nHost: {host}\r\n\r\n"
    last = f"GET /robots.txt HTTP/1.1\r\nHost: {host.upper()}.:1\r\nConnection: close\r\n\r\n"
    assert talk(served, served.hosts[host], (request + request + last).encode()).count(b"HTTP/1.1 ") == 3


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x00\xff\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET nowhere HTTP/1.1\r\nHost: s1.test\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: s1.test\r\nno colon\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: s1.test\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n", 421),
        (b"GET /" + b"x" * 16_390, 431),
    ],
)
def test_garbage_is_refused_and_the_server_lives(served, data, status):
    host = next(host for host, server in served.web.servers.items() if server.role == "ordinary")
    assert talk(served, served.hosts[host], data).startswith(b"HTTP/1.1 %d " % status)
    assert served.get(host, "/%00<\xff'\"?&&==".encode("latin-1").decode("latin-1").replace("\xff", "%ff"))[0] == 404


def test_a_host_answers_only_at_its_own_address(served):
    one, other = [host for host, server in served.web.servers.items() if server.role == "ordinary"][:2]
    assert served.hosts[one] != served.hosts[other]
    answer = talk(served, served.hosts[one], f"GET / HTTP/1.1\r\nHost: {other}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 421 ")


def test_each_request_leaves_a_line(served):
    host = next(host for host, server in served.web.servers.items() if server.role == "slow")
    served.get(host, "/robots.txt")
    line = [line for line in served.access() if line["host"] == host][-1]
    assert line["address"] == served.hosts[host] and line["target"] == "/robots.txt"
    assert line["status"] == 404 and line["user_agent"] == "test"
    assert line["ended_ms"] - line["started_ms"] >= served.web.servers[host].delay_s * 1000 * 0.99
    assert line["started_wall_ms"] > 1e12


def test_a_port_in_use_is_told_in_one_sentence(served, tmp_path):
    second = Served(tmp_path, SMALL_SERVERS, seed=9, port=served.ready["port"])
    assert second.end() == 75
    assert f"port {served.ready['port']} is in use" in second.first_line
    assert not (tmp_path / "ready.json").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path, number):
    served = Served(tmp_path, 5, seed=4)
    assert served.ready["pid"] == served.process.pid
    served.process.send_signal(number)
    assert served.process.wait(timeout=PATIENCE_S) == 0
    served.end()
    assert not (tmp_path / "ready.json").exists()


def test_serve_runs_inside_a_test(tmp_path):
    async def ask_robots() -> bytes:
        async with trio.open_nursery() as nursery:
            web = await nursery.start(synthweb.serve, Web(6, 12, port=0), tmp_path)
            host = next(host for host, server in web.servers.items() if server.role == "ordinary")
            stream = await trio.open_tcp_stream(web.hosts()[host], web.port)
            async with stream:
                await stream.send_all(f"GET /robots.txt HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
                received = await stream.receive_some()
            nursery.cancel_scope.cancel()
        return received

    assert trio.run(ask_robots).startswith(b"HTTP/1.1 ")


def test_the_command_prints_truth_and_seeds(capsys):
    def run(*arguments: str) -> list[str]:
        assert main([*arguments, "--seed", "2", "--servers", "12", "--port", "80"]) == 0
        return capsys.readouterr().out.splitlines()

    web = Web(2, 12, port=80)
    assert run("truth") == sorted(web.truth())
    assert run("truth", "--forbidden") == sorted(web.forbidden())
    assert run("seeds") == web.seeds()
    assert "page:home 12" in run("census")


@pytest.mark.parametrize("arguments", [["nothing"], ["truth", "--port", "0"], ["serve"], ["seeds", "--servers", "2"]])
def test_wrong_use_is_told_and_exits_64(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 64
    assert capsys.readouterr().err.startswith("synthweb: ")


def test_help_prints_the_manual(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == synthweb.__main__.__doc__
