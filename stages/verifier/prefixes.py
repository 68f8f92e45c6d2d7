"""The table of prefixes: how many URLs each server was granted under its heaviest path prefixes and queries.

A server has at most 64 rows, a fixed share for each kind, so that noise of one kind pushes out nothing of another.
Within a share this is the Space-Saving summary (Metwally, Agrawal, El Abbadi 2005), updated once per merge. The largest
counts stay. A prefix that is not in a full share begins at the floor, the smallest count that stayed, and remembers it
in `began`. So
- a count is never too low, and count - began never too high;
- the floor is at most the URLs granted to the server divided by the share, as the counts of a share add up to no more.
A prefix is full when count - began reaches the limit. So is every prefix that begins at a floor as high as the limit.
Then, before a server has been granted share times limit, no prefix is refused that has not had its limit. None gets
twice its limit. And none escapes by noise: it takes a share of others as heavy to push a full one out, and then nothing
new has room.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from contract.generation import PREFIXES
from contract.url_paths import GOLDEN
from storage.arrays import rank_in_run, starts_of_runs
from storage.tables import column

FOLDER, TREE, QUERY = range(3)  # kinds of prefixes; see rules.py for what each one is
KEPT = np.array([24, 16, 24])  # rows of a server, by kind
PREFIXES_MAX = int(KEPT.sum())
COUNT_MAX = np.iinfo(np.uint32).max


@dataclass(frozen=True)
class Prefixes:
    """Rows are unique and sorted by (server, kind, prefix); the arrays are never written to."""

    server: np.ndarray  # u32, index in the table of servers
    kind: np.ndarray  # u8
    prefix: np.ndarray  # u64, hash of its text
    count: np.ndarray  # u32
    began: np.ndarray  # u32, the part of count that was not counted: the floor of its first merge

    def __len__(self) -> int:
        return len(self.server)

    def take(self, rows: np.ndarray) -> "Prefixes":
        return Prefixes(*(getattr(self, field.name)[rows] for field in fields(self)))


def empty() -> Prefixes:
    return from_table(PREFIXES.empty_table())


def to_table(prefixes: Prefixes) -> pa.Table:
    return pa.table(
        {field.name: pa.array(getattr(prefixes, field.name), field.type) for field in PREFIXES}, schema=PREFIXES
    )


def from_table(table: pa.Table) -> Prefixes:
    return Prefixes(*(column(table, field.name) for field in fields(Prefixes)))


def move_servers(prefixes: Prefixes, index_of_old: np.ndarray) -> Prefixes:
    """The table after the servers have moved; index_of_old: integers, the new index of each old server, unique."""
    if not len(prefixes):
        return prefixes
    moved = replace(prefixes, server=index_of_old[prefixes.server].astype(np.uint32))
    if (moved.server[1:] >= moved.server[:-1]).all():
        return moved
    return moved.take(np.argsort(moved.server, kind="stable"))


def take_servers(prefixes: Prefixes, here: np.ndarray, index_of_old: np.ndarray) -> Prefixes:
    """The rows of the servers in the mask `here`, for one half of a split.

    index_of_old: as for move_servers, read only where `here`.
    """
    return move_servers(prefixes.take(here[prefixes.server]), index_of_old)


@dataclass
class Groups:
    """The rows of a merge under each prefix of one kind; a group is a prefix of a server."""

    kind: int
    rows: np.ndarray  # of the merge
    group: np.ndarray  # of each of `rows`
    server: np.ndarray  # of each group, as all that follow
    prefix: np.ndarray
    count: np.ndarray  # i64, before this merge
    began: np.ndarray  # i64
    table_row: np.ndarray  # i64, or -1

    def room(self, limit: int) -> np.ndarray:
        """How many more rows each group may have, i64; may be negative."""
        return np.where(self.began < limit, limit - (self.count - self.began), 0)


def group_rows(
    kind: int, rows: np.ndarray, server: np.ndarray, prefix: np.ndarray, table: Prefixes, servers: int
) -> Groups:
    """Groups `rows` by `server` and the hash `prefix`, all of one length, in any order; finds them in the table."""
    met = np.zeros(servers, bool)
    met[server] = True
    here = np.flatnonzero((table.kind == kind) & met[table.server])
    known = table.take(here)
    # Rows of the table take part, so that groups find theirs. Two servers share a group with the odds of any collision
    # of 64 bits.
    encoded = pa.array(np.concatenate([_join(known.server, known.prefix), _join(server, prefix)])).dictionary_encode()
    table_group, group = np.split(encoded.indices.to_numpy(), [len(here)])
    server_of = np.empty(len(encoded.dictionary), np.uint32)
    prefix_of = np.empty(len(encoded.dictionary), np.uint64)
    server_of[table_group], prefix_of[table_group] = known.server, known.prefix
    server_of[group], prefix_of[group] = server, prefix
    count = find_floors(known, servers)[server_of]
    began, table_row = count.copy(), np.full(len(count), -1)
    count[table_group], began[table_group], table_row[table_group] = known.count, known.began, here
    return Groups(kind, rows, group, server_of, prefix_of, count, began, table_row)


def _join(server: np.ndarray, prefix: np.ndarray) -> np.ndarray:
    return prefix ^ (server.astype(np.uint64) * GOLDEN)


def find_floors(table: Prefixes, servers: int) -> np.ndarray:
    """Of each server, i64, the count at which a prefix begins that is not in the table; `table` holds one kind."""
    floors = np.zeros(servers, np.int64)
    starts = starts_of_runs(table.server)
    if len(starts):
        full = np.diff(np.append(starts, len(table))) >= KEPT[table.kind[starts]]
        floors[table.server[starts[full]]] = np.minimum.reduceat(table.count, starts)[full]
    return floors


def add_granted(table: Prefixes, counted: list[Groups], granted: np.ndarray) -> Prefixes:
    """The table with the granted rows counted; granted: bool, of each row of the merge."""
    count = table.count.astype(np.int64)
    parts = []
    for groups in counted:
        more = np.bincount(groups.group[granted[groups.rows]], minlength=len(groups.server))
        there = groups.table_row >= 0
        count[groups.table_row[there]] += more[there]
        fresh = np.flatnonzero(~there & (more > 0))
        parts.append(
            (
                groups.server[fresh],
                np.full(len(fresh), groups.kind, np.uint8),
                groups.prefix[fresh],
                groups.count[fresh] + more[fresh],
                groups.began[fresh].astype(np.uint32),
            )
        )
    columns = zip((table.server, table.kind, table.prefix, count, table.began), *parts, strict=True)
    rows = Prefixes(*(np.concatenate(column) for column in columns))
    rows = replace(rows, count=np.minimum(rows.count, COUNT_MAX).astype(np.uint32))
    return keep_largest(rows) if len(rows) > len(table) else rows


def keep_largest(rows: Prefixes) -> Prefixes:
    """Per server and kind the rows with the largest counts, ties by hash, sorted; `rows` are unique, in any order."""
    owner = rows.server.astype(np.int64) * len(KEPT) + rows.kind
    sizes = np.bincount(owner)
    stay = (sizes <= KEPT[np.arange(len(sizes)) % len(KEPT)])[owner]
    crowded = np.flatnonzero(~stay)
    crowded = crowded[sift(owner[crowded], rows.count[crowded], rows.prefix[crowded], sizes)]
    order = crowded[np.lexsort((rows.prefix[crowded], COUNT_MAX - rows.count[crowded], owner[crowded]))]
    stay[order[rank_in_run(owner[order]) < KEPT[rows.kind[order]]]] = True
    rows, owner = rows.take(stay), owner[stay]
    return rows.take(np.lexsort((rows.prefix, owner)))


def sift(owner: np.ndarray, count: np.ndarray, prefix: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Mask of the rows that may be among their owner's largest: a flood of prefixes with one URL each is not sorted.

    Left out are rows with their owner's least count and a hash above a bound that leaves some four shares of them. All
    others come before these. So nothing is lost where enough others are left; elsewhere all stay.
    """
    least = np.full(len(sizes), COUNT_MAX, np.uint32)
    np.minimum.at(least, owner, count)
    share = KEPT.max()
    bounds = np.minimum(4 * share / np.maximum(sizes, 1), 0.999) * 2.0**64
    likely = (count > least[owner]) | (prefix < bounds.astype(np.uint64)[owner])
    enough = np.bincount(owner[likely], minlength=len(sizes)) >= share
    return likely | ~enough[owner]
