"""From links, which are pairs of keys, to edges, which are pairs of page numbers.

Ligacoes is sorted by the key of the page, so pages are found by merging a piece of it with a range of the sorted keys.
Then the links are sorted by the keys of their targets, outside memory, and merged with the keys once more.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from contract import names
from contract.tables import LINKS
from graph.csr import bits_of, cut_pairs, join_pairs
from graph.filters import Filters, Visits
from graph.page_keys import NO_PAGE, PageKeys
from graph.tables import CycleTables
from storage.ahead import ahead
from storage.arrays import Keys, Rows, find_in_sorted, starts_of_runs
from storage.external_sort import ExternalSort
from storage.tables import column

KEY_BITS = 64


class LinkReader:
    """Reads the links of cycles, finds their pages and then their targets. `counts` says what is left out."""

    def __init__(self, scratch: Path, keys: PageKeys, pages: int, filters: Filters, links: int, at_once: int):
        self._keys, self._pages, self._filters, self._at_once = keys, pages, filters, at_once
        self._by_target = ExternalSort(scratch / "by_target", KEY_BITS, links, at_once, has_payload=True)
        self.counts: Counter[str] = Counter(dict.fromkeys(("rows", "filtered", "no_page", "no_target"), 0))

    def add_cycle(self, tables: CycleTables, visits: Visits | None = None) -> Iterator[int]:
        """Takes the links of a cycle; of the visits of `visits` alone, if it is given. Yields rows that are done."""
        for links in ahead(tables.read(names.LINKS, LINKS, self._filters.link_columns, self._at_once)):
            kept = self._filters.are_links(links)
            from_key, to_key = column(links, "from_key"), column(links, "to_key")
            if kept is not None:
                from_key, to_key = from_key[kept], to_key[kept]
            starts = starts_of_runs(from_key)
            lengths = np.diff(np.append(starts, len(from_key)))
            distinct = from_key[starts]
            if visits is not None:
                is_visit = np.zeros(len(distinct), bool)
                is_visit[find_in_sorted(distinct, visits.key)[0]] = True
                from_key, to_key = (values[np.repeat(is_visit, lengths)] for values in (from_key, to_key))
                distinct, lengths = distinct[is_visit], lengths[is_visit]
            self.counts["rows"] += len(links)
            self.counts["filtered"] += len(links) - len(to_key)
            source = np.repeat(self._keys.find(distinct), lengths)
            is_page = source != NO_PAGE
            if not is_page.all():
                self.counts["no_page"] += int((~is_page).sum())
                source, to_key = source[is_page], to_key[is_page]
            self._by_target.add(to_key, source.astype(np.uint32))
            yield len(links)

    def add_edges(self, edges: ExternalSort) -> Iterator[int]:
        """Gives all links as pairs of numbers. Yields how many links are done."""
        for piece in ahead(self._by_target.read_unjoined()):
            target = self._keys.find_all(piece.numbers)
            is_page = target != NO_PAGE
            self.counts["no_target"] += int((~is_page).sum())
            edges.add(join_pairs(piece.payload[is_page], target[is_page], self._pages))
            yield len(piece.numbers)


def sort_edges(scratch: Path, name: str, nodes: int, expected: int, at_once: int, is_weighted: bool = False):
    return ExternalSort(scratch / name, 2 * bits_of(nodes), expected, at_once, is_weighted)


def distinct_edges(edges: ExternalSort) -> Iterator[Keys]:
    """The sorted pairs, each once."""
    for piece in ahead(edges.read()):
        pairs = piece.numbers
        yield pairs if (pairs[1:] > pairs[:-1]).all() else pairs[np.append(True, pairs[1:] != pairs[:-1])]


def summed_edges(edges: ExternalSort) -> Iterator[tuple[Keys, Rows]]:
    """The sorted pairs, each once, with the sum of their weights."""
    for piece in ahead(edges.read()):
        starts = starts_of_runs(piece.numbers)
        yield piece.numbers[starts], np.add.reduceat(piece.payload.astype(np.int64), starts)


def swap(pairs: Keys, nodes: int) -> Keys:
    source, target = cut_pairs(pairs, nodes)
    return join_pairs(target, source, nodes)
