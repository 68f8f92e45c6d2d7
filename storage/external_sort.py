"""Sorts more numbers than fit into memory: they are cut by their top bits into files, and each file is sorted alone.

A number has 64 bits, and may carry a payload of 32. Numbers rise from file to file, so no files are merged. A file
that grew too large for memory, because many numbers begin alike, is cut again by the bits that follow.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from storage.arrays import Array, Keys
from storage.compiled import compiled
from storage.errors import naming

FILES_MAX_BITS = 8  # 256 open files
Payload = npt.NDArray[np.uint32]


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
        wanted = (2 * expected // self._at_once).bit_length()  # files are half as large, in case they differ
        self._file_bits = min(wanted, FILES_MAX_BITS, bits)
        self._shift = bits - self._file_bits
        self._low = low
        self._has_payload = has_payload
        self._sizes = np.zeros(1 << self._file_bits, np.int64)
        folder.mkdir(parents=True)
        self._files: dict[str, BinaryIO] = {}

    def __len__(self) -> int:
        return int(self._sizes.sum())

    def add(self, numbers: Keys, payload: Payload | None = None) -> None:
        """Numbers u64 in any order, each at least `low`; payloads u32."""
        numbers = np.ascontiguousarray(numbers)
        if not len(numbers):
            return
        counts = np.zeros(len(self._sizes), np.int64)
        if len(counts) == 1:
            counts[0] = len(numbers)
        else:
            count_files(numbers, self._low, self._shift, counts)
            starts = np.cumsum(counts) - counts
            grouped = np.empty_like(numbers)
            if payload is None:
                group(numbers, self._low, self._shift, grouped, starts)
            else:
                grouped_payload = np.empty_like(payload)
                group_with_payload(numbers, payload, self._low, self._shift, grouped, grouped_payload, starts)
                payload = grouped_payload
            numbers = grouped
        stops = np.cumsum(counts)
        for file in np.flatnonzero(counts).tolist():
            part = slice(stops[file] - counts[file], stops[file])
            self._write(f"{file}", numbers[part])
            if payload is not None:
                self._write(f"{file}.payload", payload[part])
        self._sizes += counts

    def _write(self, name: str, values: Array) -> None:
        path = self._folder / name
        with naming(path):
            if name not in self._files:
                self._files[name] = open(path, "xb")
            self._files[name].write(values.view(np.uint8).data)

    def read(self) -> Iterator[Piece]:
        """All numbers; those of a piece are never below those of the piece before."""
        for file, low, high in self._ranges():
            if self._sizes[file] <= self._at_once or not self._shift:
                for piece in self._load(file, low, high, int(self._sizes[file])):
                    yield piece
            else:
                inner = ExternalSort(
                    self._folder / f"{file}.cut",
                    self._shift,
                    int(self._sizes[file]),
                    self._at_once,
                    self._has_payload,
                    low,
                )
                for piece in self._load(file, low, high, self._at_once, is_sorted=False):
                    inner.add(piece.numbers, piece.payload)
                yield from inner.read()
        self._folder.rmdir()

    def read_unjoined(self) -> Iterator[Piece]:
        """All numbers; pieces of one file may overlap, so that no file is cut again, however often a number repeats."""
        for file, low, high in self._ranges():
            yield from self._load(file, low, high, self._at_once)
        self._folder.rmdir()

    def _ranges(self) -> Iterator[tuple[int, int, int]]:
        for opened in self._files.values():
            opened.close()
        self._files = {}
        for file in np.flatnonzero(self._sizes).tolist():
            yield file, self._low + (file << self._shift), self._low + (file + 1 << self._shift)

    def _load(self, file: int, low: int, high: int, most: int, is_sorted: bool = True) -> Iterator[Piece]:
        path, payload_path = self._folder / f"{file}", self._folder / f"{file}.payload"
        for start in range(0, int(self._sizes[file]), most):
            numbers = np.fromfile(path, np.uint64, most, offset=8 * start)
            payload = np.fromfile(payload_path, np.uint32, most, offset=4 * start) if self._has_payload else None
            if is_sorted and payload is None:
                numbers.sort()
            elif is_sorted and payload is not None:
                order = np.argsort(numbers)
                numbers, payload = numbers[order], payload[order]
            yield Piece(numbers, payload, low, high)
        path.unlink()
        payload_path.unlink(missing_ok=True)


@compiled("u8[] u8 i8 -> i8[]")
def count_files(numbers: Array, low: int, shift: int, counts: Array) -> int:
    """Adds to `counts` how many numbers belong into each file."""
    for number in numbers:
        counts[(number - low) >> np.uint64(shift)] += 1
    return 0


@compiled("u8[] u8 i8 -> u8[] i8[]")
def group(numbers: Array, low: int, shift: int, grouped: Array, starts: Array) -> int:
    """Numbers, those of a file behind each other from `starts` on, which moves."""
    for number in numbers:
        file = (number - low) >> np.uint64(shift)
        grouped[starts[file]] = number
        starts[file] += 1
    return 0


@compiled("u8[] u4[] u8 i8 -> u8[] u4[] i8[]")
def group_with_payload(
    numbers: Array, payload: Array, low: int, shift: int, grouped: Array, grouped_payload: Array, starts: Array
) -> int:
    """As group(), and the payloads with them."""
    for row in range(len(numbers)):
        file = (numbers[row] - low) >> np.uint64(shift)
        grouped[starts[file]] = numbers[row]
        grouped_payload[starts[file]] = payload[row]
        starts[file] += 1
    return 0
