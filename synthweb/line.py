"""One connection from the server's side: what a bad manner needs to send, stall, cut and reset."""

import select
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass

HEAD_MAX_BYTES = 1 << 16
LINGER_MAX_S = 300.0  # nobody's patience is longer
ENDLESS_BYTES = 1 << 30  # what is endless ends here, for a client that never cuts it


class Gone(Exception):
    """The other side hung up, or the server is closing."""


@dataclass(frozen=True)
class Request:
    raw: bytes
    target: str
    host: str  # as the Host header has it, lower case, without the port
    scheme: str
    port: int
    times: int = 0  # how often this host was asked for this target before

    def url(self, target: str) -> str:
        """A URL of the same server."""
        return f"{self.scheme}://{self.host}:{self.port}{target}"


class Line:
    def __init__(self, connection: socket.socket, closing: threading.Event, contexts: dict[str, ssl.SSLContext]):
        self._connection = connection
        self._closing = closing
        self._contexts = contexts
        self._pending = b""
        self.on_last_bytes = lambda: None  # what is to be noted before an answer's end can be seen
        self.on_next = None  # a manner for the next request on this line, whatever it asks for
        connection.settimeout(LINGER_MAX_S)

    def secure(self, certificate: str = "good") -> None:
        """The server's side of the TLS handshake."""
        self._connection = self._contexts[certificate].wrap_socket(self._connection, server_side=True)

    def send(self, data: bytes) -> None:
        if self._closing.is_set():
            raise Gone
        self._connection.sendall(data)

    def end(self, data: bytes) -> None:
        """Sends the last bytes of an answer: whoever has read them finds the request's end in the record."""
        self.on_last_bytes()
        self.send(data)

    def send_endlessly(self, piece: bytes) -> None:
        for _ in range(ENDLESS_BYTES // len(piece)):
            self.send(piece)

    def drip(self, data: bytes, interval_s: float = 1.0) -> None:
        for place in range(len(data)):
            self.send(data[place : place + 1])
            self.pause(interval_s)

    def pause(self, duration_s: float) -> None:
        if self._closing.wait(duration_s):
            raise Gone

    def stall(self) -> None:
        """Neither sends nor reads until the other side hangs up."""
        self._await(select.POLLRDHUP)

    def await_bytes(self) -> None:
        """Until there is something to read, which is not read, or the other side hangs up."""
        self._await(select.POLLRDHUP | select.POLLIN)

    def _await(self, events: int) -> None:
        poll = select.poll()
        poll.register(self._connection, events)
        started_s = time.monotonic()
        while not self._closing.is_set() and time.monotonic() - started_s < LINGER_MAX_S:
            if poll.poll(500):
                return

    def reset(self) -> None:
        """Closes with a RST: what is still on its way to the other side is lost."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._connection.close()
        raise Gone

    def close(self) -> None:
        """Closes with a FIN, also where bytes that came were not read (they would make it a RST)."""
        try:
            self._connection.setblocking(False)
            while self._connection.recv(1 << 16):
                pass
        except (OSError, ValueError):
            pass
        self._connection.close()

    def receive(self) -> bytes:
        return self._connection.recv(1 << 16)

    def read_head(self) -> bytes | None:
        """The next request up to its empty line; none where there comes no more."""
        while b"\r\n\r\n" not in self._pending:
            piece = self.receive()
            if not piece or len(self._pending) > HEAD_MAX_BYTES:
                return None
            self._pending += piece
        raw, _, self._pending = self._pending.partition(b"\r\n\r\n")
        return raw + b"\r\n\r\n"


def read_request(raw: bytes, scheme: str, port: int) -> Request:
    """Reads what it can: a judge takes note of anything."""
    first, *lines = raw.decode("latin-1").split("\r\n")
    target = (first.split(" ") + ["", ""])[1]
    host = next((line[5:].strip() for line in lines if line[:5].lower() == "host:"), "")
    return Request(raw, target, host.lower().rpartition(":")[0] or host.lower(), scheme, port)
