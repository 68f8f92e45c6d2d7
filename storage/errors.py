"""What can be wrong with a file: errors that name the file and the offset."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Damaged(Exception):
    """A file is not what its manifest, its checksum or its format says."""

    def __init__(self, path: Path | str, what: str, offset: int | None = None):
        self.path = path
        self.what = what
        self.offset = offset
        position = "" if offset is None else f" at byte {offset}"
        super().__init__(f"{path}{position}: {what}")


class UnknownFormat(Exception):
    """A file was written by another version of the format."""

    def __init__(self, path: Path, found: object, expected: int):
        super().__init__(f"{path}: format version {found}, this program reads version {expected}")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Adds the path to an OSError that names none, as those of write() and fsync() do not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise
