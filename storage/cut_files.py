"""Numbers that are cut by their top bits into files, each of which is meant to fit into memory.

A number has 64 bits, and may carry a payload of 32. Numbers rise from file to file; within a file they stand in the
order in which they were added.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from storage.arrays import Array, Keys, Rows
from storage.compiled import compiled
from storage.errors import naming

FILES_MAX_BITS = 8  # 256 open files
NUMBER_BYTES, PAYLOAD_BYTES = 8, 4
Payload = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class CutFile:
    """One file: `rows` numbers in [low, high), which share all bits but the last `bits`."""

    path: Path
    has_payload: bool
    rows: int
    bits: int
    low: int
    high: int

    @property
    def payload_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.payload")

    def load(self, most: int) -> Iterator[tuple[Keys, Payload | None]]:
        """All numbers with their payloads, at most so many at a time."""
        for start in range(0, self.rows, most):
            numbers = np.fromfile(self.path, np.uint64, most, offset=NUMBER_BYTES * start)
            payload = None
            if self.has_payload:
                payload = np.fromfile(self.payload_path, np.uint32, most, offset=PAYLOAD_BYTES * start)
            yield numbers, payload

    def remove(self) -> None:
        self.path.unlink()
        self.payload_path.unlink(missing_ok=True)


class CutFiles:
    """`expected`: about how many numbers below 2^bits + low will come; `at_once`: how many may be in memory."""

    def __init__(self, folder: Path, bits: int, expected: int, at_once: int, has_payload: bool = False, low: int = 0):
        self._folder = folder
        wanted = (2 * expected // max(at_once, 1)).bit_length()  # files are half as large, in case they differ
        file_bits = min(wanted, FILES_MAX_BITS, bits)
        self._shift = bits - file_bits
        self._low = low
        self._has_payload = has_payload
        self.sizes = np.zeros(1 << file_bits, np.int64)
        folder.mkdir(parents=True)
        self._files: dict[str, BinaryIO] = {}

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def add(self, numbers: Keys, payload: Payload | None = None) -> None:
        """Numbers u64 in any order, each at least `low`; payloads u32."""
        numbers = np.ascontiguousarray(numbers)
        if not len(numbers):
            return
        counts = np.zeros(len(self.sizes), np.int64)
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
        self.sizes += counts

    def _write(self, name: str, values: Array) -> None:
        path = self._folder / name
        with naming(path):
            if name not in self._files:
                self._files[name] = open(path, "xb")
            self._files[name].write(values.view(np.uint8).data)

    def files(self) -> Iterator[CutFile]:
        """Those that hold something, in the order of their numbers; nothing is added any more."""
        for opened in self._files.values():
            opened.close()
        self._files = {}
        for file in np.flatnonzero(self.sizes).tolist():
            low, high = (self._low + (number << self._shift) for number in (file, file + 1))
            yield CutFile(self._folder / f"{file}", self._has_payload, int(self.sizes[file]), self._shift, low, high)

    def take(self, numbers: Keys, values: Array, at: Rows) -> Array:
        """For each number the next value of its file: `values` (u1) has those of a file from at[file] on, which moves.

        REQUIRES: the numbers are those that were added, in their order.
        """
        if len(at) == 1:  # numbers of 64 bits cannot be shifted by 64
            at += len(numbers)
            return values[at[0] - len(numbers) : at[0]]
        taken = np.empty(len(numbers), np.uint8)
        take_next(np.ascontiguousarray(numbers), values, self._low, self._shift, taken, at)
        return taken


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


@compiled("u8[] u1[] u8 i8 -> u1[] i8[]")
def take_next(numbers: Array, values: Array, low: int, shift: int, taken: Array, at: Array) -> int:
    """What CutFiles.take does."""
    for row in range(len(numbers)):
        file = (numbers[row] - low) >> np.uint64(shift)
        taken[row] = values[at[file]]
        at[file] += 1
    return 0
