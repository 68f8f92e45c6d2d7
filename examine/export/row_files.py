"""Rows as Parquet, as JSON lines, or as lines with the first column alone."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

PARQUET, JSON_LINES, TEXT = "parquet", "jsonl", "text"


@contextmanager
def writing_rows(file: BinaryIO, schema: pa.Schema, form: str) -> Iterator[Callable[[pa.Table], object]]:
    """A function that writes a table of this schema; each of them becomes a row group."""
    if form == PARQUET:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            yield writer.write_table
    elif form == JSON_LINES:
        yield lambda table: file.writelines(map(encode_row, table.to_pylist()))
    else:
        yield lambda table: file.writelines(f"{value}\n".encode() for value in table.column(0).to_pylist())


def encode_row(row: dict[str, object]) -> bytes:
    return (json.dumps(row, ensure_ascii=False, default=write_moment) + "\n").encode("utf-8", "replace")


def write_moment(value: object) -> str:
    """A time as WARC writes it."""
    assert isinstance(value, datetime)
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
