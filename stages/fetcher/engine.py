"""Transfers by libcurl, many at once in one thread: the only module that imports pycurl.

Theory. libcurl says which sockets to watch and when to be called next; readiness.py waits for both. When something is
ready, libcurl is called for it. Exchanges that ended are passed to `on_done`, outside of libcurl's callbacks.

libcurl gets the address to connect to and the request target to send: it never resolves a name, parses a path,
follows a redirect, keeps a cookie or uses a proxy. Every address is judged once more as its socket is made. When a kept
connection turns out dead, libcurl would send the request a second time by itself, without the pause that we owe the
server. So a second sending is refused, and the exchange ends as one that was cut off.

While the bandwidth is used up, a transfer is paused as soon as the next piece of its body arrives. libcurl keeps that
piece, and the transfer resumes in its turn. So the bandwidth is overdrawn by at most one read per transfer, however
many have something to read at once. Time limits for an answer are ours (time_limits.py), not libcurl's.
"""

import errno
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable

import pycurl

from contract.config import Fetcher
from contract.errors import TryLater
from stages.fetcher.bandwidth import Bandwidth
from stages.fetcher.exchange import STOP, Exchange
from stages.fetcher.outage import NO_ROUTE
from stages.fetcher.readiness import ERROR, HANGUP, READABLE, WRITABLE, Readiness
from stages.fetcher.reasons import (
    BAD_HTTP,
    CONNECTION_REFUSED,
    DISCONNECT,
    DNS,
    EMPTY,
    FORBIDDEN_ADDRESS,
    TIMEOUT_CONNECT,
    TLS,
    TOO_LONG_HEADERS,
    UNREACHABLE,
)
from stages.fetcher.time_limits import Stopwatch, TimeLimits

READ_BYTES = 64 << 10  # most pages in one piece
READ_SLOWLY_BYTES = 16 << 10  # under a limit of bandwidth, which can be overdrawn by one piece
# What an observer gets: libcurl's own words, the request as it goes out, the head as it comes in.
NOTE, SENT, RECEIVED = "note", "sent", "received"
OBSERVED = {pycurl.INFOTYPE_TEXT: NOTE, pycurl.INFOTYPE_HEADER_OUT: SENT, pycurl.INFOTYPE_HEADER_IN: RECEIVED}
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
# libcurl gives one code (56) to broken connections and to these, and only the message distinguishes them.
REASONS_BY_MESSAGE = (("Too large response headers", TOO_LONG_HEADERS), ("chunk", BAD_HTTP))


def reason_of(code: int, message: str, os_error: int = 0) -> str:
    """Why a transfer was interrupted, whatever libcurl's error is."""
    if code == pycurl.E_COULDNT_CONNECT and os_error == errno.ECONNREFUSED:
        return CONNECTION_REFUSED
    if code == pycurl.E_RECV_ERROR:
        for part, reason in REASONS_BY_MESSAGE:
            if part in message:
                return reason
    return REASONS.get(code, BAD_HTTP)


def find_certificates() -> dict[int, str]:
    """The options that name the system's certificates: those built into a wheel are another system's (pycurl #834)."""
    paths = ssl.get_default_verify_paths()  # honours SSL_CERT_FILE and SSL_CERT_DIR
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
    """The options that all transfers share."""
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
        observe: Callable[[str, bytes], None] | None = None,
    ):
        self._options = make_options(config)
        if observe is not None:
            self._options |= {
                pycurl.VERBOSE: 1,
                pycurl.DEBUGFUNCTION: lambda kind, data: kind in OBSERVED and observe(OBSERVED[kind], data),
            }
        self._is_allowed = is_allowed
        self._on_done = on_done
        self._bandwidth = Bandwidth(config.bandwidth_max_bytes_per_s)
        self._limits = TimeLimits(config)
        self._checked_at_s = time.monotonic()
        self._paused: deque[Transfer] = deque()  # for want of bandwidth, in the order in which they were paused
        self._readiness = Readiness()
        self._timer_at_s: float | None = None
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
        """Waits until a transfer can continue, wake() is called or the time is over; then does what there is to do."""
        self._resume_paused()
        now_s = time.monotonic()
        if (hold_s := self._bandwidth.wait_s(now_s)) > 0:
            wait_s = min(wait_s, hold_s)
        if self._timer_at_s is not None:
            wait_s = min(wait_s, self._timer_at_s - now_s)
        for descriptor, events in await self._readiness.wait(wait_s):
            if self._readiness.is_watched(descriptor):  # an event before this one may have ended that
                self._multi.socket_action(descriptor, to_curl(events))
            else:
                self._readiness.forget(descriptor)
        if self._timer_at_s is not None and time.monotonic() >= self._timer_at_s:
            self._timer_at_s = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        if self._readiness.failure is not None:
            raise self._readiness.failure
        self._collect()
        self._check_time()

    def _resume_paused(self) -> None:
        """Lets paused transfers read again, in turn, while there is bandwidth."""
        while self._paused and self.has_bandwidth:
            transfer = self._paused.popleft()
            try:
                transfer.resume()
            except pycurl.error as error:  # our own callback wants no more of it
                self._end(transfer.curl, reason_of(error.args[0], str(error)), str(error))

    def wake(self) -> None:
        self._readiness.wake()

    def abort(self) -> list[Exchange]:
        """Interrupts what is in flight, and returns it."""
        exchanges = [transfer.exchange for transfer in self._busy.values()]
        for curl in list(self._busy):
            self._retire(curl)
        return exchanges

    def close(self) -> None:
        self.abort()
        self._multi.close()  # before the handles: kept connections know those that they were made by
        for transfer in self._idle:
            transfer.curl.close()
        self._readiness.close()

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
                        "with a smaller fetcher.connections_max if that repeats itself"
                    )
                details = f"{message} ({os.strerror(os_error)})" if os_error else message
                self._busy[curl].exchange.has_no_route = code == pycurl.E_COULDNT_CONNECT and os_error in NO_ROUTE
                self._end(curl, reason_of(code, message, os_error), details)

    def _end(self, curl: pycurl.Curl, trouble: str, message: str = "") -> None:
        transfer = self._busy[curl]
        exchange = transfer.finish(trouble, message)
        self._retire(curl)
        self._on_done(exchange)

    def _check_time(self) -> None:
        """Ends the transfers that have used up their time."""
        now_s = time.monotonic()
        if now_s - self._checked_at_s < self._limits.check_every_s:
            return
        self._checked_at_s = now_s
        for transfer in list(self._busy.values()):
            exchange = transfer.exchange
            excess = self._limits.find_excess(transfer.stopwatch, now_s, exchange.received_bytes, exchange.is_sent)
            if excess is not None:
                self._end(transfer.curl, *excess)

    def _retire(self, curl: pycurl.Curl) -> None:
        transfer = self._busy.pop(curl)
        if transfer.stopwatch.is_paused:
            self._paused.remove(transfer)
        self._multi.remove_handle(curl)
        transfer.exchange = None  # a handle at rest must not keep a page in memory
        self._idle.append(transfer)

    def _watch(self, what: int, descriptor: int, multi, data) -> None:
        if what == pycurl.POLL_REMOVE:
            self._readiness.unwatch(descriptor)
            return
        events = (READABLE if what & pycurl.POLL_IN else 0) | (WRITABLE if what & pycurl.POLL_OUT else 0)
        self._readiness.watch(descriptor, events)

    def _set_timer(self, timeout_ms: int) -> None:
        self._timer_at_s = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000


def to_curl(events: int) -> int:
    """The events of a socket in libcurl's bits; a closed one counts as readable, so that what came before is read."""
    bits = 0
    if events & (READABLE | HANGUP):
        bits |= pycurl.CSELECT_IN
    if events & WRITABLE:
        bits |= pycurl.CSELECT_OUT
    if events & ERROR:
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
        self._trouble = ""  # why our own callbacks ended it
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
        self.stopwatch = Stopwatch(now_s)
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

    def resume(self) -> None:
        """Takes the piece that waits, and reads again; pycurl.error where nothing more is wanted of the answer."""
        self.stopwatch.resume(time.monotonic())
        self.curl.pause(pycurl.PAUSE_CONT)

    def finish(self, trouble: str, message: str) -> Exchange:
        if self._failure is not None:
            raise self._failure
        exchange, getinfo = self.exchange, self.curl.getinfo
        connected_s = getinfo(pycurl.APPCONNECT_TIME if exchange.origin.is_tls else pycurl.CONNECT_TIME)
        self._bandwidth.take(exchange.header_bytes)
        exchange.times_ms["connect"] = round(connected_s * 1000)
        exchange.times_ms["first_byte"] = round(getinfo(pycurl.STARTTRANSFER_TIME) * 1000)
        exchange.times_ms["total"] = round((time.monotonic() - self.stopwatch.started_at_s) * 1000)
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
        except OSError as error:  # our own machine's fault; libcurl's callbacks must not raise
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
                self.stopwatch.pause(now_s)
                self._paused.append(self)
                return pycurl.WRITEFUNC_PAUSE
            self._bandwidth.take(len(piece))
        try:
            return self.exchange.take_body(piece)
        except OSError as error:  # a body that had to go to disk; libcurl's callbacks must not raise
            self._failure = error
            return STOP
