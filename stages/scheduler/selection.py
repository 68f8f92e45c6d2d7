"""Which candidates go into a list and in which order; pure, on columns alone.

All candidates of a block are in one order, that of VRank: importance x worth, the largest first, then by key.
Importance is the rank of the score among all candidates, from 0 (not included) to 1; worth is 1 for a first visit, and
what contract/revisits.py says for a page that is due again. The list takes the best under these limits:

- per server its cap; with a policy that is gated, one URL per registered domain;
- as long as URLs wait that could fill the list, `share_max` of it for revisits, and the same for the places of each
  server or domain: of a crawl of few servers their caps end a list long before list_max_urls;
- `spread_share` of the revisits' places go to the pages that were not seen for longest, so that none starves;
- the share that a policy reserves goes to the best of the rows that it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contract.config import Config, Revisit
from contract.pause import requests_per_cycle
from stages.scheduler.candidates import Pool
from storage.arrays import Array, Rows, join_halves, rank_in_run, rank_values

Late = npt.NDArray[np.uint64]  # an order: the smallest comes first
BATCH_LEAST = 1 << 16
GOLDEN, PLASTIC = 0.6180339887498949, 0.7548776662466927  # irrational numbers far from simple fractions


def server_caps(servers: Mapping[str, Array], now_ms: int, config: Config) -> Rows:
    """Maximum URLs per server in a list: 0 before the server is due, else what its delay allows in `cycle_max_s`."""
    fits = requests_per_cycle(config.fetcher, servers["delay_ms"])
    caps = np.minimum(config.scheduler.server_max_urls, fits).astype(np.int64)
    caps[(servers["due_at_ms"] > now_ms) | servers["given_up"]] = 0
    return caps


@dataclass
class Places:
    """What is still free in a list: in all, for revisits, and in each group; a group is a server or a domain."""

    all: int
    revisits: int
    of_group: Rows
    revisits_of_group: Rows


@dataclass(frozen=True)
class Choice:
    which: Rows  # indexes of the pool, in the order of the list
    vrank: npt.NDArray[np.float32]


def choose(
    pool: Pool, caps: Rows, domain: Array | None, share: float, list_max_urls: int, config: Revisit, cycle: int = 0
) -> Choice:
    """The list of a cycle. `caps` by index of the server; `domain`, of a gated policy, has the index of each server's
    domain.
    """
    group = pool.server if domain is None else domain[pool.server]
    vrank = rank_values(pool.score) * pool.worth
    is_revisit = pool.is_revisit
    room = caps.copy() if domain is None else np.ones(int(domain.max(initial=-1)) + 1, np.int64)
    late = join_late(~vrank.view(np.uint32), pool.key)
    firsts = count_fitting(group[~is_revisit], room)
    places = Places(
        list_max_urls,
        max(int(config.share_max * list_max_urls), list_max_urls - int(firsts.sum())),
        room,
        np.maximum(round_by_turns(config.share_max * room, cycle), room - firsts),
    )
    taken = [np.empty(0, np.int64)]
    if is_revisit.any() and config.spread_share:
        due = np.flatnonzero(is_revisit)
        limit = int(np.ceil(config.spread_share * min(places.revisits, len(due))))
        take(due, join_late(pool.seen_s[due], pool.key[due]), pool.key, group, is_revisit, places, limit, taken)
        del due
    if share:
        kept = np.flatnonzero(pool.is_reserved)
        take(kept, late[kept], pool.key, group, is_revisit, places, int(share * list_max_urls), taken)
    take(np.arange(len(pool), dtype=np.int32), late, pool.key, group, is_revisit, places, list_max_urls, taken)
    chosen = np.concatenate(taken)
    chosen = chosen[np.lexsort((pool.key[chosen], late[chosen]))]
    return Choice(chosen[order_politely(pool.server[chosen])], vrank)


def round_by_turns(shares: npt.NDArray[np.float64], cycle: int) -> Rows:
    """Whole numbers that are the shares on average over groups and over cycles: half a place is one in every second.

    What is added before rounding down spreads evenly over [0, 1), whichever cycles a block gets: multiples of
    irrational numbers do.
    """
    spread = np.arange(len(shares)) * GOLDEN + cycle * PLASTIC
    return np.floor(shares + spread % 1).astype(np.int64)


def count_fitting(group: Array, room: Rows) -> Rows:
    """How many candidates of each group fit into its room; `group` has the group of each candidate."""
    return np.minimum(np.bincount(group, minlength=len(room)), room)


def join_late(high: Array, key: npt.NDArray[np.uint64]) -> Late:
    """Numbers of 32 bits, then the upper half of keys: what is equal in both comes by the whole key."""
    return join_halves(high, key >> np.uint64(32))


def leave_out(which: Rows, taken: list[Rows]) -> Rows:
    return which[~np.isin(which, np.concatenate(taken))] if sum(map(len, taken)) else which


def take(
    which: Rows,
    late: Late,
    key: npt.NDArray[np.uint64],
    group: Array,
    is_revisit: npt.NDArray[np.bool_],
    places: Places,
    limit: int,
    taken: list[Rows],
) -> None:
    """Adds to `taken` the best of `which` (indexes) under the limits, at most `limit`; takes their places.

    `late` is of `which`. Batch by batch: only the best few are sorted, and what has no place any more is left out
    before the next batch.
    """
    limit = min(limit, places.all)
    batch_most = max(2 * limit, BATCH_LEAST)
    while limit > 0 and len(which):
        is_early = np.ones(len(which), bool)
        if len(which) > batch_most:
            is_early = late <= np.partition(late, batch_most)[batch_most]
        early = np.flatnonzero(is_early)
        early = early[np.lexsort((key[which[early]], late[early]))]
        found = take_batch(leave_out(which[early], taken), group, is_revisit, places, limit)
        taken.append(found)
        limit -= len(found)
        if limit > 0:
            may_revisit = places.revisits_of_group > 0 if places.revisits else np.zeros(len(places.of_group), bool)
            stays = ~is_early & (places.of_group[group[which]] > 0)
            stays &= ~is_revisit[which] | may_revisit[group[which]]
            which, late, batch_most = which[stays], late[stays], 2 * batch_most


def take_batch(batch: Rows, group: Array, is_revisit: npt.NDArray[np.bool_], places: Places, limit: int) -> Rows:
    """As take(), of candidates in their order. Once the places for revisits are taken, the others go on alone."""
    again = is_revisit[batch]
    stays = ~again
    stays[again] = fitting(group[batch[again]], places.revisits_of_group)
    batch = batch[stays]
    fits = fitting(group[batch], places.of_group)
    revisits = np.cumsum(fits & is_revisit[batch])
    if len(batch) and revisits[-1] > places.revisits:
        cut = int(np.searchsorted(revisits, places.revisits, "right"))  # the first revisit that has no place
        stays = np.concatenate([fits[:cut], ~is_revisit[batch[cut:]]])
        batch = batch[stays]
        fits = fitting(group[batch], places.of_group)
    found = batch[fits][:limit]
    places.all -= len(found)
    again = found[is_revisit[found]]
    places.revisits -= len(again)
    places.of_group -= np.bincount(group[found], minlength=len(places.of_group))
    places.revisits_of_group -= np.bincount(group[again], minlength=len(places.of_group))
    return found


def fitting(group: Array, room: Rows) -> npt.NDArray[np.bool_]:
    """Which of these candidates, in their order, find room in their group."""
    order = np.argsort(group, kind="stable")
    fits = np.empty(len(group), bool)
    fits[order] = rank_in_run(group[order]) < room[group[order]]
    return fits


def order_politely(server: Array) -> Rows:
    """Of URLs in their order: the k-th URL of every server before any (k + 1)-th, and among these the best first.

    So servers are spread evenly through the list, and a cycle that ends early has asked each for its best.
    """
    order = np.argsort(server, kind="stable")
    rank = np.empty(len(server), np.int64)
    rank[order] = rank_in_run(server[order])
    polite: Rows = np.argsort(rank, kind="stable")
    return polite
