"""The known URLs of a crawl, and its journal, as streams of Arrow batches: they lie in files that are not Parquet.

A stream holds one piece at a time: 262,144 URLs with their texts (some 50 MB), or 8,192 lines of the journal. DuckDB
asks for a new stream whenever it scans the view, so nothing is kept in memory and nothing is copied to the disk.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contract import names
from contract.accumulators import ACCUMULATORS
from contract.generation import Generation, open_generation
from contract.journal_tail import SUFFIX
from contract.log import State
from contract.tables import COLLECTED_STATE, STATES
from examine.readers import iterate_lines
from storage.arrays import Array
from storage.columns import FRAME_ROWS
from storage.errors import Damaged
from storage.tables import only_chunk
from storage.text_segments import LINES, Segment

JOURNAL_ROWS = 8192
VISITED = {"visits": "u2", "changes": "u2", "misses": "u1"}  # of the side set: NULL for a URL that is not collected
KNOWN_URLS = pa.schema(
    [
        ("url", pa.large_string()),
        ("server", pa.dictionary(pa.int32(), pa.string())),
        ("state", pa.dictionary(pa.int8(), pa.string())),
        ("depth", pa.uint8()),
        ("attempts", pa.uint8()),
        *((accumulator.name, pa.from_numpy_dtype(accumulator.dtype)) for accumulator in ACCUMULATORS),
        *((name, pa.from_numpy_dtype(np.dtype(dtype))) for name, dtype in VISITED.items()),
        ("block", pa.uint16()),
        ("domain_key", pa.uint64()),
        ("url_key", pa.uint64()),
    ]
)
JOURNAL = pa.schema(
    [
        *((name, pa.string()) for name in ("event", "run", "command", "kind", "stage", "why")),
        *((name, pa.int64()) for name in ("cycle", "block", "attempt", "begin_ms", "end_ms", "exit_code")),
        ("cpu_s", pa.float64()),
        *((name, pa.int64()) for name in ("memory_peak_bytes", "read_bytes", "written_bytes", "pages", "bytes")),
    ]
)


class Stream(ABC):
    """Arrow batches that are made anew for each scan. `error` has what ended the last one, with its own type."""

    schema = pa.schema([])

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._guarded())
        return reader.__arrow_c_stream__(requested_schema)

    def _guarded(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.batches()
        except Exception as error:
            self.error = error
            raise

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, from the first one, each time that it is called."""


class KnownUrls(Stream):
    """The rows of the live generations of these blocks."""

    schema = KNOWN_URLS

    def __init__(self, crawl: Path, generations: dict[int, int]):
        super().__init__()
        self._crawl, self._generations = crawl, generations

    def batches(self) -> Iterator[pa.RecordBatch]:
        for block, number in self._generations.items():
            yield from iterate_block(self._crawl, block, open_generation(self._crawl, block, number))


def live_generations(log: State) -> dict[int, int]:
    """Block -> its live generation; blocks that never had a cycle have none."""
    return {block: number for block in range(log.blocks) if (number := log.generation(block)) is not None}


def iterate_block(crawl: Path, block: int, generation: Generation) -> Iterator[pa.RecordBatch]:
    servers = only_chunk(generation.servers.column("server"))
    domains = generation.domains
    next_line = {name: about["first"] for name, about in generation.texts.items()}
    side_row = 0
    for start in range(0, len(generation), FRAME_ROWS):
        stop = min(start + FRAME_ROWS, len(generation))
        read = {name: generation.rows.read(name, start, stop) for name in ("key", "server", "segment", "state")}
        collected = read["state"] == COLLECTED_STATE
        side_stop = side_row + int(np.count_nonzero(collected))
        columns = {
            "url": read_texts(crawl, read["segment"], next_line),
            "server": pa.DictionaryArray.from_arrays(generation.index_servers(read["server"], start), servers),
            "state": pa.DictionaryArray.from_arrays(read["state"].astype(np.int8), pa.array(STATES)),
            "block": np.full(stop - start, block, np.uint16),
            "domain_key": domains.key[np.searchsorted(domains.first_row, np.arange(start, stop), "right") - 1],
            "url_key": read["key"],
        }
        for name in ("depth", "attempts", *(accumulator.name for accumulator in ACCUMULATORS)):
            columns[name] = generation.rows.read(name, start, stop)
        for name, dtype in VISITED.items():
            values = np.zeros(stop - start, dtype)
            values[collected] = generation.side.read(name, side_row, side_stop)
            columns[name] = pa.array(values, mask=~collected)
        side_row = side_stop
        yield pa.record_batch([pa.array(columns[name]) for name in KNOWN_URLS.names], schema=KNOWN_URLS)


def read_texts(crawl: Path, segment: Array, next_line: dict[str, int]) -> pa.Array:
    """The URLs of consecutive rows, given the column `segment` (u1); `next_line` is moved on."""
    parts, order = [], []
    for number, name in enumerate(next_line):
        here = np.flatnonzero(segment == number)
        if len(here):
            lines = next_line[name] + np.arange(len(here))
            parts += Segment(crawl / names.TEXT / name).read_lines(lines)
            order.append(here)
            next_line[name] += len(here)
    if sum(map(len, parts)) != len(segment):
        raise Damaged(crawl / names.TEXT, f"expected texts of {len(segment)} URLs, found {sum(map(len, parts))}")
    where = np.empty(len(segment), np.int64)
    where[np.concatenate(order)] = np.arange(len(segment))
    texts = only_chunk(pa.chunked_array(parts, LINES)).take(pa.array(where))
    try:
        return pc.ascii_rtrim(texts.cast(pa.large_string()), characters="\n")
    except pa.ArrowInvalid as error:
        raise Damaged(crawl / names.TEXT, f"expected URLs in UTF-8, found {error}") from None


class Journal(Stream):
    """The lines of the journal that are as a run writes them; others, such as an unfinished last line, are skipped."""

    schema = JOURNAL

    def __init__(self, crawl: Path):
        super().__init__()
        self._folder = crawl / names.JOURNAL

    def batches(self) -> Iterator[pa.RecordBatch]:
        lines = (
            line
            for number in names.numbered(self._folder, SUFFIX)
            for line in iterate_lines(self._folder / f"{number:08d}{SUFFIX}")
        )
        while piece := list(islice(lines, JOURNAL_ROWS)):
            yield take_rows([row for line in piece if (row := read_line(line))])


def read_line(line: bytes) -> dict | None:
    """The fields of a line of the journal; none where it is no such line."""
    try:
        value = json.loads(line)
        return {name: value[name] for name in JOURNAL.names}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def take_rows(rows: list[dict]) -> pa.RecordBatch:
    """The rows whose values have the right types."""
    try:
        return pa.RecordBatch.from_pylist(rows, JOURNAL)
    except (pa.ArrowException, OverflowError):
        if len(rows) == 1:
            return pa.RecordBatch.from_pylist([], JOURNAL)
        halves = [take_rows(half) for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :])]
        return pa.Table.from_batches(halves).combine_chunks().to_batches()[0] if any(map(len, halves)) else halves[0]
