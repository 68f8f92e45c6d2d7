"""Servers that accept, read the request and never answer: the addresses of a hosts file, all on one port.

    python -m bench.fetcher.slow_server HOSTS_FILE COUNT

It prints `listening ADDRESS:PORT`, and `open MS` (since 1970) once COUNT of the addresses have been asked something.
"""

import resource
import selectors
import socket
import sys
import time
from pathlib import Path

READ_BYTES = 65_536


def listen(addresses: list[str]) -> list[socket.socket]:
    """A listening socket for each address; the first chooses the port."""
    listeners, port = [], 0
    for address in addresses:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(16)
        listener.setblocking(False)
        port = listener.getsockname()[1]
        listeners.append(listener)
    return listeners


def serve(listeners: list[socket.socket], count: int) -> None:
    asked: set[str] = set()
    with selectors.DefaultSelector() as selector:
        for listener in listeners:
            selector.register(listener, selectors.EVENT_READ, True)
        while True:
            for key, _ in selector.select():
                address = take(selector, key.fileobj, is_listener=key.data)
                if address and address not in asked:
                    asked.add(address)
                    if len(asked) == count:
                        print(f"open {time.time_ns() // 1_000_000}", flush=True)


def take(selector: selectors.BaseSelector, ready: socket.socket, is_listener: bool) -> str:
    """Accepts, or reads; the address that was asked something, if one was."""
    try:
        if is_listener:
            connection, _ = ready.accept()
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ, False)
            return ""
        if ready.recv(READ_BYTES):
            return ready.getsockname()[0]
    except BlockingIOError:
        return ""
    except OSError:
        pass
    if not is_listener:  # the asker has given up
        selector.unregister(ready)
        ready.close()
    return ""


def main() -> None:
    addresses = [line.split()[0] for line in Path(sys.argv[1]).read_text().splitlines()]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listeners = listen(addresses)
    print(f"listening {addresses[0]}:{listeners[0].getsockname()[1]}", flush=True)
    serve(listeners, int(sys.argv[2]))


if __name__ == "__main__":
    main()
