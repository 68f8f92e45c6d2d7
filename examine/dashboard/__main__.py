"""dashboard: shows a crawl in a browser while it runs, with the pictures of bin/report.

  bin/dashboard --crawl DIR                    prints an address to open, and serves until Ctrl-C
  bin/dashboard --crawl DIR --port 9000        on that port (default 8765; 0: any free one)
  bin/dashboard --crawl DIR --listen 0.0.0.0   for other machines too: the address then has a token

The page shows the ring with what each cycle in flight is doing, rates, limits, errors with examples, slowest servers,
blocks and the disk, and renews itself every two seconds. The pictures follow after each commit. The box on top takes a
URL, says what became of it as bin/why does, and shows the stored page: its text as bin/page --text prints it, and its
source.

It reads files only, needs no lock and no network, and does not disturb the crawl. On loopback every user of this
machine may look. With --listen of another address a token is required: it changes with each start, unless
--token-file names a file with one of 16 characters or more. It is sent unencrypted; use a tunnel through networks that
you do not trust.

Example: bin/dashboard --crawl demo/crawl
"""

import logging
import secrets
import signal
import socket
from ipaddress import ip_address
from pathlib import Path

import waitress

from contract.command import at_least, make_parser, run
from contract.crawl_folder import open_folder
from contract.errors import TryLater, Usage
from contract.lines import say
from examine.dashboard.application import Dashboard
from examine.dashboard.watch import Watch

NAME = "dashboard"
LOOPBACK, PORT, PORT_MAX = "127.0.0.1", 8765, 65_535
TOKEN_LEAST = 16
THREADS, HEADER_MAX_BYTES = 8, 1 << 15
# A connection that is silent so long is closed. Until then it takes one of so many places, and no thread: only whoever
# opens hundreds at once keeps others out, for that time.
CONNECTIONS_MAX, SILENT_MAX_S, LOOK_EVERY_S = 400, 10, 1


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--port", type=at_least(0, PORT_MAX), default=PORT, metavar="N", help="default: 8765")
    parser.add_argument("--listen", default=LOOPBACK, metavar="ADDRESS", help="an IP address; default: 127.0.0.1")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="the token that other machines need")
    arguments = parser.parse_args()
    address = read_address(arguments.listen)
    token = "" if address.is_loopback else read_token(arguments.token_file)
    crawl = open_folder(arguments.crawl)
    watch = Watch(crawl)
    watch.status()  # a folder that cannot be read is an error at once
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with listen(address, arguments.port) as listener:
        options = {"threads": THREADS, "connection_limit": CONNECTIONS_MAX, "ident": None}
        options |= {"channel_timeout": SILENT_MAX_S, "cleanup_interval": LOOK_EVERY_S, "asyncore_use_poll": True}
        options |= {"max_request_header_size": HEADER_MAX_BYTES, "max_request_body_size": 1}
        server = waitress.create_server(Dashboard(watch, token), sockets=[listener], **options)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a browser asks for all pictures at once
        watch.start()
        host = f"[{address}]" if address.version == 6 else address
        say(f"http://{host}:{listener.getsockname()[1]}/" + (f"?token={token}" if token else ""))
        try:
            server.run()
        except KeyboardInterrupt:
            pass
        finally:
            watch.stop()
            server.close()
    return 0


def read_address(text: str):
    try:
        return ip_address(text.strip("[]"))
    except ValueError:
        raise Usage(f"--listen: expected an IP address such as 127.0.0.1 or 0.0.0.0, found {text}") from None


def read_token(path: Path | None) -> str:
    if path is None:
        return secrets.token_urlsafe()
    token = path.read_text("utf-8", "replace").strip()
    if len(token) < TOKEN_LEAST or not token.isascii() or not token.replace("-", "").replace("_", "").isalnum():
        raise Usage(f"{path}: expected a token of {TOKEN_LEAST} or more letters, digits, - and _, found another text")
    return token


def listen(address, port: int) -> socket.socket:
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((str(address), port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise TryLater(f"{address} port {port}: {error.strerror}; name another one with --port or --listen") from None
    return listener


if __name__ == "__main__":
    run(main, NAME)
