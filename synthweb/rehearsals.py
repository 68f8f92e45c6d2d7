"""The commands names, hostile and latency: servers that a crawler meets outside of any web."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from synthweb.ending import held_signals, wait_for_end
from synthweb.hostile import HostileServer, Visit
from synthweb.latency import LATENCY_MAX_MS, LATENCY_MIN_MS, PAGES, SERVERS_MAX, LatencyServers
from synthweb.manners import MANNERS
from synthweb.names import NameServer, read_hosts
from synthweb.record import monotonic_ms, remove_ready, replace_text, write_hosts

EXIT_TRY_LATER, EXIT_INPUT = 75, 65

NAMES_MANUAL = """Answers questions for addresses (DNS, UDP and TCP) from a hosts file.

    python -m synthweb names HOSTS_FILE [--address 127.0.0.1] [--port 0] [--ttl 300] [--until-eof]

The first line on standard output is `listening ADDRESS:PORT`. A and AAAA come from the file, in the form of hosts(5);
any other name is NXDOMAIN. --ttl is the time to live of every answer in seconds, those of nothing included. It serves
until SIGTERM, SIGINT or, with --until-eof, the end of standard input.

Exit codes: 0 done, 64 usage, 65 the file is no hosts file, 75 the port is in use.
"""

HOSTILE_MANUAL = """Serves bad manners on loopback, each at a path, a name and an address of its own.

    python -m synthweb hostile --state DIR [--port 0] [--tls] [--tls-port 0] [--at-once] [--until-eof]

It keeps in DIR:
  hosts          address and name of each manner: NAME.hostile.test
  ready.json     port, tls_port, pid, urls (of each manner); there exactly while it listens
  access.jsonl   one line a request: started_ms, ended_ms (monotonic), manner, scheme, address, host, target, peer,
                 connection, open_connections; host and target are empty where a connection was ended before a request
  authority.pem  with --tls: what a client must trust to accept the certificates that are good
--tls listens for TLS on a second port (it needs the package trustme). --at-once lets manners of the kinds accept and
handshake act on the first connection; else they wait until a robots.txt (404) was read from their address.
It serves until SIGTERM, SIGINT or, with --until-eof, the end of standard input.

Exit codes: 0 done, 64 usage, 75 the port is in use.

Manners, at http://NAME.hostile.test:PORT/NAME (robots: at /robots.txt of that host; handshake: over TLS):
"""

LATENCY_MANUAL = """Serves thousands of servers on loopback, each with a latency of its own, in one cheap process.

    python -m synthweb latency --state DIR [--servers 5000] [--seed 1] [--port 0] [--until-eof]
                               [--latency-min-ms 50] [--latency-max-ms 2000] [--pages 3]

Server n is latency-n.test, with an address of its own in 127/8; all are on one port. Each answers any target with a \
small
page, and robots.txt with 404, after its latency, which is drawn from the seed (log-uniform between the two bounds).
From its page / links lead to /1, /2 and so on, as many as --pages says. Connections are kept. It keeps in DIR:
  hosts         address and name of each server
  ready.json    port, pid, seed, latencies_ms (of each name); there exactly while it listens
  access.jsonl  as `serve` writes it, but in pieces of 64 KB: whole only once it has ended
It serves until SIGTERM, SIGINT or, with --until-eof, the end of standard input, and then says on standard error how \
many
requests it answered and in how many seconds of CPU.

Exit codes: 0 done, 64 usage, 75 the port is in use.
"""


def add_commands(commands) -> None:
    """The commands with their options; `describe` gives a command's manual."""
    names = commands.add_parser("names")
    names.set_defaults(describe=lambda: NAMES_MANUAL)
    names.add_argument("hosts_file", type=Path)
    names.add_argument("--address", default="127.0.0.1")
    names.add_argument("--ttl", type=whole(0, 2**31 - 1), default=300)
    hostile = commands.add_parser("hostile")
    hostile.set_defaults(describe=describe_hostile)
    hostile.add_argument("--state", type=Path, required=True)
    hostile.add_argument("--tls", action="store_true")
    hostile.add_argument("--tls-port", type=whole(0, 65_535), default=0)
    hostile.add_argument("--at-once", action="store_true")
    latency = commands.add_parser("latency")
    latency.set_defaults(describe=lambda: LATENCY_MANUAL)
    latency.add_argument("--state", type=Path, required=True)
    latency.add_argument("--servers", type=whole(1, SERVERS_MAX), default=5_000)
    latency.add_argument("--seed", type=int, default=1)
    latency.add_argument("--latency-min-ms", type=whole(1, 600_000), default=LATENCY_MIN_MS)
    latency.add_argument("--latency-max-ms", type=whole(1, 600_000), default=LATENCY_MAX_MS)
    latency.add_argument("--pages", type=whole(0, 1_000_000), default=PAGES)
    for command in (names, hostile, latency):
        command.add_argument("--port", type=whole(0, 65_535), default=0)
        command.add_argument("--until-eof", action="store_true")


def whole(least: int, most: int):
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and least <= int(text[:20]) <= most):
            raise argparse.ArgumentTypeError(f"expected {least} to {most}, found {text}")
        return int(text)

    return read


def describe_hostile() -> str:
    width = max(map(len, MANNERS))
    return HOSTILE_MANUAL + "".join(
        f"  {manner.name:{width}}  {'' if manner.moment == 'path' else manner.moment + ': '}{manner.does}\n"
        for manner in MANNERS.values()
    )


def serve_names(options: argparse.Namespace) -> int:
    try:
        hosts = read_hosts(options.hosts_file)
    except (OSError, ValueError) as error:
        return tell(f"cannot read the names: {error}", EXIT_INPUT)
    with held_signals():
        try:
            server = NameServer(hosts, address=options.address, port=options.port, ttl_s=options.ttl)
        except OSError as error:
            return tell(f"cannot serve: {error}", EXIT_TRY_LATER)
        with server:
            print(f"listening {server.address}:{server.port}", flush=True)
            wait_for_end(options.until_eof)
    return 0


def serve_hostile(options: argparse.Namespace) -> int:
    folder: Path = options.state
    folder.mkdir(parents=True, exist_ok=True)
    remove_ready(folder)
    with open(folder / "access.jsonl", "a", encoding="utf-8", buffering=1) as record, held_signals():
        try:
            server = HostileServer(
                port=options.port,
                tls_port=options.tls_port,
                tls=options.tls,
                robots_first=not options.at_once,
                on_visit=lambda visit: record.write(describe_visit(visit)),
            )
        except OSError as error:
            return tell(f"cannot serve: {error}", EXIT_TRY_LATER)
        with server:
            write_hosts(server.hosts(), folder)
            if options.tls:
                replace_text(folder / "authority.pem", server.certificates.authority_pem.decode("ascii"))
            urls = {
                name: server.url(name)
                for name, manner in MANNERS.items()
                if options.tls or manner.moment != "handshake"
            }
            ready = {
                "port": server.ports["http"],
                "tls_port": server.ports.get("https"),
                "pid": os.getpid(),
                "urls": urls,
            }
            replace_text(folder / "ready.json", json.dumps(ready) + "\n")
            try:
                wait_for_end(options.until_eof)
            finally:
                remove_ready(folder)
    return 0


def describe_visit(visit: Visit) -> str:
    """A line of access.jsonl; one write, so that lines of two threads do not mix."""
    return (
        json.dumps(
            {
                "started_ms": visit.started_s * 1000,
                "ended_ms": visit.ended_s * 1000,
                "manner": visit.manner,
                "scheme": visit.scheme,
                "address": visit.address,
                "host": visit.host,
                "target": visit.target,
                "peer": visit.peer,
                "connection": visit.connection,
                "open_connections": visit.open_connections,
            }
        )
        + "\n"
    )


def serve_latency(options: argparse.Namespace) -> int:
    folder: Path = options.state
    folder.mkdir(parents=True, exist_ok=True)
    remove_ready(folder)
    wall_ahead_ms = time.time() * 1000 - monotonic_ms()
    with open(folder / "access.jsonl", "a", encoding="utf-8", buffering=1 << 16) as record, held_signals():

        def note(started_ms, ended_ms, address, host, target, status, agent) -> None:
            line = {
                "started_ms": started_ms,
                "ended_ms": ended_ms,
                "started_wall_ms": started_ms + wall_ahead_ms,
                "address": address,
                "host": host,
                "target": target,
                "status": status,
                "user_agent": agent,
            }
            record.write(json.dumps(line) + "\n")

        try:
            servers = LatencyServers(
                options.servers,
                options.seed,
                port=options.port,
                note=note,
                latencies_ms=(options.latency_min_ms, options.latency_max_ms),
                pages=options.pages,
            )
        except OSError as error:
            return tell(f"cannot serve: {error}", EXIT_TRY_LATER)
        with servers:
            write_hosts(servers.hosts(), folder)
            ready = {
                "port": servers.port,
                "pid": os.getpid(),
                "seed": options.seed,
                "latencies_ms": servers.latencies_ms,
            }
            replace_text(folder / "ready.json", json.dumps(ready) + "\n")
            try:
                wait_for_end(options.until_eof)
            finally:
                remove_ready(folder)
    print(f"synthweb: {servers.requests} requests answered in {servers.cpu_s:.2f} s of CPU", file=sys.stderr)
    return 0


COMMANDS = {"names": serve_names, "hostile": serve_hostile, "latency": serve_latency}


def tell(message: str, code: int) -> int:
    print(f"synthweb: {message}.", file=sys.stderr)
    return code
