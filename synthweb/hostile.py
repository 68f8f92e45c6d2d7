"""A server of many bad manners on loopback, in plain and over TLS, with a record of every request.

    with HostileServer(tls=True) as server:
        server.url("drip-body"), server.hosts(), server.visits

Each manner has a name and an address of its own (`NAME.hostile.test` in 127.77/16), so that a polite client can ask all
of them side by side; its path is `/NAME`, which any other address of 127/8 serves too. Any other path is a plain page.
robots.txt is 404, except at the hosts whose manner is about robots.txt. Manners that act before a request is read begin
once their address has answered a robots.txt (or at once, with robots_first=False): a crawler that cannot read
robots.txt asks for nothing else.
"""

import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from types import SimpleNamespace

from synthweb.line import Gone, Line, Request, read_request
from synthweb.loopback import NETWORK, address_of, listen_on_loopback
from synthweb.manners import ACCEPT, HANDSHAKE, MANNERS, PATH, ROBOTS, Manner
from synthweb.manners.register import page

DOMAIN = "hostile.test"
SECOND_OCTET = 77
NO_ROBOTS = page(b"", "Connection: close", status="404 Not Found")
NO_REQUEST = Request(b"", "", "", "", 0)


@dataclass
class Visit:
    """A request as the server saw it; without host and target, a connection on which none was read."""

    manner: str
    scheme: str
    host: str
    target: str
    raw: bytes
    peer: str
    address: str
    connection: int  # counted from 1
    open_connections: int  # to this address, this one included, when the request was there
    started_s: float  # monotonic
    ended_s: float = 0.0  # before the last bytes of an answer left, or when it was clear that nothing more would come


class HostileServer:
    def __init__(
        self, *, port: int = 0, tls_port: int = 0, tls: bool = False, robots_first: bool = True, on_visit=None
    ):
        """`on_visit` is called with each visit when it has ended."""
        self._robots_first = robots_first
        self._on_visit = on_visit or (lambda visit: None)
        self._addresses = {name: address_of(number, SECOND_OCTET) for number, name in enumerate(sorted(MANNERS))}
        self._by_address = {address: MANNERS[name] for name, address in self._addresses.items()}
        self._robots_answered: set[str] = set()
        self._times: Counter[tuple[str, str]] = Counter()
        self._open: dict[int, tuple[str, socket.socket]] = {}
        self._accepted = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.visits: list[Visit] = []
        self.certificates = make_certificates() if tls else SimpleNamespace(contexts={}, authority_pem=b"")
        self._listeners = {"http": listen_on_loopback(port)}
        if tls:
            self._listeners["https"] = listen_on_loopback(tls_port)
        self.ports = {scheme: listener.getsockname()[1] for scheme, listener in self._listeners.items()}
        for scheme, listener in self._listeners.items():
            threading.Thread(target=self._listen, args=(scheme, listener), daemon=True).start()

    def __enter__(self) -> "HostileServer":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self._closing.set()
        for listener in self._listeners.values():
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            for _, connection in self._open.values():
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # gone already

    def hosts(self) -> dict[str, str]:
        """The name and the address of every manner."""
        return {f"{name}.{DOMAIN}": address for name, address in self._addresses.items()}

    def url(self, manner: str, target: str = "", scheme: str = "") -> str:
        """Where a manner is met, at its own host; TLS for those that are about TLS."""
        scheme = scheme or ("https" if MANNERS[manner].moment == HANDSHAKE else "http")
        return f"{scheme}://{manner}.{DOMAIN}:{self.ports[scheme]}{target or '/' + manner}"

    def visits_of(self, manner: str) -> list[Visit]:
        """The visits to a manner's own host, robots.txt aside, in order."""
        address = self._addresses[manner]
        with self._lock:
            return [visit for visit in self.visits if visit.address == address and visit.target != "/robots.txt"]

    def _listen(self, scheme: str, listener: socket.socket) -> None:
        while True:
            try:
                connection, (peer, _) = listener.accept()
            except OSError:
                return
            if not peer.startswith(NETWORK):
                connection.close()
                continue
            with self._lock:
                self._accepted += 1
                number = self._accepted
                self._open[number] = connection.getsockname()[0], connection
            threading.Thread(target=self._serve, args=(scheme, connection, number, peer), daemon=True).start()

    def _serve(self, scheme: str, connection: socket.socket, number: int, peer: str) -> None:
        line = Line(connection, self._closing, self.certificates.contexts)
        address = self._open[number][0]
        try:
            if self._begin(line, scheme, address, number, peer):
                while self._exchange(line, scheme, address, number, peer):
                    pass
        except (OSError, Gone, ValueError):
            pass  # the client went away, which is its right, or we did
        finally:
            with self._lock:
                self._open.pop(number)
            line.close()

    def _begin(self, line: Line, scheme: str, address: str, number: int, peer: str) -> bool:
        """What comes before a request; whether one is to be read."""
        manner = self._by_address.get(address)
        acts = manner is not None and (not self._robots_first or address in self._robots_answered)
        if acts and manner.moment in (ACCEPT, HANDSHAKE) and (manner.moment == ACCEPT or scheme == "https"):
            visit = self._note(manner.name, replace(NO_REQUEST, scheme=scheme), address, number, peer)
            return bool(self._act(manner, line, NO_REQUEST, visit))
        if scheme == "https":
            line.secure()
        return True

    def _exchange(self, line: Line, scheme: str, address: str, number: int, peer: str) -> bool:
        """One request and its answer; whether another may follow."""
        raw = line.read_head()
        if raw is None:
            return False
        request = read_request(raw, scheme, self.ports[scheme])
        with self._lock:
            place = request.host, request.target
            request = replace(request, times=self._times[place])
            self._times[place] += 1
        path = request.target.partition("?")[0]
        at_robots = path == "/robots.txt"
        manner = MANNERS.get(request.host.partition(".")[0] if at_robots else path.lstrip("/").partition("/")[0])
        if manner is not None and manner.moment != (ROBOTS if at_robots else PATH):
            manner = None
        visit = self._note(manner.name if manner else "", request, address, number, peer)
        if line.on_next is not None:
            return bool(self._act(replace(GOOD_PAGE, act=line.on_next), line, request, visit))
        if manner is not None:
            return bool(self._act(manner, line, request, visit))
        if at_robots:
            self._robots_answered.add(address)
        return bool(self._act(GOOD_ROBOTS if at_robots else GOOD_PAGE, line, request, visit))

    def _note(self, manner: str, request: Request, address: str, number: int, peer: str) -> Visit:
        with self._lock:
            others = sum(1 for place, _ in self._open.values() if place == address)
            visit = Visit(
                manner,
                request.scheme,
                request.host,
                request.target,
                request.raw,
                peer,
                address,
                number,
                others,
                time.monotonic(),
            )
            self.visits.append(visit)
        return visit

    def _act(self, manner: Manner, line: Line, request: Request, visit: Visit) -> bool | None:
        def end() -> None:
            if not visit.ended_s:
                visit.ended_s = time.monotonic()
                self._on_visit(visit)

        line.on_last_bytes = end
        try:
            return manner.act(line, request)
        finally:
            end()


def make_certificates():
    from synthweb.certificates import Certificates  # here: trustme is a package of tests, and plain HTTP needs none

    return Certificates(f"*.{DOMAIN}", "localhost", "127.0.0.1")


def answer_plainly(data: bytes, stays: bool) -> Manner:
    def act(line: Line, request: Request) -> bool:
        line.end(data)
        return stays

    return Manner("", "", act, "")


GOOD_ROBOTS = answer_plainly(NO_ROBOTS, stays=False)
GOOD_PAGE = answer_plainly(page(), stays=True)
