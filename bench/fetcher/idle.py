"""What idle sockets cost: the same pages with and without many servers that never answer."""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.fetcher.nginx import Site, write_hosts
from bench.fetcher.ours import WITHOUT_PAUSES, Answer, Ours
from bench.fetcher.processes import Child, read_listening, running
from contract.errors import TryLater

LOOK_EVERY_S = 0.1
QUIET_S = 3.0  # nothing stored for so long: the pages are done, and only the silent servers are left
PATIENCE = ("fetcher.total_timeout_s=1800.0", "fetcher.slow_s=1800.0", "fetcher.retries_max=0")


@contextmanager
def silent(sites: list[Site], folder: Path) -> Iterator[str]:
    """Servers that never answer, while the block lasts; gives their port."""
    write_hosts(folder / "silent.hosts", sites)
    log = folder / "silent.log"
    with running([sys.executable, "-P", "-m", "bench.fetcher.slow_server", folder / "silent.hosts"], log) as process:
        yield read_listening(process, log).rpartition(":")[2]


def run_beside(ours: Ours, urls: list[str], sites: list[Site]) -> float:
    """Pages a second from the first request of a page to the last answer, while a socket to each site is open and silent."""
    settings = (*WITHOUT_PAUSES, *PATIENCE, f"fetcher.transfers_max={len(sites) + 500}")
    with ExitStack() as servers:
        port = servers.enter_context(silent(sites, ours.folder)) if sites else ""
        child = ours.begin([f"http://{site.name}:{port}/" for site in sites] + urls, settings)
        try:
            wait_until_quiet(ours, child)
            servers.close()  # the silent ones hang up, and the fetcher comes to its end
            child.wait()
        finally:
            child.kill()
    return page_rate(ours.answers(), set(urls))


def wait_until_quiet(ours: Ours, child: Child) -> None:
    stored_bytes, quiet_s = 0, 0.0
    while not child.has_ended() and (quiet_s < QUIET_S or not stored_bytes):
        threading.Event().wait(LOOK_EVERY_S)
        now_bytes = ours.stored_bytes()
        quiet_s = quiet_s + LOOK_EVERY_S if now_bytes == stored_bytes else 0.0
        stored_bytes = now_bytes


def page_rate(answers: list[Answer], urls: set[str]) -> float:
    pages = [answer for answer in answers if answer.url in urls]
    if len(pages) != len(urls):
        raise TryLater(f"expected {len(urls)} pages on record, found {len(pages)}")
    span_ms = max(page.ended_at_ms for page in pages) - min(page.began_at_ms for page in pages)
    return len(pages) / max(1, span_ms) * 1000
