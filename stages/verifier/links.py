"""Distinct URLs that arrived in a piece of the key space, with the sums of what their links brought."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contract.accumulators import ACCUMULATORS
from contract.tables import ORDER
from storage.arrays import encode
from storage.pairs import find_pair, sort_pairs
from storage.tables import column, only_chunk
from storage.text_segments import LINES


@dataclass
class Links:
    """Columns of one length, by (domain key, URL key), each pair once."""

    domain_key: np.ndarray
    key: np.ndarray
    depth: np.ndarray  # least
    sums: dict[str, np.ndarray]  # of each accumulator, u64
    linked: np.ndarray  # bool: found by a link or a seed; false: only in somebody else's list
    rows: int  # that came by links and seeds, repeats included
    urls: pa.Array | None  # of all rows, as their servers' keys
    server_keys: np.ndarray
    first: np.ndarray  # row of those of each

    def __len__(self) -> int:
        return len(self.key)

    def forget_urls(self) -> None:
        """Once the new ones are taken, the texts of known URLs only lie in memory."""
        self.urls = None

    def server_keys_of(self, which: np.ndarray) -> np.ndarray:
        return self.server_keys[self.first[which]]

    def urls_of(self, which: np.ndarray) -> pa.LargeBinaryArray:
        return self.urls.take(pa.array(self.first[which])).cast(LINES)


def gather(tables: list[pa.Table], foreign: pa.Table, shared_bits: int) -> Links:
    """Unites tables of the columns of UrlsExtraidas, and leaves their list empty, so that they are not in memory twice; `foreign` rows count as no link."""
    tables.append(foreign)
    table = pa.concat_tables(tables).combine_chunks()
    tables.clear()
    order, domain, key = sort_pairs(column(table, "domain_key"), column(table, "url_key"), shared_bits)
    is_first = np.ones(len(order), bool)
    is_first[1:] = (domain[1:] != domain[:-1]) | (key[1:] != key[:-1])
    starts = np.flatnonzero(is_first)
    first = order[starts]
    urls = table.column("url")
    has_repeats = len(starts) < len(order)

    def reduce(operation: np.ufunc, values: np.ndarray) -> np.ndarray:
        return operation.reduceat(values[order], starts) if has_repeats else values[order]

    def add_up(values: np.ndarray) -> np.ndarray:
        return reduce(np.add, values.astype(np.uint64)) if values.any() else np.zeros(len(starts), np.uint64)

    return Links(
        domain_key=domain[starts], key=key[starts],
        depth=reduce(np.minimum, column(table, "depth")),
        sums={accumulator.name: add_up(column(table, accumulator.name)) for accumulator in ACCUMULATORS},
        linked=reduce(np.logical_or, np.arange(len(table)) < len(table) - len(foreign)) if len(foreign) else np.ones(len(starts), bool),
        rows=len(table) - len(foreign), urls=only_chunk(urls if urls.num_chunks == 1 else urls.cast(LINES)),  # 2 GiB of text are several chunks
        server_keys=column(table, "server_key"), first=first,
    )


def first_of_each(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct values, the first row of each), in the order of rows."""
    distinct, place = encode(values)
    first = np.empty(len(distinct), np.int64)
    first[place[::-1]] = np.arange(len(values) - 1, -1, -1)
    return distinct, first


def slice_rows(table: pa.Table, low: int, high: int) -> pa.Table:
    """The rows of a sorted table with pairs of keys in [low, high)."""
    keys = [column(table, name) for name in ORDER]
    start = find_pair(*keys, low)
    return table.slice(start, find_pair(*keys, high) - start)
