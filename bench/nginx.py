"""nginx on loopback: one worker, one port, one address per name; one folder of files for all names, or one per name."""

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

from bench.processes import READY_MAX_S, last_line, running
from contract.errors import BadConfiguration, TryLater

ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /cgi-bin/\n"
MEDIA_TYPES = Path("/etc/nginx/mime.types")  # of Debian's nginx
# Host and port, path and query, status, type, the page with the link, and the agent that asked.
LOG_FORMAT = "$http_host\t$request_uri\t$status\t$sent_http_content_type\t$http_referer\t$http_user_agent"

CONFIGURATION = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
user {user} {group};
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 8192; }}
http {{
    {types}
    default_type text/plain;
    {access_log}
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 600s;
    keepalive_requests 100000000;
    open_file_cache max=10000 inactive=600s;
    open_file_cache_valid 600s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{servers}
}}
"""

SERVER = """\
    server {{
{listen}
        server_name {names};{certificate}
        root "{root}";
        location = /robots.txt {{ return 200 "{robots}"; }}
    }}
"""

CERTIFICATE = """
        ssl_certificate {path};
        ssl_certificate_key {path};"""


class Site(NamedTuple):
    name: str
    address: str


class Host(NamedTuple):
    """Files that are served. The first host of an address answers, unless another one there has the name asked for."""

    root: Path
    addresses: list[str]
    name: str = "_"
    robots: str = ROBOTS
    certificate: Path | None = None  # with its key, in one PEM file; the host then speaks TLS only


def make_sites(prefix: str, second_byte: int, count: int) -> list[Site]:
    """Names with an address each: 127.B.1.1 up to 127.B.1.200, then 127.B.2.1 and so on."""
    return [
        Site(f"{prefix}-{number:04d}.bench.test", f"127.{second_byte}.{1 + number // 200}.{1 + number % 200}")
        for number in range(count)
    ]


def write_hosts(path: Path, sites: list[Site]) -> None:
    path.write_text("".join(f"{site.address} {site.name}\n" for site in sites))


def check_programs(*programs: str) -> None:
    # Debian has nginx in /usr/sbin, which a user's PATH often lacks.
    search = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    missing = [name for name in programs if not shutil.which(name, path=search)]
    if missing:
        raise BadConfiguration(f"{' and '.join(missing)}: not installed; apt-get install {' '.join(programs)}")
    os.environ["PATH"] = search


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


@contextmanager
def serving(hosts: list[Host], folder: Path, access_log: Path | None = None) -> Iterator[int]:
    """nginx while the block lasts; gives the port. With an access log, files have the media types of Debian's nginx."""
    folder.mkdir()
    last = hosts[-1].addresses[-1]
    port = free_port(last)
    configuration = folder / "nginx.conf"
    configuration.write_text(write_configuration(hosts, port, folder, access_log))
    log = folder / "nginx.log"
    with running(["nginx", "-e", "stderr", "-p", folder, "-c", configuration], log) as process:
        ends_at_s = time.monotonic() + READY_MAX_S
        while not accepts(last, port):
            if process.poll() is not None or time.monotonic() > ends_at_s:
                raise TryLater(f"nginx did not come up: {last_line(log)}")
            threading.Event().wait(0.02)
        yield port


def write_configuration(hosts: list[Host], port: int, folder: Path, access_log: Path | None) -> str:
    seen: set[str] = set()
    servers = []
    for host in hosts:
        tls = " ssl" if host.certificate else ""
        listen = [
            f"        listen {address}:{port}{tls}{'' if address in seen else ' backlog=4096'};"
            for address in host.addresses
        ]
        seen.update(host.addresses)  # nginx takes the options of a socket once
        robots = host.robots.replace("\n", "\\n")
        certificate = CERTIFICATE.format(path=host.certificate) if host.certificate else ""
        servers.append(
            SERVER.format(
                listen="\n".join(listen), names=host.name, root=host.root, robots=robots, certificate=certificate
            )
        )
    logging = f"log_format asked escape=none '{LOG_FORMAT}'; access_log {access_log} asked;"
    return CONFIGURATION.format(
        folder=folder,
        servers="".join(servers),
        access_log=logging if access_log else "access_log off;",
        types=f"include {MEDIA_TYPES};" if access_log else "types { text/html html htm; }",
        user=pwd.getpwuid(os.geteuid()).pw_name,
        group=grp.getgrgid(os.getegid()).gr_name,
    )


def accepts(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0
