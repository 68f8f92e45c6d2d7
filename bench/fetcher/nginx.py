"""nginx on loopback: one worker, one port, an address for each name."""

import grp
import os
import pwd
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.fetcher.processes import READY_MAX_S, last_line, running
from contract.errors import BadConfiguration, TryLater

PROGRAMS = ("nginx", "wrk")

CONFIGURATION = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
user {user} {group};
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 8192; }}
http {{
    types {{ text/html html htm; }}
    default_type text/plain;
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 600s;
    keepalive_requests 100000000;
    open_file_cache max=20000 inactive=600s;
    open_file_cache_valid 600s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
{listen}
        root "{root}";
        location = /robots.txt {{ return 200 "User-agent: *\\nDisallow: /private/\\nDisallow: /cgi-bin/\\n"; }}
    }}
}}
"""


class Site(NamedTuple):
    name: str
    address: str


def make_sites(prefix: str, second_byte: int, count: int) -> list[Site]:
    """Names with an address each: 127.B.1.1 up to 127.B.1.200, then 127.B.2.1 and so on."""
    return [Site(f"{prefix}-{number:04d}.bench.test", f"127.{second_byte}.{1 + number // 200}.{1 + number % 200}") for number in range(count)]


def write_hosts(path: Path, sites: list[Site]) -> None:
    path.write_text("".join(f"{site.address} {site.name}\n" for site in sites))


def check_programs() -> None:
    search = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"  # where Debian has nginx, and a user's PATH often not
    missing = [name for name in PROGRAMS if not shutil.which(name, path=search)]
    if missing:
        raise BadConfiguration(f"{' and '.join(missing)}: not installed; apt-get install nginx wrk")
    os.environ["PATH"] = search


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


@contextmanager
def serving(root: Path, sites: list[Site], folder: Path) -> Iterator[int]:
    """nginx while the block lasts; gives the port."""
    folder.mkdir()
    port = free_port(sites[0].address)
    listen = "\n".join(f"        listen {site.address}:{port} backlog=4096;" for site in sites)
    configuration = folder / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(
        folder=folder, root=root, listen=listen, user=pwd.getpwuid(os.geteuid()).pw_name, group=grp.getgrgid(os.getegid()).gr_name))
    log = folder / "nginx.log"
    with running(["nginx", "-e", "stderr", "-p", folder, "-c", configuration], log) as process:
        ends_at_s = time.monotonic() + READY_MAX_S
        while not accepts(sites[-1].address, port):
            if process.poll() is not None or time.monotonic() > ends_at_s:
                raise TryLater(f"nginx did not come up: {last_line(log)}")
            threading.Event().wait(0.02)
        yield port


def accepts(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0
