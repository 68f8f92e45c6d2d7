"""A generation of a block, R_i: rows of known URLs as columns, a side set for collected ones, a table of servers.

Rows are in the order of every other table keyed by URL: domain key, then URL key. So rows that arrive are merged as
they come, a domain is a run of rows, and a block is split by a cut. The texts of a turn have the same order and need no
position: the n-th row of a segment has its n-th line.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract import names
from contract.accumulators import ACCUMULATORS
from contract.policies import FEATURES
from contract.tables import COLLECTED_STATE, LAST_FAILURE, schema
from storage.arrays import Array, Keys, Rows, starts_of_runs
from storage.columns import Columns, ColumnsWriter
from storage.errors import Damaged, UnknownFormat
from storage.publish import expect_described, read_manifest, verify
from storage.tables import column, read_table, write_table
from storage.text_segments import LINES, Segment

COLUMNS = {
    "key": "u8",
    "server": "u4",
    "segment": "u1",
    "state": "u1",
    "attempts": "u1",
    "depth": "u1",
    **{accumulator.name: accumulator.dtype for accumulator in ACCUMULATORS},
    # What the policy needs of a URL's text. The manifest says which ones hold values; the others are zero.
    **{name: feature.dtype for name, feature in FEATURES.items()},
}
PACKED_COLUMNS = frozenset(COLUMNS) - {"key"}
# Of a collected URL: where its last full answer lies, and what its visits so far have shown.
SIDE_COLUMNS = {
    "cycle": "u4",
    "row": "u4",
    "fetched_at_ms": "i8",
    "content_digest": "V16",
    "duplicate": "u1",
    "parsed": "u1",  # an answer was parsed: its links are counted
    "visited_at_ms": "i8",  # the last visit, where that brought no full answer; else 0
    "visits": "u2",
    "changes": "u2",
    "unchanged_min": "u4",  # minutes between visits that found the page as before
    "changed_min": "u4",  # and of those that found it changed
    "period_min": "u4",  # until the next visit, where the policy adapts it
    "misses": "u1",  # visits in a row that found no page: gone, failed or refused
}
SIDE_PACKED_COLUMNS = frozenset(SIDE_COLUMNS) - {"content_digest"}
SIDE_PREFIX = "collected_"
SERVERS_FILE = "servers.parquet"
PREFIXES_FILE = "prefixes.parquet"
BLOCK_SERVERS = schema(
    ("server", pa.string()),
    ("server_key", pa.uint64()),
    ("domain_key", pa.uint64()),
    ("robots_text", pa.uint64()),
    ("robots_length", pa.uint32()),
    ("robots_expires_at_ms", pa.int64()),
    ("delay_ms", pa.uint32()),
    ("last_request_at_ms", pa.int64()),
    ("ready_at_ms", pa.int64()),
    ("due_at_ms", pa.int64()),
    ("address", pa.string()),
    ("requests", pa.uint32()),
    ("mean_ms", pa.uint32()),
    ("failures", pa.uint32()),
    *LAST_FAILURE,
    ("given_up", pa.bool_()),
    ("known", pa.uint32()),
    ("collected", pa.uint32()),
    ("waiting", pa.uint32()),
    ("prescheduled", pa.uint32()),
    ("mentions", pa.uint64()),
    ("closed", pa.bool_()),
    ("lastmod_claims", pa.uint32()),  # tested claims of its sitemaps that a page has changed
    ("lastmod_true", pa.uint32()),  # those of them that a visit found to be true
)
BLOCK_SERVERS_DISTINCT = ("server", "server_key", "domain_key", "robots_text")
PREFIXES = schema(
    ("server", pa.uint32()),
    ("kind", pa.uint8()),
    ("prefix", pa.uint64()),
    ("count", pa.uint32()),
    ("began", pa.uint32()),
)
_COUNTED_ROWS = 64  # rows between two counts of lines: a count then looks at one cache line


@dataclass(frozen=True)
class Domains:
    """The domains of a table of servers, in its order; `first_row` and `first_server` have one more value, the end."""

    key: Keys  # u64, rising, each once
    first_server: Rows
    first_row: Rows

    def rows_of(self, domain_keys: Keys) -> tuple[Rows, Rows]:
        """(first row, end) of each domain of these keys (u64, any order); an empty run where it is not there."""
        number = np.searchsorted(self.key, domain_keys)
        there = np.zeros(len(number), bool)
        within = number < len(self.key)
        there[within] = self.key[number[within]] == domain_keys[within]
        return self.first_row[number], np.where(there, self.first_row[number + there], self.first_row[number])


def domains_of(domain_keys: Keys, known: Array) -> Domains:
    """Of the columns of a table of servers: domain key (u64, rising) and number of rows of each server."""
    first_server = starts_of_runs(domain_keys)
    rows = np.concatenate(([0], np.cumsum(known, dtype=np.int64)))
    return Domains(
        domain_keys[first_server], np.append(first_server, len(domain_keys)), np.append(rows[first_server], rows[-1])
    )


@dataclass
class Generation:
    """`servers` is sorted by domain key, a new one last in its domain; `rows["server"]` counts within the domain."""

    rows: Columns
    side: Columns  # one row for each row in state collected, in the same order
    servers: pa.Table
    prefixes: pa.Table
    # Name of each text segment in use -> bytes, checksum, lines, and which line is our first.
    texts: dict[str, dict[str, Any]]
    seen: int  # every entry of the log before this position is absorbed

    def __len__(self) -> int:
        return self.rows.rows

    @cached_property
    def domains(self) -> Domains:
        return domains_of(column(self.servers, "domain_key"), column(self.servers, "known"))

    def index_servers(self, server: Array, start: int = 0) -> npt.NDArray[np.int32]:
        """Row number in `servers` of each of the rows from `start` on, whose column `server` is given; i32."""
        return server.astype(np.int32) + first_servers(self.domains, start, start + len(server))

    @cached_property
    def server_index(self) -> npt.NDArray[np.int32]:
        """Row number in `servers` of each row's server; i32."""
        return self.index_servers(self.rows["server"])

    def find(self, domain_key: int, key: int) -> int | None:
        """The row of a URL, by the keys of its domain and of itself."""
        (start,), (stop,) = self.domains.rows_of(np.array([domain_key], np.uint64))
        row = int(start + np.searchsorted(self.rows["key"][start:stop], np.uint64(key)))
        return row if row < stop and int(self.rows["key"][row]) == key else None

    @cached_property
    def collected_keys(self) -> Keys:
        keys: Keys = self.rows["key"][self.rows["state"] == COLLECTED_STATE]
        return keys

    @cached_property
    def collected_rows(self) -> Rows:
        """Row number of each row of the side set."""
        return np.flatnonzero(self.rows["state"] == COLLECTED_STATE)


def first_servers(domains: Domains, start: int, stop: int) -> npt.NDArray[np.int32]:
    """For each row of [start, stop) the index of its domain's first server; i32."""
    first = np.searchsorted(domains.first_row, start, "right") - 1
    last = np.searchsorted(domains.first_row, stop, "left")
    edges = np.clip(domains.first_row[first : last + 1], start, stop)
    return np.repeat(domains.first_server[first:last].astype(np.int32), np.diff(edges))


def empty() -> Generation:
    return Generation(
        Columns(None, COLUMNS, PACKED_COLUMNS),
        Columns(None, SIDE_COLUMNS, SIDE_PACKED_COLUMNS),
        BLOCK_SERVERS.empty_table(),
        PREFIXES.empty_table(),
        {},
        0,
    )


class GenerationWriter:
    """Writes the files of a generation into a folder that is being published, rows piece by piece."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.rows = ColumnsWriter(folder, COLUMNS, PACKED_COLUMNS)
        self.side = ColumnsWriter(folder, SIDE_COLUMNS, SIDE_PACKED_COLUMNS, SIDE_PREFIX)

    def close_rows(self) -> None:
        self.rows.close()
        self.side.close()

    def write_servers(self, servers: pa.Table, prefixes: pa.Table) -> None:
        write_table(self._folder / SERVERS_FILE, servers, BLOCK_SERVERS_DISTINCT)
        write_table(self._folder / PREFIXES_FILE, prefixes)


def read_generation_manifest(folder: Path) -> dict[str, Any]:
    """As read_manifest(), and the table of text segments is checked too, where the manifest has one."""
    manifest = read_manifest(folder)
    path, texts = folder / names.MANIFEST, manifest.get("texts", {})
    if not isinstance(texts, dict):
        raise Damaged(path, "expected a table of segments of text, found none")
    for name, about in texts.items():
        if name in ("", "..") or name != Path(name).name:
            raise Damaged(path, f"expected names of segments of text, found {name!r}")
        expect_described(path, name, about, "bytes", "texts", "first")
    return manifest


def open_generation(crawl: Path, block: int, number: int | None) -> Generation:
    """A published generation, every file of it checked; the empty one for None.

    Segments of text are checked as they are read.
    """
    if number is None:
        return empty()
    folder = crawl / names.generation(block, number)
    try:
        manifest = read_generation_manifest(folder)
    except FileNotFoundError:
        raise Damaged(
            folder / names.MANIFEST,
            "expected a manifest, found none: the generation is damaged, or was superseded "
            "and deleted (see [blocks] keep_generations)",
        ) from None
    for name, description in manifest["files"].items():
        verify(folder / name, description)
    if not isinstance(manifest.get("texts"), dict) or not isinstance(manifest.get("seen"), int):
        raise Damaged(folder / names.MANIFEST, "expected texts and seen, found none")
    generation = Generation(
        Columns(folder, COLUMNS, PACKED_COLUMNS),
        Columns(folder, SIDE_COLUMNS, SIDE_PACKED_COLUMNS, SIDE_PREFIX),
        read_table(folder / SERVERS_FILE, BLOCK_SERVERS, is_verified=True),
        read_table(folder / PREFIXES_FILE, PREFIXES, is_verified=True),
        manifest["texts"],
        manifest["seen"],
    )
    if generation.domains.first_row[-1] != len(generation):
        raise Damaged(
            folder,
            f"expected {generation.domains.first_row[-1]} rows, as its servers know URLs, found {len(generation)}",
        )
    return generation


def is_whole(crawl: Path, block: int, number: int) -> bool:
    """Whether every file of a generation, its text included, is as its manifest describes it; reads them all."""
    try:
        for name, about in open_generation(crawl, block, number).texts.items():
            verify(crawl / names.TEXT / name, about)
        return True
    except (Damaged, UnknownFormat, KeyError, OSError):  # OSError: a disk that cannot read it back
        return False


def line_numbers(segment: Array, rows: Rows) -> Rows:
    """How many rows of the same segment come before each of these rows (rising); `segment` is the whole column, u8."""
    width = int(segment.max()) + 1 if len(segment) else 1
    groups = -(-len(segment) // _COUNTED_ROWS)
    cell = np.repeat(np.arange(groups, dtype=np.int64) * width, _COUNTED_ROWS)[: len(segment)] + segment
    counts = np.bincount(cell, minlength=groups * width).reshape(groups, width)
    before = np.cumsum(counts, axis=0) - counts
    group, within = np.divmod(rows, _COUNTED_ROWS)
    padded = np.pad(segment, (0, groups * _COUNTED_ROWS - len(segment))).reshape(groups, _COUNTED_ROWS)
    numbers = np.empty(len(rows), np.int64)
    for start in range(0, len(rows), 1 << 16):  # 4 MB of neighbours at a time
        part = slice(start, start + (1 << 16))
        own = segment[rows[part]]
        neighbours = (padded[group[part]] == own[:, None]) & (np.arange(_COUNTED_ROWS) < within[part][:, None])
        numbers[part] = before[group[part], own] + neighbours.sum(axis=1)
    return numbers


def read_lines(crawl: Path, generation: Generation, rows: Rows) -> pa.LargeBinaryArray:
    """The URLs of these rows (i64, any order, each once), each with a newline, in the order asked.

    Every segment is read once.
    """
    order = np.argsort(rows, kind="stable")
    rising = rows[order]
    segment = generation.rows["segment"]
    numbers, owner = line_numbers(segment, rising), segment[rising]
    parts: list[pa.LargeBinaryArray] = []
    found = []
    for number, (name, about) in enumerate(generation.texts.items()):
        here = np.flatnonzero(owner == number)
        if len(here):
            parts += Segment(crawl / names.TEXT / name).read_lines(numbers[here] + about["first"])
            found.append(here)
    if sum(map(len, parts)) != len(rows):
        raise Damaged(crawl / names.TEXT, f"expected texts of {len(rows)} URLs, found {sum(map(len, parts))}")
    if not parts:
        return pa.array([], LINES)
    where = np.empty(len(rows), np.int64)
    where[order[np.concatenate(found)]] = np.arange(len(rows))
    return pa.chunked_array(parts).combine_chunks().take(pa.array(where))


def read_urls(crawl: Path, generation: Generation, rows: Rows) -> list[str]:
    return [line[:-1].decode("utf-8", "replace") for line in read_lines(crawl, generation, rows).to_pylist()]
