"""bin/dashboard: what it shows, to whom, and that nothing of the web does anything there."""

import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from contract import names
from contract.crawl_folder import create, open_folder
from contract.errors import Usage
from contract.tables import FAILED, METADATA
from examine.dashboard.__main__ import read_address, read_token
from examine.dashboard.application import POLICY, Dashboard
from examine.dashboard.watch import Watch
from storage.tables import read_table
from tests.golden import GOLDEN, LAST
from tests.reported_crawl import EVIL, Structure, add_cycle, make_crawl
from tests.small_crawl import Page

ROOT = Path(__file__).resolve().parent.parent.parent
TOKEN = "a-token-of-the-test"


class Silent(WSGIRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def golden():
    return Dashboard(Watch(open_folder(GOLDEN)), "")


def ask(dashboard, path, query="", method="GET", **headers):
    """Status, headers and text of an answer."""
    told = {}
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "127.0.0.1:8765"}
    body = b"".join(dashboard(environ | headers, lambda *head: told.update(status=head[0], headers=dict(head[1]))))
    return told["status"], told["headers"], body.decode()


def check_harmless(page):
    structure = Structure(page)
    assert structure.handlers == []
    assert all(re.match(r"/|#|data:,", address) for address in structure.addresses), structure.addresses
    assert page.count("<script") <= 1 and "\x1b" not in page and "\u202e" not in page
    assert "<img id" not in page


def test_the_front_page_is_that_of_bin_status(golden):
    status, headers, page = ask(golden, "/")
    assert status == "200 OK" and headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY and "default-src 'none'" in POLICY
    check_harmless(page)
    assert "<dt>collected pages</dt><dd>10</dd>" in page and "<h3>fetcher</h3>" in page
    assert "The pictures are being made" in page


def test_hostile_texts_are_text(tmp_path):
    evil = EVIL.format(port=9)
    pages = {"http://a.test/": Page(), "http://b.test/": Page(FAILED, reason=evil, message=evil, status=0)}
    dashboard = Dashboard(Watch(make_crawl(tmp_path / "crawl", pages, evil).crawl), "")
    for path, query in (("/", ""), ("/now", ""), ("/url", f"u={quote(evil)}"), ("/url", "u=http%3A%2F%2Fb.test%2F")):
        status, _, page = ask(dashboard, path, query)
        assert status == "200 OK"
        check_harmless(page)
    assert "&lt;img id=evil" in ask(dashboard, "/now")[2]


def test_the_box_says_what_bin_why_says_and_shows_the_page(golden):
    table = GOLDEN / names.cycle(LAST) / names.EXTRACTOR / names.METADATA
    url = read_table(table, METADATA, ["url"]).column("url")[0].as_py()
    _, _, page = ask(golden, "/url", f"u={quote(url)}")
    told = subprocess.run([ROOT / "bin/why", "--crawl", GOLDEN, url], capture_output=True, text=True).stdout
    assert told.splitlines()[1].split(":")[0] in page and "state     collected" in page
    assert "<h2>Stored page</h2>" in page and "<h3>Text</h3><pre>" in page and "<h3>Source</h3><pre>" in page
    assert "no URL for this crawl" in ask(golden, "/url", "u=mailto:x")[2]
    assert "Give a URL" in ask(golden, "/url")[2]


def test_only_this_machine_is_served_without_a_token(golden):
    for host in ("127.0.0.1:8765", "localhost", "localhost:1", "[::1]:8765", "127.0.0.2"):
        assert ask(golden, "/now", HTTP_HOST=host)[0] == "200 OK"
    for host in ("evil.test", "evil.test:8765", "127.0.0.1.evil.test", "10.0.0.1", ""):
        assert ask(golden, "/now", HTTP_HOST=host)[0] == "403 Forbidden"
    assert ask(golden, "/now", method="POST")[0].startswith("405")
    assert ask(golden, "/../crawl.json")[0].startswith("404") and ask(golden, "/picture/x.svg")[0].startswith("404")


def test_others_need_the_token():
    dashboard = Dashboard(Watch(open_folder(GOLDEN)), TOKEN)
    assert ask(dashboard, "/", HTTP_HOST="10.0.0.1")[0] == "403 Forbidden"
    assert ask(dashboard, "/", "token=guess")[0] == "403 Forbidden"
    assert ask(dashboard, "/", HTTP_COOKIE="coletor-token=guess")[0] == "403 Forbidden"
    status, headers, _ = ask(dashboard, "/", f"token={TOKEN}", HTTP_HOST="10.0.0.1")
    assert status == "303 See Other" and headers["Location"] == "/"
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    pair = cookie.partition(";")[0]
    for others in ("", "a[b]=c, d; "):  # of other programs on the same host, which need not be well-formed
        assert ask(dashboard, "/", HTTP_HOST="10.0.0.1", HTTP_COOKIE=others + pair)[0] == "200 OK"


def test_the_command_serves_until_it_is_ended(tmp_path):
    create(tmp_path / "crawl", 1)
    command = [sys.executable, "-P", "-m", "examine.dashboard", "--crawl", tmp_path / "crawl", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        address = process.stdout.readline().strip()
        place = ("127.0.0.1", urlsplit(address).port)
        with ExitStack() as silent:  # connections that never ask take no thread, and leave room for others
            for _ in range(100):
                silent.enter_context(socket.create_connection(place)).sendall(b"GET / HTTP/1.1\r\n")
            with urlopen(address) as answer:
                assert "<h2>The ring</h2>" in answer.read().decode()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{address}crawl.json")
        process.send_signal(signal.SIGTERM)
        assert (process.wait(), process.stderr.read()) == (0, "")


def test_a_wrong_address_or_token_is_said(tmp_path):
    token = tmp_path / "token"
    token.write_text("short")
    with pytest.raises(Usage, match="16 or more"):
        read_token(token)
    token.write_text(f"{TOKEN}\n")
    assert read_token(token) == TOKEN and len(read_token(None)) > 16
    with pytest.raises(Usage, match="found here"):
        read_address("here")


@pytest.mark.long
def test_in_chromium_values_change_and_hostile_texts_do_nothing(needs, tmp_path):
    """The page asks again in virtual time, so no test waits: the crawl grows between two of its questions."""
    program = needs("chromium")
    evil = EVIL.format(port=9)
    crawl = make_crawl(tmp_path / "crawl", {"http://a.test/": Page()}, evil)
    watch = Watch(crawl.crawl, kept_s=0)
    watch.draw()
    dashboard, asked = Dashboard(watch, ""), []

    def application(environ, start_response):
        asked.append(environ["PATH_INFO"])
        if asked.count("/now") == 3 and environ["PATH_INFO"] == "/now":
            pages = {"http://b.test/": Page(), "http://c.test/": Page(FAILED, reason=evil, message=evil, status=0)}
            add_cycle(crawl, pages, evil)
            watch.draw()
        return dashboard(environ, start_response)

    with make_server("127.0.0.1", 0, application, handler_class=Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        flags += ["--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000"]
        chromium = partial(subprocess.run, capture_output=True, text=True)
        run = chromium([program, *flags, "--dump-dom", f"http://127.0.0.1:{server.server_port}/"])
        server.shutdown()
    assert "CONSOLE" not in run.stderr, run.stderr[-2_000:]
    assert asked.count("/now") > 3
    assert "<dt>collected pages</dt><dd>2</dd>" in run.stdout, "the first page had 1"
    assert "/picture/pages.svg?v=2" in run.stdout
    assert "&lt;img id=evil" in run.stdout and '<img id="evil"' not in run.stdout
    assert "<title>Crawl " in run.stdout
    assert {path for path in asked if not path.startswith("/picture/")} == {
        *("/", "/now", "/pictures", "/style.css", "/script.js")
    }
