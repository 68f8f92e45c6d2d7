"""Which URLs go into a list and in which order; pure, on columns alone."""

from collections.abc import Mapping

import numpy as np

from contract.accumulators import SHARED_NAMES
from contract.config import Config
from contract.tables import PRESCHEDULED
from storage.arrays import rank_in_run


def server_caps(servers: dict, now_ms: int, config: Config) -> np.ndarray:
    """How many URLs of each server a list may hold: none before it is due, no more than its delay lets through."""
    delay_s = np.maximum(servers["delay_ms"] / 1000, config.fetcher.delay_s)
    fits = config.fetcher.cycle_max_s / np.maximum(delay_s, 1e-3) + 1
    caps = np.minimum(config.scheduler.server_max_urls, fits).astype(np.int64)
    caps[(servers["due_at_ms"] > now_ms) | servers["given_up"]] = 0
    return caps


def choose(rows: Mapping[str, np.ndarray], places: np.ndarray, caps: np.ndarray, most: int, order: str) -> np.ndarray:
    """Rows for the list, in its order: the k-th URL of every server comes before the (k+1)-th of any.

    `places` has the server of each row. So servers are spread through the list, and where it is full every server has had its turn. Within a server the
    richest comes first, where the order is by cash, then the nearest to a seed, then the smallest key.
    """
    waiting = np.flatnonzero(rows["state"] == PRESCHEDULED)
    waiting = waiting[caps[places[waiting]] > 0]
    richest = [~rows[order][waiting]] if order in SHARED_NAMES else []
    waiting = waiting[np.lexsort((rows["key"][waiting], rows["depth"][waiting], *richest, places[waiting]))]
    server = places[waiting]
    rank = rank_in_run(server)
    fits = rank < caps[server]
    waiting, server, rank = waiting[fits], server[fits], rank[fits]
    return waiting[np.lexsort((server, rank))][:most]
