"""A look-up per URL (Program 1 of the thesis, as we read it): a hash table in a file, used one URL at a time.

The table is as good as such a one gets: a URL's slot follows from its key, neighbours are tried in order, it is never
more than half full. Texts are appended to a log beside it. Doubling the table is done at once, on arrays.
"""

import os
from pathlib import Path

import numpy as np

from bench.verifier.batch import COLLECTED, WAITING, Batch
from storage.publish import sync_file

SLOT = np.dtype([("key", "<u8"), ("text", "<u8"), ("state", "u1"), ("pad", "V7")])
SPARE = 65_536  # slots behind the last: a run of full ones does not turn around
FIRST_BITS = 16


class LookUp:
    answers_late = False

    def __init__(self, folder: Path, memory_bytes: int):
        self._table_path, self._text_path = folder / "table.bin", folder / "texts.log"
        if not self._table_path.exists():
            np.zeros((1 << FIRST_BITS) + SPARE, SLOT).tofile(self._table_path)
        self._texts = open(self._text_path, "ab")
        self._open()
        self._rows = int((np.fromfile(self._table_path, SLOT)["key"] != 0).sum())

    def load(self, keys: np.ndarray, lines: list[bytes], servers: np.ndarray) -> None:
        keys, rows = np.unique(keys, return_index=True)
        begin = self._texts.tell()
        self._texts.write(b"\n".join(lines) + b"\n")
        offsets = begin + np.cumsum([0, *(len(line) + 1 for line in lines)])[:-1][rows]
        fresh = np.zeros(len(keys), SLOT)
        fresh["key"], fresh["text"] = keys, offsets
        self._rebuild(fresh[~np.isin(keys, np.fromfile(self._table_path, SLOT)["key"])])
        self._sync()

    def take(self, batch: Batch) -> int:
        if 2 * (self._rows + len(batch.keys)) > 1 << self._bits:
            self._rebuild(np.empty(0, SLOT), len(batch.keys))
        table, shift, width = self._table, 64 - self._bits, SLOT.itemsize
        pread, pwrite, position, new = os.pread, os.pwrite, self._texts.tell(), 0
        pieces = []
        for key, line in zip(batch.keys.tolist(), batch.lines):
            offset = (key >> shift) * width
            wanted = key.to_bytes(8, "little")
            while (found := pread(table, 8, offset)) != wanted and found != bytes(8):
                offset += width
            if found != wanted:
                pwrite(table, wanted + position.to_bytes(8, "little") + bytes([WAITING]), offset)
                pieces.append(line)
                position += len(line) + 1
                new += 1
        for key in batch.collected.tolist():
            offset = (key >> shift) * width
            wanted = key.to_bytes(8, "little")
            while pread(table, 8, offset) != wanted:
                offset += width
            pwrite(table, bytes([COLLECTED]), offset + 16)
        self._texts.write(b"\n".join(pieces) + b"\n" * bool(pieces))
        self._rows += new
        self._sync()
        return new

    def settle(self) -> None:
        pass

    def close(self) -> None:
        os.close(self._table)
        self._texts.close()

    def _open(self) -> None:
        self._table = os.open(self._table_path, os.O_RDWR)
        slots = os.fstat(self._table).st_size // SLOT.itemsize - SPARE
        self._bits = slots.bit_length() - 1

    def _rebuild(self, fresh: np.ndarray, to_come: int = 0) -> None:
        """Adds rows (their keys distinct and new) and makes the table at most half full with those to come."""
        rows = np.fromfile(self._table_path, SLOT)
        rows = np.concatenate([rows[rows["key"] != 0], fresh])
        rows = rows[np.argsort(rows["key"])]
        bits = max(FIRST_BITS, (2 * (len(rows) + to_come)).bit_length())
        home = (rows["key"] >> np.uint64(64 - bits)).astype(np.int64)
        table = np.zeros((1 << bits) + SPARE, SLOT)
        table[np.maximum.accumulate(home - np.arange(len(home))) + np.arange(len(home))] = rows
        aside = self._table_path.with_suffix(".aside")
        table.tofile(aside)
        os.close(self._table)
        aside.rename(self._table_path)
        self._rows = len(rows)
        self._open()

    def _sync(self) -> None:
        self._texts.flush()
        os.fsync(self._texts.fileno())
        sync_file(self._table_path)
