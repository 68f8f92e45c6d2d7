"""Numbers the pages: new URLs are merged with those of the earlier graph, both sorted by their text.

Writes the texts of pages, servers and domains, which pages were answered, and the key of each page with its number.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contract.errors import BadInput
from contract.surt import SurtPrefixes
from contract.url import Keys as CrawlKeys
from graph.base import Base
from graph.csr import NODES_MAX
from graph.flags import ANSWERED
from graph.folder import PAGES
from graph.levels import ServerWriter, starts_of_servers
from graph.page_keys import SOURCE_NUMBER
from graph.sorted_urls import Urls
from graph.text_store import TextStoreWriter
from storage.ahead import ahead
from storage.arrays import Array, Keys, Rows
from storage.columns import PlainWriter
from storage.compiled import compiled
from storage.external_sort import ExternalSort
from storage.text_segments import data_of

OLD_FRAMES_AT_ONCE = 128


class PageWriter:
    """`key_sort` takes the key of each new page with its number."""

    def __init__(self, folder: Path, crawl_keys: CrawlKeys, base: Base, sources: SurtPrefixes, key_sort: ExternalSort):
        self._base, self._sources, self._key_sort = base, sources, key_sort
        self._texts = TextStoreWriter(folder, PAGES)
        self._servers = ServerWriter(folder, crawl_keys)
        self._collected = PlainWriter(folder / "pages.collected.npy", "u1")
        self._source_keys: list[Keys] = []  # of link sources: one thread appends, another one takes
        self.pages = self.old = 0

    @property
    def servers(self) -> int:
        return self._servers.servers

    @property
    def domains(self) -> int:
        return self._servers.domains

    def write(self, new: Iterator[Urls]) -> Iterator[int]:
        """Takes the new URLs, sorted by text. Yields how many pages have a number."""
        moved = self._base.begin_moving()
        for piece in ahead(weave(self._base.texts(OLD_FRAMES_AT_ONCE), map(self._drop_sources, new))):
            if self.pages + len(piece.texts) > NODES_MAX:
                raise BadInput(f"a graph has at most {NODES_MAX:,} pages; this one would have more")
            old_count = len(piece.texts) - len(piece.new)
            is_collected = np.empty(len(piece.texts), np.uint8)
            is_collected[piece.new_rows] = piece.new.flags & ANSWERED
            if old_count:
                is_collected[piece.old_rows] = self._base.collected[self.old : self.old + old_count]
            moved.append(self.pages + piece.old_rows)
            self._texts.append(piece.texts)
            self._servers.append(piece.texts, self.pages)
            self._collected.append(is_collected)
            self._key_sort.add(piece.new.key, (self.pages + piece.new_rows).astype(np.uint32))
            while self._source_keys:
                self.add_sources(self._source_keys.pop())
            self.pages += len(piece.texts)
            self.old += old_count
            yield self.pages
        while self._source_keys:  # those behind the last page
            self.add_sources(self._source_keys.pop())
        moved.close()
        self._texts.close()
        self._servers.close(self.pages)
        self._collected.close()

    def _drop_sources(self, urls: Urls) -> Urls:
        """Those that are no link sources; servers are judged first. The keys of the others get no number."""
        if not self._sources:
            return urls
        is_source = np.zeros(len(urls), bool)
        starts, lengths = starts_of_servers(urls.url)
        for start, stop, length in zip(starts.tolist(), [*starts[1:].tolist(), len(urls)], lengths.tolist()):
            server = urls.url[start].as_py()[: length - 1].decode()
            if self._sources.takes_server(server):
                is_source[start:stop] = True
            elif paths := tuple(path.encode() for path in self._sources.paths_of(server)):
                texts = urls.url.slice(start, stop - start).to_pylist()
                is_source[start:stop] = [text[length - 1 :].startswith(paths) for text in texts]
        self._source_keys.append(urls.key[is_source])
        return urls.filter(~is_source)

    def add_sources(self, keys: Keys) -> None:
        """Keys of URLs that are no pages of the collection."""
        self._key_sort.add(keys, np.full(len(keys), SOURCE_NUMBER, np.uint32))


class Woven(NamedTuple):
    """Sorted texts, of which those of `old_rows` are old and those of `new_rows` are new."""

    texts: pa.LargeBinaryArray
    old_rows: Rows
    new_rows: Rows
    new: Urls


def weave(old: Iterator[pa.LargeBinaryArray], new: Iterator[Urls]) -> Iterator[Woven]:
    """All texts of both, sorted; no text is in both."""
    old_texts, urls = next_texts(old), next_texts(new)
    while old_texts is not None or urls is not None:
        if urls is None:
            yield Woven(old_texts, np.arange(len(old_texts)), np.empty(0, np.int64), NO_URLS)
            old_texts = next_texts(old)
        elif old_texts is None:
            yield Woven(urls.url, np.empty(0, np.int64), np.arange(len(urls)), urls)
            urls = next_texts(new)
        else:
            below = count_below(urls.url, old_texts)  # the new text of a row comes behind so many old ones
            old_count, new_count = int(below[-1]), len(urls)
            if old_count == len(old_texts):
                new_count = int(np.searchsorted(below, old_count))
            yield join(old_texts.slice(0, old_count), urls.slice(0, new_count), below[:new_count])
            old_texts, urls = old_texts.slice(old_count), urls.slice(new_count, len(urls))
            old_texts = old_texts if len(old_texts) else next_texts(old)
            urls = urls if len(urls) else next_texts(new)


def next_texts(pieces: Iterator):
    """The next piece that is not empty; None at the end."""
    return next((piece for piece in pieces if len(piece)), None)


def join(old: pa.LargeBinaryArray, new: Urls, below: Rows) -> Woven:
    new_rows = below + np.arange(len(new))
    order = np.zeros(len(old) + len(new), np.int64)
    is_old = np.ones(len(order), bool)
    is_old[new_rows] = False
    old_rows = np.flatnonzero(is_old)
    order[old_rows] = np.arange(len(old))
    order[new_rows] = np.arange(len(old), len(order))
    texts = pa.concat_arrays([old, new.url]).take(pa.array(order)) if len(new) else old
    return Woven(texts, old_rows, new_rows, new)


def count_below(texts: pa.LargeBinaryArray, among: pa.LargeBinaryArray) -> Rows:
    """For each text how many of `among` are below it; both sorted."""
    below = np.empty(len(texts), np.int64)
    count_texts_below(*map(np.ascontiguousarray, (*data_of(texts), *data_of(among))), below)
    return below


@compiled("i8[] u1[] i8[] u1[] -> i8[]")
def count_texts_below(offsets: Array, data: Array, among_offsets: Array, among: Array, below: Array) -> int:
    at = 0
    for text in range(len(offsets) - 1):
        begin, length = offsets[text], offsets[text + 1] - offsets[text]
        while at < len(among_offsets) - 1:
            other, other_length = among_offsets[at], among_offsets[at + 1] - among_offsets[at]
            common = 0
            while common < length and common < other_length and data[begin + common] == among[other + common]:
                common += 1
            if common == other_length:
                is_below = common < length
            else:
                is_below = common < length and among[other + common] < data[begin + common]
            if not is_below:
                break
            at += 1
        below[text] = at
    return 0


NO_URLS = Urls(pa.array([], pa.large_binary()), np.empty(0, np.uint64), np.empty(0, np.uint8))
