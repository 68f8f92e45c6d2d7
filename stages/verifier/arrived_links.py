"""Distinct URLs that arrived in a piece of the key space, with what their links brought."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from contract.accumulators import ACCUMULATORS
from contract.tables import ORDER
from stages.verifier.server_table import ServerTable
from storage.arrays import encode
from storage.pairs import find_pair, sort_pairs, starts_of_pairs
from storage.tables import column
from storage.text_segments import take_lines


class Arrived:
    """Tables with the columns of UrlsExtraidas, one behind the other; rows of the last, `unlisted`, are no links."""

    def __init__(self, tables: list[pa.Table], unlisted: pa.Table):
        self._tables = [*tables, unlisted]
        self.rows = sum(map(len, self._tables))
        self.linked_rows = self.rows - len(unlisted)

    @cached_property
    def servers(self) -> tuple[np.ndarray, np.ndarray]:
        """(key of each server, index of each row's server among those)."""
        return encode(self.join("server_key"))

    def has_any(self, name: str) -> bool:
        """Whether a row has something else than zero there."""
        return any(column(table, name).any() for table in self._tables)

    def join(self, name: str) -> np.ndarray:
        return np.concatenate([column(table, name) for table in self._tables])

    def urls(self) -> list[pa.Array]:
        return [chunk for table in self._tables for chunk in table.column("url").chunks]


@dataclass(frozen=True)
class Links:
    """Columns of one length, by (domain key, URL key), each pair once."""

    domain_key: np.ndarray
    key: np.ndarray
    depth: np.ndarray  # least
    brought: dict[str, np.ndarray]  # u64, of each accumulator that has a value above zero
    linked: np.ndarray  # bool: found by a link or a seed; false: only in a list that is not ours
    rows: int  # that came by links and seeds, repeats included

    def __len__(self) -> int:
        return len(self.key)

    def brought_of(self, name: str, which: np.ndarray) -> np.ndarray:
        return self.brought[name][which] if name in self.brought else np.zeros(len(which), np.uint64)


@dataclass(frozen=True)
class Gathered:
    """Distinct links, and the rows that they were gathered from: those hold the texts, which known URLs do not need."""

    links: Links
    first: np.ndarray  # of each link, the first of its rows
    arrived: Arrived

    def server_index(self, which: np.ndarray, servers: ServerTable) -> np.ndarray:
        """Index in the table of servers of each of these links' servers."""
        distinct, index = self.arrived.servers
        return servers.find(distinct)[index[self.first[which]]]

    def server_keys(self, which: np.ndarray) -> np.ndarray:
        distinct, index = self.arrived.servers
        return distinct[index[self.first[which]]]

    def lines_of(self, which: np.ndarray) -> pa.LargeBinaryArray:
        """Their URLs, each with a newline."""
        return take_lines(self.arrived.urls(), self.first[which])


def gather(arrived: Arrived) -> Gathered:
    """Each URL once, in order."""
    order, domain, key = sort_pairs(arrived.join("domain_key"), arrived.join("url_key"))
    starts = starts_of_pairs(domain, key)
    first = order[starts]
    depth = np.minimum.reduceat(arrived.join("depth")[order], starts)
    brought = {
        one.name: one.combine(arrived.join(one.name)[order], starts)
        for one in ACCUMULATORS
        if arrived.has_any(one.name)
    }
    links = Links(
        domain_key=domain[starts],
        key=key[starts],
        depth=depth,
        brought=brought,
        linked=first < arrived.linked_rows,
        rows=arrived.linked_rows,
    )
    return Gathered(links, first, arrived)


def first_of_each(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct values, the first row of each), in the order of rows."""
    distinct, number = encode(values)
    return distinct, find_firsts(number, len(distinct))


def find_firsts(numbers: np.ndarray, count: int) -> np.ndarray:
    """The first row that has each of the numbers below `count`, all of which occur."""
    first = np.empty(count, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)  # of repeated indexes, numpy keeps the last one
    return first


def least_of_each(values: np.ndarray, numbers: np.ndarray, count: int) -> np.ndarray:
    """The least of the values (u8) with each of the numbers below `count`."""
    least = np.full(count, np.iinfo(np.uint8).max, np.uint8)
    np.minimum.at(least, numbers, values)
    return least


def slice_rows(table: pa.Table, low: int, high: int) -> pa.Table:
    """The rows of a sorted table with pairs of keys in [low, high)."""
    keys = [column(table, name) for name in ORDER]
    start = find_pair(*keys, low)
    return table.slice(start, find_pair(*keys, high) - start)
