"""Sorted texts, read by their number and found by their text with a few pages of disk.

A store is a file of zstd frames, each with FRAME_TEXTS lines, and an array with the offset of each frame and of the
end. The first line of every frame stands in a second store, and so on, until a store has one frame. To find a text,
one frame of each is read; to read the text of a number, one frame. `zstdcat NAME.0.zst` prints all texts.
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.arrays import Rows, open_array, open_bytes
from storage.columns import PlainWriter
from storage.errors import Damaged, naming
from storage.frames import Broken, Members, TooLong, Torn, Zstd
from storage.text_segments import LINES, data_of, lines_at

FRAME_TEXTS = 512
FRAME_MAX_BYTES = 1 << 26
FRAMES_AT_ONCE = 64
(_NEWLINE,) = b"\n"


class TextStoreWriter:
    """Appends texts, which come sorted and each once, and holds no newline."""

    def __init__(self, folder: Path, name: str, level: int = 0):
        self._where, self._level = (folder, name), level
        self._path = folder / f"{name}.{level}.zst"
        self._file = open(self._path, "xb")
        self._offsets = PlainWriter(folder / f"{name}.{level}.npy", "<u8")
        self._end = 0
        self._zstd = Zstd()
        self._pending = pa.array([], LINES)
        self._firsts: list[pa.Array] = []
        self._frames = 0
        self._upper: TextStoreWriter | None = None

    def append(self, texts: pa.LargeBinaryArray) -> None:
        texts = pa.concat_arrays([self._pending, texts])
        whole = len(texts) - len(texts) % FRAME_TEXTS
        self._write(texts.slice(0, whole))
        self._pending = texts.slice(whole).take(pa.array(np.arange(len(texts) - whole)))

    def _write(self, texts: pa.LargeBinaryArray) -> None:
        if not len(texts):
            return
        lines = pc.binary_join_element_wise(texts, *(pa.scalar(text, LINES) for text in (b"\n", b"")))
        offsets, data = data_of(lines)
        starts = np.append(np.arange(0, len(lines), FRAME_TEXTS), len(lines))
        frames = [data[offsets[low] : offsets[high]].data for low, high in zip(starts, starts[1:])]
        for begin in range(0, len(frames), FRAMES_AT_ONCE):
            packed = self._zstd.compress_each(frames[begin : begin + FRAMES_AT_ONCE])
            sizes = np.fromiter(map(len, packed), np.uint64, len(packed))
            ends = np.uint64(self._end) + np.cumsum(sizes, dtype=np.uint64)
            self._offsets.append(ends - sizes)
            self._end = int(ends[-1])
            with naming(self._path):
                self._file.writelines(packed)
        self._firsts.append(texts.take(pa.array(starts[:-1])))
        self._frames += len(frames)
        if self._frames > 1:
            if self._upper is None:
                self._upper = TextStoreWriter(*self._where, self._level + 1)
            for firsts in self._firsts:
                self._upper.append(firsts)
            self._firsts = []

    def close(self) -> None:
        self._write(self._pending)
        self._offsets.append(np.array([self._end], np.uint64))
        self._offsets.close()
        with naming(self._path):
            self._file.close()
        if self._upper is not None:
            self._upper.close()


class TextStore:
    def __init__(self, folder: Path, name: str, texts: int):
        self._texts = texts
        self._levels = [Level(folder / f"{name}.0")]
        while self._levels[-1].frames > 1:
            self._levels.append(Level(folder / f"{name}.{len(self._levels)}"))

    def __len__(self) -> int:
        return self._texts

    def __getitem__(self, number: int) -> str:
        """REQUIRES: 0 <= number < len(self)."""
        frame, line = divmod(number, FRAME_TEXTS)
        return self._levels[0].read(frame)[line].decode()

    def find(self, text: str) -> int | None:
        """The number of a text."""
        wanted, frame = text.encode(errors="surrogateescape"), 0  # an argument may hold any byte
        lines: list[bytes] = []
        for level in reversed(self._levels):
            if not level.frames:
                return None
            lines = level.read(frame)
            line = max(bisect_right(lines, wanted) - 1, 0)
            frame = frame * FRAME_TEXTS + line
        return frame if lines[line] == wanted else None

    def pieces(self, start: int = 0, stop: int | None = None) -> Iterator[list[str]]:
        """The texts of the numbers [start, stop), in order, some at a time."""
        stop = self._texts if stop is None else stop
        for frame in range(start // FRAME_TEXTS, -(-stop // FRAME_TEXTS)):
            first = frame * FRAME_TEXTS
            lines = self._levels[0].read(frame)[max(start - first, 0) : stop - first]
            yield [line.decode() for line in lines]

    def batches(self, frames_at_once: int) -> Iterator[pa.LargeBinaryArray]:
        """All texts in their order, some frames at a time."""
        frames = self._levels[0].frames
        for start in range(0, frames, frames_at_once):
            yield self._levels[0].read_together(start, min(start + frames_at_once, frames))

    def read(self, numbers: Rows) -> list[str]:
        """The texts of these numbers, in any order; each frame is read once."""
        order = np.argsort(numbers, kind="stable")
        texts = [""] * len(numbers)
        frame, lines = -1, []
        for at in order.tolist():
            wanted, line = divmod(int(numbers[at]), FRAME_TEXTS)
            if wanted != frame:
                frame, lines = wanted, self._levels[0].read(wanted)
            texts[at] = lines[line].decode()
        return texts


class Level:
    """One file of frames."""

    def __init__(self, stem: Path):
        self._path = stem.with_name(f"{stem.name}.zst")
        self._offsets = open_array(stem.with_name(f"{stem.name}.npy"), "<u8")
        self.frames = len(self._offsets) - 1
        self._data = open_bytes(self._path) if self.frames > 0 else memoryview(b"")
        if self.frames < 0 or self._offsets[-1] != len(self._data):
            raise Damaged(self._path, f"expected {self._offsets[-1:]} bytes, found {len(self._data)}")

    def read(self, frame: int) -> list[bytes]:
        """The lines of a frame, without newlines."""
        return self._unpack(frame).splitlines()

    def read_together(self, start: int, stop: int) -> pa.LargeBinaryArray:
        """The lines of these frames, without newlines."""
        data = np.frombuffer(b"".join(map(self._unpack, range(start, stop))), np.uint8)
        is_end = data == _NEWLINE
        ends = np.flatnonzero(is_end)
        return lines_at(np.append(0, ends - np.arange(len(ends))), data[~is_end])

    def _unpack(self, frame: int) -> bytes:
        start = int(self._offsets[frame])
        try:
            return Members(self._data).read(start, FRAME_MAX_BYTES)[0]
        except (Torn, Broken, TooLong) as error:
            raise Damaged(self._path, str(error) or "expected a whole frame, found the end", start) from None
