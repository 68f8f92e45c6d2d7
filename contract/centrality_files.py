"""Files of harmonic centralities of registered domains: what the policy common-crawl makes budgets of.

A person gives a text: a line for each domain, then a blank, then its centrality, a number from 0 on. Common Crawl's own
tables of domain ranks are read as they are, unpacked: their first line names the columns (#harmonicc_val, #host_rev),
and they spell names from the end. The crawl keeps an array of domain keys and positions, sorted by key: the most
central domain has position 1, and equal ones share one.

    example.br 15200000.5
    #harmonicc_pos #harmonicc_val #pr_pos #pr_val #host_rev #n_hosts
    1 31200000 2 0.011 br.example 17
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from contract.errors import BadInput
from contract.rank_files import LARGEST, refuse_copy, show_line, sort_ranks
from contract.url import Keys, NotCanonical, host_named
from storage.arrays import open_array

POSITIONS = np.dtype([("key", "<u8"), ("position", "<u4")])
SUFFIX = ".positions"  # of the copy, an .npy file: those of ranks have .npy
NAME_COLUMN, VALUE_COLUMN = b"#host_rev", b"#harmonicc_val"


def convert(path: Path, text: bytes, keys: Keys) -> bytes:
    """The file of the array of a text of centralities; BadInput, with the line, where something else stands there."""
    refuse_copy(path, text)
    content = io.BytesIO()
    np.save(content, make_positions(path, text, keys))
    return content.getvalue()


def make_positions(path: Path, text: bytes, keys: Keys) -> npt.NDArray[Any]:
    """Sorted by key, each once; dtype POSITIONS."""
    ranks = sort_ranks(path, text, read_lines(path, text, keys), "domain")
    positions = np.empty(len(ranks), POSITIONS)
    positions["key"] = ranks["key"]
    positions["position"] = np.searchsorted(np.sort(-ranks["rank"]), -ranks["rank"]) + 1
    return positions


def read_lines(path: Path, text: bytes, keys: Keys) -> Iterator[tuple[int, float, int]]:
    """(domain key, centrality, number of the line) of each line that counts.

    Common Crawl may have made its table by another suffix list, and has names of any kind: there names that are no
    registered domains for us are left out.
    """
    name_at, value_at, width, is_reversed = 0, 1, 2, False
    for number, line in enumerate(io.BytesIO(text), 1):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            if NAME_COLUMN in words and VALUE_COLUMN in words:
                name_at, value_at, width = words.index(NAME_COLUMN), words.index(VALUE_COLUMN), len(words)
                is_reversed = True
            continue
        try:
            if len(words) != width:
                raise ValueError(line)
            name, value = words[name_at].decode("utf-8"), float(words[value_at])
            domain = domain_of(".".join(reversed(name.split("."))) if is_reversed else name, keys)
            if not 0 <= value <= LARGEST or b"_" in words[value_at] or not (domain or is_reversed):  # NaN is not within
                raise ValueError(line)
        except ValueError:  # also: no UTF-8, not a number
            expected = "as many columns as the first line names" if is_reversed else "as in 'example.br 15200000.5'"
            raise BadInput(
                f"{path}: line {number}: expected a registered domain and its harmonic centrality, a number from 0 on, "
                f"{expected}; found {show_line(text, number)}"
            ) from None
        if domain:
            yield keys.of(domain), value + 0.0, number


def domain_of(name: str, keys: Keys) -> str:
    """The registered domain that a person means, or nothing."""
    try:
        host = host_named(name)
    except NotCanonical:
        return ""
    return host if keys.domain(host) == host else ""


def read_positions(path: Path) -> npt.NDArray[Any]:
    """The crawl's own copy."""
    return open_array(path, POSITIONS)
