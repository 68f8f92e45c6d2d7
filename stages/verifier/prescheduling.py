"""Which of a server's waiting URLs the scheduler may pick from: the few that a policy puts first.

A policy scores rows from their columns alone. The smallest score comes first; equal ones keep the order of rows. It may
need features, which are computed from a URL's text once, when the URL is new. A new policy is a line of POLICIES.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from contract.tables import WAITING
from storage.arrays import rank_in_run

CROWDED_TIMES = 16
CROWDED_MAX = 64  # servers that can be crowded at once: a 64th of all rows each
SCORES = 1 << 16  # path levels and depth fit
SIFTED_AT_ONCE = 1 << 20  # rows, so that the memory for it does not follow the block

Score = Callable[[Mapping[str, np.ndarray]], np.ndarray]


class Policy(NamedTuple):
    score: Score  # of columns of rows, as u32
    features: tuple[str, ...] = ()


POLICIES = {
    "shortest_path": Policy(lambda rows: rows["levels"].astype(np.uint32) << 8 | rows["depth"], ("levels",)),
    "depth": Policy(lambda rows: rows["depth"].astype(np.uint32)),
    "fifo": Policy(lambda rows: rows["segment"].astype(np.uint32)),
}


def sift(which: np.ndarray, score: np.ndarray, server_index: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Leaves out rows that cannot be among the best `most` of a server with many more: a giant's rows are not sorted.

    Rows are counted by score, which gives the score of the last one that is needed; of rows with that score the first
    ones are. Scores from SCORES - 1 on count as one, and all of them stay.
    """
    sizes = np.bincount(server_index)
    crowded = np.flatnonzero(sizes > max(CROWDED_TIMES * most, len(server_index) // CROWDED_MAX))
    if not len(crowded):
        return which, score
    number = np.full(len(sizes), len(crowded), np.int16)  # the last one stands for all servers that are not crowded
    number[crowded] = np.arange(len(crowded))
    cells = np.zeros((len(crowded) + 1, SCORES), np.int64)
    parts = [slice(start, start + SIFTED_AT_ONCE) for start in range(0, len(which), SIFTED_AT_ONCE)]
    for part in parts:
        cells += np.bincount(
            number[server_index[part]] * np.int64(SCORES) + np.minimum(score[part], SCORES - 1), minlength=cells.size
        ).reshape(cells.shape)
    last = (np.cumsum(cells, axis=1) < most).sum(axis=1)
    last[-1] = SCORES
    room = np.full(len(last), most)
    stays = np.empty(len(which), bool)
    for part in parts:
        owner, low_score = number[server_index[part]], np.minimum(score[part], SCORES - 1)
        stays[part] = low_score <= last[owner]
        tied = np.flatnonzero((low_score == last[owner]) & (low_score < SCORES - 1))
        tied = tied[np.argsort(owner[tied], kind="stable")]
        beyond = tied[rank_in_run(owner[tied]) >= room[owner[tied]]]
        stays[part][beyond] = False
        room = np.maximum(room - np.bincount(owner[tied], minlength=len(room)), 0)
    return which[stays], score[stays]


class Refill:
    """Finds what is newly prescheduled: up to `most` per server, where fewer than `refill_below` are left.

    Rows come piece by piece; of each server that may need some, only the best `most` are remembered.
    """

    def __init__(self, may_need: np.ndarray, policy: Policy, most: int):
        self._may_need = may_need  # bool, by index of the server
        self._policy = policy
        self._most = most
        self._rank = np.empty(0, np.uint64)  # index of the server << 32 | score
        self._row = np.empty(0, np.int64)

    def offer(self, rows: Mapping[str, np.ndarray], server_index: np.ndarray, first_row: int) -> None:
        """Takes the waiting ones of the rows from `first_row` on; `server_index` has the server of each."""
        which = np.flatnonzero((rows["state"] == WAITING) & self._may_need[server_index])
        if not len(which):
            return
        score = self._policy.score({name: rows[name][which] for name in ("depth", "segment", *self._policy.features)})
        which, score = sift(which, score, server_index[which], self._most)
        rank = np.concatenate([self._rank, server_index[which].astype(np.uint64) << np.uint64(32) | score])
        row = np.concatenate([self._row, which + first_row])
        order = np.argsort(rank, kind="stable")
        order = order[rank_in_run(rank[order] >> np.uint64(32)) < self._most]
        self._rank, self._row = rank[order], row[order]

    def choose(self, prescheduled: np.ndarray, refill_below: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows, indexes of their servers) that are prescheduled now, given how many of each server are already."""
        server_index = (self._rank >> np.uint64(32)).astype(np.int64)
        left = prescheduled[server_index]
        chosen = (left < refill_below) & (rank_in_run(server_index) + left < self._most)
        return self._row[chosen], server_index[chosen]
