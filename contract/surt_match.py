"""Which rule of a list many URLs fall under: rules by SURT prefix or by pattern, the first one that fits."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.patterns import find_first
from contract.surt import Surt, parse_surt, surt_of

SERVERS_REMEMBERED = 1 << 17


class Rule(Protocol):
    """A rule has one of both; the other is empty."""

    @property
    def surt(self) -> str: ...

    @property
    def pattern(self) -> str: ...


def find_rules(lines: pa.LargeBinaryArray, rules: Sequence[Rule]) -> npt.NDArray[np.uint8]:
    """The number of the rule of each canonical URL, u8, 0 for none; each line ends with a newline."""
    patterns = {number: rule.pattern for number, rule in enumerate(rules, 1) if not rule.surt}
    numbers = np.array([*patterns, 0], np.uint8)[find_first(lines, list(patterns.values()))]
    surts = {number: parse_surt(rule.surt) for number, rule in enumerate(rules, 1) if rule.surt}
    by_surt = find_by_surt(lines, surts) if surts else np.zeros(len(lines), np.uint8)
    return np.where((by_surt > 0) & ((numbers == 0) | (by_surt < numbers)), by_surt, numbers)


def find_by_surt(lines: pa.LargeBinaryArray, surts: Mapping[int, Surt]) -> npt.NDArray[np.uint8]:
    """The smallest number of a prefix that each URL has, 0 for none."""
    by_host: dict[str, list[tuple[int, bytes]]] = {}  # of hosts and all below them, and of one server and its paths
    by_server: dict[str, list[tuple[int, bytes]]] = {}
    for number, surt in surts.items():
        (by_server if surt.path else by_host).setdefault(surt.host, []).append((number, surt.path.encode()))

    @lru_cache(maxsize=SERVERS_REMEMBERED)
    def find_of_server(server: bytes) -> list[tuple[int, bytes]]:
        """Number of each prefix that may take URLs of the server, rising, and how their paths begin."""
        name = surt_of(server.decode("ascii", "replace"))
        found = list(by_server.get(name, ()))
        for end, mark in enumerate(name, 1):
            if mark == ",":  # a host of a prefix ends with a whole label
                found += by_host.get(name[:end], ())
        return sorted(found)

    numbers = np.zeros(len(lines), np.uint8)
    for row, line in enumerate(lines.to_pylist()):
        server = line[: line.index(b"/", 8)]
        for number, path in find_of_server(server):
            if line[len(server) : -1].startswith(path):
                numbers[row] = number
                break
    return numbers
