"""Serves a web: one listening socket on each of its addresses, all on one port, in one process."""

import errno
from collections import Counter
from functools import partial
from pathlib import Path

import trio

from synthweb.answer import Answer, refuse
from synthweb.changing_web import ChangingWeb
from synthweb.loopback import allow_descriptors
from synthweb.record import AccessRecord, count_asked, monotonic_ms, remove_ready, write_hosts, write_ready
from synthweb.web import Web
from synthweb.wire import HEAD_MAX_BYTES, BadRequest, Request, parse_request, write_answer

IDLE_MAX_S = 60  # a connection without a request is closed, as real servers do
PORT_TRIES = 50  # a port that is free on one address may be taken on another


class PortInUse(OSError):
    """The port is taken on at least one address of the web."""


async def serve(web: Web | ChangingWeb, state_dir: Path, *, task_status=trio.TASK_STATUS_IGNORED) -> None:
    """Serve until cancelled. Reports the web itself once it listens, moved to the port that was chosen.

    In a test: web = await nursery.start(serve, Web(1, 40, port=0), folder)
    """
    state_dir = Path(state_dir)
    state_dir.mkdir(parents=True, exist_ok=True)
    remove_ready(state_dir)
    listeners, port = await open_listeners(web.addresses(), web.port)
    web = web.at_port(port)
    write_hosts(web.hosts(), state_dir)
    record = AccessRecord(state_dir)
    asked = count_asked(state_dir)
    try:
        write_ready(web, state_dir)
        task_status.started(web)
        await trio.serve_listeners(partial(_serve_connection, web, record, asked), listeners)
    finally:
        remove_ready(state_dir)
        record.close()


async def open_listeners(addresses: list[str], port: int) -> tuple[list[trio.SocketListener], int]:
    """A listener an address on one port; port 0 means one that is free on all of them."""
    allow_descriptors(4 * len(addresses) + 256)  # as many connections, and more
    for _ in range(PORT_TRIES if port == 0 else 1):
        listeners: list[trio.SocketListener] = []
        chosen = port
        try:
            for address in addresses:
                [listener] = await trio.open_tcp_listeners(chosen, host=address)
                listeners.append(listener)
                chosen = listener.socket.getsockname()[1]
            return listeners, chosen
        except OSError as error:
            for listener in listeners:
                listener.socket.close()
            if error.errno != errno.EADDRINUSE:
                raise
    trouble = f"port {port} is in use" if port else f"each of {PORT_TRIES} free ports tried is in use"
    raise PortInUse(errno.EADDRINUSE, f"{trouble} on at least one of the {len(addresses)} addresses of the web")


async def _serve_connection(
    web: Web | ChangingWeb, record: AccessRecord, asked: Counter, stream: trio.SocketStream
) -> None:
    """Answer requests one after the other; whatever the other side does ends this connection at most."""
    address = stream.socket.getsockname()[0]
    pending = bytearray()
    stays = True
    try:
        while stays:
            started = monotonic_ms(), web.wall_ms()
            request: Request | None = None
            try:
                head = await _read_head(stream, pending)
                if head is None:
                    return
                started = monotonic_ms(), web.wall_ms()
                request = parse_request(head)
                answer = _decide(web, asked, request, address)
            except BadRequest as bad:
                answer = refuse(bad.status)
            if answer.delay_s:
                await trio.sleep(answer.delay_s)
            record.write(started, address, request, answer.status)
            if answer.silent:
                return
            data, stays = write_answer(answer, request)
            await stream.send_all(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    finally:
        await trio.aclose_forcefully(stream)


def _decide(web: Web | ChangingWeb, asked: Counter, request: Request, address: str) -> Answer:
    server = web.servers.get(request.host)
    if server is None or server.address != address:
        return refuse(421)  # asked at an address that is not the host's: the crawler mixed up its names
    asked[request.host, request.target] += 1
    attempt = asked[request.host, request.target]
    return web.respond(request, attempt)


async def _read_head(stream: trio.SocketStream, pending: bytearray) -> bytes | None:
    """The next request head, or None when the other side is done; `pending` keeps what came after it."""
    while True:
        end = pending.find(b"\r\n\r\n")
        if end >= 0:
            head = bytes(pending[:end])
            del pending[: end + 4]
            return head.lstrip(b"\r\n")
        if len(pending) > HEAD_MAX_BYTES:
            raise BadRequest(431)
        with trio.move_on_after(IDLE_MAX_S) as idle:
            data = await stream.receive_some(4096)
        if idle.cancelled_caught or not data:
            return None
        pending += data
