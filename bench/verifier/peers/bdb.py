"""Berkeley DB as a peer: a B-tree, keys in sorted order, synced at the end of a batch.

Without transactions: a crash within a batch may lose the file, which flatters it. The library is Debian's and its
binding is built against it, so it is no part of the 'bench' extra.
"""

from pathlib import Path

import numpy as np

from bench.verifier.batch import COLLECTED, WAITING, Batch, first_of_each, pack, pick
from bench.verifier.peers import Missing

try:
    from berkeleydb import db
except ImportError as error:
    raise Missing(
        "berkeleydb is not installed: apt-get install libdb5.3-dev, then pip install berkeleydb into .venv"
    ) from error


class BerkeleyDb:
    answers_late = False

    def __init__(self, folder: Path, memory_bytes: int):
        self._database = db.DB()
        self._database.set_pagesize(8192)
        self._database.set_cachesize(memory_bytes >> 30, memory_bytes & ((1 << 30) - 1))
        self._database.open(str(folder / "known.db"), None, db.DB_BTREE, db.DB_CREATE)

    def load(self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray) -> None:
        self._put(keys, lines)
        self._database.sync()

    def take(self, batch: Batch) -> int:
        new = self._put(batch.keys, batch.lines)
        order = np.argsort(batch.collected)
        put, state = self._database.put, bytes([COLLECTED])
        for key, line in zip(pack(batch.collected[order]), pick(batch.collected_lines, order)):
            put(key, state + line)
        self._database.sync()
        return new

    def _put(self, keys: np.ndarray, lines: list[bytes]) -> int:
        distinct, rows = first_of_each(keys)
        new, state = 0, bytes([WAITING])
        exists, put = self._database.exists, self._database.put
        for key, line in zip(pack(distinct), pick(lines, rows)):
            if not exists(key):
                put(key, state + line)
                new += 1
        return new

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self._database.close()
