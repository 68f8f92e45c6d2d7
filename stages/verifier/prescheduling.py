"""Which of a server's waiting URLs the scheduler may pick from: the few that the policy puts first.

Equal scores keep the order of rows. contract/policies says how a row is scored.
"""

from collections.abc import Mapping

import numpy as np

from contract.config import Config
from contract.policies import columns_read, parts_of, put_below_rules, rule_of, score_parts
from contract.policies.mix import places_of
from contract.policies.policy import LARGEST, Candidates
from contract.tables import PRESCHEDULED, WAITING
from stages.verifier.server_table import ServerTable
from storage.arrays import rank_in_run

CROWDED_TIMES = 16
CROWDED_MAX = 64  # servers that can be crowded at once: a 64th of all rows each
CELLS_SHIFT = np.uint32(16)  # late scores are counted by their upper bits
CELLS = 1 << 16
SIFTED_AT_ONCE = 1 << 20  # rows, so that the memory for it does not follow the block


def sift(which: np.ndarray, late: np.ndarray, server_index: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Leaves out rows that cannot be among the first `most` of a server with many more: a giant's rows are not sorted.

    Rows are counted by the upper bits of `late` (u32, the smallest comes first), which gives those of the last one that
    is needed. All rows with these stay, but where the lower bits are zero, as for few levels, only the first ones.
    """
    sizes = np.bincount(server_index)
    crowded = np.flatnonzero(sizes > max(CROWDED_TIMES * most, len(server_index) // CROWDED_MAX))
    if not len(crowded):
        return which, late
    number = np.full(len(sizes), len(crowded), np.int16)  # the last one stands for all servers that are not crowded
    number[crowded] = np.arange(len(crowded))
    cells = np.zeros((len(crowded) + 1, CELLS), np.int64)
    parts = [slice(start, start + SIFTED_AT_ONCE) for start in range(0, len(which), SIFTED_AT_ONCE)]
    for part in parts:
        cells += np.bincount(
            number[server_index[part]] * np.int64(CELLS) + (late[part] >> CELLS_SHIFT), minlength=cells.size
        ).reshape(cells.shape)
    last = (np.cumsum(cells, axis=1) < most).sum(axis=1)
    last[-1] = CELLS
    room = np.full(len(last), most)
    stays = np.empty(len(which), bool)
    is_coarse = not (late & np.uint32(CELLS - 1) != CELLS - 1).any()
    for part in parts:
        owner, cell = number[server_index[part]], (late[part] >> CELLS_SHIFT).astype(np.int64)
        stays[part] = cell <= last[owner]
        if not is_coarse:
            continue
        tied = np.flatnonzero(cell == last[owner])
        tied = tied[np.argsort(owner[tied], kind="stable")]
        beyond = tied[rank_in_run(owner[tied]) >= room[owner[tied]]]
        stays[part][beyond] = False
        room = np.maximum(room - np.bincount(owner[tied], minlength=len(room)), 0)
    return which[stays], late[stays]


class Best:
    """The best rows of each server by one policy, as they come piece by piece."""

    def __init__(self, most: int):
        self._most = most
        self._rank = np.empty(0, np.uint64)  # index of the server << 32 | LARGEST - score
        self._row = np.empty(0, np.int64)

    def take(self, which: np.ndarray, late: np.ndarray, server_index: np.ndarray, first_row: int) -> None:
        """Rows `which` of a piece that begins with `first_row`; `late` of each (u32): the smallest comes first."""
        rank = np.concatenate([self._rank, server_index[which].astype(np.uint64) << np.uint64(32) | late])
        row = np.concatenate([self._row, which + first_row])
        order = np.argsort(rank, kind="stable")
        order = order[rank_in_run(rank[order] >> np.uint64(32)) < self._most]
        self._rank, self._row = rank[order], row[order]

    def choose(self, places: np.ndarray, taken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows, index of the server of each): of each server as many as it has places, without the rows `taken`."""
        free = ~np.isin(self._row, taken) if len(taken) else slice(None)
        row, server_index = self._row[free], (self._rank[free] >> np.uint64(32)).astype(np.int64)
        chosen = rank_in_run(server_index) < places[server_index]
        return row[chosen], server_index[chosen]


class Refill:
    """Finds what is newly prescheduled: up to `prescheduled_max` per server, where fewer than a bound are left.

    Rows come piece by piece. Where a server has no more than it may have, all that waits is prescheduled, without a
    score: so it costs little to choose anew each turn. Of the others only the best are remembered.
    """

    def __init__(self, may_need: np.ndarray, servers: ServerTable, config: Config, now_ms: int):
        self._may_need = may_need  # bool, by index of the server
        self._servers = servers
        self._config, self._now_ms = config, now_ms
        self._most = config.verifier.prescheduled_max
        self._below = config.verifier.prescheduled_refill
        self._best = [Best(self._most) for _ in parts_of(config)]  # by each policy of a mix

    def offer(self, rows: Mapping[str, np.ndarray], server_index: np.ndarray, first_row: int) -> None:
        """Takes the waiting ones of the rows from `first_row` on; `server_index` has the server of each.

        REQUIRES: the rows are counted in the table of servers. Sets the state of those that need no score.
        """
        is_ranked = self._preschedule_all(rows["state"], server_index)
        which = np.flatnonzero((rows["state"] == WAITING) & is_ranked[server_index])
        if not len(which):
            return
        columns = {name: rows[name][which] for name in columns_read(self._config)}
        of = Candidates(columns, server_index[which], self._servers.columns, self._config, self._now_ms)
        for best, scores in zip(self._best, score_parts(of)):
            late = LARGEST - put_below_rules(scores, rule_of(of), self._config)
            best.take(*sift(which, late, server_index[which], self._most), server_index, first_row)

    def _preschedule_all(self, state: np.ndarray, server_index: np.ndarray) -> np.ndarray:
        """Preschedules all that waits of servers that have few; returns which servers need a choice, bool, by index."""
        if not len(state):
            return self._may_need
        counts = self._servers.states
        # Rows of the first and the last domain of a piece may lie in another piece too. Tables are sorted by domain.
        domain_key = self._servers["domain_key"]
        is_whole = (domain_key > domain_key[server_index[0]]) & (domain_key < domain_key[server_index[-1]])
        takes_all = self._may_need & is_whole & (counts[:, WAITING] > 0) & (counts[:, PRESCHEDULED] < self._below)
        takes_all &= counts[:, WAITING] + counts[:, PRESCHEDULED] <= self._most
        if takes_all.any():
            state[(state == WAITING) & takes_all[server_index]] = PRESCHEDULED
            self._servers.preschedule_all(takes_all)
        return self._may_need & ~takes_all

    def choose(self) -> np.ndarray:
        """The rows that are prescheduled now; counts them in the table of servers."""
        left = self._servers.states[:, PRESCHEDULED]
        room = np.where(left < self._below, np.maximum(self._most - left, 0), 0).astype(np.int64)
        rows = np.empty(0, np.int64)
        for best, places in zip(self._best, places_of(parts_of(self._config), room)):
            more, server_index = best.choose(places, rows)
            self._servers.move(server_index, WAITING, PRESCHEDULED)
            rows = np.concatenate([rows, more])
        return rows
