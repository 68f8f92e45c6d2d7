"""Parquet tables with one fixed way of writing, so that the same rows are the same bytes."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.errors import Damaged, UnknownFormat

FORMAT = 1
ROW_GROUP_ROWS = 8192  # the grain at which a reader may pick its slice
_FORMAT_KEY = b"coletor.format"


def write_table(path: Path, table: pa.Table) -> None:
    stamped = table.replace_schema_metadata({_FORMAT_KEY: str(FORMAT).encode()})
    pq.write_table(
        stamped, path, row_group_size=ROW_GROUP_ROWS, compression="zstd", compression_level=3, version="2.6",
        data_page_version="1.0", store_schema=True, write_statistics=True, write_page_checksum=True,
    )


def open_table(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except FileNotFoundError:
        raise Damaged(path, "expected a file, found none") from None
    except (pa.ArrowException, OSError) as error:
        raise Damaged(path, f"expected a Parquet file, found {_one_line(error)}") from None
    found = (file.schema_arrow.metadata or {}).get(_FORMAT_KEY, b"none").decode("ascii", "replace")
    if found != str(FORMAT):
        raise UnknownFormat(path, found, FORMAT)
    if not file.schema_arrow.equals(schema, check_metadata=False):
        raise Damaged(path, f"expected columns {schema.names}, found {file.schema_arrow.names} or other types")
    return file


def read_table(path: Path, schema: pa.Schema, columns: list[str] | None = None,
               row_groups: list[int] | None = None) -> pa.Table:
    with open_table(path, schema) as file:
        try:
            if row_groups is None:
                return file.read(columns=columns).combine_chunks()
            return file.read_row_groups(row_groups, columns=columns).combine_chunks()
        except (pa.ArrowException, OSError) as error:
            raise Damaged(path, f"expected Parquet pages, found {_one_line(error)}") from None


def read_some_columns(path: Path, schema: pa.Schema, columns: list[str]) -> pa.Table:
    """Of anybody's Parquet file: those of the columns that it has, as the schema has them but that values may be missing."""
    try:
        with pq.ParquetFile(path) as file:
            found = file.read(columns=[name for name in columns if name in file.schema_arrow.names])
            wanted = [schema.field(name).with_nullable(True) for name in found.column_names]
            return found.cast(pa.schema(wanted)).combine_chunks()
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise Damaged(path, f"expected a Parquet file with some of {columns}, found {_one_line(error)}") from None


def column(table: pa.Table, name: str) -> np.ndarray:
    """A column as a numpy array; texts as objects."""
    return table.column(name).combine_chunks().to_numpy(zero_copy_only=False)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def fixed_bytes(table: pa.Table, name: str, width: int) -> np.ndarray:
    """A column of fixed-width bytes as a numpy array of void."""
    return np.frombuffer(b"".join(table.column(name).to_pylist()), f"V{width}")
