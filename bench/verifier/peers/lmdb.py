"""LMDB as a peer: one write transaction per batch, keys put in sorted order by one cursor, synced at its end."""

from pathlib import Path

import numpy as np

from bench.verifier.batch import COLLECTED, WAITING, Batch, first_of_each, pack, pick
from bench.verifier.peers import Missing

try:
    import lmdb
except ImportError as error:
    raise Missing("lmdb is not installed: it comes with the 'bench' extra") from error

MAP_BYTES = 1 << 40  # an upper bound of the file, not of memory


class Lmdb:
    answers_late = False

    def __init__(self, folder: Path, memory_bytes: int):
        """Its cache is the kernel's, which no setting bounds: it may have more memory than the others."""
        self._environment = lmdb.open(str(folder), map_size=MAP_BYTES, readahead=False)

    def load(self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray) -> None:
        self._put(keys, lines)

    def take(self, batch: Batch) -> int:
        return self._put(batch.keys, batch.lines, batch)

    def _put(self, keys: np.ndarray, lines: list[bytes], batch: Batch | None = None) -> int:
        state = bytes([WAITING])
        distinct, rows = first_of_each(keys)
        with self._environment.begin(write=True) as transaction, transaction.cursor() as cursor:
            _, added = cursor.putmulti(
                list(zip(pack(distinct), [state + line for line in pick(lines, rows)])), overwrite=False
            )
            if batch:
                order = np.argsort(batch.collected)
                state = bytes([COLLECTED])
                cursor.putmulti(
                    list(
                        zip(pack(batch.collected[order]), [state + line for line in pick(batch.collected_lines, order)])
                    )
                )
        return added

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self._environment.close()
