"""Servers that accept, read the request and never answer; each address of a hosts file, all on one port, until they are ended.

    python -m bench.fetcher.slow_server HOSTS_FILE       prints `listening ADDRESS:PORT`
"""

import resource
import selectors
import socket
import sys
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


def serve(listeners: list[socket.socket]) -> None:
    with selectors.DefaultSelector() as selector:
        for listener in listeners:
            selector.register(listener, selectors.EVENT_READ, True)
        while True:
            for key, _ in selector.select():
                take(selector, key.fileobj, key.data)


def take(selector: selectors.BaseSelector, ready: socket.socket, is_listener: bool) -> None:
    try:
        if is_listener:
            connection, _ = ready.accept()
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ, False)
        elif not ready.recv(READ_BYTES):
            raise ConnectionError  # the asker has given up
    except BlockingIOError:
        return
    except OSError:
        if not is_listener:
            selector.unregister(ready)
            ready.close()


def main() -> None:
    addresses = [line.split()[0] for line in Path(sys.argv[1]).read_text().splitlines()]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listeners = listen(addresses)
    print(f"listening {addresses[0]}:{listeners[0].getsockname()[1]}", flush=True)
    serve(listeners)


if __name__ == "__main__":
    main()
