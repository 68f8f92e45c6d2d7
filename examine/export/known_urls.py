"""All known URLs of a crawl with their states, block by block (`urls`)."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from contract.generation import Generation, open_generation, read_lines
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


def write_urls(
    crawl: Path, block: int, number: int | None, filters: Filters, states: tuple[str, ...], file: BinaryIO, form: str
) -> Counter[str]:
    """Writes the URLs of a generation; returns how many of each state."""
    counts: Counter[str] = Counter()
    generation = open_generation(crawl, block, number)
    with writing_rows(file, SCHEMA, form) as write:
        for rows in read_rows(crawl, generation, filters, states):
            counts.update(rows.column("state").to_pylist())
            write(rows)
    return counts


def read_rows(crawl: Path, generation: Generation, filters: Filters, states: tuple[str, ...]) -> Iterator[pa.Table]:
    """Tables of SCHEMA in the order of the block; a server is judged once."""
    if not len(generation):
        return
    servers = column(generation.servers, "server")
    is_taken = np.array([filters.takes_server(server) for server in servers], bool)
    wanted = np.array([not states or state in states for state in STATES], bool)
    for start in range(0, len(generation), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, len(generation))
        state = generation.rows.read("state", start, stop)
        rows = np.flatnonzero(wanted[state] & is_taken[generation.server_index[start:stop]])
        if len(rows):
            lines = read_lines(crawl, generation, rows + start).to_pylist()
            numbers = {name: generation.rows.read(name, start, stop)[rows] for name in NUMBERS}
            texts = {
                "url": [line[:-1].decode("utf-8", "replace") for line in lines],
                "state": [STATES[code] for code in state[rows].tolist()],
            }
            yield pa.table({**texts, **numbers}, SCHEMA)
