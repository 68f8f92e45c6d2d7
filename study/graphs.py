"""A link graph that is known: pages, their links and, where there are any, their URLs. Files: study/graph_files.py.

Invariant: the links of a page are distinct, rising, and none leads to the page itself, as a crawl counts a link once
per page and target.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.errors import BadInput

Rows = npt.NDArray[np.int64]
PAGES_MAX = 1 << 27  # offsets of so many pages are 1 GiB


@dataclass(frozen=True)
class Graph:
    """The links of page i are targets[offsets[i]:offsets[i + 1]]."""

    offsets: npt.NDArray[np.int64]  # one more than there are pages
    targets: npt.NDArray[np.int32]
    urls: pa.LargeBinaryArray | None = None  # canonical, each with a newline, as Urls.lines of contract/policies
    seeds: Rows = field(default_factory=lambda: np.empty(0, np.int64))  # where a crawl began; none: not known

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def degrees(self) -> Rows:
        """The number of links of each page."""
        return np.diff(self.offsets)

    def links_of(self, pages: Rows) -> tuple[Rows, npt.NDArray[np.int32]]:
        """(index among `pages`, target) of every link of these pages (any order, repeats allowed), page after page."""
        starts = self.offsets[pages]
        counts = self.offsets[pages + 1] - starts
        index = np.repeat(np.arange(len(pages)), counts)
        before = np.cumsum(counts) - counts
        return index, self.targets[np.arange(len(index)) + np.repeat(starts - before, counts)]

    def take(self, pages: Rows) -> "Graph":
        """The pages of these numbers (each once), numbered anew in this order, with the links among them."""
        number = np.full(len(self), -1, np.int32)
        number[pages] = np.arange(len(pages), dtype=np.int32)
        index, targets = self.links_of(pages)
        targets = number[targets]
        stays = targets >= 0
        seeds = number[self.seeds].astype(np.int64)
        urls = None if self.urls is None else self.urls.take(pa.array(pages))
        return join_links(index[stays], targets[stays], len(pages), urls, seeds[seeds >= 0])


def breadth_first(graph: Graph, seeds: Rows, most: int) -> Rows:
    """The first `most` pages that are reached from the seeds, those with the fewest links from a seed first."""
    is_known = np.zeros(len(graph), bool)
    found, front = [seeds[:0]], seeds
    while len(front) and sum(map(len, found)) < most:
        is_known[front] = True
        found.append(front)
        targets = np.unique(graph.links_of(front)[1])
        front = targets[~is_known[targets]].astype(np.int64)
    return np.concatenate(found)[:most]


def join_links(
    sources: npt.NDArray[np.integer],
    targets: npt.NDArray[np.integer],
    pages: int,
    urls: pa.LargeBinaryArray | None = None,
    seeds: Rows | None = None,
) -> Graph:
    """The graph of these links, in any order, repeats and links of pages to themselves left out.

    REQUIRES: 0 <= source, target < pages.
    """
    pairs = sources.astype(np.int64) * pages + targets.astype(np.int64)
    pairs = pairs[sources != targets]
    if not (pairs[1:] > pairs[:-1]).all():
        pairs.sort()
        pairs = pairs[np.concatenate(([True], pairs[1:] != pairs[:-1]))]
    offsets = np.zeros(pages + 1, np.int64)
    np.cumsum(np.bincount(pairs // max(pages, 1), minlength=pages), out=offsets[1:])
    targets = (pairs % max(pages, 1)).astype(np.int32)
    return Graph(offsets, targets, urls, np.empty(0, np.int64) if seeds is None else seeds)


def check_links(where: str, numbers: npt.NDArray[np.generic], pages: int) -> None:
    """BadInput unless these are numbers of pages: whole, from 0 on, below `pages`."""
    if not np.issubdtype(numbers.dtype, np.integer) or numbers.ndim != 1:
        raise BadInput(f"{where}: expected whole numbers in one dimension, found {numbers.ndim} of {numbers.dtype}")
    bad = np.flatnonzero((numbers < 0) | (numbers >= pages))
    if len(bad):
        raise BadInput(f"{where}: expected page numbers from 0 to {pages - 1}, found {numbers[bad[0]]} at {bad[0]}")
