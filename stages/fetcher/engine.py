"""Transfers by libcurl, many at once in one thread: the only module that imports pycurl.

Theory. libcurl says which sockets to watch and when to be called next; all its sockets are in one epoll, whose
descriptor trio waits for together with the nearest deadline. When something is ready, libcurl is called for it, and
the exchanges that ended are handed to `on_done`, outside of libcurl's callbacks.

libcurl is told the address to connect to and the request target to send: it never resolves a name, parses a path,
follows a redirect, keeps a cookie or uses a proxy. A connection serves one exchange: on a reused one that turns out
dead, libcurl would send the request a second time by itself, without the pause that we owe the server.
"""

import os
import resource
import select
import ssl
import time
from collections.abc import Callable

import pycurl
import trio

from stages.fetcher.exchange import (
    BAD_HTTP, CONNECT, DISCONNECT, DNS, EMPTY, TIMEOUT, TLS, TOO_LONG_HEADERS, Exchange,
)

DESCRIPTORS_SPARE = 64  # for our files, trio, the supervisor's pipes and libcurl's own
EVENTS_MAX = 1024  # sockets handled in one go, so that signals and syncs get their turn
TOO_LARGE = 100  # CURLE_TOO_LARGE, a header line beyond libcurl's own 100 KiB; pycurl has no name for it

REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: DNS,
    pycurl.E_URL_MALFORMAT: DNS,  # a host name that libcurl does not take for one
    pycurl.E_COULDNT_CONNECT: CONNECT,
    pycurl.E_INTERFACE_FAILED: CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: TIMEOUT,
    pycurl.E_GOT_NOTHING: EMPTY,
    pycurl.E_PARTIAL_FILE: DISCONNECT,
    pycurl.E_RECV_ERROR: DISCONNECT,
    pycurl.E_SEND_ERROR: DISCONNECT,
    TOO_LARGE: TOO_LONG_HEADERS,
    **dict.fromkeys((
        pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CERTPROBLEM, pycurl.E_SSL_CIPHER,
        pycurl.E_SSL_CACERT_BADFILE, pycurl.E_SSL_SHUTDOWN_FAILED, pycurl.E_SSL_CRL_BADFILE, pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_PINNEDPUBKEYNOTMATCH, pycurl.E_SSL_INVALIDCERTSTATUS, pycurl.E_USE_SSL_FAILED,
    ), TLS),
}
# libcurl gives one code (56) to broken connections and to these, and tells them apart in the message only.
REASONS_BY_MESSAGE = (("Too large response headers", TOO_LONG_HEADERS), ("chunk", BAD_HTTP))


def reason_of(code: int, message: str) -> str:
    """Why a transfer broke off, whatever libcurl's error is."""
    if code == pycurl.E_RECV_ERROR:
        for part, reason in REASONS_BY_MESSAGE:
            if part in message:
                return reason
    return REASONS.get(code, BAD_HTTP)


def find_certificates() -> dict[int, str]:
    """The options that name the system's certificates: those built into a wheel are another system's (pycurl #834)."""
    paths = ssl.get_default_verify_paths()  # heeds SSL_CERT_FILE and SSL_CERT_DIR
    bundles = (paths.cafile, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
    bundle = next((path for path in bundles if path and os.path.exists(path)), None)
    if bundle:
        return {pycurl.CAINFO: bundle}  # preferred: libcurl keeps a parsed bundle, not a folder
    return {pycurl.CAPATH: paths.capath} if paths.capath else {}


def allow_descriptors(transfers_max: int) -> int:
    """Raises the limit on open files as far as allowed; the number of transfers that it leaves room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = transfers_max + DESCRIPTORS_SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = transfers_max if soft == resource.RLIM_INFINITY else soft - DESCRIPTORS_SPARE
    return max(1, min(transfers_max, room))


class Engine:
    def __init__(self, connect_timeout_s: float, total_timeout_s: float, on_done: Callable[[Exchange], None]):
        self._options = {
            pycurl.NOSIGNAL: 1, pycurl.FOLLOWLOCATION: 0, pycurl.PROXY: "", pycurl.NOPROXY: "*",
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS, pycurl.NETRC: pycurl.NETRC_IGNORED,
            pycurl.HTTP_CONTENT_DECODING: 0, pycurl.HTTP09_ALLOWED: 0, pycurl.PATH_AS_IS: 1,
            pycurl.FRESH_CONNECT: 1, pycurl.FORBID_REUSE: 1,
            pycurl.SSL_VERIFYPEER: 1, pycurl.SSL_VERIFYHOST: 2,
            pycurl.CONNECTTIMEOUT_MS: max(1, round(connect_timeout_s * 1000)),
            pycurl.TIMEOUT_MS: max(1, round(total_timeout_s * 1000)),
            **find_certificates(),
        }
        self._on_done = on_done
        self._epoll = select.epoll()
        self._watched: set[int] = set()
        self._timer_at_s: float | None = None
        self._nap: trio.CancelScope | None = None
        self._idle: list[Transfer] = []
        self._busy: dict[pycurl.Curl, Transfer] = {}
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    @property
    def in_flight(self) -> int:
        return len(self._busy)

    def start(self, exchange: Exchange) -> None:
        transfer = self._idle.pop() if self._idle else Transfer(self._options)
        transfer.prepare(exchange)
        self._busy[transfer.curl] = transfer
        self._multi.add_handle(transfer.curl)

    async def wait(self, wait_s: float) -> None:
        """Waits until a transfer can go on, wake() is called or the time is over; then does what there is to do."""
        if self._timer_at_s is not None:
            wait_s = min(wait_s, self._timer_at_s - time.monotonic())
        with trio.move_on_after(max(0.0, wait_s)) as self._nap:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
        self._nap = None
        for descriptor, events in self._epoll.poll(0, EVENTS_MAX):
            if descriptor in self._watched:  # else closed while an earlier one of these was handled
                self._multi.socket_action(descriptor, to_curl(events))
        if self._timer_at_s is not None and time.monotonic() >= self._timer_at_s:
            self._timer_at_s = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()

    def wake(self) -> None:
        if self._nap is not None:
            self._nap.cancel()

    def abort(self) -> list[Exchange]:
        """Breaks off what is in flight, and returns it."""
        exchanges = [transfer.exchange for transfer in self._busy.values()]
        for curl in list(self._busy):
            self._retire(curl)
        return exchanges

    def close(self) -> None:
        self.abort()
        for transfer in self._idle:
            transfer.curl.close()
        self._multi.close()
        self._epoll.close()

    def _collect(self) -> None:
        left = 1
        while left:
            left, succeeded, failed = self._multi.info_read()
            ended = [(curl, "") for curl in succeeded]
            ended += [(curl, reason_of(code, message)) for curl, code, message in failed]
            for curl, trouble in ended:
                transfer = self._busy[curl]
                exchange = transfer.finish(trouble)
                self._retire(curl)
                self._on_done(exchange)

    def _retire(self, curl: pycurl.Curl) -> None:
        transfer = self._busy.pop(curl)
        self._multi.remove_handle(curl)
        transfer.exchange = None  # a handle at rest must not keep a page in memory
        self._idle.append(transfer)

    def _watch(self, what: int, descriptor: int, multi, data) -> None:
        if what == pycurl.POLL_REMOVE:
            if descriptor in self._watched:
                self._watched.discard(descriptor)
                self._epoll.unregister(descriptor)
            return
        events = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)
        if descriptor in self._watched:
            self._epoll.modify(descriptor, events)
        else:
            self._epoll.register(descriptor, events)
            self._watched.add(descriptor)

    def _set_timer(self, timeout_ms: int) -> None:
        self._timer_at_s = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000


def to_curl(events: int) -> int:
    """epoll's events in libcurl's bits; a hang-up counts as readable, so that what came before it is read."""
    bits = 0
    if events & (select.EPOLLIN | select.EPOLLHUP):
        bits |= pycurl.CSELECT_IN
    if events & select.EPOLLOUT:
        bits |= pycurl.CSELECT_OUT
    if events & select.EPOLLERR:
        bits |= pycurl.CSELECT_ERR
    return bits


class Transfer:
    """A libcurl handle, used for one exchange after another."""

    def __init__(self, options: dict):
        self.exchange: Exchange | None = None
        self.curl = pycurl.Curl()
        for option, value in options.items():
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._take_header)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._take_body)

    def prepare(self, exchange: Exchange) -> None:
        self.exchange = exchange
        is_tls = exchange.url.startswith("https:")
        address = f"[{exchange.address}]" if ":" in exchange.address else exchange.address
        setopt = self.curl.setopt
        setopt(pycurl.URL, exchange.server + "/")
        setopt(pycurl.REQUEST_TARGET, exchange.target)
        setopt(pycurl.HTTPHEADER, exchange.headers)
        setopt(pycurl.CONNECT_TO, [f"::{address}:{exchange.port}"])
        setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if is_tls else pycurl.CURL_HTTP_VERSION_1_1)

    def finish(self, trouble: str) -> Exchange:
        exchange, getinfo = self.exchange, self.curl.getinfo
        seconds = {
            "connect": max(getinfo(pycurl.CONNECT_TIME), getinfo(pycurl.APPCONNECT_TIME)),
            "first_byte": getinfo(pycurl.STARTTRANSFER_TIME), "total": getinfo(pycurl.TOTAL_TIME),
        }
        exchange.times_ms.update((name, round(value * 1000)) for name, value in seconds.items())
        exchange.end(trouble)
        return exchange

    def _take_header(self, line: bytes) -> int:
        return len(line) if self.exchange.take_header(line) else -1

    def _take_body(self, piece: bytes) -> int:
        return len(piece) if self.exchange.take_body(piece) else -1
