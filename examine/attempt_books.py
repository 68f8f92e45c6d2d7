"""The book of attempts: a URL's attempts are its failures since a seed or a decision last took them back.

A cycle absorbs seeds and decisions up to `seen`, and applies them before its own outcomes. So the events of a block are
in this order: a cycle by its `seen`, a seed or decision by its position in the log. What a block has not absorbed yet
does not count for it.
"""

from pathlib import Path

import numpy as np

from contract import names
from contract.blocks import in_interval, interval
from contract.generation import Generation
from contract.log import KINDS, Entry, History
from contract.pending import SCHEMAS
from contract.tables import ANSWERED, COLLECTED, FAILED
from examine.findings import Findings
from examine.forgotten import read_forgotten
from storage.pairs import find_pairs
from storage.tables import column, read_table

ATTEMPTS_MAX = 255
CLAIM = "attempts of R = failures since they were last taken back"


class Ledger:
    """Attempts of the rows of one block, counted again."""

    def __init__(self, generation: Generation, bounds: tuple[int, int], seen: int):
        self.seen = seen
        self._bounds = bounds
        self._domain = column(generation.servers, "domain_key")[generation.server_index]
        self._server = column(generation.servers, "server_key")[generation.server_index]
        self._key = np.asarray(generation.rows["key"])
        self.attempts = np.zeros(len(self._key), np.int64)
        self._collected = np.zeros(len(self._key), bool)

    def take_outcomes(self, domain: np.ndarray, key: np.ndarray, outcome: np.ndarray) -> None:
        row, outcome = self._find(domain, key, outcome)
        self.attempts[row[outcome == FAILED]] += 1
        self._collected[row[outcome == ANSWERED]] = True

    def take_back(self, domain: np.ndarray, key: np.ndarray, server: np.ndarray, is_server: np.ndarray) -> None:
        row, named = self._find(domain, key, is_server)
        again = np.isin(self._server, server[is_server])
        again[row[~named]] = True
        self.attempts[again & ~self._collected] = 0

    def forget(self, domain: np.ndarray, key: np.ndarray) -> None:
        """What happened to URLs before they were forgotten does not count, where they are known again."""
        row, _ = self._find(domain, key, key)
        self.attempts[row], self._collected[row] = 0, False

    def _find(self, domain: np.ndarray, key: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of those keys that are in the block, and their values."""
        here = in_interval(domain, *self._bounds)
        row = find_pairs(domain[here], key[here], self._domain, self._key)
        return row[row >= 0], values[here][row >= 0]


def check_attempts(crawl: Path, log: History, generations: dict[int, Generation], findings: Findings) -> None:
    """Over the live generations of all blocks, each with the entries that it has absorbed."""
    ledgers = {
        block: Ledger(generation, interval(block, log.blocks), log.seen.get(block, 0))
        for block, generation in generations.items()
    }
    for position, entry in sorted(enumerate(log.entries), key=order_of):
        if entry is not None and KINDS[entry.kind].fetches:
            outcomes = read_outcomes(crawl, entry)
            for ledger in ledgers.values():
                ledger.take_outcomes(*outcomes)
        elif entry is not None and KINDS[entry.kind].forgets:
            forgotten = read_forgotten(crawl, entry)
            for ledger in ledgers.values():
                ledger.forget(column(forgotten, "domain_key"), column(forgotten, "url_key"))
        elif entry is not None and KINDS[entry.kind].from_inbox:
            decision = read_decision(crawl, entry)
            for ledger in ledgers.values():
                if position < ledger.seen:
                    ledger.take_back(*decision)
    for block, ledger in ledgers.items():
        folder = crawl / names.generation(block, log.generation(block))
        wrong = np.asarray(generations[block].rows["attempts"]) != np.minimum(ledger.attempts, ATTEMPTS_MAX)
        findings.rows(CLAIM, folder, wrong, "another number of failures in the cycles' tables")


def order_of(numbered: tuple[int, Entry | None]) -> float:
    position, entry = numbered
    is_of_block = entry is not None and (KINDS[entry.kind].fetches or KINDS[entry.kind].forgets)
    return entry.seen if is_of_block else position + 0.5


def read_outcomes(crawl: Path, entry: Entry) -> tuple[np.ndarray, ...]:
    """Domain key, URL key and outcome of the URLs of the cycle's own block."""
    ((block, _),) = entry.parents.items()
    path = crawl / names.cycle(entry.cycle) / names.EXTRACTOR / names.COLLECTED
    table = read_table(path, COLLECTED, columns=["domain_key", "url_key", "outcome"])
    own = in_interval(column(table, "domain_key"), *interval(block, entry.blocks))
    return tuple(column(table, name)[own] for name in ("domain_key", "url_key", "outcome"))


def read_decision(crawl: Path, entry: Entry) -> tuple[np.ndarray, ...]:
    """Domain key, URL key, server key of each row, and whether it names a server."""
    schema = SCHEMAS[entry.rows_file]
    path = crawl / names.cycle(entry.cycle) / names.VERIFIER / entry.rows_file
    table = read_table(
        path,
        schema,
        columns=[name for name in ("domain_key", "url_key", "server_key", "is_server") if name in schema.names],
    )
    named = column(table, "is_server").astype(bool) if "is_server" in schema.names else np.zeros(len(table), bool)
    return column(table, "domain_key"), column(table, "url_key"), column(table, "server_key"), named
