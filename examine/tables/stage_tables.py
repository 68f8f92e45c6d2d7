"""The Parquet tables of all committed cycles as Arrow datasets: one per kind of table, with the cycle as a column.

The log says which cycles count, and a cycle's manifest which files there are. A file that is missing or has another
length than its manifest says is found before anything is read; one whose bytes changed is found by the checksums of its
pages while it is read, and then named by its checksum.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from contract import names
from contract.generation import BLOCK_SERVERS, SERVERS_FILE, read_generation_manifest
from contract.log import KINDS, Entry, History
from contract.tables import EXTRACTED, FAILURES, LINKS, METADATA, REFUSED_ROWS, REJECTED, TARGETS
from examine.tables.known_urls import live_generations
from storage.errors import Damaged, UnknownFormat
from storage.publish import read_manifest, verify

FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)
# Name here -> stage, file, columns.
TABLES = {
    "answers": (names.EXTRACTOR, names.METADATA, METADATA),
    "links": (names.EXTRACTOR, names.LINKS, LINKS),
    "extracted": (names.EXTRACTOR, names.EXTRACTED, EXTRACTED),
    "targets": (names.EXTRACTOR, names.TARGETS, TARGETS),
    "failures": (names.EXTRACTOR, names.FAILURES, FAILURES),
    "rejected": (names.EXTRACTOR, names.REJECTED, REJECTED),
    "refused_rows": (names.VERIFIER, names.REFUSED_URLS, REFUSED_ROWS),
}
OPTIONAL = (names.TARGETS, names.REFUSED_URLS)  # a manifest need not have them
BLOCK_SERVERS_TABLE = "block_servers"


class Rows(ds.FileSystemDataset):
    """A dataset that forgets the footer of a file once it is read: each takes some 100 kB, and a crawl has many."""

    def scanner(self, **options: object) -> ds.Scanner:
        return super().scanner(cache_metadata=False, **options)


@dataclass
class File:
    """A file of rows, with the number that its rows get: that of its cycle, or of its block."""

    path: Path
    about: dict
    number: int


@dataclass
class StageTables:
    """The tables of a crawl; with `allow_partial`, files that are missing or damaged are left out and noted."""

    crawl: Path
    log: History
    allow_partial: bool = False
    left_out: list[str] = field(default_factory=list)
    used: list[File] = field(default_factory=list)  # the files of the datasets that were asked for

    def dataset(self, table: str) -> ds.Dataset:
        if table == BLOCK_SERVERS_TABLE:
            column, schema, files = "block", BLOCK_SERVERS, list(self._find_servers())
        else:
            column, schema, files = "cycle", TABLES[table][2], list(self._find(table))
        self.used += files
        system, number = LocalFileSystem(), ds.field(column)
        fragments = [
            FORMAT.make_fragment(str(file.path), system, partition_expression=number == file.number) for file in files
        ]
        return Rows(fragments, schema.append(pa.field(column, pa.int64())), FORMAT, system)

    def _find(self, table: str) -> Iterator[File]:
        stage, name, _ = TABLES[table]
        for entry in self.log.entries:
            if entry is None or not has_table(entry, stage):
                continue
            folder = self.crawl / names.cycle(entry.cycle) / stage
            yield from self._checked(folder, name, entry.cycle)

    def _find_servers(self) -> Iterator[File]:
        for block, number in live_generations(self.log).items():
            yield from self._checked(self.crawl / names.generation(block, number), SERVERS_FILE, block)

    def _checked(self, folder: Path, name: str, number: int) -> Iterator[File]:
        """The file, if its folder has it and it is there as a whole."""
        path = folder / name
        try:
            is_generation = name == SERVERS_FILE
            manifest = read_generation_manifest(folder) if is_generation else read_manifest(folder)
            about = manifest["files"].get(name)
            if about is None and name in OPTIONAL:
                return
            if about is None:
                raise Damaged(path, "expected a file, found none in its manifest")
            if self.allow_partial:
                verify(path, about)
            else:
                expect_length(path, about["bytes"])
            yield File(path, about, number)
        except (Damaged, UnknownFormat, FileNotFoundError) as error:
            problem = missing_manifest(folder) if isinstance(error, FileNotFoundError) else error
            if not self.allow_partial:
                raise problem from None
            self.left_out.append(str(problem))

    def verify_used(self) -> None:
        """Damaged where a file that was asked for is not the one that its manifest describes."""
        for file in self.used:
            verify(file.path, file.about)


def has_table(entry: Entry, stage: str) -> bool:
    return KINDS[entry.kind].fetches if stage == names.EXTRACTOR else KINDS[entry.kind].merges


def missing_manifest(folder: Path) -> Damaged:
    return Damaged(folder / names.MANIFEST, "expected a manifest, found none: the log has this cycle or generation")


def expect_length(path: Path, expected: int) -> None:
    try:
        found = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        raise Damaged(path, "expected a file, found none") from None
    if found != expected:
        raise Damaged(path, f"expected {expected} bytes, found {found}")
