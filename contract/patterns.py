"""Regular expressions of the configuration, searched in many URLs at once, by RE2: no pattern takes long on any URL."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


class BadPattern(ValueError):
    """A text is no regular expression that RE2 reads."""


def find_any(lines: pa.LargeBinaryArray, patterns: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which lines a pattern is found in; each line ends with a newline, before which `$` stands."""
    joined = "(?m)" + "|".join(f"(?:{pattern})" for pattern in patterns)
    try:
        found: npt.NDArray[np.bool_] = pc.match_substring_regex(lines, joined).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise BadPattern(str(error)) from None
    return found.astype(bool)


def check_pattern(pattern: str) -> None:
    """BadPattern unless the text is a pattern."""
    find_any(pa.array([b"\n"], pa.large_binary()), [pattern])
