"""Sorts more numbers than fit into memory: they are cut by their top bits into files, and each file is sorted alone.

Numbers rise from file to file, so no files are merged. A file that grew too large for memory, because many numbers
begin alike, is cut again by the bits that follow.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.arrays import Keys
from storage.cut_files import CutFile, CutFiles, Payload

PAYLOAD_BITS = 32


class Piece(NamedTuple):
    """Numbers (u64, rising) in [low, high), with their payloads (u32), none where numbers carry none."""

    numbers: Keys
    payload: Payload | None
    low: int
    high: int


class ExternalSort:
    """Numbers below 2^bits that are added in any order and read in a rising one. Its files are deleted as it is read.

    `expected`: about how many will come; `at_once`: how many may be in memory. One thread adds or reads at a time.
    """

    def __init__(self, folder: Path, bits: int, expected: int, at_once: int, has_payload: bool = False, low: int = 0):
        self._folder = folder
        self._at_once = max(at_once, 1)
        self._has_payload = has_payload
        self._cut = CutFiles(folder, bits, expected, self._at_once, has_payload, low)
        self.add = self._cut.add

    def __len__(self) -> int:
        return len(self._cut)

    def read(self) -> Iterator[Piece]:
        """All numbers; those of a piece are never below those of the piece before."""
        for file in self._cut.files():
            if file.rows <= self._at_once or not file.bits:
                yield from load_sorted(file, file.rows)
            else:
                yield from self._cut_again(file).read()
        self._folder.rmdir()

    def read_ordered(self) -> Iterator[Piece]:
        """All numbers, equal ones by their payloads. However often a number repeats, a piece fits into memory."""
        for file in self._cut.files():
            if file.rows <= self._at_once:
                for piece in load_sorted(file, file.rows):
                    payload = carried(piece.payload)
                    order = np.lexsort((payload, piece.numbers))
                    yield piece._replace(numbers=piece.numbers[order], payload=payload[order])
            elif file.bits:
                yield from self._cut_again(file).read_ordered()
            else:
                yield from self._read_equal(file)
        self._folder.rmdir()

    def _cut_again(self, file: CutFile) -> "ExternalSort":
        """The numbers of a file, which is deleted."""
        folder = self._folder / f"{file.path.name}.cut"
        inner = ExternalSort(folder, file.bits, file.rows, self._at_once, self._has_payload, file.low)
        for numbers, payload in file.load(self._at_once):
            inner.add(numbers, payload)
        file.remove()
        return inner

    def _read_equal(self, file: CutFile) -> Iterator[Piece]:
        """One number with all its payloads, which are sorted as numbers are."""
        payloads = ExternalSort(self._folder / f"{file.path.name}.payloads", PAYLOAD_BITS, file.rows, self._at_once)
        for _, payload in file.load(self._at_once):
            payloads.add(carried(payload).astype(np.uint64))
        file.remove()
        for piece in payloads.read():
            numbers = np.full(len(piece.numbers), file.low, np.uint64)
            yield Piece(numbers, piece.numbers.astype(np.uint32), file.low, file.high)

    def read_unjoined(self) -> Iterator[Piece]:
        """All numbers; pieces of one file may overlap, so that no file is cut again, however often a number repeats."""
        for file in self._cut.files():
            yield from load_sorted(file, self._at_once)
        self._folder.rmdir()


def carried(payload: Payload | None) -> Payload:
    assert payload is not None, "numbers have payloads"
    return payload


def load_sorted(file: CutFile, most: int) -> Iterator[Piece]:
    """The numbers of a file, sorted, at most so many at a time; deletes it."""
    for numbers, payload in file.load(most):
        if payload is None:
            numbers.sort()
        else:
            order = np.argsort(numbers)
            numbers, payload = numbers[order], payload[order]
        yield Piece(numbers, payload, file.low, file.high)
    file.remove()
