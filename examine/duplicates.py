"""Clusters of pages with the same content, in one crawl or across several: what bin/show --duplicates prints.

Theory. A generation's side set has the content digest of every collected page, in the order of its rows. Digests are
divided by their first 16 bits. One pass over the columns counts the digests of each prefix, so that ranges of prefixes
can be chosen that fit into memory. Then each range is read from the columns. Pages with the same digest have the same
first half of it; most pages share theirs with no other page, and are put aside at once. The others are sorted, and
their runs of equal digests are the clusters.

The status of a page is not in the side set but in the metadata of its cycle. Of each such table one bit per page is
kept in memory: whether the status is 200 to 299.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contract import names
from contract.config import Verifier
from contract.crawl_folder import open_folder
from contract.errors import Usage
from contract.generation import Generation, open_generation, read_urls
from contract.log_summary import read_log
from contract.tables import METADATA
from contract.units import count as count_of
from storage.arrays import find_repeated, starts_of_runs
from storage.columns import Columns
from storage.errors import Damaged
from storage.tables import column, read_table

MEMORY_MAX_BYTES = Verifier().memory_max_bytes  # for the pages of one range, while they are sorted
ROW_BYTES = 96  # per page while its range is sorted: digest, page id, order, and copies of them
PREFIX_BITS = 16
CHUNK_ROWS = 1 << 20
MEMBERS_SHOWN = 10  # pages per cluster in the output for people
TEXTS_AT_ONCE = 100_000  # pages whose URLs are read together
ROW_BITS = np.uint64(32)  # of a page id, which is the number of its source and the row of its side set behind it


class Source(NamedTuple):
    """A block of a crawl with its live generation, whose columns are read when they are needed."""

    crawl: Path
    block: int
    number: int | None
    side: Columns

    def open(self) -> Generation:
        return open_generation(self.crawl, self.block, self.number)


@dataclass
class Duplicates:
    """Clusters from the largest; `page_ids` (u64) has the pages of one cluster after those of the other."""

    pages: int  # whose content is known
    unknown: int
    others: int  # pages that are left out because their status is not 200 to 299, or is not known
    distinct: int
    clusters: int  # of two pages or more, also where not all of them are kept here
    in_clusters: int
    sizes: np.ndarray  # i8
    digests: np.ndarray  # u8 of 2 columns, first half and second
    page_ids: np.ndarray


def open_sources(crawls: list[Path]) -> list[Source]:
    sources = []
    for path in crawls:
        if path.resolve() in {other.resolve() for other in crawls if other is not path}:
            raise Usage(f"{path} is given twice")
        crawl = open_folder(path)
        log = read_log(crawl)
        for block in range(log.blocks):
            sources.append(
                Source(path, block, log.generation(block), open_generation(path, block, log.generation(block)).side)
            )
    return sources


def halves_of(digests: np.ndarray) -> np.ndarray:
    """Digests (V16) as u8 of 2 columns, which sort as the bytes do."""
    return np.ascontiguousarray(digests).view(">u8").reshape(-1, 2).astype(np.uint64)


class Chunk(NamedTuple):
    source: int
    first_row: int
    halves: np.ndarray  # digests
    is_wanted: np.ndarray  # by its status


class Successes:
    """Which pages have a status of 200 to 299, by the metadata of their cycles; of a table that was not kept, none."""

    def __init__(self):
        self._bits: dict[Path, np.ndarray | None] = {}  # of each row one bit; none where the table was not kept

    def of(self, source: Source, start: int, end: int) -> np.ndarray:
        """Of the rows [start, end) of its side set; bool."""
        cycle, row = source.side.read("cycle", start, end), source.side.read("row", start, end).astype(np.int64)
        found = np.zeros(end - start, bool)
        order = np.argsort(cycle, kind="stable")
        for here in np.split(order, starts_of_runs(cycle[order])[1:]):
            path = source.crawl / names.cycle(int(cycle[here[0]])) / names.EXTRACTOR / names.METADATA
            bits, rows = self._read(path), row[here]
            if bits is None:
                continue
            if rows.max() >> 3 >= len(bits):
                raise Damaged(path, f"expected a row {rows.max()}, found {8 * len(bits)} at most")
            found[here] = bits[rows >> 3] >> (rows & 7) & 1
        return found

    def _read(self, path: Path) -> np.ndarray | None:
        if path not in self._bits:
            self._bits[path] = None
            if path.exists():
                status = column(read_table(path, METADATA, ["status"]), "status")
                self._bits[path] = np.packbits((status >= 200) & (status < 300), bitorder="little")
        return self._bits[path]


def iterate_chunks(sources: list[Source], successes: Successes | None) -> Iterator[Chunk]:
    """Every part of every side set; without `successes` pages of every status are wanted."""
    for number, source in enumerate(sources):
        for start in range(0, source.side.rows, CHUNK_ROWS):
            end = min(start + CHUNK_ROWS, source.side.rows)
            halves = halves_of(source.side.read("content_digest", start, end))
            is_wanted = successes.of(source, start, end) if successes else np.ones(end - start, bool)
            yield Chunk(number, start, halves, is_wanted)


def is_known(halves: np.ndarray) -> np.ndarray:
    return halves.any(axis=1)  # UNKNOWN_DIGEST is all zero


def choose_ranges(counts: np.ndarray, rows_max: int) -> list[tuple[int, int]]:
    """Ranges [low, high) of prefixes that cover all, each of at most `rows_max` rows unless one prefix has more."""
    ranges, low, rows = [], 0, 0
    for prefix, count in enumerate(counts.tolist()):
        if rows and rows + count > rows_max:
            ranges.append((low, prefix))
            low, rows = prefix, 0
        rows += count
    return [*ranges, (low, len(counts))]


def find_duplicates(
    sources: list[Source], limit: int, memory_max_bytes: int = MEMORY_MAX_BYTES, *, all_statuses: bool = False
) -> Duplicates:
    """The largest `limit` clusters (0: all), ties by digest, and the figures of all; of successful pages, or of all."""
    shift = np.uint64(64 - PREFIX_BITS)
    successes = None if all_statuses else Successes()
    counts, unknown, others = np.zeros(1 << PREFIX_BITS, np.int64), 0, 0
    for chunk in iterate_chunks(sources, successes):
        known = is_known(chunk.halves)
        others += int((~chunk.is_wanted).sum())
        unknown += int((chunk.is_wanted & ~known).sum())
        prefixes = chunk.halves[known & chunk.is_wanted, 0] >> shift
        counts += np.bincount(prefixes.astype(np.int64), minlength=len(counts))
    found = Duplicates(
        int(counts.sum()),
        unknown,
        others,
        int(counts.sum()),  # each page counts as distinct until another with its digest is found
        0,
        0,
        np.empty(0, np.int64),
        np.empty((0, 2), np.uint64),
        np.empty(0, np.uint64),
    )
    for low, high in choose_ranges(counts, max(1, memory_max_bytes // ROW_BYTES)):
        chunks = iterate_chunks(sources, successes)
        add_range(found, *read_range(chunks, low, high, int(counts[low:high].sum())), limit)
    return found


def read_range(chunks: Iterator[Chunk], low: int, high: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Digests as halves and ids (u64) of wanted pages whose prefix is in [low, high) and whose first half repeats."""
    digests, page_ids, end = np.empty((rows, 2), np.uint64), np.empty(rows, np.uint64), 0
    for number, start, halves, is_wanted in chunks:
        prefix = halves[:, 0] >> np.uint64(64 - PREFIX_BITS)
        here = np.flatnonzero((prefix >= low) & (prefix < high) & is_known(halves) & is_wanted)
        digests[end : end + len(here)] = halves[here]
        page_ids[end : end + len(here)] = (np.uint64(number) << ROW_BITS) + np.uint64(start) + here.astype(np.uint64)
        end += len(here)
    repeated = find_repeated(np.ascontiguousarray(digests[:, 0]))
    return digests[repeated], page_ids[repeated]


def add_range(found: Duplicates, digests: np.ndarray, page_ids: np.ndarray, limit: int) -> None:
    """Adds the clusters of a range; the digests that are not here are distinct, and were counted as such."""
    if not len(page_ids):
        return
    order = np.lexsort((page_ids, digests[:, 1], digests[:, 0]))
    digests, page_ids = digests[order], page_ids[order]
    starts = np.flatnonzero(np.concatenate(([True], (digests[1:] != digests[:-1]).any(axis=1))))
    sizes = np.diff(np.append(starts, len(page_ids)))
    found.distinct -= len(page_ids) - len(starts)
    several = np.flatnonzero(sizes > 1)
    found.clusters += len(several)
    found.in_clusters += int(sizes[several].sum())
    largest = several[np.argsort(-sizes[several], kind="stable")][: limit or None]
    members = members_of(starts[largest], sizes[largest])
    keep_largest(found, sizes[largest], digests[starts[largest]], page_ids[members], limit)


def keep_largest(found: Duplicates, sizes: np.ndarray, digests: np.ndarray, page_ids: np.ndarray, limit: int) -> None:
    """Unites clusters of another range with those found; ranges rise, so a stable sort leaves ties by digest."""
    sizes = np.concatenate((found.sizes, sizes))
    digests = np.concatenate((found.digests, digests))
    page_ids = np.concatenate((found.page_ids, page_ids))
    order = np.argsort(-sizes, kind="stable")[: limit or None]
    starts = np.cumsum(sizes) - sizes
    found.sizes, found.digests = sizes[order], digests[order]
    found.page_ids = page_ids[members_of(starts[order], sizes[order])]


def members_of(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """start, start + 1, ... of each cluster, one after the other."""
    ends = np.cumsum(sizes)
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)


def iterate_clusters(sources: list[Source], found: Duplicates, members_max: int = 0) -> Iterator[dict]:
    """Each cluster with its pages (at most `members_max`; 0: all), the earliest cycle of the first crawl first."""
    ends = np.cumsum(found.sizes)
    batch: list[tuple[int, np.ndarray]] = []
    waiting = 0
    for number, (size, end) in enumerate(zip(found.sizes.tolist(), ends.tolist())):
        members = sort_members(sources, found.page_ids[end - size : end])[: members_max or None]
        batch.append((number, members))
        waiting += len(members)
        if waiting >= TEXTS_AT_ONCE:
            yield from read_batch(sources, found, batch)
            batch, waiting = [], 0
    yield from read_batch(sources, found, batch)


def divide_ids(page_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number of the source, and row of its side set; both i64."""
    numbers = page_ids >> ROW_BITS
    return numbers.astype(np.int64), (page_ids - (numbers << ROW_BITS)).astype(np.int64)


def sort_members(sources: list[Source], page_ids: np.ndarray) -> np.ndarray:
    number, row = divide_ids(page_ids)
    crawls = list(dict.fromkeys(source.crawl for source in sources))
    crawl, cycle, row_of_cycle = (np.empty(len(page_ids), np.int64) for _ in range(3))
    for which in np.unique(number).tolist():
        here, source = number == which, sources[which]
        crawl[here] = crawls.index(source.crawl)
        cycle[here], row_of_cycle[here] = source.side["cycle"][row[here]], source.side["row"][row[here]]
    return page_ids[np.lexsort((row_of_cycle, cycle, crawl))]


def read_batch(sources: list[Source], found: Duplicates, batch: list[tuple[int, np.ndarray]]) -> Iterator[dict]:
    pages = read_pages(sources, np.unique(np.concatenate([np.empty(0, np.uint64), *(ids for _, ids in batch)])))
    for number, members in batch:
        yield {
            "size": int(found.sizes[number]),
            "content_digest": found.digests[number].astype(">u8").tobytes().hex(),
            "pages": [pages[page_id] for page_id in members.tolist()],
        }


def read_pages(sources: list[Source], page_ids: np.ndarray) -> dict[int, dict]:
    """What is printed of pages, by id (u64, sorted); each block's text is read once, in its order."""
    pages = {}
    numbers, rows = divide_ids(page_ids)
    for which in np.unique(numbers).tolist():
        source, row = sources[which], rows[numbers == which]
        generation = source.open()
        urls = read_urls(source.crawl, generation, generation.collected_rows[row])
        cycles, rows_of_cycles = source.side["cycle"][row].tolist(), source.side["row"][row].tolist()
        for page_id, url, cycle, row_of_cycle in zip(page_ids[numbers == which].tolist(), urls, cycles, rows_of_cycles):
            pages[page_id] = {"url": url, "crawl": str(source.crawl), "cycle": cycle, "row": row_of_cycle}
    return pages


def summarise(found: Duplicates) -> str:
    return (
        f"{count_of(found.pages, 'page')}, {found.distinct:,} distinct, "
        f"{found.in_clusters:,} in {count_of(found.clusters, 'cluster')}"
        + (f"; {found.unknown:,} more whose content is not known" if found.unknown else "")
        + (f"; {found.others:,} of another status than 200 to 299 left out (--all-statuses)" if found.others else "")
    )
