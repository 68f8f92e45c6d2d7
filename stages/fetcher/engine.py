"""Transfers by libcurl, many at once in one thread: the only module that imports pycurl.

Theory. libcurl says which sockets to watch and when to be called next; all its sockets are in one epoll, whose
descriptor trio waits for together with the nearest deadline. When something is ready, libcurl is called for it, and
the exchanges that ended are handed to `on_done`, outside of libcurl's callbacks.

libcurl is told the address to connect to and the request target to send: it never resolves a name, parses a path,
follows a redirect, keeps a cookie or uses a proxy. Every address is judged once more as its socket is made. On a kept
connection that turns out dead libcurl would send the request a second time by itself, without the pause that we owe
the server: a second sending is refused, and the exchange ends as one that was cut off.

While the bandwidth is used up, a transfer whose next piece of a body arrives is paused, with that piece in libcurl's
hands, and goes on in its turn. So the bandwidth is overdrawn by one read a transfer at most, however many have something
to read at once. Time limits for an answer are ours, not libcurl's: time in a pause counts against nobody.
"""

import errno
import os
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable

import pycurl
import trio

from contract.config import Fetcher
from contract.errors import TryLater
from stages.fetcher.bandwidth import Bandwidth
from stages.fetcher.exchange import STOP, Exchange
from stages.fetcher.outage import NO_ROUTE
from stages.fetcher.reasons import (
    BAD_HTTP,
    CONNECTION_REFUSED,
    DISCONNECT,
    DNS,
    EMPTY,
    FORBIDDEN_ADDRESS,
    TIMEOUT_CONNECT,
    TIMEOUT_TOTAL,
    TLS,
    TOO_LONG_HEADERS,
    TOO_SLOW,
    UNREACHABLE,
)

EVENTS_MAX = 32  # sockets handled before time, bandwidth and new requests are looked at again
SWEEPS_PER_LIMIT = 8  # a time limit is exceeded by at most an eighth ...
SWEEP_MAX_S = 0.5  # ... or by this
READ_BYTES = 64 << 10  # most pages in one piece
READ_SLOWLY_BYTES = 16 << 10  # under a limit of bandwidth, which can be overdrawn by one piece
# What is told to somebody who watches: libcurl's own words, the request as it goes out, the head as it comes in.
NOTE, SENT, RECEIVED = "note", "sent", "received"
TOLD = {pycurl.INFOTYPE_TEXT: NOTE, pycurl.INFOTYPE_HEADER_OUT: SENT, pycurl.INFOTYPE_HEADER_IN: RECEIVED}
TOO_LARGE = 100  # CURLE_TOO_LARGE, a header line beyond libcurl's own 100 KiB; pycurl has no name for it

REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: DNS,
    pycurl.E_URL_MALFORMAT: DNS,  # a host name that libcurl does not take for one
    pycurl.E_COULDNT_CONNECT: UNREACHABLE,
    pycurl.E_INTERFACE_FAILED: UNREACHABLE,
    pycurl.E_OPERATION_TIMEDOUT: TIMEOUT_CONNECT,  # the only time limit that is libcurl's
    pycurl.E_GOT_NOTHING: EMPTY,
    pycurl.E_PARTIAL_FILE: DISCONNECT,
    pycurl.E_RECV_ERROR: DISCONNECT,
    pycurl.E_SEND_ERROR: DISCONNECT,
    TOO_LARGE: TOO_LONG_HEADERS,
    **dict.fromkeys(
        (
            pycurl.E_SSL_CONNECT_ERROR,
            pycurl.E_PEER_FAILED_VERIFICATION,
            pycurl.E_SSL_CERTPROBLEM,
            pycurl.E_SSL_CIPHER,
            pycurl.E_SSL_CACERT_BADFILE,
            pycurl.E_SSL_SHUTDOWN_FAILED,
            pycurl.E_SSL_CRL_BADFILE,
            pycurl.E_SSL_ISSUER_ERROR,
            pycurl.E_SSL_PINNEDPUBKEYNOTMATCH,
            pycurl.E_SSL_INVALIDCERTSTATUS,
            pycurl.E_USE_SSL_FAILED,
        ),
        TLS,
    ),
}
OUR_OWN = (errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # not the server's fault
BROKEN_OFF = (DISCONNECT, EMPTY, UNREACHABLE)
# libcurl gives one code (56) to broken connections and to these, and tells them apart in the message only.
REASONS_BY_MESSAGE = (("Too large response headers", TOO_LONG_HEADERS), ("chunk", BAD_HTTP))


def reason_of(code: int, message: str, os_error: int = 0) -> str:
    """Why a transfer broke off, whatever libcurl's error is."""
    if code == pycurl.E_COULDNT_CONNECT and os_error == errno.ECONNREFUSED:
        return CONNECTION_REFUSED
    if code == pycurl.E_RECV_ERROR:
        for part, reason in REASONS_BY_MESSAGE:
            if part in message:
                return reason
    return REASONS.get(code, BAD_HTTP)


def find_certificates() -> dict[int, str]:
    """The options that name the system's certificates: those built into a wheel are another system's (pycurl #834)."""
    paths = ssl.get_default_verify_paths()  # heeds SSL_CERT_FILE and SSL_CERT_DIR
    bundles = (
        paths.cafile,
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/cert.pem",
    )
    bundle = next((path for path in bundles if path and os.path.exists(path)), None)
    if bundle:
        return {pycurl.CAINFO: bundle}  # preferred: libcurl keeps a parsed bundle, not a folder
    return {pycurl.CAPATH: paths.capath} if paths.capath else {}


def make_options(config: Fetcher) -> dict:
    """What every transfer has in common."""
    return {
        pycurl.NOSIGNAL: 1,
        pycurl.FOLLOWLOCATION: 0,
        pycurl.PROXY: "",
        pycurl.NOPROXY: "*",
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.NETRC: pycurl.NETRC_IGNORED,
        pycurl.HTTP_CONTENT_DECODING: 0,
        pycurl.HTTP09_ALLOWED: 0,
        pycurl.PATH_AS_IS: 1,
        pycurl.SSL_VERIFYPEER: 1,
        pycurl.SSL_VERIFYHOST: 2,
        pycurl.CONNECTTIMEOUT_MS: max(1, round(config.connect_timeout_s * 1000)),
        pycurl.BUFFERSIZE: READ_SLOWLY_BYTES if config.bandwidth_max_bytes_per_s else READ_BYTES,
        **find_certificates(),
    }


class Engine:
    def __init__(
        self,
        config: Fetcher,
        connections_max: int,
        is_allowed: Callable[[str], bool],
        on_done: Callable[[Exchange], None],
        watch: Callable[[str, bytes], None] | None = None,
    ):
        self._options = make_options(config)
        if watch is not None:
            self._options |= {
                pycurl.VERBOSE: 1,
                pycurl.DEBUGFUNCTION: lambda kind, data: kind in TOLD and watch(TOLD[kind], data),
            }
        self._is_allowed = is_allowed
        self._on_done = on_done
        self._bandwidth = Bandwidth(config.bandwidth_max_bytes_per_s)
        self._total_timeout_s, self._slow_s = config.total_timeout_s, config.slow_s
        self._slow_bytes = config.slow_bytes_per_s * config.slow_s
        self._sweep_every_s = min(
            SWEEP_MAX_S, config.total_timeout_s / SWEEPS_PER_LIMIT, config.slow_s / SWEEPS_PER_LIMIT
        )
        self._swept_at_s = time.monotonic()
        self._paused: deque[Transfer] = deque()  # for want of bandwidth, those first that have waited longest
        self._failure: OSError | None = None
        self._epoll = select.epoll()
        self._watched: set[int] = set()
        self._timer_at_s: float | None = None
        self._nap: trio.CancelScope | None = None
        self._idle: list[Transfer] = []
        self._busy: dict[pycurl.Curl, Transfer] = {}
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        # Kept connections count as well: where the budget is full, libcurl closes the one that was idle longest.
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections_max)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections_max)

    @property
    def in_flight(self) -> int:
        return len(self._busy)

    @property
    def has_bandwidth(self) -> bool:
        return self._bandwidth.wait_s(time.monotonic()) <= 0

    @property
    def is_throttled(self) -> bool:
        return bool(self._paused)

    def start(self, exchange: Exchange) -> None:
        transfer = (
            self._idle.pop() if self._idle else Transfer(self._options, self._is_allowed, self._bandwidth, self._paused)
        )
        transfer.prepare(exchange, time.monotonic())
        self._busy[transfer.curl] = transfer
        self._multi.add_handle(transfer.curl)

    async def wait(self, wait_s: float) -> None:
        """Waits until a transfer can go on, wake() is called or the time is over; then does what there is to do."""
        self._go_on()
        now_s = time.monotonic()
        if (hold_s := self._bandwidth.wait_s(now_s)) > 0:
            wait_s = min(wait_s, hold_s)
        for descriptor, events in await self._poll(now_s, wait_s):
            if descriptor in self._watched:
                self._multi.socket_action(descriptor, to_curl(events))
            else:
                self._forget(descriptor)
        if self._timer_at_s is not None and time.monotonic() >= self._timer_at_s:
            self._timer_at_s = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        if self._failure is not None:
            raise self._failure
        self._collect()
        self._sweep()

    async def _poll(self, now_s: float, wait_s: float) -> list[tuple[int, int]]:
        if events := self._epoll.poll(0, EVENTS_MAX):
            await trio.lowlevel.checkpoint()
            return events
        if self._timer_at_s is not None:
            wait_s = min(wait_s, self._timer_at_s - now_s)
        with trio.move_on_after(max(0.0, wait_s)) as self._nap:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
        self._nap = None
        return self._epoll.poll(0, EVENTS_MAX)

    def _go_on(self) -> None:
        """Lets paused transfers read on, in turn, while there is bandwidth."""
        while self._paused and self.has_bandwidth:
            transfer = self._paused.popleft()
            try:
                transfer.resume()
            except pycurl.error as error:  # our own callback wants no more of it
                self._end(transfer.curl, reason_of(error.args[0], str(error)), str(error))

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
        self._multi.close()  # before the handles: kept connections know those that they were made by
        for transfer in self._idle:
            transfer.curl.close()
        self._epoll.close()

    def _collect(self) -> None:
        left = 1
        while left:
            left, succeeded, failed = self._multi.info_read()
            for curl in succeeded:
                self._end(curl, "")
            for curl, code, message in failed:
                os_error = curl.getinfo(pycurl.OS_ERRNO)
                if os_error in OUR_OWN:
                    raise TryLater(
                        f"this machine can open no more connections ({os.strerror(os_error)}): run it again, "
                        "with a smaller fetcher.connections_max where that repeats itself"
                    )
                told = f"{message} ({os.strerror(os_error)})" if os_error else message
                self._busy[curl].exchange.has_no_route = code == pycurl.E_COULDNT_CONNECT and os_error in NO_ROUTE
                self._end(curl, reason_of(code, message, os_error), told)

    def _end(self, curl: pycurl.Curl, trouble: str, message: str = "") -> None:
        transfer = self._busy[curl]
        exchange = transfer.finish(trouble, message)
        self._retire(curl)
        self._on_done(exchange)

    def _sweep(self) -> None:
        """Ends what has used up its time."""
        now_s = time.monotonic()
        if now_s - self._swept_at_s < self._sweep_every_s:
            return
        self._swept_at_s = now_s
        for transfer in list(self._busy.values()):
            if now_s - transfer.started_at_s - transfer.held_by(now_s) >= self._total_timeout_s:
                told = f"not done within fetcher.total_timeout_s = {self._total_timeout_s:g}"
                self._end(transfer.curl, TIMEOUT_TOTAL, told)
            elif now_s - transfer.measured_at_s >= self._slow_s and transfer.was_slow(now_s, self._slow_bytes):
                told = f"fewer than fetcher.slow_bytes_per_s for fetcher.slow_s = {self._slow_s:g}"
                self._end(transfer.curl, TOO_SLOW, told)

    def _retire(self, curl: pycurl.Curl) -> None:
        transfer = self._busy.pop(curl)
        if transfer.is_paused:
            self._paused.remove(transfer)
        self._multi.remove_handle(curl)
        transfer.exchange = None  # a handle at rest must not keep a page in memory
        self._idle.append(transfer)

    def _watch(self, what: int, descriptor: int, multi, data) -> None:
        if what == pycurl.POLL_REMOVE:
            self._watched.discard(descriptor)  # but left in the epoll: a kept connection is watched again soon
            return
        events = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)
        self._watched.add(descriptor)
        try:
            self._epoll.modify(descriptor, events)
        except FileNotFoundError:  # a new socket, or one whose number a closed one had
            try:
                self._epoll.register(descriptor, events)
            except OSError as error:  # libcurl's callbacks must not raise
                self._failure = error

    def _forget(self, descriptor: int) -> None:
        """Takes a kept connection out of the epoll on which something happens that nobody waits for: its server closes it."""
        try:
            self._epoll.unregister(descriptor)
        except OSError:
            pass  # closed meanwhile, which takes it out as well

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

    def __init__(
        self, options: dict, is_allowed: Callable[[str], bool], bandwidth: Bandwidth, paused: deque["Transfer"]
    ):
        self._is_allowed = is_allowed
        self._bandwidth = bandwidth
        self._paused = paused
        self._trouble = ""  # what our own callbacks had against it
        self._failure: OSError | None = None
        self._settings: tuple | None = None  # that the handle has from its last exchange
        self.exchange: Exchange | None = None
        self.curl = pycurl.Curl()
        for option, value in options.items():
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._take_body)
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._before_request)

    def prepare(self, exchange: Exchange, now_s: float) -> None:
        self.exchange, self._trouble, self._failure = exchange, "", None
        self.started_at_s = self.measured_at_s = now_s
        self._held_s = self._measured_held_s = 0.0  # in pauses that are over
        self._paused_at_s: float | None = None
        self._measured_bytes = 0
        origin, setopt = exchange.origin, self.curl.setopt
        setopt(pycurl.URL, origin.url)
        setopt(pycurl.REQUEST_TARGET, exchange.target)
        setopt(pycurl.CONNECT_TO, origin.connect_to)
        setopt(pycurl.HEADERFUNCTION, exchange.take_header)
        if (settings := (origin.is_tls, exchange.keeps, exchange.headers, origin.agent)) == self._settings:
            return  # most requests differ from the one before by no more than the above
        self._settings = settings
        setopt(pycurl.USERAGENT, origin.agent)
        setopt(pycurl.HTTPHEADER, exchange.headers)
        setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if origin.is_tls else pycurl.CURL_HTTP_VERSION_1_1)
        setopt(pycurl.FORBID_REUSE, not exchange.keeps)

    @property
    def is_paused(self) -> bool:
        return self._paused_at_s is not None

    def held_by(self, now_s: float) -> float:
        """For how long it has been paused in all."""
        return self._held_s + (now_s - self._paused_at_s if self.is_paused else 0.0)

    def resume(self) -> None:
        """Takes the piece that waits, and reads on; pycurl.error where nothing more is wanted of the answer."""
        self._held_s, self._paused_at_s = self.held_by(time.monotonic()), None
        self.curl.pause(pycurl.PAUSE_CONT)

    def was_slow(self, now_s: float, least_bytes: float) -> bool:
        """Whether less came since the last measurement than should have; a time in which we held back does not count."""
        received, held_s = self.exchange.received_bytes, self.held_by(now_s)
        slow = received - self._measured_bytes < least_bytes and held_s == self._measured_held_s
        self.measured_at_s, self._measured_bytes, self._measured_held_s = now_s, received, held_s
        return slow

    def finish(self, trouble: str, message: str) -> Exchange:
        if self._failure is not None:
            raise self._failure
        exchange, getinfo = self.exchange, self.curl.getinfo
        connected_s = getinfo(pycurl.APPCONNECT_TIME if exchange.origin.is_tls else pycurl.CONNECT_TIME)
        self._bandwidth.take(exchange.header_bytes)
        exchange.times_ms["connect"] = round(connected_s * 1000)
        exchange.times_ms["first_byte"] = round(getinfo(pycurl.STARTTRANSFER_TIME) * 1000)
        exchange.times_ms["total"] = round((time.monotonic() - self.started_at_s) * 1000)
        if trouble in BROKEN_OFF and exchange.origin.is_tls and not exchange.is_sent and getinfo(pycurl.CONNECT_TIME):
            trouble = TLS  # in the middle of the handshake
        exchange.end(self._trouble or trouble, message)
        return exchange

    def _open_socket(self, purpose: int, address) -> socket.socket | int:
        if self._is_second_sending():
            return pycurl.SOCKET_BAD
        if address.family not in (socket.AF_INET, socket.AF_INET6) or not self._is_allowed(address.addr[0]):
            self._trouble = FORBIDDEN_ADDRESS
            return pycurl.SOCKET_BAD
        try:
            return socket.socket(address.family, address.socktype, address.protocol)
        except OSError as error:  # our own lack, and nobody else's; libcurl's callbacks must not raise
            self._failure = error
            return pycurl.SOCKET_BAD

    def _before_request(self, address: str, *_) -> int:
        """Called with a connection, new or kept, just before a request goes out on it."""
        if self._is_second_sending():
            return pycurl.PREREQFUNC_ABORT
        self.exchange.is_sent = True
        return pycurl.PREREQFUNC_OK

    def _is_second_sending(self) -> bool:
        """Whether libcurl is about to repeat a request by itself, because the connection that it had kept was dead."""
        if self.exchange.is_sent:
            self.exchange.was_cut_off = True
            self._trouble = DISCONNECT
        return self.exchange.is_sent

    def _take_body(self, piece: bytes) -> int | None:
        if self._bandwidth.is_limited:
            now_s = time.monotonic()
            if self._bandwidth.wait_s(now_s) > 0:
                self._paused_at_s = now_s
                self._paused.append(self)
                return pycurl.WRITEFUNC_PAUSE
            self._bandwidth.take(len(piece))
        try:
            return self.exchange.take_body(piece)
        except OSError as error:  # a body that had to go to disk; libcurl's callbacks must not raise
            self._failure = error
            return STOP
