"""A crawl of a known graph without a network: the policies themselves, over columns that it keeps as a crawl does.

A cycle works on one block, as in ARCHITECTURE.md:
1. The scheduler's functions choose a list from the block's candidates.
2. Its pages are fetched at once, and give to their targets what contract/accumulators.py says. What belongs to another
   block waits there (AUX).
3. The verifier's work: what waits for the block is put together with its rows. New URLs get features and wait.
4. Its functions preschedule the best of each server.

With one block and no prescheduling this is the whole collection in one heap: every K fetched, the best K of all known.

Invariant: `state` is UNKNOWN until a link to the page, or a seed, was absorbed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from contract.accumulators import ACCUMULATORS, DAY_MS, HANDED_ON, SHARED_NAMES, Links, gifts, share_out
from contract.config import Config
from contract.generation import BLOCK_SERVERS, COLUMNS
from contract.policies import columns_read, features_of, policy_of, score_with_rules
from contract.policies.new_domains import close_domains
from contract.policies.policy import Candidates, Urls
from contract.policies.spread import KNOWN
from contract.tables import COLLECTED_STATE, DEPTH_MAX, PRESCHEDULED, REFUSED_BY_RULE, STATES, WAITING
from stages.scheduler.candidates import NO_SIDE, Pool
from stages.scheduler.selection import choose, server_caps
from stages.verifier.prescheduling import Refill
from stages.verifier.server_table import COUNTED, ServerTable
from storage.arrays import starts_of_runs
from study.collection import Collection
from study.graphs import Rows

UNKNOWN = len(STATES)
BEGAN_MS = 20_000 * DAY_MS  # the time of the first plan; no result depends on it
ANSWER_MS, SLOWEST = 20.0, 100.0  # the fastest server, and how much slower the slowest one is; evenly on a log scale
NO_PARTS = np.empty((0, 0), np.uint32)
Column = npt.NDArray[Any]


@dataclass
class Gifts:
    """What links bring, a value per link."""

    rows: Rows
    depth: npt.NDArray[np.uint8]
    brought: Mapping[str, Column]

    def take(self, which: Column) -> "Gifts":
        return Gifts(self.rows[which], self.depth[which], {name: each[which] for name, each in self.brought.items()})


@dataclass
class Block:
    first: int  # row
    end: int
    servers: ServerTable
    server: npt.NDArray[np.int32]  # of each of its rows, the index in that table
    answers_ms: npt.NDArray[np.uint32]  # how fast each server answers
    waiting: list[Gifts] = field(default_factory=list)  # AUX

    @property
    def rows(self) -> slice:
        return slice(self.first, self.end)


class Simulation:
    """`blocks` = 0: one heap. REQUIRES: `files` has the copies of files that the policy reads."""

    def __init__(
        self,
        collection: Collection,
        seeds: Rows,
        config: Config,
        blocks: int = 0,
        files: Mapping[str, Path] | None = None,
        cycle_s: float = 600.0,
    ):
        self._collection, self._config, self._files = collection, config, files or {}
        self._policy = policy_of(config)
        self._is_heap, self._cycle_ms, self.cycles = not blocks, round(cycle_s * 1000), 0
        edges = collection.edges_of_blocks(max(blocks, 1)).tolist()
        self._blocks = [make_block(collection, *bounds) for bounds in zip(edges, edges[1:])]
        reads = {*columns_read(config), *self._policy.hands_on, "mentions"}
        self._gifts = [one for one in ACCUMULATORS if one.name in reads]
        self.columns: dict[str, Column] = {
            name: np.zeros(len(collection), dtype) for name, dtype in COLUMNS.items() if name in reads | {"depth"}
        } | {"key": collection.key}
        self.state = np.full(len(collection), UNKNOWN, np.uint8)
        brought = {one.name: np.full(len(seeds), one.of_seed, np.uint64) for one in self._gifts}
        self._send(Gifts(seeds, np.zeros(len(seeds), np.uint8), brought))

    def lists(self, pages: int) -> Iterator[Rows]:
        """The rows of each cycle that fetched any, until so many pages were fetched or none is left to fetch."""
        left, idle = pages, 0
        while left > 0 and idle < len(self._blocks):
            block = self._blocks[self.cycles % len(self._blocks)]
            idle = 0 if block.waiting else idle + 1
            listed = self.cycle(block)[:left]
            if len(listed):
                idle = 0
                left -= len(listed)
                yield listed

    def cycle(self, block: Block) -> Rows:
        """The rows that were fetched."""
        listed = self._choose(block)
        self._fetch(block, listed)
        self._absorb(block)
        self._close(block, listed)
        self._count(block)
        self._preschedule(block)
        self.cycles += 1
        return listed

    @property
    def _now_ms(self) -> int:
        return BEGAN_MS + self.cycles * self._cycle_ms

    def _candidates(self, block: Block, rows: Rows) -> Candidates:
        columns = {name: values[rows] for name, values in self.columns.items()}
        server = block.server[rows - block.first]
        return Candidates(columns, server, block.servers.columns, self._config, self._now_ms)

    def _choose(self, block: Block) -> Rows:
        rows = block.first + np.flatnonzero(self.state[block.rows] == (WAITING if self._is_heap else PRESCHEDULED))
        if not len(rows):
            return rows
        of, server = self._candidates(block, rows), block.server[rows - block.first]
        is_reserved, share = self._policy.reserve(of) if self._policy.reserve else (np.zeros(len(rows), bool), 0.0)
        pool = Pool(
            row=rows.astype(np.int32),
            key=self._collection.key[rows],
            server=server,
            score=score_with_rules(of),
            worth=np.ones(len(rows), np.float32),
            seen_s=np.zeros(len(rows), np.uint32),
            side=np.full(len(rows), NO_SIDE, np.int32),
            is_reserved=is_reserved,
            part_scores=NO_PARTS,
        )
        columns = block.servers.columns
        caps = server_caps(columns, self._now_ms, self._config)
        domain = np.unique(columns["domain_key"], return_inverse=True)[1] if self._policy.is_gated else None
        most = self._config.scheduler.list_max_urls
        return rows[choose(pool, caps, domain, share, most, self._config.revisit, self.cycles).which]

    def _fetch(self, block: Block, rows: Rows) -> None:
        """Marks the rows as collected, and sends what they give."""
        collection = self._collection
        index, targets = collection.graph.links_of(rows)
        degrees = collection.graph.degrees[rows] if len(rows) else rows
        of = self._candidates(block, rows)
        amounts = {name: amount(of) for name, amount in self._policy.hands_on.items()}
        nothing = np.zeros(len(rows), np.uint64)
        shares = {one.name: share_out(one, amounts.get(one.name, nothing), degrees) for one in HANDED_ON}
        links = Links(
            page=index,
            to_domain=collection.domain_key[targets],
            lastmod_s=np.zeros(len(targets), np.uint32),
            from_domain=collection.domain_key[rows],
            is_counted=np.zeros(len(rows), bool),
            visited_day=np.full(len(rows), self._now_ms // DAY_MS, np.uint16),
            relevance=np.zeros(len(rows), np.uint32),
            is_to_itself=np.zeros(len(targets), bool),
            shares=shares,
        )
        given = gifts(links)
        depth = np.minimum(self.columns["depth"][rows].astype(np.int64) + 1, DEPTH_MAX).astype(np.uint8)
        self._send(Gifts(targets.astype(np.int64), depth[index], {one.name: given[one.name] for one in self._gifts}))
        for name in set(SHARED_NAMES) & set(amounts):
            self.columns[name][rows] -= shares[name] * degrees.astype(np.uint64)  # the remainder stays
        self.state[rows] = COLLECTED_STATE
        columns, server = block.servers.columns, block.server[rows - block.first]
        columns["requests"] += np.bincount(server, minlength=len(columns["requests"])).astype(np.uint32)
        columns["mean_ms"][server] = block.answers_ms[server]

    def _send(self, sent: Gifts) -> None:
        for block in self._blocks:
            here = (sent.rows >= block.first) & (sent.rows < block.end) if len(self._blocks) > 1 else slice(None)
            part = sent.take(here)
            if len(part.rows):
                block.waiting.append(part)

    def _absorb(self, block: Block) -> None:
        """Puts what waits for the block together with its rows; new ones get their features."""
        parts, block.waiting = block.waiting, []
        rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
        if not len(rows):
            return
        order = np.argsort(rows, kind="stable")
        starts = starts_of_runs(rows[order])
        known = rows[order][starts]
        is_new = self.state[known] == UNKNOWN
        depth = np.minimum.reduceat(np.concatenate([part.depth for part in parts])[order], starts)
        column = self.columns["depth"]
        column[known] = np.where(is_new, depth, np.minimum(column[known], depth))
        for one in self._gifts:
            values = np.concatenate([part.brought[one.name] for part in parts])[order]
            self.columns[one.name][known] = one.join(self.columns[one.name][known], one.combine(values, starts))
        self._take_features(block, known[is_new])
        self.state[known[is_new]] = WAITING

    def _take_features(self, block: Block, rows: Rows) -> None:
        collection, features = self._collection, features_of(self._config)
        if not features or not len(rows):
            return
        known = block.servers.states.sum(axis=1)
        urls = Urls(
            collection.lines(rows),
            collection.key[rows],
            collection.domain_key[rows],
            collection.server_key[rows],
            self.cycles,
            self._config,
            self._files,
            {KNOWN: (block.servers["domain_key"], known)},
        )
        for feature in features:
            self.columns[feature.name][rows] = feature.compute(urls)

    def _close(self, block: Block, listed: Rows) -> None:
        """Closes domains of a policy that is gated, of which a list has one page each (stages/verifier/closing.py)."""
        if not self._policy.is_gated:
            return
        collection, columns = self._collection, block.servers.columns
        index, targets = collection.graph.links_of(listed)
        is_other = collection.domain_key[targets] != collection.domain_key[listed][index]
        domains, number = np.unique(columns["domain_key"], return_inverse=True)
        visited = np.bincount(number, columns["requests"], minlength=len(domains)).astype(np.int64)
        here = np.searchsorted(domains, collection.domain_key[listed])
        closes = close_domains(visited[here], np.bincount(index, is_other, minlength=len(listed)))
        columns["closed"] |= np.isin(number, here[closes])
        state = self.state[block.rows]
        state[(state <= PRESCHEDULED) & columns["closed"][block.server]] = REFUSED_BY_RULE

    def _count(self, block: Block) -> None:
        """Brings the table of servers up to date."""
        servers, state = block.servers, self.state[block.rows]
        if self._policy.varies and not self._is_heap:
            state[state == PRESCHEDULED] = WAITING  # the best are chosen anew each turn
        known = np.flatnonzero(state != UNKNOWN)
        servers.states[:] = 0
        servers.count(block.server[known], state[known])
        for name, states in COUNTED.items():
            servers.columns[name] = servers.states[:, list(states)].sum(axis=1).astype(np.uint32)
        mentions = np.bincount(block.server[known], self.columns["mentions"][block.rows][known], len(servers))
        servers.columns["mentions"] = mentions.astype(np.uint64)

    def _preschedule(self, block: Block) -> None:
        if self._is_heap:
            return
        refill = Refill(np.ones(len(block.servers), bool), block.servers, self._config, self._now_ms)
        rows = {name: values[block.rows] for name, values in self.columns.items()} | {"state": self.state[block.rows]}
        refill.offer(rows, block.server, 0)
        self.state[block.rows][refill.choose()] = PRESCHEDULED


def make_block(collection: Collection, first: int, end: int) -> Block:
    server_key, which, number = np.unique(collection.server_key[first:end], return_index=True, return_inverse=True)
    servers = ServerTable(BLOCK_SERVERS.empty_table(), server_key, collection.domain_key[first:end][which])
    part = servers["server_key"].astype(np.float64) / 2**64
    answers_ms = (ANSWER_MS * SLOWEST**part).astype(np.uint32)
    return Block(first, end, servers, servers.find(server_key)[number], answers_ms)
