"""Which cycles of a crawl count, and their tables: those that the log has as committed, each file checked."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import xxhash

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.log import replay
from contract.stage import read_input_manifest
from storage.errors import Damaged
from storage.publish import verify
from storage.tables import open_table, read_groups

GROUPS_AT_LEAST = 4  # row groups that are read together


def committed_cycles(crawl: CrawlFolder) -> list[int]:
    """The cycles that fetched pages and are committed; void entries and abandoned cycles do not count."""
    log = replay(crawl.path, crawl.blocks_first)
    return sorted(entry.cycle for entry in log.entries if entry is not None and entry.fetches)


class CycleTables:
    """The extractor's tables of one cycle. Each is checked when it is first opened."""

    def __init__(self, crawl: Path, cycle: int):
        self.cycle = cycle
        self._folder = crawl / names.cycle(cycle) / names.EXTRACTOR
        self.files = read_input_manifest(self._folder)["files"]
        self._verified: set[str] = set()

    @property
    def digest(self) -> str:
        """Of all that the tables hold."""
        content = sorted((name, about["xxh3"]) for name, about in self.files.items())
        return xxhash.xxh3_64_hexdigest(json.dumps(content).encode())

    def has(self, name: str) -> bool:
        return name in self.files

    def verify(self, name: str) -> Path:
        path = self._folder / name
        if name not in self._verified:
            if name not in self.files:
                raise Damaged(path, "expected a file, found none in the manifest")
            verify(path, self.files[name])
            self._verified.add(name)
        return path

    def count(self, name: str, schema: pa.Schema) -> int:
        with open_table(self._folder / name, schema) as file:
            rows: int = file.metadata.num_rows
        return rows

    def read(self, name: str, schema: pa.Schema, columns: list[str], rows_at_once: int) -> Iterator[pa.Table]:
        """The rows of a table in their order, about so many at a time."""
        path = self.verify(name)
        with open_table(path, schema, is_verified=True) as file:
            groups = file.metadata.num_row_groups
            largest = max((file.metadata.row_group(group).num_rows for group in range(groups)), default=1)
            step = max(rows_at_once // max(largest, 1), GROUPS_AT_LEAST)
            for start in range(0, groups, step):
                yield read_groups(path, file, list(range(start, min(start + step, groups))), columns)
