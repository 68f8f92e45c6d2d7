"""What idle sockets cost: the same pages with and without many servers that never answer.

There are a few more silent servers than sockets wanted, since some may not be connected yet when counting begins. Pages
that come only after the silent servers have hung up are left out of the rate, and their number is printed.
"""

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.fetcher.ours import WITHOUT_PAUSES, Answer, Ours
from bench.nginx import Site, write_hosts
from bench.processes import Child, read_listening, running
from contract.errors import TryLater

COUNTED_MIN = 0.2  # of the pages; fewer are no measurement
WAITED_MAX = 0.1
LOOK_EVERY_S = 0.1
QUIET_S = 3.0  # nothing stored for so long: the pages are done, and only the silent servers are left
PATIENCE = ("fetcher.total_timeout_s=1800.0", "fetcher.slow_s=1800.0", "fetcher.retries_max=0")


class Beside(NamedTuple):
    pages_per_s: float
    waited: int  # pages that came only after the silent servers had hung up


class Silent:
    """Servers that never answer: their port, and since when as many as are wanted have a socket open."""

    def __init__(self, process: subprocess.Popen, log: Path):
        self.port = read_listening(process, log).rpartition(":")[2]
        self.output = process.stdout
        self.hang_up = process.terminate

    def open_at_ms(self) -> int:
        os.set_blocking(self.output.fileno(), False)
        line = self.output.readline() or b""
        if not line.startswith(b"open "):
            raise TryLater("the fetcher did not hold as many idle sockets as wanted while it fetched the pages")
        return int(line.split()[1])


@contextmanager
def silent(sites: list[Site], wanted: int, folder: Path) -> Iterator[Silent]:
    """Servers that never answer, while the block lasts."""
    write_hosts(folder / "silent.hosts", sites)
    log = folder / "silent.log"
    with running(
        [sys.executable, "-P", "-m", "bench.fetcher.slow_server", folder / "silent.hosts", wanted], log
    ) as process:
        yield Silent(process, log)


def run_beside(ours: Ours, urls: list[str], sites: list[Site], wanted: int) -> Beside:
    """Fetches the list while `wanted` sockets to the silent sites, or more, are open."""
    settings = (*WITHOUT_PAUSES, *PATIENCE, f"fetcher.transfers_max={len(sites) + 500}")
    with silent(sites, wanted, ours.folder) as servers:
        child = ours.begin([f"http://{site.name}:{servers.port}/" for site in sites] + urls, settings)
        try:
            wait_until_quiet(ours, child)
            from_ms, until_ms = servers.open_at_ms(), time.time() * 1000
            servers.hang_up()  # and the fetcher comes to its end
            child.wait()
        finally:
            child.kill()
    return page_rate(ours.answers(), set(urls), from_ms, until_ms)


def run_without(ours: Ours, urls: list[str]) -> Beside:
    child = ours.begin(urls, (*WITHOUT_PAUSES, *PATIENCE))
    try:
        child.wait()
    finally:
        child.kill()
    return page_rate(ours.answers(), set(urls), 0, math.inf)


def wait_until_quiet(ours: Ours, child: Child) -> None:
    stored_bytes, quiet_s = 0, 0.0
    while not child.has_ended() and (quiet_s < QUIET_S or not stored_bytes):
        threading.Event().wait(LOOK_EVERY_S)
        now_bytes = ours.stored_bytes()
        quiet_s = quiet_s + LOOK_EVERY_S if now_bytes == stored_bytes else 0.0
        stored_bytes = now_bytes


def page_rate(answers: list[Answer], urls: set[str], from_ms: float, until_ms: float) -> Beside:
    """The rate of the pages asked for after one moment and answered before another; all URLs must be on record."""
    pages = [answer for answer in answers if answer.url in urls]
    if len(pages) != len(urls):
        raise TryLater(f"expected {len(urls)} pages on record, found {len(pages)}")
    waited = sum(page.ended_at_ms > until_ms for page in pages)
    counted = [page for page in pages if page.began_at_ms >= from_ms and page.ended_at_ms <= until_ms]
    if len(counted) < len(urls) * COUNTED_MIN or waited > len(urls) * WAITED_MAX:
        raise TryLater(
            f"of {len(urls)} pages only {len(counted)} were fetched while the silent sockets were open, and {waited} "
            "after: more pages are needed"
        )
    span_ms = max(page.ended_at_ms for page in counted) - min(page.began_at_ms for page in counted)
    return Beside(len(counted) / max(1, span_ms) * 1000, waited)
