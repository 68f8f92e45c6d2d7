"""Parquet tables with one fixed way of writing, so that the same rows are the same bytes."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from storage.arrays import Array
from storage.errors import Damaged, UnknownFormat, naming
from storage.publish import FORMAT, raise_if_not_there

ROW_GROUP_ROWS = 8192  # the grain at which a reader may pick its slice
LEVEL = 3  # of zstd
# Of a table that is read a few times and then deleted: two thirds of the time to write, a few per cent larger.
LEVEL_SHORT_LIVED = 1
LEVEL_RANDOM = 1  # what a higher level finds in random texts makes them larger, and takes a third longer to read
_FORMAT_KEY = b"coletor.format"
# What pyarrow raises where a file is damaged or cannot be read; UnicodeDecodeError for a name of a column.
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)


class TableWriter:
    """Writes a table piece by piece; however it is cut, the same rows are the same bytes.

    `distinct` names columns whose values hardly repeat. They get no dictionary: the file is smaller and sooner written.
    `random` names those of them whose values have nothing in common, such as digests. They get LEVEL_RANDOM too.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        distinct: tuple[str, ...] = (),
        level: int = LEVEL,
        random: tuple[str, ...] = (),
    ):
        self._path = path
        self._schema = schema.with_metadata({_FORMAT_KEY: str(FORMAT).encode()})
        distinct += random
        dictionaries = [field.name for field in schema if field.name not in distinct] if distinct else True
        levels = {name: LEVEL_RANDOM if name in random else level for name in schema.names}
        with naming(path):
            self._writer = pq.ParquetWriter(
                path,
                self._schema,
                compression="zstd",
                compression_level=levels if random else level,
                version="2.6",
                data_page_version="1.0",
                store_schema=True,
                write_statistics=True,
                write_page_checksum=True,
                use_dictionary=dictionaries,
            )
        self._rest: list[pa.Table] = []
        self._rest_rows = 0

    def append(self, table: pa.Table) -> None:
        self._rest.append(table)
        self._rest_rows += len(table)
        whole = self._rest_rows - self._rest_rows % ROW_GROUP_ROWS
        if whole:
            rows = pa.concat_tables(self._rest)
            with naming(self._path):
                self._writer.write_table(rows.slice(0, whole).cast(self._schema), row_group_size=ROW_GROUP_ROWS)
            self._rest, self._rest_rows = [rows.slice(whole)], len(rows) - whole

    def close(self) -> None:
        with naming(self._path):
            if self._rest_rows:
                rest = pa.concat_tables(self._rest).cast(self._schema)
                self._writer.write_table(rest, row_group_size=ROW_GROUP_ROWS)
            self._writer.close()


def write_table(path: Path, table: pa.Table, distinct: tuple[str, ...] = (), random: tuple[str, ...] = ()) -> None:
    writer = TableWriter(path, table.schema, distinct, random=random)
    writer.append(table)
    writer.close()


def footer_digest(path: Path) -> str:
    """A checksum of the footer of a Parquet file: with it and the checksums of pages, a part can be trusted alone."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little") + 8
        if length > size:
            raise Damaged(path, f"expected a Parquet file, found a footer of {length} bytes in {size}", size)
        file.seek(size - length)
        return xxhash.xxh3_128_hexdigest(file.read(length))


def verify_footer(path: Path, digest: str) -> None:
    try:
        found = footer_digest(path)
    except (FileNotFoundError, NotADirectoryError):
        raise Damaged(path, "expected a file, found none") from None
    if found != digest:
        raise Damaged(path, f"expected a footer with checksum {digest}, found {found}")


def open_table(
    path: Path, schema: pa.Schema, metadata: pq.FileMetaData | None = None, is_verified: bool = False
) -> pq.ParquetFile:
    """`metadata`, of an earlier opening of the same file, spares reading its footer.

    `is_verified`: the file was verified whole, so the checksums of its pages are not checked.
    """
    try:
        file = pq.ParquetFile(path, metadata=metadata, page_checksum_verification=not is_verified)
    except FileNotFoundError:
        raise Damaged(path, "expected a file, found none") from None
    except UNREADABLE as error:
        raise_if_refused(path, error)
        raise Damaged(path, f"expected a Parquet file, found {_one_line(error)}") from None
    found_schema = file.schema_arrow  # made anew at each use
    found = (found_schema.metadata or {}).get(_FORMAT_KEY, b"none").decode("ascii", "replace")
    if found != str(FORMAT):
        raise UnknownFormat(path, found, FORMAT)
    if not found_schema.equals(schema, check_metadata=False):
        raise Damaged(path, f"expected columns {schema.names}, found {found_schema.names} or other types")
    return file


def read_table(
    path: Path,
    schema: pa.Schema,
    columns: list[str] | None = None,
    row_groups: list[int] | None = None,
    is_verified: bool = False,
) -> pa.Table:
    with open_table(path, schema, is_verified=is_verified) as file:
        return read_groups(path, file, row_groups, columns)


def read_groups(
    path: Path, file: pq.ParquetFile, row_groups: list[int] | None, columns: list[str] | None = None
) -> pa.Table:
    """These row groups of an open table; None means all."""
    try:
        table = file.read(columns=columns) if row_groups is None else file.read_row_groups(row_groups, columns=columns)
        return table.combine_chunks()
    except UNREADABLE as error:
        raise_if_refused(path, error)
        raise Damaged(path, f"expected Parquet pages, found {_one_line(error)}") from None


def raise_if_refused(path: Path, error: Exception) -> None:
    """Raises what the machine refuses, such as one more open file: it says nothing about the file."""
    if isinstance(error, MemoryError):
        raise error
    if isinstance(error, OSError) and error.errno:
        raise_if_not_there(path, error)


def read_some_columns(path: Path, schema: pa.Schema, columns: list[str]) -> pa.Table:
    """Of any Parquet file: those of the columns that it has, with the schema's types, where values may be missing."""
    try:
        with pq.ParquetFile(path) as file:
            found = file.read(columns=[name for name in columns if name in file.schema_arrow.names])
            wanted = [schema.field(name).with_nullable(True) for name in found.column_names]
            return found.cast(pa.schema(wanted)).combine_chunks()
    except FileNotFoundError:
        raise
    except UNREADABLE as error:
        raise Damaged(path, f"expected a Parquet file with some of {columns}, found {_one_line(error)}") from None


def column(table: pa.Table, name: str) -> Array:
    """A column as a numpy array, read-only where it was not copied; texts are objects."""
    values: Array = only_chunk(table.column(name)).to_numpy(zero_copy_only=False)
    return values


def only_chunk(values: pa.ChunkedArray) -> pa.Array:
    """A column as one array; combine_chunks() would copy it also where it is one already."""
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def fixed_bytes(table: pa.Table, name: str, width: int) -> Array:
    """A column of fixed-width bytes as a numpy array of void."""
    array = only_chunk(table.column(name))
    if not len(array):
        return np.empty(0, f"V{width}")
    return np.frombuffer(array.buffers()[1], f"V{width}")[array.offset : array.offset + len(array)]
