"""Two streams of sorted rows, cut at the same keys, so that they can be merged piece by piece."""

from collections.abc import Iterator

import numpy as np

from storage.arrays import Array

Columns = tuple[Array, ...]  # columns of one length; the first is the key: u64, rising


def side_by_side(left: Iterator[Columns], right: Iterator[Columns]) -> Iterator[tuple[Columns | None, Columns | None]]:
    """Rows of both streams; no key of a later pair is in an earlier one, or below it. None: that stream has ended."""
    ours, theirs = next_rows(left), next_rows(right)
    while ours is not None and theirs is not None:
        limit = min(ours[0][-1], theirs[0][-1])
        (our_rows, our_rest), (their_rows, their_rest) = cut_at(ours, limit), cut_at(theirs, limit)
        yield our_rows, their_rows
        ours = our_rest if len(our_rest[0]) else next_rows(left)
        theirs = their_rest if len(their_rest[0]) else next_rows(right)
    while ours is not None:
        yield ours, None
        ours = next_rows(left)
    while theirs is not None:
        yield None, theirs
        theirs = next_rows(right)


def cut_at(columns: Columns, limit: int) -> tuple[Columns, Columns]:
    """The rows whose keys are at most `limit`, and the rest."""
    count = int(np.searchsorted(columns[0], limit, "right"))
    return tuple(values[:count] for values in columns), tuple(values[count:] for values in columns)


def next_rows(stream: Iterator[Columns]) -> Columns | None:
    """The next columns that have rows; None at the end."""
    for columns in stream:
        if len(columns[0]):
            return columns
    return None
