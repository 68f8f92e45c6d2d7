"""Which URLs go into a list and in which order; pure, on columns alone."""

from collections.abc import Mapping

import numpy as np

from contract.accumulators import SHARED_NAMES
from contract.config import Config
from contract.pause import requests_per_cycle
from contract.tables import PRESCHEDULED
from storage.arrays import rank_in_run


def server_caps(servers: dict, now_ms: int, config: Config) -> np.ndarray:
    """Maximum URLs per server in a list: 0 before the server is due, else what its delay allows in `cycle_max_s`."""
    fits = requests_per_cycle(config.fetcher, servers["delay_ms"])
    caps = np.minimum(config.scheduler.server_max_urls, fits).astype(np.int64)
    caps[(servers["due_at_ms"] > now_ms) | servers["given_up"]] = 0
    return caps


def choose(rows: Mapping[str, np.ndarray], servers: np.ndarray, caps: np.ndarray, most: int, order: str) -> np.ndarray:
    """Row numbers for the list, in its order: the k-th URL of every server comes before the (k+1)-th of any.

    So servers are spread evenly through the list, and a full list has had a turn of every server. Within a server the
    URL with most cash comes first, where the order is by cash, then the nearest to a seed, then the smallest key.
    `servers` is the server's row number for each row, as in `caps`.
    """
    waiting = np.flatnonzero(rows["state"] == PRESCHEDULED)
    waiting = waiting[caps[servers[waiting]] > 0]
    richest = [~rows[order][waiting]] if order in SHARED_NAMES else []
    waiting = waiting[np.lexsort((rows["key"][waiting], rows["depth"][waiting], *richest, servers[waiting]))]
    server = servers[waiting]
    rank = rank_in_run(server)
    fits = rank < caps[server]
    waiting, server, rank = waiting[fits], server[fits], rank[fits]
    return waiting[np.lexsort((server, rank))][:most]
