"""Servers and registered domains: which pages belong to which, and the edges of pages folded into theirs.

Pages are numbered by their sorted URLs, so the pages of a server are neighbours. A server is written as the beginning
that its URLs share, with the slash; servers have the order of their pages, domains that of their names.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contract.errors import BadInput
from contract.url import Keys as CrawlKeys
from contract.url import host_of
from graph.csr import bits_of, cut_pairs, join_pairs, number_type
from graph.text_store import TextStoreWriter
from storage.arrays import Array, Rows, bound, open_array
from storage.columns import PlainWriter
from storage.external_sort import ExternalSort
from storage.text_segments import LINES, data_of

FIRST_PAGE, DOMAIN, DOMAIN_KEY = "first_page.npy", "domain.npy", "domain_key.npy"
_SLASH, _BRACKET = b"/["
_FIRST_VISIBLE, _LAST_VISIBLE = b"!~"
NodeOf = Callable[[Array], Array]


class ServerWriter:
    """Finds servers in sorted URLs and writes them, their first pages, and their domains."""

    def __init__(self, folder: Path, keys: CrawlKeys):
        self._folder, self._keys = folder, keys
        self._texts = TextStoreWriter(folder, "servers")
        self._first_pages = PlainWriter(folder / f"servers.{FIRST_PAGE}", "<i8")
        self._domain_keys = PlainWriter(folder / f"servers.{DOMAIN_KEY}", "<u8")
        self._domains: list[pa.Array] = []
        self._last = b""
        self.servers = self.domains = 0

    def append(self, urls: pa.LargeBinaryArray, first_page: int) -> None:
        rows, lengths = starts_of_servers(urls)
        begins = urls.take(pa.array(rows)).to_pylist()
        texts = [url[:length] for url, length in zip(begins, lengths.tolist())]
        if texts and texts[0] == self._last:
            rows, texts = rows[1:], texts[1:]
        if not texts:
            return
        self._last = texts[-1]
        self._texts.append(pa.array(texts, LINES))
        self._first_pages.append(rows + first_page)
        domains = [self._keys.domain(host_of(text[:-1].decode())) for text in texts]
        self._domain_keys.append(np.array([self._keys.of(domain) for domain in domains], np.uint64))
        self._domains.append(pa.array([domain.encode() for domain in domains], LINES))
        self.servers += len(texts)

    def close(self, pages: int) -> None:
        self._texts.close()
        self._domain_keys.close()
        self._first_pages.append(np.array([pages]))
        self._first_pages.close()
        named = pa.chunked_array(self._domains, LINES).combine_chunks().dictionary_encode()
        named = named.combine_chunks() if isinstance(named, pa.ChunkedArray) else named
        order = pc.sort_indices(named.dictionary).to_numpy().astype(np.int64)
        store = TextStoreWriter(self._folder, "domains")
        store.append(named.dictionary.take(pa.array(order)))
        store.close()
        self.domains = len(order)
        number = np.empty(self.domains, np.int64)
        number[order] = np.arange(self.domains)
        writer = PlainWriter(self._folder / f"servers.{DOMAIN}", number_type(self.domains))
        writer.append(number[named.indices.to_numpy()])
        writer.close()


def starts_of_servers(urls: pa.LargeBinaryArray) -> tuple[Rows, Rows]:
    """The first row of each server in sorted canonical URLs, and the length of its part of the URL."""
    if not len(urls):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    offsets, data = data_of(urls)
    slashes = np.flatnonzero(data[offsets[0] : offsets[-1]] == _SLASH) + offsets[0]
    slashes = np.append(slashes, np.full(3, offsets[-1]))
    starts = offsets[:-1]
    third = slashes[np.searchsorted(slashes, starts) + 2]
    expect_urls(urls, third < offsets[1:])
    lengths = third - starts + 1
    same = np.flatnonzero(lengths[1:] == lengths[:-1]) + 1  # may have the server of the row before
    for back in range(1, int(lengths.max()) + 1):  # names differ mostly at their ends
        at = np.maximum(lengths[same] - back, 0)
        same = same[data[starts[same] + at] == data[starts[same - 1] + at]]
    is_first = np.ones(len(urls), bool)
    is_first[same] = False
    rows = np.flatnonzero(is_first)
    expect_hosts(urls, rows, lengths[rows])
    return rows, lengths[rows]


def expect_hosts(urls: pa.LargeBinaryArray, rows: Rows, lengths: Rows) -> None:
    """BadInput where a host begins as an IPv6 address and does not end as one; `lengths`: of the servers' texts."""
    offsets, data = data_of(urls)
    if _BRACKET not in data[offsets[0] : offsets[-1]]:
        return
    for url, length in zip(urls.take(pa.array(rows)).to_pylist(), lengths.tolist()):
        if b"//[" in url[:length] and b"]" not in url[:length]:
            refuse(url)


def refuse(text: bytes) -> NoReturn:
    raise BadInput(f"expected canonical URLs in the tables of the crawl, found {text[:200]!r}: run bin/check")


def expect_urls(urls: pa.LargeBinaryArray, has_server: npt.NDArray[np.bool_]) -> None:
    """BadInput unless all texts have a server and are of visible ASCII characters, as canonical URLs are."""
    offsets, data = data_of(urls)
    used = data[offsets[0] : offsets[-1]]
    is_bad = ~has_server
    if used.min() < _FIRST_VISIBLE or used.max() > _LAST_VISIBLE:
        strange = np.flatnonzero((used < _FIRST_VISIBLE) | (used > _LAST_VISIBLE)) + offsets[0]
        is_bad[np.searchsorted(offsets, strange, "right") - 1] = True
    if is_bad.any():
        refuse(urls[int(np.flatnonzero(is_bad)[0])].as_py())


class ServerOf:
    """The server of each page; by a table where `numbers_at_once` of it fit into memory, else by searching."""

    def __init__(self, first_page: Array, numbers_at_once: int):
        self._first_page = np.array(first_page)
        pages, servers = int(first_page[-1]), len(first_page) - 1
        self._table = None
        if pages <= numbers_at_once:
            self._table = np.repeat(np.arange(servers, dtype=number_type(servers)), np.diff(self._first_page))

    def __call__(self, pages: Array) -> Array:
        if self._table is not None:
            return self._table[pages]
        return np.searchsorted(self._first_page, pages.astype(np.int64), "right") - 1  # i8 and u8 are compared as f8


class Folded:
    """The new edges of a level, both ways: edges of a finer level, between the nodes that their ends belong to."""

    def __init__(self, scratch: Path, level: str, node_of: NodeOf, nodes: int, expected: int, at_once: int):
        self._node_of, self._nodes = node_of, nodes
        self.forward, self.backward = (
            ExternalSort(scratch / f"{level}.{way}", 2 * bits_of(nodes), expected, at_once, has_payload=True)
            for way in ("forward", "backward")
        )

    def add(self, sources: Array, targets: Array, weights: Array | None) -> None:
        """Edges of the finer level; without weights each counts one."""
        if not len(sources):
            return
        pairs = join_pairs(self._node_of(sources), self._node_of(targets), self._nodes)
        distinct, counts = count_pairs(pairs, weights)
        self.forward.add(distinct, counts)
        source, target = cut_pairs(distinct, self._nodes)
        self.backward.add(join_pairs(target, source, self._nodes), counts)


def count_pairs(pairs: Array, weights: Array | None) -> tuple[Array, npt.NDArray[np.uint32]]:
    """Each pair once, rising, with the sum of its weights, at most what u32 holds; without weights each counts one."""
    if weights is None:
        pairs.sort()
        starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
        return pairs[starts], np.diff(np.append(starts, len(pairs))).astype(np.uint32)
    order = np.argsort(pairs, kind="stable")
    pairs, weights = pairs[order], weights[order].astype(np.uint64)
    starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
    return pairs[starts], bound(np.add.reduceat(weights, starts), "<u4")


def open_first_pages(folder: Path) -> Array:
    return open_array(folder / f"servers.{FIRST_PAGE}", "<i8")
