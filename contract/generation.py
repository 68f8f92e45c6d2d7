"""A generation of a block, R_i: columns sorted by URL key, a side set for collected URLs, a table of servers."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.tables import schema
from storage.arrays import open_array, write_array
from storage.errors import Damaged
from storage.publish import read_manifest, verify
from storage.tables import read_table, write_table

COLUMNS = {
    "key": "u8", "server": "u4", "text": "u8", "state": "u1", "attempts": "u1", "depth": "u1", "links_in": "u4",
}
SIDE_COLUMNS = {"key": "u8", "cycle": "u4", "row": "u4", "fetched_at_ms": "i8", "content_digest": "V16"}
SERVERS_FILE = "servers.parquet"
SERVERS = schema(
    ("server", pa.string()), ("server_key", pa.uint64()), ("domain_key", pa.uint64()),
    ("robots_text", pa.uint64()), ("robots_length", pa.uint32()), ("robots_expires_at_ms", pa.int64()),
    ("delay_ms", pa.uint32()), ("last_request_at_ms", pa.int64()), ("ready_at_ms", pa.int64()), ("due_at_ms", pa.int64()),
    ("address", pa.string()), ("requests", pa.uint32()), ("mean_ms", pa.uint32()), ("failures", pa.uint32()),
    ("given_up", pa.bool_()), ("known", pa.uint32()), ("collected", pa.uint32()), ("waiting", pa.uint32()),
)


@dataclass
class Generation:
    """Rows are unique and sorted by `key`; `server` indexes the table, which is sorted by server_key."""

    rows: dict[str, np.ndarray]
    side: dict[str, np.ndarray]
    servers: pa.Table
    texts: dict[str, dict]  # name of each text segment in use -> bytes, checksum and number of texts
    seen: int  # every entry of the log before this position is absorbed

    def __len__(self) -> int:
        return len(self.rows["key"])


def empty() -> Generation:
    rows = {name: np.empty(0, dtype) for name, dtype in COLUMNS.items()}
    side = {name: np.empty(0, dtype) for name, dtype in SIDE_COLUMNS.items()}
    return Generation(rows, side, SERVERS.empty_table(), {}, 0)


def write_generation(folder: Path, generation: Generation) -> None:
    """Writes the files into a folder that is being published."""
    for name, dtype in COLUMNS.items():
        write_array(folder / f"{name}.npy", generation.rows[name].astype(dtype, copy=False))
    for name, dtype in SIDE_COLUMNS.items():
        write_array(folder / f"collected_{name}.npy", generation.side[name].astype(dtype, copy=False))
    write_table(folder / SERVERS_FILE, generation.servers)


def open_generation(crawl: Path, block: int, number: int | None) -> Generation:
    """A published generation, every file of it checked, its text segments too; the empty one for None."""
    if number is None:
        return empty()
    folder = crawl / names.generation(block, number)
    try:
        manifest = read_manifest(folder)
    except FileNotFoundError:
        raise Damaged(folder / names.MANIFEST, "expected a manifest, found none: the generation is damaged, or was superseded "
                      "and deleted (see [blocks] keep_generations)") from None
    for name, description in manifest["files"].items():
        verify(folder / name, description)
    for name, description in manifest["texts"].items():
        verify(crawl / names.TEXT / name, description)
    rows = {name: open_array(folder / f"{name}.npy", dtype) for name, dtype in COLUMNS.items()}
    side = {name: open_array(folder / f"collected_{name}.npy", dtype) for name, dtype in SIDE_COLUMNS.items()}
    if len({len(column) for column in rows.values()}) > 1 or len({len(column) for column in side.values()}) > 1:
        raise Damaged(folder, "expected columns of one length, found several")
    return Generation(rows, side, read_table(folder / SERVERS_FILE, SERVERS), manifest["texts"], manifest["seen"])
