"""Columns of a table as files: .npy, opened by mmap, or .npy.zst, packed in frames that `zstdcat` joins to .npy.

A column whose values hardly repeat, such as keys, is plain. The others are packed, mostly to less than half a byte per
row. Both are written piece by piece and read in part, so that a table of any length needs little memory.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from storage.arrays import Array, open_array, open_bytes
from storage.errors import Damaged, naming
from storage.frame_index import pack_index, read_index
from storage.frames import Broken, Members, TooLong, Torn, Zstd

PLAIN, PACKED = ".npy", ".npy.zst"
FRAME_ROWS = 1 << 18
LEVEL = 1  # of zstd: 3 makes these columns hardly smaller and takes twice as long
HEAD_BYTES = 128  # of an .npy file with one dimension, whatever its length


def head_of(dtype: np.dtype[Any], rows: int) -> bytes:
    """The head of an .npy file, always HEAD_BYTES long."""
    described = np.lib.format.dtype_to_descr(dtype)  # type: ignore[no-untyped-call]
    text = f"{{'descr': {described!r}, 'fortran_order': False, 'shape': ({rows},), }}"
    return b"\x93NUMPY\x01\x00" + (HEAD_BYTES - 10).to_bytes(2, "little") + text.ljust(HEAD_BYTES - 11).encode() + b"\n"


class PlainWriter:
    """Appends rows to an .npy file, whose head is written last."""

    def __init__(self, path: Path, dtype: str):
        self._dtype = np.dtype(dtype)
        self._rows = 0
        self._path = path
        self._file = open(path, "xb")
        self._file.write(bytes(HEAD_BYTES))

    def append(self, rows: Array) -> None:
        self._rows += len(rows)
        if not len(rows):
            return
        with naming(self._path):
            self._file.write(np.ascontiguousarray(rows, self._dtype).view(np.uint8).data)

    def close(self) -> None:
        with naming(self._path):
            self._file.seek(0)
            self._file.write(head_of(self._dtype, self._rows))
            self._file.close()


class PackedWriter:
    """Packs rows into frames, which stay in memory until the file can be written with its head.

    A column of zeros alone makes no file: readers take a missing file for that.
    """

    def __init__(self, path: Path, dtype: str):
        self._path = path
        self._dtype = np.dtype(dtype)
        self._zstd = Zstd(LEVEL)
        self._pending: list[Array] = []
        self._pending_rows = self._rows = 0
        self._frames: list[bytes] = []
        self._zeros: int | None = 0  # rows so far where all are zero: they are not packed unless others follow

    def append(self, rows: Array) -> None:
        if self._zeros is not None:
            if not rows.any():
                self._zeros += len(rows)
                return
            self._add(np.zeros(self._zeros, self._dtype))
            self._zeros = None
        self._add(np.asarray(rows).astype(self._dtype, copy=False))

    def _add(self, rows: Array) -> None:
        self._pending.append(rows)
        self._pending_rows += len(rows)
        if self._pending_rows >= FRAME_ROWS:
            self._pack(self._pending_rows - self._pending_rows % FRAME_ROWS)

    def _pack(self, rows: int) -> None:
        pending = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
        ready = np.ascontiguousarray(pending[:rows])
        content = ready.view(np.uint8).data
        step = FRAME_ROWS * self._dtype.itemsize
        self._frames += self._zstd.compress_each(
            [content[start : start + step] for start in range(0, len(content), step)]
        )
        self._pending, self._pending_rows = [pending[rows:].copy()], len(pending) - rows
        self._rows += rows

    def close(self) -> None:
        if self._zeros is not None:
            return
        if self._pending_rows:
            self._pack(self._pending_rows)
        head = self._zstd.compress(head_of(self._dtype, self._rows))
        starts = np.cumsum([len(head), *map(len, self._frames)])[:-1].tolist()
        with naming(self._path), open(self._path, "xb") as file:
            file.write(head)
            file.writelines(self._frames)
            file.write(pack_index(starts))


class ColumnsWriter:
    """Writes the columns of a table side by side; `packed` names those that are packed."""

    def __init__(self, folder: Path, dtypes: dict[str, str], packed: frozenset[str], prefix: str = ""):
        self._writers = {
            name: PackedWriter(folder / f"{prefix}{name}{PACKED}", dtype)
            if name in packed
            else PlainWriter(folder / f"{prefix}{name}{PLAIN}", dtype)
            for name, dtype in dtypes.items()
        }

    def append(self, rows: Mapping[str, Array]) -> None:
        """Adds rows of some of the columns; in the end all must have the same number of rows."""
        for name, values in rows.items():
            self._writers[name].append(values)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


class PackedColumn:
    """A packed column, read frame by frame."""

    def __init__(self, path: Path, dtype: str | np.dtype[Any], rows: int):
        self._path = path
        self._dtype = np.dtype(dtype)
        self._rows = rows
        self._data = open_bytes(path) if path.exists() else None
        if self._data is not None:
            (self._starts,) = read_index(path, self._data, 1)
            if len(self._starts) != -(-rows // FRAME_ROWS):
                raise Damaged(path, f"expected {rows} rows, found {len(self._starts)} frames of {FRAME_ROWS}")

    @property
    def is_zero(self) -> bool:
        return self._data is None

    def read(self, start: int, stop: int) -> Array:
        """The rows [start, stop), writable."""
        data = self._data
        if data is None:
            return np.zeros(stop - start, self._dtype)  # of fresh memory, which is zero until it is written to
        first = start // FRAME_ROWS
        parts = [self._frame(data, number) for number in range(first, -(-stop // FRAME_ROWS))]
        rows = np.concatenate(parts) if parts else np.empty(0, self._dtype)
        return rows[start - first * FRAME_ROWS : stop - first * FRAME_ROWS]

    def _frame(self, data: memoryview, number: int) -> Array:
        expected = min(FRAME_ROWS, self._rows - number * FRAME_ROWS)
        start = int(self._starts[number])
        try:
            content, _ = Members(data).read(start, FRAME_ROWS * self._dtype.itemsize)
        except (Torn, Broken, TooLong) as error:
            raise Damaged(self._path, str(error) or "expected a whole frame, found the end", start) from None
        if len(content) != expected * self._dtype.itemsize:
            raise Damaged(self._path, f"expected {expected} rows in a frame, found {len(content)} bytes", start)
        return np.frombuffer(content, self._dtype)


class Columns(Mapping[str, Array]):
    """The columns of a table: whole ones by name, each read once, or parts of them by read()."""

    def __init__(self, folder: Path | None, dtypes: dict[str, str], packed: frozenset[str], prefix: str = ""):
        self._dtypes = dtypes
        self._whole: dict[str, Array] = {}
        self._packed: dict[str, PackedColumn] = {}
        if folder is None:
            self._whole = {name: np.empty(0, dtype) for name, dtype in dtypes.items()}
            self._rows = 0
            return
        plain = {
            name: open_array(folder / f"{prefix}{name}{PLAIN}", dtype)
            for name, dtype in dtypes.items()
            if name not in packed
        }
        lengths = {len(array) for array in plain.values()}
        if len(lengths) != 1:
            raise Damaged(folder, "expected columns of one length, found several")
        (self._rows,) = lengths
        self._whole |= plain
        self._packed = {
            name: PackedColumn(folder / f"{prefix}{name}{PACKED}", dtypes[name], self._rows)
            for name in dtypes
            if name in packed
        }

    @property
    def rows(self) -> int:
        return self._rows

    def is_zero(self, name: str) -> bool:
        """Whether a packed column has no file, because all its rows are zero."""
        return name in self._packed and self._packed[name].is_zero

    def read(self, name: str, start: int, stop: int) -> Array:
        """Rows [start, stop) of a column; those of a packed one may be written to."""
        return self._packed[name].read(start, stop) if name in self._packed else self._whole[name][start:stop]

    def __getitem__(self, name: str) -> Array:
        if name not in self._whole:
            self._whole[name] = self._packed[name].read(0, self._rows)
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._dtypes)

    def __len__(self) -> int:
        return len(self._dtypes)


def read_packed(path: Path) -> Array:
    """A packed column of any type, which its own head names."""
    try:
        head, start = Members(memoryview(path.read_bytes())).read(0, HEAD_BYTES)
        described = ast.literal_eval(head[10:].decode("latin-1"))
        dtype, (rows,) = np.dtype(described["descr"]), described["shape"]
        if dtype.hasobject or not isinstance(rows, int) or rows < 0:
            raise ValueError(f"{rows} rows of {dtype}")
    except (Torn, Broken, TooLong, ValueError, SyntaxError, KeyError, TypeError) as error:
        raise Damaged(path, f"expected a packed .npy file, found {str(error) or 'a part of one'}") from None
    return PackedColumn(path, dtype, rows).read(0, rows)
