"""How many connections servers had open at once, counted from the outside."""

import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ESTABLISHED = 1  # TCP_ESTABLISHED of the kernel


class Connections:
    """How many connections servers had open at once; never too many, on a busy machine perhaps too few.

    The server's ends alone would show too many: the kernel may deliver the FIN of a closed connection after the next
    connection. So each new maximum is counted again by the client's ends, which change as the client closes them: an
    end that is open now was open when the newest one was made."""

    def __init__(self):
        self._lock = threading.Lock()
        self._open: dict[socket.socket, Ends] = {}
        self.most = 0
        self.most_of_address: Counter[str] = Counter()

    def note(self, connection: socket.socket) -> None:
        """Takes a connection that was accepted; the server gives it back to forget() before it closes it."""
        with self._lock:
            try:
                newest = self._open[connection] = Ends.of(connection)
            except OSError:
                return  # the client is gone already
            established = [ends for known, ends in self._open.items() if is_established(known)]
            counts = Counter(ends.address for ends in established)
            if counts.total() > self.most or not counts <= self.most_of_address:
                opened = read_established()
                counts = Counter(ends.address for ends in established if ends is newest or ends.in_kernel in opened)
                self.most = max(self.most, counts.total())
                self.most_of_address |= counts

    def forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.pop(connection, None)


@dataclass(frozen=True)
class Ends:
    """The two ends of a connection."""

    address: str  # the server's
    in_kernel: tuple[str, str]  # the client's and the server's, as /proc/net/tcp has them for the client

    @classmethod
    def of(cls, accepted: socket.socket) -> "Ends":
        client, server = accepted.getpeername()[:2], accepted.getsockname()[:2]
        return cls(
            server[0], tuple(f"{kernel_hex(accepted.family, host)}:{port:04X}" for host, port in (client, server))
        )


def is_established(connection: socket.socket) -> bool:
    try:
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED  # tcpi_state, tcp(7)
    except OSError:
        return False  # closed by the test's own answer, or gone on as TLS


def kernel_hex(family: int, host: str) -> str:
    """The address in words of 32 bits, each in the byte order of this machine, as proc_net_tcp shows it."""
    packed = socket.inet_pton(family, host)
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def read_established() -> set[tuple[str, str]]:
    """Both addresses of every established socket of this network namespace."""
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:]]
    return {(row[1], row[2]) for row in rows if int(row[3], 16) == ESTABLISHED}
