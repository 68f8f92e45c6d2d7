"""Which collected pages are due for a revisit, and what a visit now is worth; the side set is read in chunks.

The decisions are those of contract/revisits.py, on the same columns as the verifier's figure of when a block is due.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from contract import revisits
from contract.config import Config
from contract.generation import Generation
from contract.policies import rules
from contract.tables import COLLECTED_STATE
from storage.arrays import Array, Rows
from storage.columns import FRAME_ROWS
from storage.tables import column

CHUNK_ROWS = 4 * FRAME_ROWS  # in larger chunks fewer frames of the side set lie on an edge, and are read twice
THREADS = 2  # numpy and zstd work beside each other
SECONDS_MAX = 0xFFFF_FFFF
EVIDENCE = ("visits", "changes", "unchanged_min", "changed_min")
# Columns of the side set that each policy of [revisit] needs, besides the time of the last visit.
COLUMNS_OF = {
    revisits.UNIFORM: ("misses",),
    revisits.PROPORTIONAL: ("misses", "period_min"),
    revisits.OPTIMAL: ("misses", *EVIDENCE),
}


class DuePages:
    def __init__(self, generation: Generation, now_ms: int, config: Config):
        self._side, self._now_ms, self._config = generation.side, now_ms, config.revisit
        self._rule_intervals_s = rules.intervals_of(config)
        self.has_rules = bool(self._rule_intervals_s.any())
        self._count = len(generation.servers)
        self._trust = read_trust(generation)
        with ThreadPoolExecutor(THREADS) as workers:
            chunks = range(0, len(generation), CHUNK_ROWS)
            counts = workers.map(lambda start: len(self._pages_of(generation, start)), chunks)
            self._side_starts = dict(zip(chunks, np.cumsum([0, *counts]).tolist()))
            self._sums = None
            if self._config.policy == revisits.OPTIMAL:
                self._sums = [np.zeros(self._count) for _ in EVIDENCE]
                for parts in workers.map(lambda start: self._sum(generation, start), chunks):
                    for total, part in zip(self._sums, parts):
                        total += part

    @property
    def has_dates(self) -> bool:
        """Whether a sitemap has a time for some page of the block."""
        return self._trust is not None

    def side_start(self, start: int) -> int:
        """The row of the side set that the chunk of the block which begins with row `start` begins with."""
        return self._side_starts[start]

    def find(
        self, start: int, server: Array, may_list: npt.NDArray[np.bool_], rule: Array | None, lastmod_s: Array | None
    ) -> tuple[Rows, npt.NDArray[np.uint32], npt.NDArray[np.float64]]:
        """(which are due, second of the last visit, what a visit is worth) of the pages of the chunk from `start` on.

        `server` has the index of the server of each page, `rule` the number of the rule that it falls under, and
        `lastmod_s` the newest time that a sitemap has for it.
        """
        first = self._side_starts[start]
        pages = self._read(first, first + len(server), rule)
        if lastmod_s is not None and self._trust is not None:
            trust = revisits.claim_trust(lastmod_s, pages.seen_at_ms, server, self._trust)
            pages = replace(pages, claim_trust=trust)
        rates = self._rates(pages, server)
        is_due = (revisits.due_at_ms(self._config, pages, rates) <= self._now_ms) & may_list[server]
        which = np.flatnonzero(is_due)
        due = pages.take(which)
        worth = revisits.worth(self._config, due, None if rates is None else rates[which], self._now_ms)
        return which, np.clip(due.seen_at_ms // 1000, 0, SECONDS_MAX).astype(np.uint32), worth

    def _rates(self, pages: revisits.Pages, server: Array) -> revisits.Numbers | None:
        if self._sums is None:
            return None
        return revisits.estimate_rates(pages, server, self._count, self._config, self._sums)

    def _read(self, start: int, stop: int, rule: Array | None) -> revisits.Pages:
        """Rows of the side set, as the policy needs them."""
        columns = self._read_columns(COLUMNS_OF[self._config.policy], start, stop)
        moments = (self._side.read(name, start, stop) for name in ("fetched_at_ms", "visited_at_ms"))
        columns["seen_at_ms"] = revisits.seen_at_ms(*moments)
        if rule is not None:
            columns["rule_interval_s"] = self._rule_intervals_s[rule]
        return revisits.Pages(**columns)

    def _read_columns(self, names: tuple[str, ...], start: int, stop: int) -> dict[str, Array]:
        """Columns for Pages; those that nobody asks for are zero. find() adds the trust in claims."""
        nothing = np.broadcast_to(np.uint32(0), stop - start)
        columns = {each.name: nothing for each in fields(revisits.Pages) if each.name != "claim_trust"}
        return columns | {name: self._side.read(name, start, stop) for name in names}

    def _pages_of(self, generation: Generation, start: int) -> Rows:
        """The pages among the rows of a chunk, counted from its first row."""
        stop = min(start + CHUNK_ROWS, len(generation))
        return np.flatnonzero(generation.rows.read("state", start, stop) == COLLECTED_STATE)

    def _sum(self, generation: Generation, start: int) -> list[revisits.Numbers]:
        """The evidence of each server in a chunk."""
        stop = min(start + CHUNK_ROWS, len(generation))
        pages = self._pages_of(generation, start)
        server = generation.index_servers(generation.rows.read("server", start, stop), start)[pages]
        first = self._side_starts[start]
        evidence = self._read_columns(EVIDENCE, first, first + len(pages))
        return revisits.sum_by_server(revisits.Pages(**evidence), server, self._count)


def read_trust(generation: Generation) -> revisits.Numbers | None:
    """How far the claims of each server's sitemaps are to be trusted; none where no sitemap has a time for a page."""
    if generation.rows.is_zero("lastmod_s"):
        return None
    claims, true = (column(generation.servers, name) for name in ("lastmod_claims", "lastmod_true"))
    return revisits.trust_of(claims, true)
