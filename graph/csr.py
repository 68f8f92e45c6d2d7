"""A graph as arrays: the targets of node i are targets[offsets[i]:offsets[i + 1]], rising, each once.

Files NAME.offsets.npy, NAME.targets.npy and, of servers and domains, NAME.weights.npy: how many links of pages an edge
stands for. All are opened by mmap. Types are the smallest that hold the numbers: SciPy takes them as they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from storage.arrays import Array, Keys, Rows, open_array
from storage.columns import PlainWriter
from storage.errors import Damaged

NODES_MAX = (1 << 32) - 1  # a pair of numbers has 64 bits, and one number stands for none
INT32_END = 1 << 31
ROWS_AT_ONCE = 1 << 20


def number_type(end: int) -> str:
    """The smallest type that has the numbers below `end`."""
    return "<i4" if end <= INT32_END else "<i8"


def bits_of(nodes: int) -> int:
    return max(nodes - 1, 0).bit_length()


def join_pairs(high: Array, low: Array, nodes: int) -> Keys:
    """Pairs of numbers below `nodes` as numbers, which rise as the pairs do."""
    return high.astype(np.uint64) << np.uint64(bits_of(nodes)) | low.astype(np.uint64)


def cut_pairs(pairs: Keys, nodes: int) -> tuple[Keys, Keys]:
    bits = np.uint64(bits_of(nodes))
    return pairs >> bits, pairs & ((np.uint64(1) << bits) - np.uint64(1))


class CsrWriter:
    """Appends edges, which come sorted by (source, target) and each once."""

    def __init__(self, folder: Path, name: str, nodes: int, has_weights: bool = False):
        self._folder, self._name, self._nodes = folder, name, nodes
        self._aside = folder / f".{name}.offsets"
        self._starts = PlainWriter(self._aside, "<i8")
        self._targets = PlainWriter(folder / f"{name}.targets.npy", number_type(nodes))
        self._weights = PlainWriter(folder / f"{name}.weights.npy", "<u4") if has_weights else None
        self._row = self.edges = 0  # rows whose start is known

    def append(self, sources: Keys, targets: Keys, weights: npt.NDArray[np.uint32] | None = None) -> None:
        if not len(sources):
            return
        self._fill(int(sources[0]))
        first, last = self._row, int(sources[-1])
        if last >= first:  # the first source may have been begun by the edges before
            within = sources[np.searchsorted(sources, np.uint64(first)) :]
            begun = len(sources) - len(within)
            degrees = np.bincount((within - np.uint64(first)).astype(np.int64), minlength=last - first + 1)
            self._starts.append(self.edges + begun + np.cumsum(degrees) - degrees)
            self._row = last + 1
        self._targets.append(targets)
        if self._weights is not None:
            self._weights.append(weights)
        self.edges += len(sources)

    def _fill(self, stop: int) -> None:
        """The rows before `stop` have no edges."""
        while self._row < stop:
            rows = min(stop - self._row, ROWS_AT_ONCE)
            self._starts.append(np.full(rows, self.edges))
            self._row += rows

    def close(self) -> None:
        self._fill(self._nodes + 1)
        self._starts.close()
        self._targets.close()
        if self._weights is not None:
            self._weights.close()
        starts = open_array(self._aside, "<i8")
        offsets = PlainWriter(self._folder / f"{self._name}.offsets.npy", number_type(self.edges + 1))
        for start in range(0, len(starts), ROWS_AT_ONCE):
            offsets.append(starts[start : start + ROWS_AT_ONCE])
        offsets.close()
        self._aside.unlink()


@dataclass(frozen=True)
class Csr:
    offsets: Array
    targets: Array
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def edges(self) -> int:
        return len(self.targets)

    def degrees(self) -> Rows:
        degrees: Rows = np.diff(self.offsets).astype(np.int64)
        return degrees

    def row_pieces(self, edges_at_once: int) -> Iterator[tuple[int, int]]:
        """Ranges [start, stop) of rows that have at most so many edges together, but at least one row."""
        start = 0
        while start < len(self):
            limit = min(int(self.offsets[start]) + edges_at_once, self.edges)
            found = np.searchsorted(self.offsets, self.offsets.dtype.type(limit), "right")  # another type copies all
            stop = max(int(found) - 1, start + 1)
            stop = min(stop, start + edges_at_once, len(self))
            yield start, stop
            start = stop

    def edge_pieces(self, edges_at_once: int) -> Iterator[tuple[Rows, Array, Array | None]]:
        """(sources, targets, weights) of all edges in their order, at most so many at a time; a row may be cut."""
        for start, stop in self.row_pieces(edges_at_once):
            low, high = int(self.offsets[start]), int(self.offsets[stop])
            counts = np.diff(self.offsets[start : stop + 1])
            if stop == start + 1:
                for begin in range(low, high, edges_at_once):
                    part = slice(begin, min(begin + edges_at_once, high))
                    weights = None if self.weights is None else self.weights[part]
                    yield np.full(part.stop - begin, start), self.targets[part], weights
                continue
            weights = None if self.weights is None else self.weights[low:high]
            yield np.repeat(np.arange(start, stop), counts), self.targets[low:high], weights


def open_csr(folder: Path, name: str, nodes: int, edges: int, has_weights: bool = False) -> Csr:
    offsets = open_array(folder / f"{name}.offsets.npy", number_type(edges + 1))
    targets = open_array(folder / f"{name}.targets.npy", number_type(nodes))
    weights = open_array(folder / f"{name}.weights.npy", "<u4") if has_weights else None
    if len(offsets) != nodes + 1 or len(targets) != edges or offsets[-1] != edges:
        found = f"{len(offsets) - 1} nodes and {len(targets)} edges"
        raise Damaged(folder / f"{name}.offsets.npy", f"expected {nodes} nodes and {edges} edges, found {found}")
    return Csr(offsets, targets, weights)
