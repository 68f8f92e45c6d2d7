"""Slow servers with pauses on: how much of what the pauses allow a crawl fetches, and how busy its fetchers are."""

import json
import signal
import threading
import time
from pathlib import Path

from bench.fetcher.figures import utilisation
from bench.fetcher.polite import slow_web
from bench.processes import Child
from bench.ring.busy import busy_share
from bench.ring.journal import read_journal
from bench.ring.options import Scale
from bench.ring.ours import Ours
from synthweb.record import monotonic_ms

LATENCIES_MS = (20, 500)
DELAY_S = 1.0
PAGES = 10_000  # per server: more than it can give in time
WARM_UP = 0.25  # of the time: at first only seeds are known, and lists are short
END_MAX_S = 120.0  # for a crawl to stop


def measure_slow(scale: Scale, folder: Path) -> dict:
    """Runs a crawl for a while and stops it. Keys slow.share and slow_fetcher_busy."""
    ours = Ours(folder / "slow")
    least, most = LATENCIES_MS
    options = ("--latency-min-ms", str(least), "--latency-max-ms", str(most), "--pages", str(PAGES))
    with slow_web(scale.slow_servers, folder, *options) as web:
        settings = (f"fetcher.delay_s={DELAY_S}", "fetcher.delay_response_factor=0.0")
        ours.seed([f"{server}/" for server in web.servers], web.hosts, settings)
        began_ms, stops_at_ms = monotonic_ms(), round((time.time() + scale.slow_s) * 1000)
        child = Child(ours.command(), ours.folder / "crawl.log", limit_s=scale.slow_s + END_MAX_S)
        try:
            threading.Event().wait(scale.slow_s)
            child.send(signal.SIGINT)
            spent = child.wait()
        finally:
            child.kill()
    answered_s = read_answers_s(web.hosts.with_name("access.jsonl"), began_ms)
    window_s = (WARM_UP * scale.slow_s, scale.slow_s)
    share, answered, possible = utilisation(answered_s, web.latencies_s, DELAY_S, window_s)
    attempts = read_journal(ours.crawl)
    busy = busy_share(attempts, (attempts[0].begin_ms, stops_at_ms)) if attempts else None
    print(
        f"slow: {scale.slow_servers} servers of {least} to {most} ms, pause {DELAY_S:g} s, {scale.slow_s:g} s: "
        f"{answered} answers of {possible:.0f} possible from {window_s[0]:g} s on; {spent.cpu_s:.1f} s of CPU",
        flush=True,
    )
    figures = {"slow.share": round(share, 3), "slow.answers": answered, "slow.possible": round(possible)}
    return figures | ({"slow_fetcher_busy": round(busy, 3)} if busy is not None else {})


def read_answers_s(record: Path, began_ms: float) -> list[float]:
    """Seconds after the begin at which the web answered."""
    with open(record) as lines:
        return [(json.loads(line)["ended_ms"] - began_ms) / 1000 for line in lines]
