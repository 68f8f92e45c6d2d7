"""What a policy is: a name for the order in which URLs are fetched, as functions of columns.

A policy declares features (columns that are computed from a URL once, when the URL is new), and a score for every URL
that waits: an integer of 32 bits, larger is sooner. The verifier keeps the best of each server by it, the scheduler
makes lists of the best of a block. Scores depend on columns alone, so both need no text.

A new policy is a module of this folder and a line of POLICIES in its __init__.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.config import Config
from contract.url import Keys

Scores = npt.NDArray[np.uint32]
Column = npt.NDArray[Any]
LARGEST = np.uint32(0xFFFF_FFFF)
DEPTHS = np.uint32(0xFF)  # the lower bits of a score, where a server's URLs come by their depth


@dataclass
class Urls:
    """URLs to compute features of: new ones of a turn, or, after a change of policy, all of a block, in some pieces."""

    lines: pa.LargeBinaryArray  # canonical texts, each with a newline
    key: npt.NDArray[np.uint64]
    domain_key: npt.NDArray[np.uint64]
    server_key: npt.NDArray[np.uint64]
    cycle: int  # of the turn
    config: Config
    files: Mapping[str, Path] = field(default_factory=dict)  # by section.key: the crawl's own copies of files
    memory: dict[str, Any] = field(default_factory=dict)  # what a feature remembers from piece to piece of a turn


@dataclass(frozen=True)
class Feature:
    """A column of rows, computed from URLs. `identity` tells values apart that other settings or files would give."""

    name: str
    dtype: str
    compute: Callable[[Urls], npt.NDArray[Any]]
    identity: Callable[[Config, Mapping[str, Path]], str] = lambda config, files: ""
    # Whether values above 0 mean that the file of ranks has the URL or its server: then bin/status says of how many.
    is_rank: Callable[[Config], bool] = lambda config: False


class Candidates:
    """What a score is computed from: columns of some rows, and of the servers and registered domains of each.

    `now_ms` is the plan's. `seen_s` is the second of the last visit, 0 for a URL that was never visited.
    """

    def __init__(
        self,
        rows: Mapping[str, npt.NDArray[Any]],
        server_index: npt.NDArray[Any],
        servers: Mapping[str, npt.NDArray[Any]],
        config: Config,
        now_ms: int,
        seen_s: npt.NDArray[np.uint32] | None = None,
    ):
        self.rows, self.config, self.now_ms = rows, config, now_ms
        self.seen_s = np.zeros(len(server_index), np.uint32) if seen_s is None else seen_s
        self._server_index, self._servers = server_index, servers

    def __len__(self) -> int:
        return len(self._server_index)

    def server(self, name: str) -> npt.NDArray[Any]:
        """A column of servers.parquet, for each row that of its server."""
        column: Column = self._servers[name][self._server_index]
        return column

    def of_server(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values that were computed per server, for each row that of its server."""
        column: Column = values[self._server_index]
        return column

    def servers(self, name: str) -> npt.NDArray[Any]:
        """A column of servers.parquet itself."""
        return self._servers[name]

    def domain(self, name: str) -> npt.NDArray[np.float64]:
        """The sum of a column of servers.parquet over each registered domain, for each row that of its domain."""
        _, domain = np.unique(self._servers["domain_key"], return_inverse=True)
        sums: npt.NDArray[np.float64] = np.bincount(domain, self._servers[name])[domain][self._server_index]
        return sums


@dataclass(frozen=True)
class PolicyFile:
    """A file that a policy reads. `convert` makes the content of the crawl's own copy (path, content, keys of the crawl
    -> bytes), or raises BadInput. An empty key of the configuration means the default, or no file."""

    key: str  # section.key that names it
    convert: Callable[[Path, bytes, Keys], bytes]
    suffix: str = ".npy"  # of the copy, the same for no other kind of content
    default: Path | None = None


# (configuration, copies of files, domain keys u64) -> maximum URLs that are kept of each domain; none without a budget.
DomainUrls = Callable[[Config, Mapping[str, Path], npt.NDArray[np.uint64]], npt.NDArray[np.int64] | None]
Amount = Callable[[Candidates], npt.NDArray[np.uint64]]


@dataclass(frozen=True)
class Policy:
    score: Callable[[Candidates], Scores]
    columns: tuple[str, ...] = ()  # of rows that the score reads, accumulators among them, besides its features
    features: tuple[Feature, ...] = ()
    settings: tuple[str, ...] = ()  # keys of [scheduler] that decide the order of a server's URLs, besides its features
    varies: bool = False  # scores of a server's URLs change over time: the best of them are chosen anew each turn
    hands_on: Mapping[str, Amount] = field(
        default_factory=dict
    )  # per accumulator of HANDED_ON: what a page takes along
    # What the text of a page is worth to the pages that it leads to (accumulator `relevance`), by the copies of files.
    judge_text: Callable[[Mapping[str, Path]], Callable[[str], int]] | None = None
    # (which rows, share of the list): so much of a list is kept for the best of those rows.
    reserve: Callable[[Candidates], tuple[npt.NDArray[np.bool_], float]] | None = None
    domain_urls: DomainUrls | None = None  # budgets of registered domains
    is_gated: bool = False  # domains are opened page by page, and closed for good (new_domains.py)
    check: Callable[[Config], str] = lambda config: ""  # what is wrong with the configuration, for an error
    files: tuple[PolicyFile, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of rows that the score needs."""
        return (*self.columns, *(feature.name for feature in self.features))


def smallest_first(values: npt.NDArray[Any], bits: int) -> Scores:
    """Scores of numbers of so many bits, of which the smallest comes first."""
    shift = np.uint32(32 - bits)
    return (LARGEST >> shift) - np.minimum(values, LARGEST >> shift).astype(np.uint32) << shift


def largest_first(values: npt.NDArray[Any]) -> Scores:
    """Scores of numbers from 0 to 2^64 in their order, to seven digits: the bits of a float of 32 bits rise with it."""
    return np.asarray(values).astype(np.float32).view(np.uint32)
