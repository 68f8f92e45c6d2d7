"""The index at the end of a file of zstd frames: where each frame begins, by one or more counts.

It is a skippable frame, so that `zstdcat` passes over it. It has rows of u64 of equal length, their checksum, and last,
in 8 bytes, the length of its own payload, from which a reader finds its start.
"""

from pathlib import Path

import numpy as np
import xxhash

from storage.arrays import Keys
from storage.errors import Damaged
from storage.frames import skippable

_TAIL_BYTES = 16  # checksum and length


def pack_index(*rows: list[int]) -> bytes:
    """The frame that a file ends with; all rows have one number for each frame."""
    table = np.array(rows, "<u8").tobytes()
    return skippable(table + xxhash.xxh3_64_digest(table) + (len(table) + _TAIL_BYTES).to_bytes(8, "little"))


def read_index(path: Path, data: memoryview, rows: int) -> Keys:
    """The rows of the index of a file, u64 of shape (rows, frames); Damaged where it is not whole."""
    size = len(data)
    length = int.from_bytes(data[size - 8 :], "little") if size >= _TAIL_BYTES else -1
    table_bytes = length - _TAIL_BYTES
    if not 0 <= table_bytes <= size - _TAIL_BYTES or table_bytes % (8 * rows):
        raise Damaged(path, "expected an index at the end, found none", size)
    table = bytes(data[size - length : size - _TAIL_BYTES])
    if xxhash.xxh3_64_digest(table) != data[size - _TAIL_BYTES : size - 8]:
        raise Damaged(path, "expected an index at the end, found one that does not fit its checksum", size - length)
    return np.frombuffer(table, "<u8").reshape(rows, -1)
