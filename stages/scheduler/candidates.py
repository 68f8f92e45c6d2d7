"""Which rows of a block may come into a list: prescheduled URLs of servers that are due, and pages that are due again.

A walk through the block in chunks, so that its columns are in memory for one chunk at a time: of each candidate a few
numbers are kept, of all other rows nothing. Chunks are read by a few threads, and joined in their order.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.config import Config
from contract.generation import Generation
from contract.policies import columns_read, parts_of, policy_of, put_below_rules, revisits, rule_of, rules, score_parts
from contract.policies.mix import mix_scores
from contract.policies.policy import Candidates
from contract.tables import COLLECTED_STATE, PRESCHEDULED
from stages.scheduler.due_pages import CHUNK_ROWS, THREADS, DuePages
from storage.arrays import Array, Rows
from storage.columns import Columns
from storage.tables import column

NO_SIDE = -1


@dataclass
class Pool:
    """Candidates for a list, in the order of the block's rows; columns of one length."""

    row: npt.NDArray[np.int32]
    key: npt.NDArray[np.uint64]
    server: npt.NDArray[np.int32]  # index in the block's table of servers
    score: npt.NDArray[np.uint32]
    worth: npt.NDArray[np.float32]  # of a visit now, without the page's importance; 1 for a first visit
    seen_s: npt.NDArray[np.uint32]  # the last visit, seconds since 1970; 0 for a first one
    side: npt.NDArray[np.int32]  # row in the side set; NO_SIDE for a first visit
    is_reserved: npt.NDArray[np.bool_]  # a share of the list is kept for the best of these
    part_scores: npt.NDArray[np.uint32]  # by each policy of a mix, one column each; no column without a mix

    def __len__(self) -> int:
        return len(self.row)

    @property
    def is_revisit(self) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = self.side != NO_SIDE
        return mask

    def take(self, which: Rows | slice) -> "Pool":
        return Pool(*(getattr(self, each.name)[which] for each in fields(self)))


def find_candidates(
    generation: Generation, may_list: npt.NDArray[np.bool_], now_ms: int, config: Config
) -> tuple[Pool, float]:
    """All candidates of a block, and the share of the list that is kept for reserved ones.

    `may_list` says of each server whether URLs of it may be listed now.
    """
    walk, parts = Walk(generation, may_list, now_ms, config), parts_of(config)
    pool, found, reserved = make_pool(len(generation), len(parts)), 0, 0.0
    with ThreadPoolExecutor(THREADS) as workers:
        for part, share in workers.map(walk.read_chunk, range(0, len(generation), CHUNK_ROWS)):
            reserved = max(reserved, share)
            here = slice(found, found := found + len(part))
            for name, values in vars(part).items():
                getattr(pool, name)[here] = values
    pool = pool.take(slice(found))
    if len(parts) > 1:  # ranks are taken among all candidates
        rule = pick(generation.rows, rules.RULE.name, pool.row.astype(np.int64)) if config.priority else None
        pool.score = put_below_rules(mix_scores(list(pool.part_scores.T), parts), rule, config)
    return pool, reserved


class Walk:
    """Reads the candidates of any chunk of a block; chunks may be read at the same time."""

    def __init__(self, generation: Generation, may_list: npt.NDArray[np.bool_], now_ms: int, config: Config):
        self._generation, self._may_list, self._now_ms, self._config = generation, may_list, now_ms, config
        self._servers = number_columns(generation.servers)
        is_asked_again = revisits(config) and generation.side.rows > 0
        self._due = DuePages(generation, now_ms, config) if is_asked_again else None

    def read_chunk(self, start: int) -> tuple[Pool, float]:
        """The candidates of the chunk that begins with row `start`, and the share that is kept for reserved ones."""
        rows, config = self._generation.rows, self._config
        stop = min(start + CHUNK_ROWS, len(self._generation))
        state = rows.read("state", start, stop)
        server = self._generation.index_servers(rows.read("server", start, stop), start)
        is_candidate = (state == PRESCHEDULED) & self._may_list[server]
        seen = np.zeros(stop - start, np.uint32)
        worth = np.ones(stop - start, np.float32)
        side = np.full(stop - start, NO_SIDE, np.int32)
        if self._due:
            pages = np.flatnonzero(state == COLLECTED_STATE)
            rule = rows.read(rules.RULE.name, start, stop)[pages] if self._due.has_rules else None
            lastmod_s = rows.read("lastmod_s", start, stop)[pages] if self._due.has_dates else None
            which, seen_s, worths = self._due.find(start, server[pages], self._may_list, rule, lastmod_s)
            here = pages[which]
            is_candidate[here], seen[here], worth[here] = True, seen_s, worths
            side[here] = self._due.side_start(start) + which
        which = np.flatnonzero(is_candidate)
        of = Candidates(
            {name: rows.read(name, start, stop)[which] for name in columns_read(config)},
            server[which],
            self._servers,
            config,
            self._now_ms,
            seen[which],
        )
        scores = score_parts(of)
        reserve = policy_of(config).reserve
        is_reserved, share = reserve(of) if reserve else (np.zeros(len(which), bool), 0.0)
        pool = Pool(
            (which + start).astype(np.int32),
            rows.read("key", start, stop)[which],
            server[which],
            put_below_rules(scores[0], rule_of(of), config),  # of a mix: only room for what find_candidates() sets
            worth[which],
            seen[which],
            side[which],
            is_reserved,
            np.stack(scores, axis=1) if len(scores) > 1 else np.empty((len(which), 0), np.uint32),
        )
        return pool, share


def make_pool(rows: int, parts: int = 1) -> Pool:
    """A pool with room for so many candidates, by a mix of so many policies.

    What is not written to takes no memory.
    """
    columns = [np.empty(rows, dtype) for dtype in ("i4", "u8", "i4", "u4", "f4", "u4", "i4", "?")]
    return Pool(*columns, np.empty((rows, parts if parts > 1 else 0), np.uint32))


def number_columns(servers: pa.Table) -> Mapping[str, Array]:
    """The columns of a table of servers that hold no texts."""
    return {field.name: column(servers, field.name) for field in servers.schema if not pa.types.is_string(field.type)}


def pick(columns: Columns, name: str, rows: Rows) -> Array:
    """The values of a column at some rows, in any order; the column is read in chunks."""
    order = np.argsort(rows, kind="stable")
    rising = rows[order]
    picked: Array = np.empty(len(rows), columns.read(name, 0, 0).dtype)
    for start, low, high in spans(rising):
        stop = min(start + CHUNK_ROWS, columns.rows)
        picked[order[low:high]] = columns.read(name, start, stop)[rising[low:high] - start]
    return picked


def spans(rising: Rows) -> Iterator[tuple[int, int, int]]:
    """(first row of a chunk, index of the first row in it, index behind the last one) of rising row numbers."""
    chunk = rising // CHUNK_ROWS
    edges = np.append(np.flatnonzero(np.diff(chunk, prepend=-1)), len(rising)).tolist()
    for low, high in zip(edges, edges[1:]):
        yield int(chunk[low]) * CHUNK_ROWS, low, high
