"""Bodies as they arrive: in memory while all of them together fit, beyond that in files without a name."""

import mmap
import tempfile
from pathlib import Path

from storage.errors import naming

PIECES_MAX = 64  # that are kept apart
WRITE_BYTES = 16 << 10  # per write to a file; 2,000 bodies that wait for one hold 32 MB


class Bodies:
    """The memory that all arriving bodies share."""

    def __init__(self, folder: Path, memory_max_bytes: int):
        self.folder = folder
        self._memory_max_bytes = memory_max_bytes
        self.memory_bytes = 0

    def has_room(self, size_bytes: int) -> bool:
        return self.memory_bytes + size_bytes <= self._memory_max_bytes

    def open_file(self):
        return tempfile.TemporaryFile(dir=self.folder, buffering=0)  # has no name: a crash leaves nothing


class Body:
    def __init__(self, bodies: Bodies):
        self._bodies = bodies
        self._pieces: list[bytes | bytearray] = []  # in memory: all of it, or what is not in the file yet
        self._file = None
        self.size_bytes = 0

    def append(self, piece: bytes) -> None:
        """Adds a piece; OSError where it must go to disk and cannot."""
        size_bytes, bodies, pieces = len(piece), self._bodies, self._pieces
        if self._file is None:
            if bodies.has_room(size_bytes):
                bodies.memory_bytes += size_bytes
            else:
                self._file = bodies.open_file()
                bodies.memory_bytes -= self.size_bytes
        self.size_bytes += size_bytes
        pieces.append(piece)
        if len(pieces) > PIECES_MAX:
            self._join()
        if self._file is not None and sum(map(len, pieces)) >= WRITE_BYTES:
            self._write()

    def _join(self) -> None:
        """Most bodies come in one or two pieces, which are not copied. Single bytes would cost fifty bytes each."""
        if not isinstance(self._pieces[0], bytearray):
            self._pieces[0] = bytearray(self._pieces[0])
        for piece in self._pieces[1:]:
            self._pieces[0] += piece
        del self._pieces[1:]

    def _write(self) -> None:
        with naming(self._bodies.folder):  # the file has no name of its own
            write_all(self._file, b"".join(self._pieces))
        self._pieces.clear()

    def pieces(self) -> list[bytes | bytearray | mmap.mmap]:
        """The whole body as consecutive buffers: as it came, or a mapped file."""
        if self._file is None:
            return self._pieces
        self._write()
        return [mmap.mmap(self._file.fileno(), self.size_bytes, access=mmap.ACCESS_READ)] if self.size_bytes else []

    def whole(self) -> bytes:
        """The whole body as one value; for bodies that are known to be small."""
        return b"".join(self.pieces())

    def release(self) -> None:
        """Drops the content and frees its memory."""
        if self._file is None:
            self._bodies.memory_bytes -= sum(map(len, self._pieces))
        else:
            self._file.close()
            self._file = None
        self._pieces = []


def write_all(file, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]
