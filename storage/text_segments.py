"""Text that is written once and read by position: a segment is a file that `zstdcat` prints.

A segment is a row of zstd frames of about 64 KiB of text, then one skippable frame with the index (for each
frame: where its text begins, where its bytes begin), then the index's length. A position is
`segment << 32 | offset of the text`. Texts are stored with a newline behind each, so that a text without
newlines needs no length; `read_texts` takes lengths for the others.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from storage.errors import Damaged
from storage.frames import Broken, Members, TooLong, Torn, Zstd, skippable

FRAME_BYTES = 64 << 10
TEXT_MAX_BYTES = 64 << 20  # a frame's limit when reading: far above any URL or robots.txt
NO_TEXT = np.uint64(0xFFFFFFFFFFFFFFFF)
TO_NEWLINE = -1


def write_segment(path: Path, number: int, texts: Iterable[bytes]) -> np.ndarray:
    """Writes the texts in their order; returns the position (u64) of each."""
    compressor = Zstd()
    offsets: list[int] = []
    text_starts: list[int] = []
    file_starts: list[int] = []
    pending: list[bytes] = []
    pending_bytes = text_end = 0
    with open(path, "xb") as file:
        def flush():
            nonlocal pending, pending_bytes
            if pending:
                text_starts.append(text_end - pending_bytes)
                file_starts.append(file.tell())
                file.write(compressor.compress(b"".join(pending)))
                pending, pending_bytes = [], 0

        for text in texts:
            offsets.append(text_end)
            pending += (text, b"\n")
            pending_bytes += len(text) + 1
            text_end += len(text) + 1
            if pending_bytes >= FRAME_BYTES:
                flush()
        flush()
        index = np.array([text_starts, file_starts], "<u8").tobytes()
        file.write(skippable(index + len(index).to_bytes(8, "little")))
    if text_end >= 1 << 32:
        raise ValueError("a segment holds at most 4 GiB of text")
    return (np.uint64(number) << np.uint64(32)) | np.array(offsets, np.uint64)


def segments_of(positions: np.ndarray) -> np.ndarray:
    """The distinct segment numbers that the positions (u64, NO_TEXT passed over) lie in, sorted."""
    return np.unique(positions[positions != NO_TEXT] >> np.uint64(32))


class Segment:
    """One segment, open for reading; keeps the last frame at hand, so ask in rising order."""

    def __init__(self, path: Path):
        self._path = path
        try:
            self._data = memoryview(path.read_bytes() if path.stat().st_size < 1 << 20 else np.memmap(path, "u1", "r"))
        except FileNotFoundError:
            raise Damaged(path, "expected a segment of text, found no file") from None
        size = len(self._data)
        length = int.from_bytes(self._data[size - 8:], "little") if size >= 16 else -1
        if not 0 <= length <= size - 16 or length % 16:
            raise Damaged(path, "expected an index at the end, found none", size)
        index = np.frombuffer(self._data[size - 8 - length:size - 8], "<u8").reshape(2, -1)
        self._text_starts, self._file_starts = index
        try:
            self._members = Members(self._data)
        except (Torn, Broken) as error:
            raise Damaged(path, str(error) or "expected a frame, found a part of one", 0) from None
        self._frame = -1
        self._text = b""

    def frame_texts(self):
        """All text, frame by frame."""
        for frame in range(len(self._text_starts)):
            self._load(frame)
            yield self._text

    def read(self, offset: int, length: int) -> bytes:
        frame = int(np.searchsorted(self._text_starts, np.uint64(offset), "right")) - 1
        if frame < 0:
            raise Damaged(self._path, f"expected text at offset {offset}, found an empty segment")
        if frame != self._frame:
            self._load(frame)
        begin = offset - int(self._text_starts[frame])
        end = self._text.find(b"\n", begin) if length == TO_NEWLINE else begin + length
        if not 0 <= begin <= end <= len(self._text):
            raise Damaged(self._path, f"expected a text at offset {offset}, found the end of its frame")
        return self._text[begin:end]

    def _load(self, frame: int) -> None:
        start = int(self._file_starts[frame])
        try:
            self._text, _ = self._members.read(start, TEXT_MAX_BYTES)
        except (Torn, Broken, TooLong) as error:
            raise Damaged(self._path, str(error) or "expected a whole frame, found the end", start) from None
        self._frame = frame


def read_texts(folder: Path, name_of, positions: np.ndarray, lengths: np.ndarray | None = None) -> list[bytes]:
    """The texts at the positions, in the order asked; each frame is read once. `name_of` names a segment's file."""
    texts: list[bytes] = [b""] * len(positions)
    segment, opened = -1, None
    for place in np.argsort(positions, kind="stable").tolist():
        position = int(positions[place])
        if position >> 32 != segment:
            segment = position >> 32
            opened = Segment(folder / name_of(segment))
        length = TO_NEWLINE if lengths is None else int(lengths[place])
        texts[place] = opened.read(position & 0xFFFFFFFF, length)
    return texts
