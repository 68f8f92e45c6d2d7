"""Regular expressions of the configuration, searched in many URLs at once, by RE2: no pattern takes long on any URL."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# Patterns that are searched for together. With many more, RE2 may run out of room for its tables, and is slow then.
AT_ONCE = 8


class BadPattern(ValueError):
    """A text is no regular expression that RE2 reads."""


def find_any(lines: pa.LargeBinaryArray, patterns: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which lines a pattern is found in. Each line ends with a newline, which is no part of what is searched."""
    if not patterns:
        return np.zeros(len(lines), bool)
    return search(pc.binary_slice(lines, 0, -1), "|".join(f"(?:{pattern})" for pattern in patterns))


def find_first(lines: pa.LargeBinaryArray, patterns: Sequence[str]) -> npt.NDArray[np.int64]:
    """The index of the first pattern that is found in each line; len(patterns) where none is.

    Most lines match no pattern, so one search for some patterns together spares a search for each.
    """
    first = np.full(len(lines), len(patterns))
    for start in range(0, len(patterns), AT_ONCE):
        group = patterns[start : start + AT_ONCE]
        rows = np.flatnonzero(first == len(patterns))
        try:
            rows = rows[find_any(lines.take(pa.array(rows)), group)]
        except BadPattern:
            pass  # each is good alone, but together they are too large
        candidates = lines.take(pa.array(rows))
        for number, pattern in reversed(list(enumerate(group, start))):  # the first one is the last to be written
            first[rows[find_any(candidates, [pattern])]] = number
    return first


def search(texts: pa.LargeBinaryArray, pattern: str) -> npt.NDArray[np.bool_]:
    try:
        found: npt.NDArray[np.bool_] = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise BadPattern(str(error)) from None
    return found.astype(bool)


def check_pattern(pattern: str) -> None:
    """BadPattern unless the text is a pattern of its own, and stays one in a group: an open \\Q would take its end."""
    search(pa.array([b""], pa.large_binary()), pattern)
    find_any(pa.array([b"\n"], pa.large_binary()), [pattern])


def check_together(patterns: Sequence[str]) -> None:
    """BadPattern where RE2 cannot search for all of them at once: they are too large."""
    find_any(pa.array([b"\n"], pa.large_binary()), patterns)
