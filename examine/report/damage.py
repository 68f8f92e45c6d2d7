"""What a report does about files that are damaged or missing: it ends, or it leaves them out and says so."""

from collections.abc import Iterator
from contextlib import contextmanager

from contract.errors import BadInput
from storage.errors import Damaged, UnknownFormat

# KeyError, TypeError: a manifest that is whole but does not have what its kind of cycle has.
UNREADABLE = (FileNotFoundError, NotADirectoryError, Damaged, UnknownFormat, KeyError, TypeError)


class LeftOut:
    """Collects what could not be read; without `--allow-partial` the first such file ends the command."""

    def __init__(self, is_allowed: bool):
        self._is_allowed = is_allowed
        self.notes: list[str] = []

    @contextmanager
    def reading(self, what: object) -> Iterator[None]:
        """`what` names the file where the error does not."""
        try:
            yield
        except UNREADABLE as error:
            note = describe_trouble(error, what)
            if not self._is_allowed:
                raise BadInput(f"{note}; with --allow-partial the report leaves it out and says so") from None
            self.notes.append(note)


def describe_trouble(error: Exception, what: object) -> str:
    if isinstance(error, (Damaged, UnknownFormat)):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or what}: expected a file, found none"
    return f"{what}: expected files as their stages write them, found one that is not: {error!r}"
