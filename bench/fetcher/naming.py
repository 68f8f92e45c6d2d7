"""How the fetcher learns the addresses of the names: from a DNS server on loopback, or from a hosts file."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import read_listening, running

TTL_S = 300


@contextmanager
def naming(kind: str, hosts: Path, folder: Path) -> Iterator[str]:
    """The setting of the fetcher that makes it know the names of a hosts file, while the block lasts."""
    if kind == "hosts":
        yield f"fetcher.hosts_file={hosts}"
        return
    log = folder / "names.log"
    command = [
        sys.executable,
        "-P",
        "-m",
        "synthweb",
        "names",
        hosts,
        "--address",
        "127.0.0.1",
        "--port",
        0,
        "--ttl",
        TTL_S,
    ]
    with running(command, log) as process:
        yield f'fetcher.dns_servers=["{read_listening(process, log)}"]'
