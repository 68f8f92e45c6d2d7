"""Runs: the URLs of one cycle, sorted by their text. They are made once per cycle, kept, and merged for each graph.

A run is a published folder with one or more tables, each sorted and of a size that memory holds. A URL stands in a
table once, with its key and what the cycle knows of it (ANSWERED, KNOWN). Runs are merged some at a time: from the
first rows of each the merge takes all that are not above the smallest of their last ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contract import names
from contract.tables import ANSWERED as OUTCOME_ANSWERED
from contract.tables import COLLECTED, EXTRACTED, TARGETS, schema
from graph.tables import CycleTables
from storage.ahead import ahead
from storage.arrays import Keys
from storage.errors import Damaged
from storage.publish import is_published, publishing, read_manifest, unpublish, verify
from storage.tables import LEVEL_SHORT_LIVED, TableWriter, column, open_table, read_groups
from storage.text_segments import LINES

RUN = schema(("url", pa.large_binary()), ("key", pa.uint64()), ("flags", pa.uint8()))
ANSWERED, KNOWN = 1, 2  # bits of flags: a page was fetched; the crawl has the URL in R
FAN_IN = 48  # tables that are merged at once
URL_BYTES = (
    700  # memory that a URL takes while it is sorted and written: its text several times, the order, key and flags
)
READ_ROWS = 1 << 18


@dataclass(frozen=True)
class Urls:
    """Rows of RUN as arrays."""

    url: pa.LargeBinaryArray
    key: Keys
    flags: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.key)

    def slice(self, start: int, stop: int) -> "Urls":
        return Urls(self.url.slice(start, stop - start), self.key[start:stop], self.flags[start:stop])

    def table(self) -> pa.Table:
        return pa.Table.from_arrays([self.url, pa.array(self.key), pa.array(self.flags)], schema=RUN)


def run_folder(runs: Path, cycle: int) -> Path:
    return runs / f"{cycle:08d}"


def ensure_run(runs: Path, tables: CycleTables, urls_at_once: int) -> list[Path]:
    """The tables of the cycle's run, made where there is none, or where it is damaged or of other tables."""
    folder = run_folder(runs, tables.cycle)
    if is_published(folder):
        try:
            manifest = read_manifest(folder)
            if manifest.get("made_of") == made_of(tables):
                for name, about in manifest["files"].items():
                    verify(folder / name, about)
                return [folder / name for name in sorted(manifest["files"])]
        except Damaged:
            pass  # it holds nothing that the tables do not have
        unpublish(folder)
    with publishing(folder) as manifest:
        manifest["made_of"] = made_of(tables)
        for number, urls in enumerate(ahead(map(sort_urls, read_urls(tables, urls_at_once)))):
            write_run(folder / f"{number:06d}.parquet", iter([urls]))
    return sorted(folder.glob("*.parquet"))


def made_of(tables: CycleTables) -> dict[str, str]:
    wanted = (names.EXTRACTED, names.COLLECTED, names.TARGETS)
    return {name: tables.files[name]["xxh3"] for name in wanted if tables.has(name)}


def read_urls(tables: CycleTables, at_once: int) -> Iterator[Urls]:
    """All URLs that the cycle has a text of, about so many at a time, in any order, also repeated."""
    pending: list[Urls] = []
    for urls in iterate_urls(tables, min(at_once, READ_ROWS)):
        pending.append(urls)
        if sum(map(len, pending)) >= at_once:
            yield join(pending)
            pending = []
    if pending:
        yield join(pending)


def iterate_urls(tables: CycleTables, rows: int) -> Iterator[Urls]:
    for table in tables.read(names.COLLECTED, COLLECTED, ["url_key", "url", "outcome"], rows):
        answered = pc.equal(table.column("outcome"), OUTCOME_ANSWERED).combine_chunks().to_numpy(zero_copy_only=False)
        flags = np.where(answered, ANSWERED | KNOWN, KNOWN).astype(np.uint8)
        yield Urls(texts_of(table), column(table, "url_key"), flags)
    for table in tables.read(names.EXTRACTED, EXTRACTED, ["url_key", "url"], rows):
        yield Urls(texts_of(table), column(table, "url_key"), np.full(len(table), KNOWN, np.uint8))
    if tables.has(names.TARGETS):
        for table in tables.read(names.TARGETS, TARGETS, ["key", "url"], rows):
            yield Urls(texts_of(table), column(table, "key"), np.zeros(len(table), np.uint8))


def texts_of(table: pa.Table) -> pa.LargeBinaryArray:
    texts = table.column("url").cast(LINES).combine_chunks()
    return pa.concat_arrays(texts.chunks) if isinstance(texts, pa.ChunkedArray) else texts


def join(parts: list[Urls]) -> Urls:
    if len(parts) == 1:
        return parts[0]
    keys, flags = (np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "flags"))
    return Urls(pa.concat_arrays([part.url for part in parts]), keys, flags)


def sort_urls(urls: Urls) -> Urls:
    """Sorted by text, each URL once, with the flags of all its rows."""
    order = pc.sort_indices(urls.url).to_numpy()
    url, key, flags = urls.url.take(pa.array(order)), urls.key[order], urls.flags[order]
    if len(url) < 2:
        return Urls(url, key, flags)
    differs = pc.not_equal(url.slice(1), url.slice(0, len(url) - 1)).to_numpy(zero_copy_only=False)
    if differs.all():
        return Urls(url, key, flags)
    starts = np.flatnonzero(np.concatenate(([True], differs)))
    return Urls(url.take(pa.array(starts)), key[starts], np.bitwise_or.reduceat(flags, starts))


def write_run(path: Path, pieces: Iterator[Urls]) -> Path:
    writer = TableWriter(path, RUN, ("url", "key"), LEVEL_SHORT_LIVED)
    for urls in pieces:
        writer.append(urls.table())
    writer.close()
    return path


def merge_runs(paths: list[Path], scratch: Path, urls_at_once: int) -> Iterator[Urls]:
    """The URLs of all tables, sorted by text, each once. More than FAN_IN tables are merged in several passes."""
    level = 0
    while len(paths) > FAN_IN:
        groups = [paths[start : start + FAN_IN] for start in range(0, len(paths), FAN_IN)]
        merged = [
            write_run(scratch / f"merged-{level}-{number}.parquet", merge_tables(group, urls_at_once))
            for number, group in enumerate(groups)
        ]
        if level:
            for path in paths:
                path.unlink()
        paths, level = merged, level + 1
    yield from merge_tables(paths, urls_at_once)


def merge_tables(paths: list[Path], urls_at_once: int) -> Iterator[Urls]:
    sources = [Source(path, max(urls_at_once // len(paths), 1)) for path in paths]
    while sources := [source for source in sources if source.fill()]:
        limits = [source.last() for source in sources if not source.is_at_end]
        limit = min(limits, default=None)
        yield sort_urls(join([source.take(limit) for source in sources]))


class Source:
    """A sorted table, read from its start."""

    def __init__(self, path: Path, rows_at_once: int):
        self._path, self._rows_at_once = path, rows_at_once
        with open_table(path, RUN) as file:
            self._metadata = file.metadata
        self._group = 0
        self._urls: Urls | None = None

    @property
    def is_at_end(self) -> bool:
        return self._group == self._metadata.num_row_groups

    def fill(self) -> bool:
        """Reads on if nothing is left of what was read; false at the end of the table."""
        if self._urls is not None and len(self._urls):
            return True
        groups, rows = [], 0
        while not self.is_at_end and (not groups or rows < self._rows_at_once):
            groups.append(self._group)
            rows += self._metadata.row_group(self._group).num_rows
            self._group += 1
        if not groups:
            return False
        with open_table(self._path, RUN, self._metadata, is_verified=True) as file:
            table = read_groups(self._path, file, groups)
        self._urls = Urls(texts_of(table), column(table, "key"), column(table, "flags"))
        return True

    def last(self) -> bytes:
        text: bytes = self._urls.url[-1].as_py()
        return text

    def take(self, limit: bytes | None) -> Urls:
        """The rows up to and with a text; all where it is none."""
        urls, count = self._urls, len(self._urls)
        if limit is not None:
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                low, high = (middle + 1, high) if urls.url[middle].as_py() <= limit else (low, middle)
            count = low
        self._urls = urls.slice(count, len(urls))
        return urls.slice(0, count)
