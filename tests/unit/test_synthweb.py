"""Judges the judge: the web of synthweb is what it says, and an independent crawler arrives at its truth."""

import codecs
import gzip
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import ada_url
import pytest
import trio
from protego import Protego
from selectolax.lexbor import LexborHTMLParser

import synthweb.__main__
from synthweb import Rules, Web
from synthweb.__main__ import main
from synthweb.growth import LEVEL_MAX
from synthweb.markup import href
from synthweb.oddities import ODDITIES
from synthweb.page import FOLLOWED_KINDS, IGNORED_KINDS
from synthweb.robots import BARRED, LATE, NEVER, ORDINARY
from synthweb.spelling import EXTRAS, FORMS

ROOT = Path(synthweb.__file__).parents[1]
SMALL_SERVERS = 40
AGENT = "coletor"


@pytest.fixture(scope="module")
def default_web():
    return Web(seed=1)


@pytest.fixture(scope="module")
def default_walk(default_web):
    return default_web.walk()


class Served:
    """A web served by a process of its own."""

    def __init__(self, state: Path, servers: int, seed: int, port: int = 0) -> None:
        command = [sys.executable, "-m", "synthweb", "serve", "--seed", str(seed), "--servers", str(servers)]
        command += ["--port", str(port), "--state", str(state), "--until-eof"]
        self.state = state
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.first_line = self.process.stderr.readline()  # it speaks once it listens, or has failed
        if (state / "ready.json").exists():
            self.ready = json.loads((state / "ready.json").read_text())
            self.web = Web(seed, servers, self.ready["port"])
            lines = (line.split() for line in (state / "hosts").read_text().splitlines())
            self.hosts = {name: address for address, *names in lines for name in names}

    def get(self, host: str, target: str, accept: str = "gzip") -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.hosts[host], self.ready["port"], timeout=5)
        try:
            headers = {"Host": f"{host}:{self.ready['port']}", "User-Agent": "test", "Accept-Encoding": accept}
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body
        finally:
            connection.close()

    def access(self) -> list[dict]:
        return [json.loads(line) for line in (self.state / "access.jsonl").read_text().splitlines()]

    def end(self) -> int:
        self.process.stdin.close()
        code = self.process.wait(timeout=10)
        self.process.stderr.close()
        return code


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("web"), SMALL_SERVERS, seed=9)
    yield served
    served.end()


# --- the same seed, the same web ---------------------------------------------------------------------------


def bytes_of(web: Web) -> list:
    return [web.answer(page.url.host, target) for s in web.servers.values() for target, page in s.pages.items()]


def test_the_same_seed_gives_the_same_bytes():
    code = "import hashlib, synthweb; w = synthweb.Web(5, 30); print(sorted(w.truth())[9], hashlib.sha256(repr("
    code += "[w.answer(s.host, t) for s in w.servers.values() for t in s.pages]).encode()).hexdigest())"
    runs = [
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True)
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != b""


def test_another_seed_gives_another_web():
    assert Web(5, 30).truth() != Web(6, 30).truth()
    assert set(Web(5, 30).hosts().values()).isdisjoint(Web(6, 30).hosts().values())


def test_another_port_changes_only_the_port():
    web = Web(5, 30, port=8080)
    moved = web.at_port(8081)
    assert {url.replace(":8081", ":8080") for url in moved.truth()} == web.truth()
    assert all(url.startswith("http://") and url.count(":") == 1 for url in web.at_port(80).seeds())
    assert bytes_of(web.at_port(8081)) == bytes_of(Web(5, 30, port=8081))


# --- what the default web holds ----------------------------------------------------------------------------


def test_the_default_web_has_its_size_and_depth(default_walk):
    collected = default_walk.collected
    assert 3_500 <= len(collected) <= 4_500
    depths = Counter(collected.values())
    assert max(depths) == LEVEL_MAX == 7
    assert depths[6] + depths[7] >= 100
    sizes = sorted(Counter(url.split("/")[2] for url in collected).values(), reverse=True)
    assert 300 <= sizes[0] <= 450
    assert sum(size >= 200 for size in sizes) >= 3
    assert sum(size <= 5 for size in sizes) >= 100


@pytest.mark.parametrize("servers", [3, 5, 12, 40, 100])
def test_every_size_has_its_full_depth_and_no_more(servers):
    for seed in (1, 2):
        web = Web(seed, servers)
        collected = web.walk().collected
        assert max(collected.values()) == LEVEL_MAX
        assert set(web.seeds()) <= set(collected)


def test_every_live_server_is_reached_and_only_those(default_web, default_walk):
    hosts = {ada_url.URL(url).hostname for url in default_walk.collected}
    never = {"refused", "nameless", "silent", "robots-never", "barred"}
    assert hosts == {host for host, server in default_web.servers.items() if server.role not in never}


def test_fates_do_not_overlap(default_web, default_walk):
    walk = default_walk
    fates = [set(walk.collected), walk.forbidden, walk.unasked, walk.failing, set(walk.refused)]
    assert sum(map(len, fates)) == len(set().union(*fates))
    assert all(fates)
    assert default_web.forbidden() == walk.forbidden


def test_every_rule_refuses_something_and_can_be_changed():
    web = Web(2, SMALL_SERVERS)
    walk = web.walk()
    rules = {"url_length_max", "path_depth_max", "segment_repeats_max", "excluded_extensions"}
    assert set(walk.refused.values()) == rules
    assert web.truth(Rules(excluded_extensions=())) > set(walk.collected)
    assert max(map(len, web.truth(Rules(url_length_max=60)))) <= 60


# Oddities that only add links: to nothing, or to what is made on the fly.
WITHOUT_PAGES = ("404", "length-bound", "depth-bound", "trap-calendar", "trap-mirror", "trap-session")

FEATURES = [
    *(f"page:{oddity.name}" for oddity in ODDITIES if oddity.name not in WITHOUT_PAGES),
    *("trap:calendar", "trap:mirror", "trap:session"),
    *(f"form:{form}" for form in FORMS),
    *(f"extra:{extra}" for extra in EXTRAS),
    *(f"link:{kind}" for kind in FOLLOWED_KINDS | IGNORED_KINDS),
    *(f"why:{why}" for why in ("out-of-scope", "other-scheme", "unparsable")),
    *(f"robots:{robots.name}" for robots in (*ORDINARY, LATE, NEVER, BARRED)),
    *(f"charset:{charset}" for charset in ("utf-8", "iso-8859-1", "windows-1251", "shift_jis")),
    *(f"declared:{way}" for way in ("header", "meta", "http-equiv", "bom")),
    *(f"framing:{framing}" for framing in ("length", "chunked", "close")),
    *(f"status:{status}" for status in (200, 301, 302, 303, 307, 308, 403, 410)),
    *(f"shape:{shape}" for shape in ("page", "frameset", "broken", "empty", "text", "message")),
    *(f"role:{role}" for role in ("slow", "refused", "nameless", "silent", "robots-late", "robots-never", "barred")),
    *(f"role:{role}" for role in ("recovers-once", "recovers-twice", "too-many-requests", "fails-forever")),
    *("gzip", "connection-close", "native-path", "subdomain", "shared-address"),
]  # fmt: skip


def test_every_kind_of_thing_occurs_in_the_default_web(default_web):
    census = default_web.census()
    assert [feature for feature in FEATURES if not census[feature]] == []


def test_oddities_are_collected_not_only_there(default_web, default_walk):
    collected = default_walk.collected
    features, statuses = set(), Counter()
    for url in collected:
        parts = ada_url.URL(url)
        page = default_web.servers[parts.hostname].page(parts.pathname + parts.search)
        statuses[page.status] += 1
        features.add(page.feature)
    pageless = {"length-bound", "depth-bound"}  # their URLs are 404s
    assert features >= {oddity.name for oddity in ODDITIES} - pageless
    assert features >= {"robots-probe", "behind-robots-probe", "recovers-once", "recovers-twice", "too-many-requests"}
    assert statuses[404] >= 10
    assert {len(url) for url in collected} >= {200} and max(map(len, collected)) == 200


def test_failing_urls_stand_alone(default_web):
    """A server may fail twice in a row: one failing URL a live server, and none where robots.txt fails."""
    for server in default_web.servers.values():
        failing = [page for page in server.pages.values() if page.failures]
        assert len(failing) + bool(server.robots.failures) <= 1


# --- links, against the standard's own parser --------------------------------------------------------------


@pytest.mark.parametrize("port", [8080, 80])
def test_every_way_of_writing_leads_to_its_target(default_web, port):
    for server in default_web.servers.values():
        for page in server.pages.values():
            base = page.base_url().text(port)
            for link in page.links:
                text = href(link, page, port)
                if link.target is not None:
                    assert canonical(text, base) == link.target.text(port), (text, base)
                elif link.why == "unparsable":
                    assert canonical(text, base) is None, text
                else:
                    assert not Rules().admits(canonical(text, base)), text


def test_copies_have_the_same_bytes(default_web):
    by_key: dict[str, list] = {}
    for server in default_web.servers.values():
        for page in server.pages.values():
            by_key.setdefault(page.key, []).append(page)
    copies = [pages for pages in by_key.values() if len(pages) > 1]
    assert copies
    for pages in copies:
        assert len({default_web.answer(page.url.host, page.url.target()).body for page in pages}) == 1


def test_robots_agree_with_another_reader():
    for robots in (*ORDINARY, LATE, BARRED):
        reader = Protego.parse(robots.text())
        for path, query in (*robots.probes, ("/", ""), ("/artigos/1/", "")):
            target = path + ("?" + query if query else "")
            assert robots.allows(target) == reader.can_fetch(f"http://s1.test{target}", AGENT), (robots.name, target)


# --- an independent crawler --------------------------------------------------------------------------------


def canonical(text: str, base: str) -> str | None:
    """WHATWG serialisation without fragment, userinfo, empty query and the host's last dot; None: unparsable."""
    try:
        url = ada_url.URL(text, base)
    except ValueError:
        return None
    if url.hostname:
        url.username = url.password = ""
        url.hostname = url.hostname.removesuffix(".")
    url.hash = ""
    return url.href.removesuffix("?")


def decode(body: bytes, content_type: str) -> str:
    if body.startswith(codecs.BOM_UTF8):
        return body.decode("utf-8-sig", "replace")
    head = body[:1024].decode("latin-1")
    declared = re.search(r"charset=([\w-]+)", content_type) or re.search(r'charset="?([\w-]+)', head)
    return body.decode(declared[1] if declared else "utf-8", "replace")


def links_of(url: str, headers: dict[str, str], body: bytes) -> set[str | None]:
    if "location" in headers:
        return {canonical(headers["location"], url)}
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
    """What is collected and what robots.txt forbids, with at most three requests a URL."""
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
    with socket.create_connection((address, served.ready["port"]), timeout=5) as connection:
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
    assert served.process.wait(timeout=10) == 0
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
