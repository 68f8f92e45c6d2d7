"""A small name server on loopback, UDP and TCP on one port: a hosts file's names, and in tests any answer at all.

    scripts = {"two.test": in_turn(give("93.184.216.34"), give("127.0.0.1"))}
    with NameServer({"one.test": ["127.0.0.1"]}, scripts) as server:
        server.port, server.asked

It answers as the resolver of a network does: recursion available, CNAMEs followed as far as it knows them, NXDOMAIN
with an SOA for names that it does not know (RFC 1035, RFC 2308). What a scripted name answers is in name_answers.py.
"""

import errno
import socket
import threading
from collections import Counter
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

from synthweb.name_answers import Question, Reply, give, give_nothing, parse_question, write_reply

Script = Callable[[Question], Reply | bytes | None]
CHAIN_MAX = 16  # CNAMEs in one answer; a loop is sent so far and no further
UDP_MAX_BYTES = 65_535
TCP_IDLE_S = 10.0
PORT_TRIES = 50  # a port that is free for UDP may be taken for TCP


class NameServer:
    """Answers until its `with` ends; `asked` grows by (name, type) for each question, in order of arrival."""

    def __init__(
        self,
        hosts: dict[str, list[str]] | None = None,
        scripts: dict[str, Script] | None = None,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        ttl_s: int = 300,
    ):
        self._scripts: dict[str, Script] = {name: give(*texts, ttl_s=ttl_s) for name, texts in (hosts or {}).items()}
        self._scripts |= scripts or {}
        self._ttl_s = ttl_s
        self._times: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self.asked: list[tuple[str, str]] = []
        self.address = address
        self._udp, self._tcp = open_pair(address, port)
        self.port = self._udp.getsockname()[1]
        self._closing = False
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._serve_udp, self._serve_tcp)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "NameServer":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self._closing = True
        family = self._udp.family
        with socket.socket(family, socket.SOCK_DGRAM) as waker:  # a datagram is what ends a recvfrom on every system
            waker.sendto(b"", (self.address, self.port))
        self._tcp.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._udp.close()
        self._tcp.close()

    def count(self, name: str, kind: str | None = None) -> int:
        """How often a name was asked for, of one type or of all."""
        with self._lock:
            return sum(1 for asked in self.asked if asked[0] == name and kind in (None, asked[1]))

    def _serve_udp(self) -> None:
        while True:
            try:
                data, peer = self._udp.recvfrom(UDP_MAX_BYTES)
            except OSError:
                continue  # an ICMP error of an earlier answer
            if self._closing:
                return
            answer = self.answer(data, "udp")
            if answer is not None:
                try:
                    self._udp.sendto(answer, peer)
                except OSError:
                    pass  # the one who asked is gone

    def _serve_tcp(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_connection, args=(connection,), daemon=True).start()

    def _serve_connection(self, connection: socket.socket) -> None:
        connection.settimeout(TCP_IDLE_S)
        try:
            with connection, connection.makefile("rb") as stream:
                while size := stream.read(2):
                    answer = self.answer(stream.read(int.from_bytes(size, "big")), "tcp")
                    if answer is None:
                        stream.read(1)  # silence, until the other side tires of it
                        return
                    connection.sendall(len(answer).to_bytes(2, "big") + answer)
        except OSError:
            pass

    def answer(self, data: bytes, transport: str) -> bytes | None:
        """The bytes to send for the bytes that came; none: stay silent."""
        question = parse_question(data, transport)
        if question is None:
            return None
        with self._lock:
            place = question.name, question.kind
            self.asked.append(place)
            question.times = self._times[place]
            self._times[place] += 1
        reply = self._find(question)
        if reply is None or isinstance(reply, bytes):
            return reply
        return write_reply(question, reply)

    def _find(self, question: Question) -> Reply | bytes | None:
        """A name's answer, its CNAMEs followed."""
        reply = self._scripts.get(question.name, give_nothing(self._ttl_s))(question)
        hops = 0
        while isinstance(reply, Reply) and reply.alias_to in self._scripts and hops < CHAIN_MAX:
            hops += 1
            further = self._scripts[reply.alias_to](question)
            if not isinstance(further, Reply):
                return further
            reply = reply.followed_by(further)
        return reply


def open_pair(address: str, port: int) -> tuple[socket.socket, socket.socket]:
    """A UDP and a listening TCP socket on one port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for _ in range(PORT_TRIES if port == 0 else 1):
        udp = socket.socket(family, socket.SOCK_DGRAM)
        try:
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # a burst of questions waits, it is not lost
            udp.bind((address, port))
            return udp, socket.create_server((address, udp.getsockname()[1]), family=family, backlog=128)
        except OSError as error:
            udp.close()
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRINUSE, f"port {port} is in use at {address}")


def read_hosts(path: Path) -> dict[str, list[str]]:
    """Names and their addresses from a file in the form of hosts(5)."""
    hosts: dict[str, list[str]] = {}
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            address = str(ip_address(words[0]))
        except ValueError:
            raise ValueError(f"{path} line {number}: expected an address, found {words[0]!r}") from None
        for name in words[1:]:
            hosts.setdefault(name.lower().rstrip("."), []).append(address)
    return hosts
