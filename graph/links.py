"""From links, which are pairs of keys, to edges, which are pairs of page numbers.

Ligacoes is sorted by the key of the page, so pages are found by merging a piece of it with a range of the sorted keys.
Then the links are sorted by the keys of their targets, outside memory, and merged with the keys once more.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from contract import names
from contract.tables import COLLECTED, LINKS
from graph.base import UNKNOWN_TARGETS, Base
from graph.csr import join_pairs
from graph.filters import Filters, Visits
from graph.new_urls import are_answered
from graph.page_keys import KEY_BITS, LINK_SOURCE, NO_PAGE, PageKeys
from graph.tables import CycleTables
from storage.ahead import ahead
from storage.arrays import Keys, find_in_sorted, starts_of_runs
from storage.columns import PlainWriter
from storage.external_sort import ExternalSort
from storage.tables import column


class LinkReader:
    """Reads the links of cycles, finds their pages and then their targets. `counts` says what is left out."""

    def __init__(self, scratch: Path, keys: PageKeys, pages: int, filters: Filters, links: int, at_once: int):
        self._scratch, self._keys, self._pages = scratch, keys, pages
        self._filters, self._at_once = filters, at_once
        self._by_target = ExternalSort(scratch / "by_target", KEY_BITS, links, at_once, has_payload=True)
        self.counts: Counter[str] = Counter(
            dict.fromkeys(("rows", "filtered", "no_page", "no_target", "link_sources"), 0)
        )

    def add_base(self, base: Base) -> Iterator[int]:
        """Takes the links of the earlier graph whose target had no page. Yields how many are done."""
        for to_key, source in base.unknown_targets():
            self._by_target.add(to_key, source)
            yield len(to_key)

    def add_cycle(self, tables: CycleTables, visits: Visits | None = None) -> Iterator[int]:
        """Takes the links of a cycle; of the visits of `visits` alone, if it is given. Yields rows that are done."""
        answered = read_answered(tables)
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
            number = np.full(len(distinct), NO_PAGE, np.int64)
            rows, _ = find_in_sorted(distinct, answered)
            number[rows] = self._keys.find(distinct[rows])
            source = np.repeat(number, lengths)
            is_page = source >= 0
            if not is_page.all():
                self._count_left_out("no_page", source)
                source, to_key = source[is_page], to_key[is_page]
            self._by_target.add(to_key, source.astype(np.uint32))
            yield len(links)

    def _count_left_out(self, name: str, numbers: np.ndarray) -> None:
        self.counts[name] += int((numbers == NO_PAGE).sum())
        self.counts["link_sources"] += int((numbers == LINK_SOURCE).sum())

    def add_edges(self, edges: ExternalSort, folder: Path) -> Iterator[int]:
        """Gives all links as pairs of numbers, and keeps those without a target. Yields how many links are done."""
        links = len(self._by_target)
        unknown = ExternalSort(self._scratch / "unknown", KEY_BITS, links, self._at_once, has_payload=True)
        for piece in ahead(self._by_target.read_unjoined()):
            target = self._keys.find_all(piece.numbers)
            is_page = target >= 0
            if not is_page.all():
                self._count_left_out("no_target", target)
                is_unknown = target == NO_PAGE
                unknown.add(piece.numbers[is_unknown], piece.payload[is_unknown])
            edges.add(join_pairs(piece.payload[is_page], target[is_page], self._pages))
            yield len(piece.numbers)
        write_unknown(folder, unknown)


def read_answered(tables: CycleTables) -> Keys:
    """The keys of the pages that a cycle fetched, sorted."""
    parts = [np.empty(0, np.uint64)]
    for table in tables.read(names.COLLECTED, COLLECTED, ["url_key", "outcome"], 1 << 20):
        parts.append(column(table, "url_key")[are_answered(table)])
    return np.unique(np.concatenate(parts))


def write_unknown(folder: Path, unknown: ExternalSort) -> None:
    """Writes the links without a target, sorted by its key, then by the page."""
    writers = [PlainWriter(folder / name, dtype) for name, dtype in UNKNOWN_TARGETS.items()]
    for piece in unknown.read_ordered():  # of a popular target there are many
        for writer, values in zip(writers, (piece.numbers, piece.payload)):
            writer.append(values)
    for writer in writers:
        writer.close()
