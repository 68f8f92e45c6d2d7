"""Other people's programs take our page files.

warcio and FastWARC find every digest right, pywb replays the bytes of the pages.
"""

import gzip
import http.client
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from contract import names, warc
from contract.warc import parse_response
from stages.fetcher.resume import list_page_files, read_history
from stages.fetcher.revisit import Revisit
from storage.frames import train_dictionary
from tests.fetcher_lab import NO_ROBOTS, RawServer, fetch, finals_in, ok, records_in
from tests.unit.test_fetcher_repository import exchanged, open_repository

BIN = Path(sys.executable).parent  # where the programs of the test environment are
PATIENCE_S = 300.0  # reached only where it hangs
PLAIN = b"<html><p>plain" + b" and more" * 200
PACKED = gzip.compress(b"<html><p>packed" + b" and more" * 500)
MOVED = b"HTTP/1.1 301 Moved\r\nLocation: /plain\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\nover here"
GONE = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 7\r\n\r\nnowhere"
HTML = "Content-Type: text/html"
PAGES = {
    "/plain": ok(PLAIN, HTML),
    "/packed": ok(PACKED, HTML, "Content-Encoding: gzip"),
    "/moved": MOVED,
    "/gone": GONE,
}
LATER_MS = 100_000  # between a page and its revisit


def fetch_pages(folder: Path, compression: str) -> str:
    """Fetches the pages, then revisits /plain and /packed; the server's origin."""
    with RawServer(lambda seen: PAGES.get(seen.target, NO_ROBOTS)) as server:
        origin = f"http://one.test:{server.port}"
        fetch(
            folder,
            [*(origin + path for path in PAGES), "http://nowhere.test/"],
            {"one.test": "127.0.0.1"},
            warc_compression=compression,
        )
    finals = finals_in(folder)
    repository = open_repository(folder, read_history(folder).next_number, attempt=2, warc_compression=compression)
    for path, body, status in (("/plain", PLAIN, 200), ("/packed", b"", 304)):
        first = finals[origin + path]
        at_ms = warc.parse_date(first.get("WARC-Date"))
        again = exchanged(origin + path, body, status, f"X-Again: {path}", at_ms=at_ms + LATER_MS)
        repository.write_exchange(again, earlier=Revisit("", "", first.get("WARC-Payload-Digest"), at_ms))
    repository.close()
    assert [record.type for record in records_in(folder)][-4:] == ["request", "revisit"] * 2
    return origin


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> tuple[Path, str]:
    """A folder of pages with gzip, and the origin of its server."""
    folder = tmp_path_factory.mktemp("gzip") / "out"
    return folder, fetch_pages(folder, "gzip")


def run_tool(name: str, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([BIN / name, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S)


def paths_in(folder: Path) -> list[Path]:
    return [path for _, path in list_page_files(folder / names.PAGES)]


def test_warcio_finds_every_digest_right(pages):
    for path in paths_in(pages[0]):
        checked = run_tool("warcio", "check", "-v", path)
        assert checked.returncode == 0 and "digest pass" in checked.stdout and "digest failed" not in checked.stdout, (
            checked.stdout + checked.stderr
        )


def check_by_fastwarc(folder: Path) -> None:
    for path in paths_in(folder):
        checked = run_tool("fastwarc", "check", path)
        count = len(list(warc.PageReader(path).records()))
        assert (
            checked.returncode == 0 and f"{count} records were verified successfully" in checked.stdout + checked.stderr
        ), checked.stderr


def test_fastwarc_finds_every_digest_right(pages):
    check_by_fastwarc(pages[0])


@pytest.mark.parametrize("has_dictionary", [False, True])
@pytest.mark.sampled(1)
def test_fastwarc_reads_zstd_with_and_without_a_dictionary(tmp_path, pages, has_dictionary):
    fetch_pages(tmp_path / "out", "zstd")
    check_by_fastwarc(tmp_path / "out")
    if not has_dictionary:
        return
    bodies = [b"<html><p>page %d of its kind</p>" % number * 30 for number in range(300)]
    dictionary = train_dictionary(bodies, 10_000)
    repository = open_repository(tmp_path / "packed", dictionary=dictionary)
    for number, body in enumerate(bodies):
        repository.write_exchange(exchanged(f"http://a.test/{number}", body))
    repository.close()
    (path,) = paths_in(tmp_path / "packed")
    check_by_fastwarc(tmp_path / "packed")
    with open(path, "rb") as stream:
        assert bodies == [
            record.reader.read() for record in ArchiveIterator(stream, record_types=WarcRecordType.response)
        ]


class Wayback:
    """pywb's server as a process of its own, with one collection `pages`."""

    def __init__(self, folder: Path, files: list[Path]):
        self._folder = folder
        for command in (["init", "pages"], *[["add", "pages", *map(str, files)]] * bool(files)):
            done = subprocess.run(
                [BIN / "wb-manager", *command], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S
            )
            assert done.returncode == 0, done.stderr
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self._log = open(folder / "wayback.log", "wb")
        self._process = subprocess.Popen(
            [BIN / "wayback", "-b", "127.0.0.1", "-p", str(self.port)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert self._process.poll() is None and time.monotonic() < deadline, (
                self._folder / "wayback.log"
            ).read_text()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                threading.Event().wait(0.05)

    def replay(self, record: warc.Record) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and stored bytes of the capture at the record's date."""
        moment = "".join(filter(str.isdigit, record.get("WARC-Date")))[:14]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", f"/pages/{moment}id_/{record.url}", headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._log.close()


@pytest.fixture(scope="module")
def wayback(pages, tmp_path_factory):
    server = Wayback(tmp_path_factory.mktemp("wayback"), paths_in(pages[0]))
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.end()


@pytest.mark.parametrize("path, status", [("/plain", 200), ("/packed", 200), ("/moved", 301), ("/gone", 404)])
@pytest.mark.sampled(1)
def test_pywb_replays_the_bytes_of_a_page(pages, wayback, path, status):
    folder, origin = pages
    record = next(record for record in records_in(folder) if record.type == "response" and record.url == origin + path)
    found, headers, body = wayback.replay(record)
    assert found == status and body == parse_response(record.block).body == PAGES[path].partition(b"\r\n\r\n")[2]
    if path == "/packed":
        assert headers["content-encoding"] == "gzip"
    if path == "/moved":
        assert headers["location"] == "/plain"


def revisit_of(folder: Path, url: str) -> warc.Record:
    return next(record for record in records_in(folder) if record.type == "revisit" and record.url == url)


def test_pywb_replays_a_revisit_with_the_bytes_of_the_earlier_page(pages, wayback):
    folder, origin = pages
    record = revisit_of(folder, origin + "/plain")
    status, headers, body = wayback.replay(record)
    assert status == 200 and body == PLAIN
    assert headers["memento-datetime"] == http_date(record) and headers["x-again"] == "/plain"


def test_pywb_replays_not_modified_as_the_server_said_it(pages, wayback):
    folder, origin = pages
    record = revisit_of(folder, origin + "/packed")
    status, headers, _ = wayback.replay(record)
    assert status == 304 and headers["memento-datetime"] == http_date(record)


def http_date(record: warc.Record) -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(warc.parse_date(record.get("WARC-Date")) // 1000))
