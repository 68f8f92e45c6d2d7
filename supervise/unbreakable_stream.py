"""A text stream that cannot end or delay a crawl: what cannot be written is dropped.

A closed terminal or a full disk refuses what is written. A terminal that was stopped (Ctrl-S), or a pipe that nobody
reads, takes nothing: a plain write would wait for ever, and the whole crawl with it. Every message is in messages.log
anyway (supervise/messages.py).
"""

import os
import select
import stat
import time
from typing import TextIO

from contract.terminal import beneath

WAIT_MAX_S = 0.2  # per write: enough for a reader such as tee on a busy machine, and no harm to the crawl
PIECE_MAX_BYTES = select.PIPE_BUF  # a pipe that can be written to takes so much without waiting (pipe(7))
CANCEL = b"\x18"  # ends an escape sequence that was cut off; other text must not complete it


class Unbreakable:
    """It writes to the descriptor itself: a buffer that cannot be flushed would change the exit code of the process."""

    def __init__(self, stream: TextIO | None, wait_max_s: float = WAIT_MAX_S):
        self._stream = beneath(stream) if stream is not None else None
        self.encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._wait_max_s = wait_max_s
        self._is_stuck = False  # the last write was dropped: the next one does not wait
        self._lead = b""  # what the next write begins with, after one that was cut off
        try:
            self._descriptor = self._stream.fileno() if self._stream is not None else None
        except (OSError, ValueError):  # it is no file
            self._descriptor = None
        self._unblocked = None if self._descriptor is None else open_unblocked(self._descriptor)

    def write(self, text: str) -> int:
        try:
            if self._unblocked is not None:
                self._write_bytes(self._unblocked, text.encode(self.encoding, "backslashreplace"))
            elif self._stream is not None:
                self._stream.write(text)
        except (OSError, ValueError):
            pass
        return len(text)

    def _write_bytes(self, descriptor: int, data: bytes) -> None:
        data = self._lead + data
        written = write_in_time(descriptor, data, 0.0 if self._is_stuck else self._wait_max_s)
        self._is_stuck = written < len(data)
        if written:
            self._lead = (CANCEL if self.isatty() else b"") + b"\n" if self._is_stuck else b""

    def flush(self) -> None:
        """Nothing waits here."""

    def isatty(self) -> bool:
        return self._stream is not None and is_at_terminal(self._stream)

    def fileno(self) -> int:
        return -1 if self._descriptor is None else self._descriptor


def open_unblocked(descriptor: int) -> int:
    """The same terminal or pipe, opened once more so that no write waits; stays open to the end of the process.

    Other processes share what our descriptor opened, and O_NONBLOCK with it, so we do not set it there. What cannot be
    opened again, such as the terminal of another user, is used as it is. A write to a terminal may then wait for a
    reader, though not after Ctrl-S.
    """
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode) or os.isatty(descriptor):
            return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        pass
    return descriptor


def write_in_time(descriptor: int, data: bytes, wait_max_s: float) -> int:
    """Writes as many of the bytes as are taken within this time; returns how many."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    until_s = time.monotonic() + wait_max_s
    written = 0
    while written < len(data):
        left_s = max(0.0, until_s - time.monotonic())
        if not poll.poll(left_s * 1000):
            break
        try:
            written += os.write(descriptor, data[written : written + PIECE_MAX_BYTES])
        except BlockingIOError:
            if not left_s:
                break
    return written


def is_at_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (OSError, ValueError):  # it is closed
        return False
