"""Files of ranks: what the policy pagerank reads.

A person gives a text: a line for each URL or server, then a blank, then its rank, a number from 0 on. An empty line and
one that begins with # count for nothing. The crawl keeps it as an array of keys and ranks, sorted by key, under the
checksum of the text: its own copy, which no later change of the text reaches.

    https://www.ufmg.br/ensino 0.00031
    https://www.ufmg.br 0.0042
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from contract.errors import BadInput
from contract.url import Keys, NotCanonical, canonicalise, server_of
from storage.arrays import open_array

RANKS = np.dtype([("key", "<u8"), ("rank", "<f4")])
LARGEST = float(np.finfo(np.float32).max)
LINE_SHOWN_MAX = 100


def convert(path: Path, text: bytes, keys: Keys) -> npt.NDArray[Any]:
    """The array of a text of ranks; BadInput, with the line, where something else stands there."""
    found: dict[int, float] = {}
    for number, line in enumerate(text.split(b"\n"), 1):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        try:
            name, rank = (word.decode("ascii") for word in words)
            key = key_of(name, keys)
            value = float(rank)
            if not 0 <= value <= LARGEST or not math.isfinite(value):
                raise ValueError(rank)
        except (NotCanonical, ValueError):  # also: not two words, not ASCII, not a number
            shown = line[:LINE_SHOWN_MAX].decode("utf-8", "replace")
            raise BadInput(
                f"{path}: line {number}: expected a URL or server, a blank and its rank, a number from 0 on, "
                f"as in 'https://www.example.br/ 0.5'; found {shown!r}"
            ) from None
        if found.setdefault(key, value) != value:
            raise BadInput(f"{path}: line {number}: expected each URL once, found {name!r} again with another rank")
    ranks = np.array(sorted(found.items()), RANKS) if found else np.empty(0, RANKS)
    return ranks


def key_of(name: str, keys: Keys) -> int:
    """The key of a URL, or of a server, which has no path."""
    url = canonicalise(name)
    has_path = "/" in name.partition("://")[2]
    return keys.of(url) if has_path else keys.server(server_of(url)).key


def read_ranks(path: Path) -> npt.NDArray[Any]:
    """The crawl's own copy."""
    return open_array(path, RANKS)
