"""The table of servers of a block, merged in the same pass as its URLs."""

import numpy as np
import pyarrow as pa

from contract.config import Config
from contract.generation import SERVERS
from contract.retry_after import WAIT_MAX_S
from contract.tables import COLLECTED_STATE, GIVEN_UP, PRESCHEDULED, REFUSED_BY_ROBOTS, WAITING
from contract.url import server_of
from stages.verifier.incoming import Links
from storage.arrays import interleave, merge_sorted
from storage.tables import column
from storage.text_segments import NO_TEXT

PAUSE_WITHIN_CYCLE_MS = 10_000  # a shorter one is waited for by the fetcher; for a longer one the server is not listed
# How long after its plan a cycle may end that was broken off and went on later. What servers then ask for lies as much later
# than a day after the plan; still later lies only what a wrong clock wrote.
CYCLE_MAX_MS = 7 * 86_400_000

# Columns of Servidores that are taken over as they are.
OBSERVED = (
    "robots_expires_at_ms", "delay_ms", "last_request_at_ms", "ready_at_ms", "address", "requests", "mean_ms", "failures",
)


def to_columns(table: pa.Table) -> dict[str, np.ndarray]:
    return {name: np.array(column(table, name)) for name in SERVERS.names}


def to_table(columns: dict[str, np.ndarray]) -> pa.Table:
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in SERVERS}, schema=SERVERS)


def merge_servers(parent: dict, links: Links, new: np.ndarray) -> tuple[dict, np.ndarray, np.ndarray]:
    """The table with the servers of the new URLs added, the new place of each old server, and that of each new URL's."""
    keys, first = np.unique(links.server_key[new], return_index=True)
    missing = ~np.isin(keys, parent["server_key"])
    keys, first = keys[missing], new[first[missing]]
    fresh = {name: np.zeros(len(keys), array.dtype) for name, array in parent.items() if name != "server_key"}
    fresh["server"] = np.array([server_of(url) for url in links.url(first)], object)
    fresh["address"] = np.full(len(keys), "", object)
    fresh["domain_key"] = links.domain_key[first]
    fresh["robots_text"] = np.full(len(keys), NO_TEXT)
    merged, old_places, new_places = merge_sorted(parent["server_key"], keys)
    table = {name: interleave(parent[name], fresh[name], old_places, new_places) for name in fresh}
    return {"server_key": merged, **table}, old_places, np.searchsorted(merged, links.server_key[new])


def take_over(servers: dict, observed: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Takes the observed columns over; returns (place in the table, row of observed) of the servers that are here."""
    keys = column(observed, "server_key")
    where = np.searchsorted(servers["server_key"], keys)
    there = where < len(servers["server_key"])
    there[there] = servers["server_key"][where[there]] == keys[there]
    rows = np.flatnonzero(there)
    for name in OBSERVED:
        servers[name][where[there]] = column(observed, name)[rows]
    return where[there], rows


def judge(servers: dict, now_ms: int, config: Config) -> None:
    """When a server is due again that fails, wants long pauses or asked for time, and whether it is given up."""
    most = config.fetcher.server_failures_max
    over = servers["failures"].astype(np.int64) - most
    waits_ms = config.verifier.server_backoff_s * 1000 * np.exp2(np.clip(over, 0, 30))
    servers["given_up"] = over >= config.verifier.server_backoffs_max
    due = servers["last_request_at_ms"] + np.minimum(waits_ms, 1 << 52).astype(np.int64)
    pause_ms = np.maximum(servers["delay_ms"].astype(np.int64), round(config.fetcher.delay_s * 1000))
    rested = np.where(pause_ms > PAUSE_WITHIN_CYCLE_MS, servers["last_request_at_ms"] + pause_ms, 0)
    servers["ready_at_ms"] = np.minimum(servers["ready_at_ms"], now_ms + CYCLE_MAX_MS + WAIT_MAX_S * 1000)
    servers["due_at_ms"] = np.maximum(np.where(over >= 0, np.maximum(due, rested), rested), servers["ready_at_ms"])


def forgive_refusals(rows: dict, changed: np.ndarray) -> None:
    """URLs that robots.txt refused wait again where the rules of their server changed."""
    rows["state"][(rows["state"] == REFUSED_BY_ROBOTS) & np.isin(rows["server"], changed)] = WAITING


def give_up(rows: dict, servers: dict) -> None:
    hopeless = servers["given_up"][rows["server"]] if len(rows["server"]) else np.empty(0, bool)
    rows["state"][hopeless & np.isin(rows["state"], (WAITING, PRESCHEDULED))] = GIVEN_UP


def count(servers: dict, rows: dict) -> None:
    for name, states in (("collected", (COLLECTED_STATE,)), ("waiting", (WAITING, PRESCHEDULED))):
        here = np.isin(rows["state"], states)
        servers[name] = np.bincount(rows["server"][here], minlength=len(servers["server_key"])).astype(np.uint32)
    servers["known"] = np.bincount(rows["server"], minlength=len(servers["server_key"])).astype(np.uint32)
