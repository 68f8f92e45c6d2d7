"""URLs with what is known of them, sorted by their text: sorted in memory, written to tables, and merged.

Tables are merged some at a time: from the first rows of each the merge takes all that are not above the smallest of
their last ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contract.tables import schema
from storage.arrays import Keys
from storage.tables import LEVEL_SHORT_LIVED, TableWriter, column, only_chunk, open_table, read_groups
from storage.text_segments import LINES

RUN = schema(("url", pa.large_binary()), ("key", pa.uint64()), ("flags", pa.uint8()))
FAN_IN = 48  # tables that are merged at once
# Memory that a URL takes while it is sorted and written: its text several times, the order, key and flags.
URL_BYTES = 700


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

    def filter(self, kept: npt.NDArray[np.bool_]) -> "Urls":
        return self if kept.all() else Urls(self.url.filter(pa.array(kept)), self.key[kept], self.flags[kept])

    def table(self) -> pa.Table:
        return pa.Table.from_arrays([self.url, pa.array(self.key), pa.array(self.flags)], schema=RUN)


def texts_of(table: pa.Table) -> pa.LargeBinaryArray:
    return only_chunk(table.column("url").cast(LINES))


def join(parts: list[Urls]) -> Urls:
    if len(parts) == 1:
        return parts[0]
    keys, flags = (np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "flags"))
    return Urls(pa.concat_arrays([part.url for part in parts]), keys, flags)


def sort_urls(urls: Urls) -> Urls:
    order = pc.sort_indices(urls.url).to_numpy()
    return Urls(urls.url.take(pa.array(order)), urls.key[order], urls.flags[order])


def write_run(path: Path, pieces: Iterator[Urls]) -> Path:
    writer = TableWriter(path, RUN, ("url", "key"), LEVEL_SHORT_LIVED)
    for urls in pieces:
        writer.append(urls.table())
    writer.close()
    return path


def merge_runs(paths: list[Path], scratch: Path, urls_at_once: int) -> Iterator[Urls]:
    """The URLs of all tables, sorted by text, which are deleted. More than FAN_IN are merged in several passes."""
    level = 0
    while len(paths) > FAN_IN:
        groups = [paths[start : start + FAN_IN] for start in range(0, len(paths), FAN_IN)]
        paths = [
            write_run(scratch / f"merged-{level}-{number}.parquet", merge_tables(group, urls_at_once))
            for number, group in enumerate(groups)
        ]
        level += 1
    yield from merge_tables(paths, urls_at_once)


def merge_tables(paths: list[Path], urls_at_once: int) -> Iterator[Urls]:
    sources = [Source(path, max(urls_at_once // len(paths), 1)) for path in paths]
    while sources := [source for source in sources if source.fill()]:
        limits = [source.last() for source in sources if not source.is_at_end]
        parts = [source.take(min(limits, default=None)) for source in sources]
        yield parts[0] if len(sources) == 1 else sort_urls(join(parts))
    for path in paths:
        path.unlink()


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
