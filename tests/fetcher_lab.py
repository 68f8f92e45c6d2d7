"""A web of raw sockets for the fetcher's tests: every byte that goes either way is the test's own, and is recorded."""

import io
import os
import re
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from contract import crawl_folder, names, warc
from contract.command import run
from contract.config import Fetcher
from contract.crawl_folder import hold_lock
from contract.tables import TAKEN_ALONG
from contract.url import Keys
from contract.warc import Record
from stages.fetcher.__main__ import main
from stages.fetcher.download import download
from stages.fetcher.fetch_task import FetchTask, Result
from stages.fetcher.resume import list_page_files
from stages.fetcher.slots import MemorySlots
from storage.publish import make_folder
from tests.open_connections import Connections

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 300.0  # what a test waits for at most; reached only where something hangs, whatever the load
NO_REVISIT = {
    "revisit": False,
    "etag": "",
    "last_modified": "",
    "payload_digest": "",
    "fetched_at_ms": 0,
    "counted": False,
    "score": 0,
    "vrank": 0.0,
    **dict.fromkeys(TAKEN_ALONG, 0),
}  # columns of a list
NO_ROBOTS = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def ok(body: bytes = b"hello", *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@dataclass
class Seen:
    """A request as the server saw it."""

    raw: bytes
    started_s: float
    ended_s: float = 0.0
    is_left: bool = False  # the client had gone when the answer was ready
    connection: int = 0  # of this server, counted from 1
    address: str = ""  # that it came to

    @property
    def target(self) -> str:
        return self.raw.split(b" ")[1].decode()

    @property
    def host(self) -> str:
        return re.search(rb"\r\nHost: ([^\r:]*)", self.raw)[1].decode()


class Gathered:
    """Holds the first answers back until `count` requests wait for theirs; from then on each is answered at once."""

    def __init__(self, count: int, answer: Callable[["Seen"], bytes]):
        self._barrier = threading.Barrier(count)
        self._answer = answer
        self._is_over = False

    def __call__(self, seen: "Seen") -> bytes:
        if not self._is_over:
            self._barrier.wait(PATIENCE_S)
            self._is_over = True
        return self._answer(seen)


class RawServer:
    """Answers each request with the bytes that `answer` gives for it, or leaves the connection to what it returns."""

    def __init__(
        self,
        answer: Callable[[Seen], bytes | Callable[[socket.socket], None]],
        address: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        dwell_s: float = 0.0,
        connections: Connections | None = None,
    ):
        self._answer = answer
        self.connections = connections or Connections()  # one for several servers counts those of all
        self._accepted = 0
        self._tls = tls
        self._dwell_s = dwell_s  # before an answer, so that requests at the same time meet
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self.seen: list[Seen] = []
        self.busy_most = self._busy = 0
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, 0), family=family, backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> "RawServer":
        return self

    def __exit__(self, *_) -> None:
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def targets(self) -> list[str]:
        return [seen.target for seen in self.seen]

    @property
    def busy(self) -> int:
        """Requests that have come and are not answered yet."""
        return self._busy

    def wait_for(self, requests: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= requests, PATIENCE_S), self.seen

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._accepted += 1
            self.connections.note(connection)
            threading.Thread(target=self._serve, args=(connection, self._accepted), daemon=True).start()

    def _serve(self, accepted: socket.socket, number: int) -> None:
        accepted.settimeout(PATIENCE_S)
        connection = accepted
        try:
            with accepted:
                if self._tls:
                    connection = self._tls.wrap_socket(accepted, server_side=True)
                with connection:
                    try:
                        while self._exchange(connection, number):
                            pass
                    finally:
                        self.connections.forget(accepted)
        except OSError:
            pass  # the client went away, which is its right

    def _exchange(self, connection: socket.socket, number: int) -> bool:
        """Answers a request; whether another may follow on the same connection."""
        raw = b""
        while b"\r\n\r\n" not in raw:
            piece = connection.recv(65536)
            if not piece:
                return False
            raw += piece
        seen = Seen(raw, time.monotonic(), connection=number, address=connection.getsockname()[0])
        with self._changed:
            self.seen.append(seen)
            self._busy += 1
            self.busy_most = max(self.busy_most, self._busy)
            self._changed.notify_all()
        answer = self._answer(seen)
        self._closing.wait(self._dwell_s)
        if callable(answer):
            answer(connection)
        # Noted before the last bytes leave: the client may be on its way back before this thread runs again.
        with self._changed:
            seen.is_left = has_left(connection)
            self._busy -= 1
            seen.ended_s = time.monotonic()
        if callable(answer):
            return False
        connection.sendall(answer)
        return has_whole_body(answer)


def has_left(connection: socket.socket) -> bool:
    """Whether the client has closed its end."""
    if isinstance(connection, ssl.SSLSocket) or not select.select([connection], [], [], 0)[0]:
        return False
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except ConnectionError:
        return True


def has_whole_body(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    found = re.search(rb"\r\ncontent-length: *(\d+)(?:\r|$)", head.lower())
    return bool(found) and int(found[1]) == len(body)


def pages_of(pages: dict[str, bytes], robots: bytes = NO_ROBOTS):
    """Answers by target; what is not there is 404."""
    return lambda seen: robots if seen.target == "/robots.txt" else pages.get(seen.target, NO_ROBOTS)


def settings_for(folder: Path, hosts: dict[str, str], **settings) -> Fetcher:
    """`hosts` tells the address of each name, or several, with blanks between them."""
    hosts_file = folder.parent / f"{folder.name}.hosts"
    hosts_file.write_text(
        "".join(f"{address} {name}\n" for name, addresses in hosts.items() for address in addresses.split())
    )
    return Fetcher(
        **{
            "contact": "https://example.org/bot",
            "delay_s": 0.0,
            "connect_timeout_s": 60.0,
            "total_timeout_s": 120.0,
            "delay_response_factor": 0.0,
            "retries_max": 0,
            "allow_private_addresses": True,
            "hosts_file": str(hosts_file),
            "cycle_max_s": PATIENCE_S,
            **settings,
        }
    )


def fetch(
    folder: Path,
    urls: list[str],
    hosts: dict[str, str],
    *,
    known=None,
    slots=None,
    lines=None,
    refused=None,
    earlier=None,
    **settings,
) -> Result:
    """Fetches in this process into `folder`."""
    make_folder(folder)
    config = settings_for(folder, hosts, **settings)
    lines = [] if lines is None else lines
    job = FetchTask(
        folder,
        urls,
        known or {},
        config,
        refused or {},
        "test",
        slots or MemorySlots(),
        Keys(0).domain,
        lambda *line: lines.append(line),
        earlier or {},
    )
    return download(job)


def records_in(folder: Path) -> list[Record]:
    return [record for _, path in list_page_files(folder / names.PAGES) for record in warc.PageReader(path).records()]


def finals_in(folder: Path) -> dict[str, Record]:
    """The final record of each URL; that there is but one is checked."""
    finals: dict[str, Record] = {}
    for record in records_in(folder):
        if record.get(warc.FINAL) == warc.YES:
            assert record.url not in finals, f"two finals: {record.url}"
            finals[record.url] = record
    return finals


def fetch_one(folder: Path, answer, *, hosts=None, path: str = "/page", **settings) -> Record:
    """Fetches one page of one server that has no robots.txt; the final record."""
    with RawServer(lambda seen: NO_ROBOTS if seen.target == "/robots.txt" else answer) as server:
        url = f"http://one.test:{server.port}{path}"
        fetch(folder, [url], hosts or {"one.test": "127.0.0.1"}, **settings)
    return finals_in(folder)[url]


def outcome_of(record: Record) -> tuple[str, str]:
    return record.get(warc.OUTCOME), record.get(warc.REASON)


def start_fetcher(*arguments, pass_fds=(), **environment) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "stages.fetcher", *map(str, arguments)],
        cwd=ROOT,
        text=True,
        pass_fds=pass_fds,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run_fetcher(*arguments, **environment) -> subprocess.CompletedProcess:
    process = start_fetcher(*arguments, **environment)
    out, err = process.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_here(*arguments) -> subprocess.CompletedProcess:
    """The command in this process, which saves the start of another; the crawl's lock is given back, as at its end."""
    out, err, locks = io.StringIO(), io.StringIO(), []

    def hold(crawl):
        locks.append(hold_lock(crawl))
        return locks[-1]

    words = ["bin/fetcher", *map(str, arguments)]
    try:
        with patch.object(sys, "argv", words), patch.object(crawl_folder, "hold_lock", hold):
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
                run(main, names.FETCHER)
    finally:
        for lock in locks:
            os.close(lock)
    return subprocess.CompletedProcess(words, ended.value.code, out.getvalue(), err.getvalue())


def override(**settings) -> list[str]:
    settings = {"contact": "https://example.org/bot", "retries_max": 0, **settings}
    values = {key: str(value).lower() if isinstance(value, bool) else value for key, value in settings.items()}
    return [word for key, value in values.items() for word in ("--set", f"fetcher.{key}={value}")]


# Valid from 2000 to 9999 for tls.test, and its own authority.
TLS_KEY = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZFGlnlCpZw9zFLZz
tvhAWPv5IaPQZydYGv6RCM3O8s+hRANCAASgHCIMtq3nFwDfZ1JDOpFnMjAXRW28
S5zEuutMEPGBPRLTrJlwcHX+BKXOTZfidpKPQAsdTS2CvKICW7JuZlgy
-----END PRIVATE KEY-----
"""
TLS_CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBXzCCAQSgAwIBAgIBATAKBggqhkjOPQQDAjATMREwDwYDVQQDDAh0bHMudGVz
dDAgFw0wMDAxMDEwMDAwMDBaGA85OTk5MTIzMTIzNTk1OVowEzERMA8GA1UEAwwI
dGxzLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASgHCIMtq3nFwDfZ1JD
OpFnMjAXRW28S5zEuutMEPGBPRLTrJlwcHX+BKXOTZfidpKPQAsdTS2CvKICW7Ju
Zlgyo0cwRTATBgNVHREEDDAKggh0bHMudGVzdDAPBgNVHRMBAf8EBTADAQH/MB0G
A1UdDgQWBBTMHJhVYcEtqWhNyKpa/Kc0Wro+4zAKBggqhkjOPQQDAgNJADBGAiEA
3N6yqIgruD20+3evlBtcJceXPU6jG0SEhmROxtigZ0oCIQC/V1DC91g8/LB9crFJ
SgD+zCCzupNYiX5SpYO34T8wpQ==
-----END CERTIFICATE-----
"""


@pytest.fixture
def tls_context(tmp_path, monkeypatch) -> ssl.SSLContext:
    """A server's side of TLS for tls.test, trusted by the fetcher in this process."""
    certificate = tmp_path / "tls.pem"
    certificate.write_text(TLS_KEY + TLS_CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
