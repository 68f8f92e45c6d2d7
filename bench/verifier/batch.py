"""What a cycle absorbs, in memory: the job that every peer gets, and that the verifier's step does."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa

WAITING, COLLECTED = 0, 2  # states as the verifier numbers them


class Batch:
    """URLs that arrived for a block, in the order in which they came, and those of it that were collected.

    Keys are u64; between two cycles of the stream a URL may come twice. Collected ones are distinct and known before.
    """

    def __init__(
        self,
        keys: np.ndarray,
        servers: np.ndarray,
        make_texts: Callable[[], pa.StringArray],
        collected: np.ndarray,
        make_collected_texts: Callable[[], pa.StringArray],
    ):
        self.keys = keys
        self.servers = servers  # u32, for the one peer that keeps one file per server
        self._make_texts = make_texts  # called late: while filling up to a mark no peer needs texts
        self.collected = collected
        self._make_collected_texts = make_collected_texts

    def __len__(self) -> int:
        return len(self.keys) + len(self.collected)

    @cached_property
    def texts(self) -> pa.StringArray:
        return self._make_texts()

    @cached_property
    def collected_texts(self) -> pa.StringArray:
        return self._make_collected_texts()

    @cached_property
    def lines(self) -> list[bytes]:
        """The texts as objects, which most peers take; made before the clock starts."""
        return to_lines(self.texts)

    @cached_property
    def collected_lines(self) -> list[bytes]:
        return to_lines(self.collected_texts)


def to_lines(texts: pa.StringArray) -> list[bytes]:
    return texts.cast(pa.binary()).to_pylist()


def pack(keys: np.ndarray) -> list[bytes]:
    """Each u64 as eight bytes that sort as the numbers do."""
    raw = keys.astype(">u8").tobytes()
    return [raw[start : start + 8] for start in range(0, len(raw), 8)]


def first_of_each(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct keys, sorted, and the first row of each."""
    return np.unique(keys, return_index=True)


def pick(lines: list[bytes], rows: np.ndarray) -> list[bytes]:
    return [lines[row] for row in rows.tolist()]
