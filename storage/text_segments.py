"""Texts that are written once and read by their number: a segment is a file that `zstdcat` prints, one text per line.

A segment has zstd frames of about 512 KiB of lines, then frames of blobs (texts that may hold newlines), then an index.
For each frame, and for the end, the index has the number of the first line, the offset of the text among the blobs, and
the offset in the file. A line is found by its number, a blob by its position `segment << 32 | offset among the blobs`
and its length.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.arrays import Array, Keys, Rows, open_bytes
from storage.compiled import compiled
from storage.errors import Damaged, naming
from storage.frame_index import pack_index, read_index
from storage.frames import Broken, Bytes, Members, TooLong, Torn, Zstd
from storage.publish import raise_if_not_there
from storage.tables import only_chunk

# Of lines: a tenth smaller than with 64 KiB, and sooner packed. Who reads many lines reads nearly all frames anyway.
FRAME_BYTES = 512 << 10
BLOB_FRAME_BYTES = 64 << 10  # blobs are read one by one
FRAMES_AT_ONCE = 32  # 16 MiB of text: what is packed or unpacked at a time
BLOBS_MAX_BYTES = 1 << 32  # of a segment: positions have 32 bits for it
TEXT_MAX_BYTES = 64 << 20  # limit of a frame when reading: far above any frame that is written
NO_TEXT = np.uint64(0xFFFFFFFFFFFFFFFF)
LINES = pa.large_binary()
(_NEWLINE,) = b"\n"
PLAIN_LINES = 1 << 20  # that Arrow copies in the time of importing numba, with a copy of all sources


def data_of(texts: pa.Array) -> tuple[Array, Array]:
    """(n + 1 offsets, bytes u8 that they point into) of n texts; offsets of large types are i64, else i32."""
    _, offsets, data = texts.buffers()
    dtype = np.int64 if pa.types.is_large_binary(texts.type) or pa.types.is_large_string(texts.type) else np.int32
    ends = (
        np.frombuffer(offsets, dtype)[texts.offset : texts.offset + len(texts) + 1]
        if len(texts)
        else np.zeros(1, dtype)
    )
    return ends, np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)


def lines_at(offsets: Array, data: Array) -> pa.LargeBinaryArray:
    return pa.LargeBinaryArray.from_buffers(
        LINES, len(offsets) - 1, [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int64)), pa.py_buffer(data)]
    )


def take_lines(sources: list[pa.Array], which: Array) -> pa.LargeBinaryArray:
    """The texts of these rows (i32), each with a newline; rows are counted through all arrays of texts."""
    if not copy_lines.pays(len(which)):
        joined = pa.chunked_array([source.cast(LINES) for source in sources], LINES).take(pa.array(which))
        return pc.binary_join_element_wise(only_chunk(joined), *(pa.scalar(text, LINES) for text in (b"\n", b"")))
    edges = np.cumsum([0, *map(len, sources)])
    source_of = np.searchsorted(edges, which, "right") - 1
    offsets, parts = np.zeros(len(which) + 1, np.int64), []
    for number, source in enumerate(sources):
        here = np.flatnonzero(source_of == number)
        starts, data = data_of(source)
        row = which[here] - edges[number]
        begin = starts[row].astype(np.int64)
        offsets[here + 1] = starts[row + 1] - begin + 1
        parts.append((data, begin, here))
    np.cumsum(offsets, out=offsets)
    taken = np.empty(offsets[-1], np.uint8)
    for data, begin, here in parts:
        copy_lines(data, begin, here, offsets, taken)
    return lines_at(offsets, taken)


@compiled("u1[] i8[] i8[] i8[] -> u1[]", PLAIN_LINES)
def copy_lines(data: Array, begin: Array, number: Array, offsets: Array, taken: Array) -> int:
    """Copies texts that begin at these offsets, as the lines of these numbers."""
    for text in range(len(begin)):
        source, to, end = begin[text], offsets[number[text]], offsets[number[text] + 1] - 1
        # An index without a sign is not looked at for being below zero, which would take seven times as long.
        for at in range(end - to):
            taken[np.uint64(to + at)] = data[np.uint64(source + at)]
        taken[end] = _NEWLINE
    return 0


class SegmentWriter:
    """Appends lines, then blobs, to a new segment."""

    def __init__(self, path: Path, number: int):
        self._path = path
        self._file = open(path, "xb")
        self._number = number
        self._zstd = Zstd()
        self._pending: list[Array] = []  # lines behind each other, less than a frame
        self._pending_lines = self._pending_bytes = 0
        self._index: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._blobs_end = self._file_end = 0
        self.lines = 0

    def append(self, lines: pa.LargeBinaryArray) -> None:
        """Adds lines, each with its newline at the end."""
        offsets, data = data_of(lines)
        for start in range(0, len(lines), 1 << 20):
            self._append(offsets[start : start + (1 << 20) + 1], data)

    def _append(self, offsets: Array, data: Array) -> None:
        # A frame ends with the line that brings it to FRAME_BYTES, also where that began in an earlier call.
        ends = self._pending_bytes + offsets - offsets[0]
        cuts, frame_start = [0], 0
        while ends[-1] - frame_start >= FRAME_BYTES:
            cuts.append(int(np.searchsorted(ends, frame_start + FRAME_BYTES)))
            frame_start = ends[cuts[-1]]
        frames: list[Bytes] = []
        counts = []
        for low, high in zip(cuts, cuts[1:]):
            piece = data[offsets[low] : offsets[high]]
            frames.append((np.concatenate([*self._pending, piece]) if self._pending else piece).data)
            counts.append(self._pending_lines + high - low)
            self._pending, self._pending_lines, self._pending_bytes = [], 0, 0
        rest = data[offsets[cuts[-1]] : offsets[-1]]
        if len(rest):
            self._pending.append(rest.copy())
            self._pending_lines += len(offsets) - 1 - cuts[-1]
            self._pending_bytes += len(rest)
        self._write(frames, counts)

    def _write(self, frames: list[Bytes], counts: list[int]) -> None:
        for start in range(0, len(frames), FRAMES_AT_ONCE):
            group = frames[start : start + FRAMES_AT_ONCE]
            for frame, count, packed in zip(group, counts[start:], self._zstd.compress_each(group)):
                self._add_to_index()
                with naming(self._path):
                    self._file.write(packed)
                self.lines += count
                self._blobs_end += len(frame) if not count else 0
                self._file_end += len(packed)

    def _add_to_index(self) -> None:
        for row, value in zip(self._index, (self.lines, self._blobs_end, self._file_end)):
            row.append(value)

    def close(self, blobs: list[bytes]) -> Keys:
        """Adds the blobs and the index; returns the position (u64) of each blob, NO_TEXT where it has no room."""
        if self._pending:
            self._write([np.concatenate(self._pending).data], [self._pending_lines])
        positions: list[int] = []
        frame: list[bytes] = []
        frame_bytes = 0
        for blob in blobs:
            positions.append(self._blobs_end + frame_bytes)
            if positions[-1] >= BLOBS_MAX_BYTES:
                continue
            frame += (blob, b"\n")
            frame_bytes += len(blob) + 1
            if frame_bytes >= BLOB_FRAME_BYTES:
                self._write([b"".join(frame)], [0])
                frame, frame_bytes = [], 0
        if frame:
            self._write([b"".join(frame)], [0])
        self._add_to_index()
        with naming(self._path):
            self._file.write(pack_index(*self._index))
            self._file.close()
        offsets = np.array(positions, np.uint64)
        return np.where(offsets < BLOBS_MAX_BYTES, np.uint64(self._number) << np.uint64(32) | offsets, NO_TEXT)


class Segment:
    """One segment, open for reading."""

    def __init__(self, path: Path):
        self._path = path
        try:
            self._data = open_bytes(path)
        except FileNotFoundError:
            raise Damaged(path, "expected a segment of text, found no file") from None
        except OSError as error:
            raise_if_not_there(path, error)
        self._first_lines, self._text_starts, self._file_starts = (
            row.astype(np.int64) for row in read_index(path, self._data, 3)
        )
        if not len(self._file_starts):
            raise Damaged(path, "expected the end in the index, found none")
        try:
            self._members = Members(self._data)
        except (Torn, Broken) as error:
            raise Damaged(path, str(error) or "expected a whole frame, found the end", 0) from None

    def frame_texts(self) -> Iterator[bytes]:
        """All text, frame by frame."""
        return map(self._load, range(len(self._file_starts) - 1))

    def read_lines(self, numbers: Rows) -> Iterator[pa.LargeBinaryArray]:
        """The lines of these numbers (i64, rising, each once), with their newlines, some at a time.

        Each frame is read once.
        """
        if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < self._first_lines[-1]:
            raise Damaged(self._path, f"expected lines {numbers[0]} to {numbers[-1]}, found {self._first_lines[-1]}")
        frames = np.searchsorted(self._first_lines, numbers, "right") - 1
        needed = np.unique(frames)
        for start in range(0, len(needed), FRAMES_AT_ONCE):
            group = needed[start : start + FRAMES_AT_ONCE]
            low, high = np.searchsorted(frames, (group[0], group[-1] + 1))
            yield self._pick(group, numbers[low:high], frames[low:high])

    def _pick(self, group: Rows, numbers: Rows, frames: Rows) -> pa.LargeBinaryArray:
        contents = [np.frombuffer(self._load(frame), np.uint8) for frame in group.tolist()]
        data = np.concatenate(contents)
        offsets = np.concatenate(([0], np.flatnonzero(data == ord("\n")) + 1))
        ends = np.cumsum([len(content) for content in contents])
        # The line of `data` that each frame begins with.
        first_here = np.concatenate(([0], np.searchsorted(offsets, ends)))[:-1]
        line = first_here[np.searchsorted(group, frames)] + numbers - self._first_lines[frames]
        if len(line) and line[-1] >= len(offsets) - 1:
            raise Damaged(self._path, f"expected line {numbers[-1]}, found the end of its frame")
        return lines_at(offsets, data).take(pa.array(line))

    def read_blob(self, offset: int, length: int) -> bytes:
        frame = int(np.searchsorted(self._text_starts[:-1], offset, "right")) - 1
        is_there = frame >= 0 and self._first_lines[frame] == self._first_lines[-1]
        text = self._load(frame) if is_there else b""
        begin = offset - int(self._text_starts[frame])
        if not is_there or begin + length > len(text):
            raise Damaged(self._path, f"expected a text at offset {offset}, found the end of its frame")
        return text[begin : begin + length]

    def _load(self, frame: int) -> bytes:
        start = int(self._file_starts[frame])
        try:
            return self._members.read(start, TEXT_MAX_BYTES)[0]
        except (Torn, Broken, TooLong) as error:
            raise Damaged(self._path, str(error) or "expected a whole frame, found the end", start) from None


def read_blobs(folder: Path, name_of: Callable[[int], str], positions: Keys, lengths: Array) -> list[bytes]:
    """The blobs at these positions (u64), in the order asked. `name_of` names a segment's file."""
    blobs: list[bytes] = [b""] * len(positions)
    segment, opened = -1, None
    for number in np.argsort(positions, kind="stable").tolist():
        position = int(positions[number])
        if opened is None or position >> 32 != segment:
            segment = position >> 32
            opened = Segment(folder / name_of(segment))
        blobs[number] = opened.read_blob(position & 0xFFFFFFFF, int(lengths[number]))
    return blobs


def segments_of(positions: Keys) -> Keys:
    """The distinct segment numbers of blobs (u64, NO_TEXT passed over), sorted."""
    numbers: Keys = np.unique(positions[positions != NO_TEXT] >> np.uint64(32))
    return numbers
