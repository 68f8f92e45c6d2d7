"""A Parquet table sorted by two u64 columns, read by ranges of their pairs.

The first key of each row group shows which groups may hold a range. Inside one long run of a first key, the groups'
own statistics of the second key do.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from storage.arrays import Rows
from storage.errors import Damaged
from storage.pairs import KEY_END, find_pair
from storage.tables import column, open_table, read_groups

GROUPS_AT_ONCE = 8  # 65,536 rows: memory that is used again costs less than fresh memory


class KeyedFile:
    """Open only while it is read, so that a program may have any number of them, and several threads one."""

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        keys: tuple[str, str],
        columns: list[str] | None = None,
        first_keys: list[int] | None = None,
        last_key: int | None = None,
        is_verified: bool = False,
    ):
        """`first_keys`, of each row group, and `last_key` spare reading them from the file.

        Pages of a file that was verified whole are not checked again.
        """
        self._path = path
        self._schema = schema
        self._names = keys
        self._columns = columns
        self._is_verified = is_verified
        with open_table(path, schema) as file:
            self._metadata = file.metadata
        self._groups = self._metadata.num_row_groups
        groups = map(self._metadata.row_group, range(self._groups))
        self._sizes = [(group.num_rows, group.total_byte_size) for group in groups]
        if first_keys is None:
            bounds = [self._bounds(group, 0) for group in range(self._groups)]
            first_keys, last_key = [low for low, _ in bounds], bounds[-1][1] if bounds else 0
        if len(first_keys) != self._groups:
            raise Damaged(path, f"expected {len(first_keys)} row groups, found {self._groups}")
        self._firsts = np.array(first_keys, np.uint64)
        # Of a group: not below any of its keys.
        self._lasts = np.append(self._firsts[1:], np.uint64(last_key or 0)) if self._groups else self._firsts

    def __len__(self) -> int:
        rows: int = self._metadata.num_rows
        return rows

    def _bounds(self, group: int, key: int) -> tuple[int, int]:
        number = self._schema.get_field_index(self._names[key])
        statistics = self._metadata.row_group(group).column(number).statistics
        if statistics is None or not statistics.has_min_max:
            raise Damaged(self._path, f"expected statistics of {self._names[key]} in row group {group}, found none")
        return statistics.min, statistics.max

    def _groups_of(self, low: int, high: int) -> Rows:
        """The row groups that may hold pairs in [low, high)."""
        if low >= high:
            return np.empty(0, np.int64)
        first, last = low >> 64, (high - 1) >> 64
        groups = np.flatnonzero((self._firsts <= np.uint64(last)) & (self._lasts >= np.uint64(first)))
        if first == last and len(groups) > 2:  # inside one long run
            inner = [
                group for group in groups[1:-1].tolist() if self._overlaps(group, low % KEY_END, (high - 1) % KEY_END)
            ]
            groups = np.array([groups[0], *inner, groups[-1]])
        return groups

    def _overlaps(self, group: int, low: int, high: int) -> bool:
        least, most = self._bounds(group, 1)
        return least <= high and most >= low

    def measure(self, low: int, high: int) -> tuple[float, float]:
        """Approximate number of rows with pairs in [low, high), and of their bytes.

        Rows count as evenly spread between the ends of their row group.
        """
        shares = [(self._share(group, low, high), *self._sizes[group]) for group in self._groups_of(low, high).tolist()]
        return sum(share * rows for share, rows, _ in shares), sum(share * size for share, _, size in shares)

    def _share(self, group: int, low: int, high: int) -> float:
        first, last = int(self._firsts[group]), int(self._lasts[group])
        if first == last:
            least, most = self._bounds(group, 1)
            begin, end = first << 64 | least, first << 64 | most + 1
        else:
            begin, end = first << 64, last + 1 << 64
        return max(min(end, high) - max(begin, low), 0) / (end - begin)

    def read(self, low: int, high: int) -> pa.Table:
        """The rows with pairs in [low, high)."""
        groups = self._groups_of(low, high).tolist()
        return self._slice(self._read_groups(groups), low, high)

    def read_pieces(self, low: int, high: int) -> Iterator[pa.Table]:
        """The same, some row groups at a time."""
        groups = self._groups_of(low, high).tolist()
        for start in range(0, len(groups), GROUPS_AT_ONCE):
            yield self._slice(self._read_groups(groups[start : start + GROUPS_AT_ONCE]), low, high)

    def _read_groups(self, groups: list[int]) -> pa.Table:
        with open_table(self._path, self._schema, self._metadata, self._is_verified) as file:
            return read_groups(self._path, file, groups, self._columns)

    def _slice(self, table: pa.Table, low: int, high: int) -> pa.Table:
        first, second = (column(table, name) for name in self._names)
        start = find_pair(first, second, low)
        return table.slice(start, find_pair(first, second, high) - start)
