"""How much of the politely possible rate is reached: many servers of different speed, pauses on."""

import json
import math
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.fetcher.figures import utilisation
from bench.fetcher.naming import naming
from bench.fetcher.options import Scale
from bench.fetcher.ours import Ours
from bench.processes import READY_MAX_S, last_line, running
from contract.errors import TryLater

WINDOW = (0.1, 0.8)  # of the run: all servers are at work, none has begun late, none is done


class Web(NamedTuple):
    hosts: Path
    servers: list[str]  # http://name:port
    latencies_s: list[float]


@contextmanager
def slow_web(servers: int, folder: Path, *options: str) -> Iterator[Web]:
    """Servers with a latency each, while the block lasts; `options` are those of python -m synthweb latency."""
    state = folder / "latency"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    log = folder / "latency.log"
    command = [sys.executable, "-P", "-m", "synthweb", "latency", "--servers", servers, "--seed", 1, "--state", state]
    with running([*command, *options], log) as process:
        ends_at_s = time.monotonic() + READY_MAX_S
        while not (state / "ready.json").exists():
            if process.poll() is not None or time.monotonic() > ends_at_s:
                raise TryLater(f"python -m synthweb latency: did not come up; {last_line(log)}")
            threading.Event().wait(0.05)
        yield read_web(state)


def read_web(state: Path) -> Web:
    ready = json.loads((state / "ready.json").read_text())
    names = [line.split()[1] for line in (state / "hosts").read_text().splitlines()]
    return Web(
        state / "hosts",
        [f"http://{name}:{ready['port']}" for name in names],
        [ready["latencies_ms"][name] / 1000 for name in names],
    )


def measure_polite(scale: Scale, kind: str, folder: Path) -> dict:
    with slow_web(scale.polite_servers, folder) as web, naming(kind, web.hosts, folder) as name_setting:
        # So many pages per server that none runs out of them.
        each = math.ceil(scale.polite_s / (scale.polite_delay_s + min(web.latencies_s))) + 1
        urls = [f"{server}/page-{number}" for number in range(each) for server in web.servers]
        ours = Ours(folder, name_setting)
        settings = (
            f"fetcher.delay_s={scale.polite_delay_s}",
            "fetcher.delay_response_factor=0.0",  # the pause is the same for all
            f"fetcher.cycle_max_s={scale.polite_s}",
            f"fetcher.transfers_max={2 * scale.polite_servers}",
            f"fetcher.connections_max={2 * scale.polite_servers}",
        )
        child = ours.begin(urls, settings)
        try:
            spent = child.wait()
        finally:
            child.kill()
    answers = ours.answers()
    began_at_s = min(answer.began_at_ms for answer in answers) / 1000
    window_s = tuple(began_at_s + share * scale.polite_s for share in WINDOW)
    share, answered, possible = utilisation(
        [answer.ended_at_ms / 1000 for answer in answers], web.latencies_s, scale.polite_delay_s, window_s
    )
    return {
        "polite_utilisation": round(share, 3),
        "polite_answers": answered,
        "polite_possible": round(possible),
        "polite_servers": scale.polite_servers,
        "polite_delay_s": scale.polite_delay_s,
        "polite_s": scale.polite_s,
        "polite_cpu_s": round(spent.cpu_s, 1),
    }
