"""Small files that nothing depends on: lines appended to one, or the whole replaced, never synced.

A crawl folder may hold anything under these names: a folder, a named pipe, a link to another file. So every open
refuses what is not a regular file, follows no link, and cannot wait. All errors are OSError; callers go on without.
"""

import errno
import os
import stat
from pathlib import Path

from storage.publish import ASIDE

LINE_MAX_BYTES = 1 << 16  # an unfinished line that is longer was not written by append_line


def open_regular(path: Path, flags: int) -> int:
    """The descriptor of a regular file; OSError where another thing has its name. Never waits."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "expected a regular file, found something else", str(path))
    return descriptor


def append_line(path: Path, line: bytes) -> int:
    """Appends a line, which ends with a line end, in one write; returns the new size of the file.

    An unfinished last line, which a full disk or a power cut leaves, is cut off first: every other line stays whole.
    """
    descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            size = cut_unfinished_line(descriptor, size)
        if os.write(descriptor, line) < len(line):
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return size + len(line)
    finally:
        os.close(descriptor)


def cut_unfinished_line(descriptor: int, size: int) -> int:
    """Ends the file after its last whole line; returns its new size. What is no line of ours is ended, not cut."""
    begin = max(0, size - LINE_MAX_BYTES)
    at = os.pread(descriptor, size - begin, begin).rfind(b"\n")
    if at < 0 and begin:
        os.write(descriptor, b"\n")
        return size + 1
    os.ftruncate(descriptor, begin + at + 1)
    return begin + at + 1


def replace_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replaces a file by rename: a reader finds the old or the new one, whole. One process at a time may do so.

    `mode` holds whatever the umask is. The unfinished file has another suffix: who collects `*.prom` does not read it.
    """
    aside = path.with_name(f"{ASIDE}{path.name}.tmp")
    aside.unlink(missing_ok=True)
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            if mode is not None:
                os.fchmod(descriptor, mode)
        aside.rename(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def is_other_thing(path: Path) -> bool:
    """Whether the name belongs to something that is no regular file, such as a folder, a device or a link."""
    try:
        return not stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def read_start(path: Path, most_bytes: int) -> bytes:
    """The first bytes of a regular file, at most `most_bytes`."""
    descriptor = open_regular(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, most_bytes, 0)
    finally:
        os.close(descriptor)


def read_end(path: Path, most_bytes: int) -> bytes:
    """The last bytes of a regular file, at most `most_bytes`."""
    descriptor = open_regular(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, most_bytes, max(0, os.fstat(descriptor).st_size - most_bytes))
    finally:
        os.close(descriptor)
