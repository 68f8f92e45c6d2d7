"""Bodies on their way: in memory while all of them together fit, in files that nobody sees beyond that."""

import mmap
import tempfile
from pathlib import Path


class Bodies:
    """What all bodies on their way may hold in memory."""

    def __init__(self, folder: Path, memory_max_bytes: int):
        self._folder = folder
        self._memory_max_bytes = memory_max_bytes
        self.memory_bytes = 0

    def has_room(self, size_bytes: int) -> bool:
        return self.memory_bytes + size_bytes <= self._memory_max_bytes

    def open_file(self):
        return tempfile.TemporaryFile(dir=self._folder, buffering=0)  # has no name: a crash leaves nothing


class Body:
    def __init__(self, bodies: Bodies):
        self._bodies = bodies
        self._pieces: list[bytes] = []
        self._file = None
        self.size_bytes = 0

    def append(self, piece: bytes) -> None:
        """Adds a piece; OSError where it must go to disk and cannot."""
        if self._file is None and self._bodies.has_room(len(piece)):
            self._pieces.append(piece)
            self._bodies.memory_bytes += len(piece)
        else:
            if self._file is None:
                self._spill()
            write_all(self._file, piece)
        self.size_bytes += len(piece)

    def _spill(self) -> None:
        self._file = self._bodies.open_file()
        for piece in self._pieces:
            write_all(self._file, piece)
        self._drop_pieces()

    def view(self) -> bytes | mmap.mmap:
        """The whole body, as bytes or as a mapped file."""
        if self._file is not None:
            return mmap.mmap(self._file.fileno(), self.size_bytes, access=mmap.ACCESS_READ) if self.size_bytes else b""
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def release(self) -> None:
        """Gives up the content; memory counts no longer."""
        self._drop_pieces()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _drop_pieces(self) -> None:
        self._bodies.memory_bytes -= sum(map(len, self._pieces))
        self._pieces = []


def write_all(file, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left):]
