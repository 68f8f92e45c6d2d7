"""URLs whose ranks are known: from a file of ranks, or the PageRank of a crawl's own links."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.errors import BadConfiguration, BadInput
from contract.rank_files import read_lines, show_line
from study.graph_files import read_crawl
from study.pagerank import pagerank

URLS_MIN = 1_000  # fewer teach nothing


@dataclass
class RankedUrls:
    source: Path
    lines: pa.LargeBinaryArray  # canonical, each once, with a newline
    ranks: npt.NDArray[np.float64]
    servers: int = 0  # lines of the file that name a server; they are left out

    def __post_init__(self) -> None:
        if len(self.lines) < URLS_MIN:
            raise BadInput(f"{self.source}: expected ranks of at least {URLS_MIN:,} URLs, found {len(self.lines):,}")

    def __len__(self) -> int:
        return len(self.lines)


def read_rank_file(path: Path) -> RankedUrls:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BadConfiguration(f"--ranks: expected a file of URLs and ranks, found {path} ({error.strerror})") from None
    ranks: dict[str, float] = {}
    servers = 0
    for name, rank, number in read_lines(path, text):
        if name.count("/") == 2:  # of https://www.example.br
            servers += 1
        elif ranks.setdefault(name, rank) != rank:
            found = show_line(text, number)
            raise BadInput(f"{path}: line {number}: expected each URL once, found {found} again with another rank")
    return RankedUrls(path, lines_of(ranks), np.fromiter(ranks.values(), np.float64, len(ranks)), servers)


def rank_crawl(crawl: Path) -> RankedUrls:
    """The pages that a crawl has collected."""
    graph = read_crawl(crawl)
    assert graph.urls is not None  # a crawl has them
    return RankedUrls(crawl, graph.urls, pagerank(graph))


def lines_of(names: Iterable[str]) -> pa.LargeBinaryArray:
    return pa.array([f"{name}\n".encode() for name in names], pa.large_binary())
