"""What operators took back: URLs and servers of `reconsider` entries, and URLs that were seeded again.

A turn applies them to the rows of its parent generation, before the outcomes of its own cycle. They are keys alone:
their order and their number make no difference. A collected URL stays collected.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from contract.log import State
from contract.pending import SCHEMAS
from contract.plan import VerifierPlan
from contract.tables import ORDER
from stages.verifier.harvest import find_tables
from storage.keyed_file import KeyedFile
from storage.tables import column

KEY_COLUMNS = [*ORDER, "server_key"]


class Decisions:
    """Those of one turn, read by ranges of (domain key, URL key)."""

    def __init__(self, sources: list[KeyedFile]):
        self.sources = sources

    def servers(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys of the servers that start afresh, and of those that were named themselves; u64, each once."""
        every, named = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for table in (table for source in self.sources for table in source.read_pieces(low, high)):
            keys = column(table, "server_key")
            every.append(np.unique(keys))
            named.append(np.unique(keys[is_server(table)]))
        return np.unique(np.concatenate(every)), np.unique(np.concatenate(named))

    def urls(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Domain keys and URL keys of the URLs in a range of pairs; u64, in any order."""
        tables = [source.read(low, high) for source in self.sources]
        parts = [(column(table, "domain_key"), column(table, "url_key"), ~is_server(table)) for table in tables]
        empty = [np.empty(0, np.uint64)]
        return (
            np.concatenate(empty + [domain[wanted] for domain, _, wanted in parts]),
            np.concatenate(empty + [key[wanted] for _, key, wanted in parts]),
        )


def is_server(table: pa.Table) -> np.ndarray:
    """Which rows name a server; none of a seed's AUX does."""
    if "is_server" not in table.column_names:
        return np.zeros(len(table), bool)
    return column(table, "is_server").astype(bool)


def open_decisions(crawl: Path, log: State, plan: VerifierPlan, seen: int) -> Decisions:
    """Those that the turn takes in; a seed's AUX is one too."""
    sources = []
    for entry, path, about in find_tables(crawl, log, plan, seen, lambda kind: kind.from_inbox):
        schema = SCHEMAS[entry.rows_file]
        columns = [name for name in (*KEY_COLUMNS, "is_server") if name in schema.names]
        sources.append(KeyedFile(path, schema, ORDER, columns, about["first_keys"], about["last_key"]))
    return Decisions(sources)
