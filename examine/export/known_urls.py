"""All known URLs of a crawl with their states, block by block (`urls`)."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from contract.generation import Generation, open_generation, read_lines
from contract.scope.link_sources import LinkSources
from contract.tables import STATES
from examine.export.filters import Filters
from examine.export.row_files import writing_rows
from storage.tables import column

NUMBERS = ("depth", "links_in", "attempts")
SCHEMA = pa.schema(
    [
        ("url", pa.string()),
        ("state", pa.string()),
        ("depth", pa.uint8()),
        ("links_in", pa.uint32()),
        ("attempts", pa.uint8()),
    ]
)
ROWS_AT_ONCE = 100_000


class KnownUrls:
    """The URLs of one generation that an export takes. `left_out`: how many link sources it did not."""

    def __init__(self, crawl: Path, block: int, number: int | None, filters: Filters, link_sources: LinkSources):
        self.block = block
        self.left_out = 0
        self._crawl, self._number = crawl, number
        self._filters, self._link_sources = filters, link_sources

    def write(self, states: tuple[str, ...], file: BinaryIO, form: str) -> Counter[str]:
        """Writes those in these states; returns how many of each."""
        counts: Counter[str] = Counter()
        generation = open_generation(self._crawl, self.block, self._number)
        with writing_rows(file, SCHEMA, form) as write:
            for rows in self._read_rows(generation, states):
                counts.update(rows.column("state").to_pylist())
                write(rows)
        return counts

    def _read_rows(self, generation: Generation, states: tuple[str, ...]) -> Iterator[pa.Table]:
        """Tables of SCHEMA in the order of the block; a server is judged once."""
        if not len(generation):
            return
        servers = column(generation.servers, "server")
        is_taken = np.array([self._filters.takes_server(server) for server in servers], bool)
        wanted = np.array([not states or state in states for state in STATES], bool)
        for start in range(0, len(generation), ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, len(generation))
            state = generation.rows.read("state", start, stop)
            rows = np.flatnonzero(wanted[state] & is_taken[generation.server_index[start:stop]])
            if not len(rows):
                continue
            lines = read_lines(self._crawl, generation, rows + start).to_pylist()
            texts = {
                "url": [line[:-1].decode("utf-8", "replace") for line in lines],
                "state": [STATES[code] for code in state[rows].tolist()],
            }
            numbers = {name: generation.rows.read(name, start, stop)[rows] for name in NUMBERS}
            table = pa.table({**texts, **numbers}, SCHEMA)
            yield self._leave_out(table) if self._link_sources else table

    def _leave_out(self, table: pa.Table) -> pa.Table:
        mark = self._link_sources.mark(table.column("url").to_pylist(), column(table, "depth").tolist())
        self.left_out += int(mark.sum())
        return table.filter(pa.array(~mark))
