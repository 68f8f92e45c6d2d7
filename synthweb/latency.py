"""Thousands of servers in one process, each with a latency of its own: what a benchmark of waiting is made of.

    with LatencyServers(5_000, seed=1) as web:
        web.port, web.hosts(), web.latencies_ms

One listening socket takes for all of 127/8; which server was meant is told by the address that was connected to. One
thread with one epoll and one heap of answers that are due serves them all: no task and no timer a connection, because
the judge must not cost more than what it judges.
"""

import heapq
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from math import exp, log
from random import Random

from synthweb.loopback import NETWORK, address_of, allow_descriptors, listen_on_loopback

LATENCY_MIN_MS, LATENCY_MAX_MS = 50.0, 2_000.0
SERVERS_MAX = 1_000_000  # sixteen second octets of addresses
SECOND_OCTET = 80
PAGES = 3  # per server, besides the first
LINKS = 10  # per page, at most
HEAD_MAX_BYTES = 16_384
ACCEPTS_A_TURN = 256
NO_ROBOTS = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n"
FILLER = "<p>" + "a page of no importance " * 40 + "</p>"

Note = Callable[
    [float, float, str, str, str, int, str], None
]  # started and ended ms, address, host, target, status, agent


class Connection:
    __slots__ = ("socket", "number", "address", "pending", "asked")

    def __init__(self, connection: socket.socket, number: int, address: str):
        self.socket = connection
        self.number = number
        self.address = address
        self.pending = b""
        self.asked: deque[tuple[float, bytes]] = deque()  # requests not answered, with the moment of arrival


class LatencyServers:
    def __init__(
        self,
        servers: int,
        seed: int = 1,
        *,
        port: int = 0,
        note: Note | None = None,
        scale: float = 1.0,
        latencies_ms: tuple[float, float] = (LATENCY_MIN_MS, LATENCY_MAX_MS),
        pages: int = PAGES,
    ):
        """`note` is called once a request, before its answer is sent; `scale` shortens every latency, for tests.

        Links lead to so many `pages` per server, besides the first.
        """
        rng = Random(f"latency/{seed}")
        self._latencies_s = [draw_latency_ms(rng, *latencies_ms) * scale / 1000 for _ in range(servers)]
        self._pages = pages
        self._addresses = [address_of(number, SECOND_OCTET) for number in range(servers)]
        self._numbers = {address: number for number, address in enumerate(self._addresses)}
        self._note = note or (lambda *_: None)
        self._due: list[tuple[float, int, Connection]] = []
        self._sequence = 0
        self._connections: dict[int, Connection] = {}
        allow_descriptors(2 * servers + 256)
        self._listener = listen_on_loopback(port, backlog=min(servers, 4_096))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.requests = 0
        self.cpu_s = 0.0  # of the serving thread, once it has ended
        self._woken, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> "LatencyServers":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        os.write(self._waker, b"x")
        self._thread.join()
        for descriptor in (self._woken, self._waker):
            os.close(descriptor)
        self._listener.close()

    def hosts(self) -> dict[str, str]:
        return {name_of(number): address for number, address in enumerate(self._addresses)}

    @property
    def latencies_ms(self) -> dict[str, float]:
        return {name_of(number): round(latency_s * 1000, 3) for number, latency_s in enumerate(self._latencies_s)}

    def _serve(self) -> None:
        epoll = select.epoll()
        listener = self._listener.fileno()
        epoll.register(listener, select.EPOLLIN)
        epoll.register(self._woken, select.EPOLLIN)
        while True:
            wait_s = max(0.0, self._due[0][0] - time.monotonic()) if self._due else -1
            for descriptor, _ in epoll.poll(wait_s, 1_024):
                if descriptor == listener:
                    self._accept(epoll)
                elif descriptor == self._woken:
                    for connection in list(self._connections.values()):
                        connection.socket.close()
                    epoll.close()
                    self.cpu_s = time.thread_time()
                    return
                else:
                    self._read(self._connections[descriptor])
            self._answer_due()

    def _accept(self, epoll: select.epoll) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                accepted, (peer, _) = self._listener.accept()
            except OSError:
                return  # no more, or no descriptor left: it waits in the backlog
            address = accepted.getsockname()[0]
            number = self._numbers.get(address)
            if number is None or not peer.startswith(NETWORK):
                accepted.close()
                continue
            accepted.setblocking(False)
            self._connections[accepted.fileno()] = Connection(accepted, number, address)
            epoll.register(accepted.fileno(), select.EPOLLIN)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(HEAD_MAX_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or len(connection.pending) > HEAD_MAX_BYTES:
            return self._drop(connection)
        *heads, connection.pending = (connection.pending + data).split(b"\r\n\r\n")
        now_s = time.monotonic()
        for head in heads:
            connection.asked.append((now_s, head))
            if len(connection.asked) == 1:
                self._plan(connection, now_s)

    def _plan(self, connection: Connection, now_s: float) -> None:
        self._sequence += 1
        heapq.heappush(self._due, (now_s + self._latencies_s[connection.number], self._sequence, connection))

    def _answer_due(self) -> None:
        now_s = time.monotonic()
        while self._due and self._due[0][0] <= now_s:
            connection = heapq.heappop(self._due)[2]
            if connection.socket.fileno() < 0:
                continue  # hung up while it waited
            started_s, head = connection.asked.popleft()
            target, host, agent, closes = read_head(head)
            status, answer = (
                (404, NO_ROBOTS) if target == "/robots.txt" else (200, page_of(connection.number, target, self._pages))
            )
            self.requests += 1
            self._note(started_s * 1000, now_s * 1000, connection.address, host, target, status, agent)
            try:
                connection.socket.send(answer)
            except OSError:
                closes = True  # also where its buffer is full: an answer is a small part of it
            if closes:
                self._drop(connection)
            elif connection.asked:
                self._plan(connection, now_s)

    def _drop(self, connection: Connection) -> None:
        del self._connections[connection.socket.fileno()]
        connection.socket.close()


def draw_latency_ms(rng: Random, min_ms: float = LATENCY_MIN_MS, max_ms: float = LATENCY_MAX_MS) -> float:
    """Log-uniform: as many servers between 50 and 100 ms as between 1 and 2 s."""
    return exp(rng.uniform(log(min_ms), log(max_ms)))


def name_of(number: int) -> str:
    """Each name is a registered domain of its own."""
    return f"latency-{number:05}.test"


def page_of(number: int, target: str, pages: int) -> bytes:
    """A small page. Page n, at /n, has links to pages 10n + 1 to 10n + 10, so that there is one way to each."""
    name = name_of(number)
    page = int(target[1:8]) if target[1:8].isdecimal() else 0
    first = LINKS * page + 1
    links = " ".join(f"<a href=/{child}>{child}</a>" for child in range(first, min(first + LINKS, pages + 1)))
    body = f"<!doctype html><title>{name}</title><h1>{name}</h1>{FILLER}{links}\n"
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode("ascii")


def read_head(head: bytes) -> tuple[str, str, str, bool]:
    """Target, host and user agent of a request, and whether it wants the connection closed."""
    first, *lines = head.decode("latin-1").split("\r\n")
    target = (first.split(" ") + ["", ""])[1]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    closes = headers.get("connection", "").lower() == "close"
    return target, headers.get("host", "").partition(":")[0].lower(), headers.get("user-agent", ""), closes
