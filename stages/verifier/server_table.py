"""The table of servers of a block, merged in the same pass as its URLs.

A server keeps its number within its domain for ever, because rows refer to it by that number: new servers of a domain
come last. All servers of a turn are known before its rows are merged; their counts are added up piece by piece.
"""

import numpy as np
import pyarrow as pa

from contract.config import Config
from contract.generation import BLOCK_SERVERS, Domains, domains_of
from contract.pause import believed_ready_at_all_ms, due_at_all_ms
from contract.tables import COLLECTED_STATE, LAST_FAILURE, PRESCHEDULED, STATES, WAITING
from contract.url import servers_of
from storage.arrays import encode
from storage.errors import Damaged
from storage.tables import column
from storage.text_segments import NO_TEXT, data_of

# Columns of Servidores that are taken over as they are.
OBSERVED = (
    "robots_expires_at_ms",
    "delay_ms",
    "last_request_at_ms",
    "ready_at_ms",
    "address",
    "requests",
    "mean_ms",
    "failures",
    *(name for name, _ in LAST_FAILURE),
)
TEXTS = tuple(field.name for field in BLOCK_SERVERS if field.type == pa.string())
COUNTED = {
    "known": range(len(STATES)),
    "collected": (COLLECTED_STATE,),
    "waiting": (WAITING, PRESCHEDULED),
    "prescheduled": (PRESCHEDULED,),
}


class ServerTable:
    """Columns by name; a server's index is its row number here. `index_of_old` has those of the parent's servers."""

    def __init__(self, parent: pa.Table, server_keys: np.ndarray, domain_keys: np.ndarray):
        """Adds the servers of these keys (u64, any order, each once) that the parent's table does not have."""
        old = {name: np.array(column(parent, name)) for name in BLOCK_SERVERS.names}
        missing = np.flatnonzero(~np.isin(server_keys, old["server_key"]))
        missing = missing[np.lexsort((server_keys[missing], domain_keys[missing]))]
        behind = np.searchsorted(old["domain_key"], domain_keys[missing], "right")
        new_index = behind + np.arange(len(missing))
        is_new = np.zeros(len(parent) + len(missing), bool)
        is_new[new_index] = True
        self.index_of_old = np.flatnonzero(~is_new).astype(np.int32)
        self.columns = {name: np.zeros(len(is_new), values.dtype) for name, values in old.items()}
        for name, values in old.items():
            self.columns[name][self.index_of_old] = values
        new = {"server_key": server_keys[missing], "domain_key": domain_keys[missing], "robots_text": NO_TEXT}
        for name, values in (new | dict.fromkeys(TEXTS, "")).items():
            self.columns[name][new_index] = values
        self.domains: Domains = domains_of(self.columns["domain_key"], self.columns["known"])
        self.first_of_domain = np.repeat(self.domains.first_server[:-1], np.diff(self.domains.first_server))
        self._by_key = np.argsort(self.columns["server_key"], kind="stable")
        self._keys = self.columns["server_key"][self._by_key]
        # Rows of each server in each state, of the pieces so far.
        self.states = np.zeros((len(is_new), len(STATES)), np.int64)
        self._forgiven = np.zeros(len(is_new), np.int64)  # failures of each server that a decision took back
        self.known = self.columns["known"].astype(np.int64)  # URLs of each, those of the pieces so far included
        self._mentions = np.zeros(len(is_new), np.uint64)  # of the rows of the pieces so far

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def find(self, server_keys: np.ndarray) -> np.ndarray:
        """Index of each server, i32; -1 where it is not there. Keys repeat, so each is looked up once."""
        distinct, which = encode(server_keys)
        at = np.searchsorted(self._keys, distinct)
        there = at < len(self._keys)
        there[there] = self._keys[at[there]] == distinct[there]
        found = np.full(len(distinct), -1, np.int32)
        found[there] = self._by_key[at[there]]
        return found[which]

    def name(self, server_index: np.ndarray, urls: pa.LargeBinaryArray) -> None:
        """Names servers by a URL of each."""
        starts, data = data_of(urls)
        self.columns["server"][server_index] = np.array(servers_of(data.tobytes(), starts[:-1].tolist()), object)

    def take_observed(self, observed: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Takes the observed columns over; returns (index, row of `observed`) of the servers that are here."""
        server_index = self.find(column(observed, "server_key"))
        rows = np.flatnonzero(server_index >= 0)
        for name in OBSERVED:
            self.columns[name][server_index[rows]] = column(observed, name)[rows]
        failures = self.columns["failures"]
        # The cycle's list was made before the server was forgiven: only failures after that count.
        failures -= np.where(failures >= self._forgiven, self._forgiven, 0).astype(failures.dtype)
        return server_index[rows], rows

    def forgive(self, server_keys: np.ndarray, named: np.ndarray) -> np.ndarray:
        """Forgets failures of these servers, and when robots.txt expires; marks the named ones: bool, by index."""
        server_index = self.find(server_keys)
        server_index = server_index[server_index >= 0]
        self._forgiven[server_index] = self.columns["failures"][server_index]
        self.columns["robots_expires_at_ms"][server_index] = 0
        revived = np.zeros(len(self), bool)
        named_index = self.find(named)
        revived[named_index[named_index >= 0]] = True
        return revived

    def count(self, server_index: np.ndarray, state: np.ndarray) -> None:
        """Adds the rows of a piece: the index of the server of each, and its state."""
        if len(state) and state.max() >= len(STATES):
            raise Damaged("state", f"expected states below {len(STATES)}, found {state.max()}")
        both = server_index * len(STATES) + state
        self.states += np.bincount(both, minlength=self.states.size).reshape(self.states.shape)

    def add_mentions(self, server_index: np.ndarray, mentions: np.ndarray) -> None:
        """Adds the mentions (u32) of the rows of a piece; sums in float64 are exact up to 2^53."""
        if mentions.any():
            self._mentions += np.bincount(server_index, mentions, minlength=len(self)).astype(np.uint64)

    def add_claims(self, server_index: np.ndarray, is_true: np.ndarray) -> None:
        """Counts claims of sitemaps that visits tested: the index of the server of each, and whether it was true."""
        for name, counted in (("lastmod_claims", server_index), ("lastmod_true", server_index[is_true])):
            if len(counted):
                values = self.columns[name]
                sums = values.astype(np.int64) + np.bincount(counted, minlength=len(self))
                self.columns[name] = np.minimum(sums, np.iinfo(values.dtype).max).astype(values.dtype)

    def preschedule_all(self, which: np.ndarray) -> None:
        """Counts every waiting row of the servers that `which` marks (bool, by index) as prescheduled."""
        self.states[which, PRESCHEDULED] += self.states[which, WAITING]
        self.states[which, WAITING] = 0

    def move(self, server_index: np.ndarray, before: int, after: int) -> None:
        """Counts one row of each of these servers (repeats allowed) in another state than before."""
        np.subtract.at(self.states[:, before], server_index, 1)
        np.add.at(self.states[:, after], server_index, 1)

    def table(self) -> pa.Table:
        for name, states in COUNTED.items():
            self.columns[name] = self.states[:, list(states)].sum(axis=1).astype(np.uint32)
        self.columns["mentions"] = self._mentions
        return pa.table(
            {field.name: pa.array(self.columns[field.name], field.type) for field in BLOCK_SERVERS},
            schema=BLOCK_SERVERS,
        )


def judge(servers: dict[str, np.ndarray], now_ms: int, config: Config) -> None:
    """Sets when servers are due that fail, want long pauses or asked for time, and which are given up."""
    over = servers["failures"].astype(np.int64) - config.fetcher.server_failures_max
    servers["given_up"] = over >= config.verifier.server_backoffs_max
    servers["ready_at_ms"] = believed_ready_at_all_ms(servers["ready_at_ms"], now_ms)
    servers["due_at_ms"] = due_at_all_ms(
        config, servers["delay_ms"], servers["last_request_at_ms"], servers["ready_at_ms"], over
    )
