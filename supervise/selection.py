"""Finds the URLs and servers in the live generations that an operator wants reconsidered."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.blocks import block_of, interval
from contract.crawl_folder import CrawlFolder
from contract.generation import Generation, open_generation
from contract.inbox import sort_by_keys
from contract.log import History, State, replay
from contract.tables import (
    ANSWERED,
    COLLECTED,
    COLLECTED_STATE,
    GIVEN_UP,
    RECONSIDERED,
    REFUSED_BY_ROBOTS,
    REFUSED_BY_RULE,
    STATES,
)
from contract.units import count
from contract.url import host_of, server_of
from storage.pairs import find_pairs, sort_pairs
from storage.tables import column, read_table

MISSES_ANY = 255  # no page has more misses
SERVER_ROW = 0  # url_key of a row that names a server
SERVER_COLUMNS = ("server", "server_key", "domain_key", "failures", "given_up", "due_at_ms", "last_failure_reason")


@dataclass(frozen=True)
class Wanted:
    """What was asked for. URLs are selected as given; servers and domains limit the rest."""

    urls: tuple[str, ...] = ()  # canonical
    servers: frozenset[str] = frozenset()  # scheme://host[:port], or a host, which means all servers of it
    domains: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    given_up: bool = False
    refused: bool = False
    backed_off: bool = False

    @property
    def names_states(self) -> bool:
        return bool(self.reasons) or self.given_up or self.refused or self.backed_off

    @property
    def names_servers(self) -> bool:
        return bool(self.servers or self.domains)


class Selection:
    """The rows for Reconsideradas, block by block, and notes for the operator."""

    def __init__(self, crawl: CrawlFolder, log: State, wanted: Wanted, now_ms: int, misses_max: int = MISSES_ANY):
        self._misses_max = misses_max  # [revisit] misses_max; without revisits no number of misses matters
        self._crawl, self._log, self._wanted, self._now_ms = crawl, log, wanted, now_ms
        self._keys = crawl.keys()
        self._domain_keys = np.array([self._keys.of(domain) for domain in sorted(wanted.domains)], np.uint64)
        self._reasons = None
        if wanted.reasons:  # they are in the tables of all past cycles
            self._reasons = Reasons(crawl.path, replay(crawl.path, crawl.blocks_first), wanted.reasons)
        self.urls = self.servers = 0
        self.notes: list[str] = []  # about URLs and names that were given
        self._seen_names: set[str] = set()

    def tables(self) -> Iterator[pa.Table]:
        """One table per block, in the order of keys."""
        for block in sorted(range(self._log.blocks), key=lambda block: interval(block, self._log.blocks)):
            generation = open_generation(self._crawl.path, block, self._log.generation(block))
            table = sort_by_keys(self._select(block, generation))
            servers = int(column(table, "is_server").sum())
            self.servers += servers
            self.urls += len(table) - servers
            yield table
        for name in sorted((self._wanted.servers | self._wanted.domains) - self._seen_names):
            self.notes.append(f"{name}: no such server or domain is known")
        if self._reasons:
            self.notes += self._reasons.notes

    def _select(self, block: int, generation: Generation) -> pa.Table:
        servers = {name: column(generation.servers, name) for name in SERVER_COLUMNS}
        rows = np.flatnonzero(self._pick_rows(generation, servers))
        rows = np.union1d(rows, self._find_urls(block, generation)).astype(np.int64)
        server_index = generation.server_index[rows]
        named = np.flatnonzero(self._pick_servers(servers))
        return pa.table(
            {
                "domain_key": np.concatenate([servers["domain_key"][server_index], servers["domain_key"][named]]),
                "url_key": np.concatenate([generation.rows["key"][rows], np.full(len(named), SERVER_ROW, np.uint64)]),
                "server_key": np.concatenate([servers["server_key"][server_index], servers["server_key"][named]]),
                "is_server": np.arange(len(rows) + len(named)) >= len(rows),
            },
            schema=RECONSIDERED,
        )

    def _is_meant(self, servers: dict) -> np.ndarray:
        """Which servers --server and --domain allow; without these options all, unless only URLs were given."""
        wanted = self._wanted
        if not wanted.names_servers:
            return np.full(len(servers["server"]), wanted.names_states)
        by_name = [(server, host_of(server)) for server in servers["server"]]
        self._seen_names |= {name for pair in by_name for name in pair if name in wanted.servers}
        here = np.isin(servers["domain_key"], self._domain_keys)
        for domain in wanted.domains - self._seen_names:
            if self._keys.of(domain) in servers["domain_key"][here]:
                self._seen_names.add(domain)
        return here | np.array([server in wanted.servers or host in wanted.servers for server, host in by_name], bool)

    def _pick_servers(self, servers: dict) -> np.ndarray:
        given_up, failing = servers["given_up"].astype(bool), servers["failures"] > 0
        if not self._wanted.names_states:
            return self._is_meant(servers) & (given_up | failing)
        picked = given_up & self._wanted.given_up
        picked |= ~given_up & failing & (servers["due_at_ms"] > self._now_ms) & self._wanted.backed_off
        if self._reasons:
            picked |= (given_up | failing) & self._reasons.of_servers(servers["last_failure_reason"])
        return self._is_meant(servers) & picked

    def _pick_rows(self, generation: Generation, servers: dict) -> np.ndarray:
        """Which rows are wanted. URLs that were given up with their server come with the row of the server."""
        wanted, state = self._wanted, generation.rows["state"]
        refused = (state == REFUSED_BY_ROBOTS) | (state == REFUSED_BY_RULE)
        decided = refused | (state == GIVEN_UP) | (generation.rows["attempts"] > 0) & (state != COLLECTED_STATE)
        server_index = generation.server_index
        if not wanted.names_states:
            return decided & self._is_meant(servers)[server_index]
        picked = np.zeros(len(generation), bool)
        if wanted.given_up:
            picked |= (state == GIVEN_UP) & ~servers["given_up"].astype(bool)[server_index]
        if wanted.refused:
            picked |= refused
        if self._reasons:
            picked |= decided & self._reasons.have(
                servers["domain_key"][server_index], np.asarray(generation.rows["key"])
            )
        return picked & self._is_meant(servers)[server_index]

    def _find_urls(self, block: int, generation: Generation) -> np.ndarray:
        """Row numbers of the given URLs; a note for each URL that has no row, or that is collected."""
        rows = []
        for url in self._wanted.urls:
            server = self._keys.server(server_of(url))
            if block_of(server.domain_key, self._log.blocks) != block:
                continue
            row = generation.find(server.domain_key, self._keys.of(url))
            if row is None:
                self.notes.append(
                    f"{url}: never stored, so there is nothing to take back; bin/why --crawl "
                    f"{shlex.quote(str(self._crawl.path))} {shlex.quote(url)} says why"
                )
            elif generation.rows["state"][row] == COLLECTED_STATE:
                self.notes.append(f"{url}: {note_collected(self._misses(generation, row), self._misses_max)}")
            else:
                rows.append(row)
        return np.array(rows, np.int64)

    def _misses(self, generation: Generation, row: int) -> int:
        """How many visits in a row found no page, of the collected page of a row."""
        side_row = int(np.count_nonzero(generation.rows.read("state", 0, row) == COLLECTED_STATE))
        return int(generation.side.read("misses", side_row, side_row + 1)[0])


def note_collected(misses: int, misses_max: int) -> str:
    """What an operator reads who wants a collected page reconsidered; a decision changes nothing about its visits."""
    note = f"{STATES[COLLECTED_STATE]}, and stays so"
    if misses <= misses_max:
        return note
    return (
        f"{note}; it is not visited any more: its last {count(misses, 'visit')} found no page, which is more than "
        "[revisit] misses_max. A larger misses_max visits it again"
    )


class Reasons:
    """The URLs whose last failure or refusal has one of these reasons, from the tables of all committed cycles."""

    def __init__(self, crawl: Path, log: History, wanted: frozenset[str]):
        domains, keys, picked, found = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], [np.empty(0, bool)], set()
        for entry in reversed([entry for entry in log.entries if entry is not None and entry.fetches]):
            path = crawl / names.cycle(entry.cycle) / names.EXTRACTOR / names.COLLECTED
            table = read_table(path, COLLECTED, columns=["domain_key", "url_key", "outcome", "reason"])
            failed = np.flatnonzero(column(table, "outcome") != ANSWERED)
            reason = column(table, "reason")[failed]
            domains.append(column(table, "domain_key")[failed])
            keys.append(column(table, "url_key")[failed])
            picked.append(np.isin(reason.astype(str), sorted(wanted)))
            found |= set(reason.tolist())
        self._domain, self._key = keep_first(np.concatenate(domains), np.concatenate(keys), np.concatenate(picked))
        self._wanted, self._found = wanted, found

    @property
    def notes(self) -> list[str]:
        have = ", ".join(sorted(self._found - {""})) or "none"
        return [
            f"{reason}: no failure or refusal has this reason; found are: {have}"
            for reason in sorted(self._wanted - self._found)
        ]

    def of_servers(self, reasons: np.ndarray) -> np.ndarray:
        """Which servers have such a last failure. A server whose robots.txt failed has one before any of its URLs."""
        reasons = reasons.astype(str)
        self._found |= set(np.unique(reasons).tolist())
        return np.isin(reasons, sorted(self._wanted))

    def have(self, domain_key: np.ndarray, key: np.ndarray) -> np.ndarray:
        return find_pairs(domain_key, key, self._domain, self._key) >= 0


def keep_first(domain: np.ndarray, key: np.ndarray, picked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted distinct pairs whose first occurrence is picked."""
    order, domain, key = sort_pairs(domain, key)  # stable
    is_first = np.ones(len(order), bool)
    is_first[1:] = (domain[1:] != domain[:-1]) | (key[1:] != key[:-1])
    wanted = is_first & picked[order]
    return domain[wanted], key[wanted]
