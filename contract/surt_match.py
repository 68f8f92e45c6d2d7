"""Which rule of a list many URLs fall under: rules by SURT prefix or by pattern, the first one that fits."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.patterns import find_any
from contract.surt import SurtPrefixes

SERVERS_REMEMBERED = 1 << 17


class Rule(Protocol):
    """A rule has one of both; the other is empty."""

    @property
    def surt(self) -> str: ...

    @property
    def pattern(self) -> str: ...


def find_rules(lines: pa.LargeBinaryArray, rules: Sequence[Rule]) -> npt.NDArray[np.uint8]:
    """The number of the rule of each canonical URL, u8, 0 for none; each line ends with a newline."""
    numbers = np.zeros(len(lines), np.uint8)
    surts = {number: SurtPrefixes([rule.surt]) for number, rule in enumerate(rules, 1) if rule.surt}
    by_surt = find_by_surt(lines, surts) if surts else numbers
    for number, rule in reversed(list(enumerate(rules, 1))):  # the first rule that fits is the last to be written
        if not rule.surt:
            numbers[find_any(lines, [rule.pattern])] = number
    return np.where((by_surt > 0) & ((numbers == 0) | (by_surt < numbers)), by_surt, numbers)


def find_by_surt(lines: pa.LargeBinaryArray, surts: dict[int, SurtPrefixes]) -> npt.NDArray[np.uint8]:
    """The smallest number of a prefix that each URL has, 0 for none."""

    @lru_cache(maxsize=SERVERS_REMEMBERED)
    def find_of_server(server: bytes) -> tuple[tuple[int, tuple[bytes, ...]], ...]:
        """Number of each prefix that may take URLs of the server, and how their paths begin; none: all paths."""
        found: list[tuple[int, tuple[bytes, ...]]] = []
        name = server.decode("ascii", "replace")
        for number, surt in surts.items():
            if surt.takes_server(name):
                found.append((number, ()))
            elif paths := surt.paths_of(name):
                found.append((number, tuple(path.encode() for path in paths)))
        return tuple(found)

    numbers = np.zeros(len(lines), np.uint8)
    for row, line in enumerate(lines.to_pylist()):
        server = line[: line.index(b"/", 8)]
        for number, paths in find_of_server(server):
            if not paths or line[len(server) : -1].startswith(paths):
                numbers[row] = number
                break
    return numbers
