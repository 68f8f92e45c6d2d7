"""Which visits of a crawl count, and which of them the filters choose.

A visit counts if a committed cycle has a row of it in MetadadosUrlsColetadas. The log says which cycles are committed:
void entries and abandoned cycles have none. A cycle of which something is missing or damaged ends the export, or with
--allow-partial is left out and named.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.config import Scope
from contract.log import History
from contract.scope.link_sources import LinkSources
from contract.tables import METADATA
from examine.export.filters import Filters
from examine.link_sources import mark_visits
from storage.arrays import Array
from storage.errors import Damaged, UnknownFormat
from storage.publish import MANIFEST, read_manifest
from storage.tables import column, open_table, read_table

JUDGED = ("server_key", "url", "status", "type", "language", "fetched_at_ms")  # columns that filters look at
COMPARED = ("domain_key", "url_key", "fetched_at_ms", "revisit")  # by which newest visits are found
NEWEST_ROWS = 8 << 20  # of visits that are compared at once, 40 bytes each
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd: a url_key is unique inside its block only


@dataclass
class Selection:
    """The chosen rows of each cycle."""

    crawl: Path
    cycles: list[int]  # committed ones with pages, in the order of the log
    filters: Filters
    allow_partial: bool = False
    link_sources: LinkSources = field(default_factory=lambda: LinkSources(Scope()))  # that are left out
    newest: dict[int, Array] = field(default_factory=dict)  # cycle -> bits of its rows

    def rows(self, cycle: int, columns: tuple[str, ...]) -> tuple[pa.Table, int]:
        """The chosen visits of a cycle with these columns of METADATA, in the order of the page files, and how many of
        link sources were left out.
        """
        wanted = list(dict.fromkeys((*columns, *JUDGED, *COMPARED, "file", "offset")))
        visits = read_table(metadata_path(self.crawl, cycle), METADATA, wanted)
        taken = self.filters.judge(visits)
        if self.filters.newest:
            taken &= np.unpackbits(self.newest[cycle], count=len(visits)).astype(bool)
        left_out = np.zeros(len(visits), bool)
        if self.link_sources:
            left_out = taken & mark_visits(self.crawl, cycle, self.link_sources)
        chosen = visits.filter(pa.array(taken & ~left_out))
        return chosen.sort_by([("file", "ascending"), ("offset", "ascending")]), int(left_out.sum())

    def find_newest(self, rows_at_once: int = NEWEST_ROWS) -> None:
        """Of each URL the newest visit in the dates that brought a page; where all are revisits, the newest.

        Compares as many URLs at once as fit, by their keys; keeps one bit per visit.
        """
        lengths = {}
        for cycle in self.cycles:
            with self.passing_damage(), open_table(metadata_path(self.crawl, cycle), METADATA) as file:
                lengths[cycle] = file.metadata.num_rows
        marks = {cycle: np.zeros(length, bool) for cycle, length in lengths.items()}
        passes = -(-sum(lengths.values()) // rows_at_once)
        for number in range(passes):
            for cycle, rows in self._newest_of(list(lengths), passes, number):
                marks[cycle][rows] = True
        self.newest = {cycle: np.packbits(mark) for cycle, mark in marks.items()}

    @contextmanager
    def passing_damage(self) -> Iterator[None]:
        """With --allow-partial: rows() meets the same damage again, and its caller names it."""
        try:
            yield
        except (Damaged, UnknownFormat):
            if not self.allow_partial:
                raise

    def _newest_of(self, cycles: list[int], passes: int, number: int) -> Iterator[tuple[int, Array]]:
        """(cycle, its rows) for the URLs whose mixed key falls to this pass."""
        parts: list[tuple[Array, Array, Array]] = []
        for cycle in cycles:
            visits = METADATA.empty_table()
            with self.passing_damage():
                visits = read_table(metadata_path(self.crawl, cycle), METADATA, list(COMPARED))
            keys = column(visits, "url_key") ^ (column(visits, "domain_key") * _MIX)
            here = (keys % np.uint64(passes) == number) & self.filters.in_dates(column(visits, "fetched_at_ms"))
            rows = np.flatnonzero(here)
            parts.append((keys[rows], ~column(visits, "revisit")[rows], rows))
        keys, is_full = (np.concatenate([part[index] for part in parts]) for index in (0, 1))
        order = np.lexsort((is_full, keys))  # stable: of equal ones the later cycle comes last
        ordered = keys[order]
        last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if len(ordered) else np.empty(0, np.int64)
        chosen = np.zeros(len(keys), bool)
        chosen[order[last]] = True
        start = 0
        for cycle, (_, _, rows) in zip(cycles, parts):
            yield cycle, rows[chosen[start : start + len(rows)]]
            start += len(rows)


def metadata_path(crawl: Path, cycle: int) -> Path:
    return crawl / names.cycle(cycle) / names.EXTRACTOR / names.METADATA


def committed_cycles(log: History) -> list[int]:
    """The cycles with pages that have an entry in force, in the order of the log."""
    return [entry.cycle for entry in log.entries if entry is not None and entry.fetches]


def page_files(crawl: Path, cycle: int) -> list[Path]:
    """The files of pages that the fetcher's manifest names; Damaged where there is no manifest."""
    folder = crawl / names.cycle(cycle) / names.FETCHER
    try:
        found = read_manifest(folder)["files"]
    except FileNotFoundError:
        raise Damaged(folder / MANIFEST, "expected a manifest, found none") from None
    return [folder / name for name in sorted(found) if name.startswith(f"{names.PAGES}/")]
