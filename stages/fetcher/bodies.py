"""Bodies on their way: in memory while all of them together fit, in files that nobody sees beyond that."""

import mmap
import tempfile
from pathlib import Path

WRITE_BYTES = 16 << 10  # to a file at a time; what 2,000 bodies hold back of it is 32 MB


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
        self._held: bytes | bytearray = b""
        self._file = None
        self.size_bytes = 0

    def append(self, piece: bytes) -> None:
        """Adds a piece; OSError where it must go to disk and cannot."""
        if self._file is None and not self._bodies.has_room(len(piece)):
            self._file = self._bodies.open_file()
            self._bodies.memory_bytes -= len(self._held)
        self._hold(piece)
        self.size_bytes += len(piece)
        if self._file is None:
            self._bodies.memory_bytes += len(piece)
        elif len(self._held) >= WRITE_BYTES:
            self._write()

    def _hold(self, piece: bytes) -> None:
        """Most bodies come in one piece, which is not copied. More are joined as they come, not kept in a list: where a server
        sends a byte at a time each would cost fifty."""
        if not self._held:
            self._held = piece
        elif isinstance(self._held, bytearray):
            self._held += piece
        else:
            self._held = bytearray(self._held)
            self._held += piece

    def _write(self) -> None:
        write_all(self._file, self._held)
        self._held = b""

    def view(self) -> bytes | bytearray | mmap.mmap:
        """The whole body, in memory or as a mapped file."""
        if self._file is None:
            return self._held
        self._write()
        return mmap.mmap(self._file.fileno(), self.size_bytes, access=mmap.ACCESS_READ) if self.size_bytes else b""

    def release(self) -> None:
        """Gives up the content; memory counts no longer."""
        if self._file is None:
            self._bodies.memory_bytes -= len(self._held)
        else:
            self._file.close()
            self._file = None
        self._held = b""


def write_all(file, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left):]
