"""SQLite as a peer: a table WITHOUT ROWID, one transaction per batch, keys in sorted order, synchronous = FULL."""

import sqlite3
from pathlib import Path

import numpy as np

from bench.verifier.batch import COLLECTED, WAITING, Batch, first_of_each, pick


class Sqlite:
    answers_late = False

    def __init__(self, folder: Path, memory_bytes: int):
        self._database = sqlite3.connect(folder / "known.db", isolation_level=None)
        self._database.executescript(
            "pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = full; "
            f"pragma cache_size = -{memory_bytes >> 10};"
            "create table if not exists url (key integer primary key, state integer, text blob) without rowid;"
        )

    def load(self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray) -> None:
        self._put(keys, lines)

    def take(self, batch: Batch) -> int:
        return self._put(batch.keys, batch.lines, batch.collected)

    def _put(self, keys: np.ndarray, lines: list[bytes], collected: np.ndarray | None = None) -> int:
        # SQLite's integers are signed: their order is the table's.
        distinct, rows = first_of_each(keys.view(np.int64))
        before = self._database.total_changes
        self._database.execute("begin")
        self._database.executemany(
            f"insert or ignore into url values (?, {WAITING}, ?)", zip(distinct.tolist(), pick(lines, rows))
        )
        added = self._database.total_changes - before
        if collected is not None:
            self._database.executemany(
                f"update url set state = {COLLECTED} where key = ?",
                ((key,) for key in np.sort(collected.view(np.int64)).tolist()),
            )
        self._database.execute("commit")
        return added

    def settle(self) -> None:
        self._database.execute("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        self._database.close()
