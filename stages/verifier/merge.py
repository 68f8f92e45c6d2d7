"""The merge of a turn: uniqueness by sorted arrays, states by what happened; no I/O and no loop over URLs."""

import numpy as np

from contract.generation import COLUMNS
from contract.tables import COLLECTED_STATE, GIVEN_UP, REFUSED_BY_ROBOTS, REFUSED_BY_RULE, WAITING
from stages.verifier.incoming import (
    HAPPENED_ANSWERED, HAPPENED_FAILED, HAPPENED_REFUSED, HAPPENED_REFUSED_BY_ROBOTS, Happened, Links,
)
from storage.arrays import find_in_sorted, interleave, merge_sorted

LINKS_IN_MAX = np.uint64(0xFFFFFFFF)


def split_known(parent_keys: np.ndarray, links: Links) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(which links are known, where in the parent, which are new): indices; the uniqueness test itself."""
    known, places = find_in_sorted(links.key, parent_keys)
    new = np.ones(len(links.key), bool)
    new[known] = False
    return known, places, np.flatnonzero(new)


def merge_rows(parent: dict, links: Links, known, places, new, server_of_parent, server_of_new) -> tuple[dict, np.ndarray]:
    """Columns of the merged generation, sorted by key, and a mask of the new rows; text of new rows is not yet set."""
    older = {name: np.array(column) for name, column in parent.items()}
    older["server"] = server_of_parent[older["server"]].astype(COLUMNS["server"]) if len(older["server"]) else older["server"]
    older["depth"][places] = np.minimum(older["depth"][places], links.depth[known])
    sums = older["links_in"][places].astype(np.uint64) + links.links_in[known]
    older["links_in"][places] = np.minimum(sums, LINKS_IN_MAX)
    fresh = {
        "server": server_of_new.astype(COLUMNS["server"]),
        "text": np.zeros(len(new), COLUMNS["text"]),
        "state": np.full(len(new), WAITING, COLUMNS["state"]),
        "attempts": np.zeros(len(new), COLUMNS["attempts"]),
        "depth": links.depth[new].astype(COLUMNS["depth"]),
        "links_in": np.minimum(links.links_in[new], LINKS_IN_MAX).astype(COLUMNS["links_in"]),
    }
    keys, older_places, new_places = merge_sorted(older.pop("key"), links.key[new])
    rows = {name: interleave(older[name], fresh[name], older_places, new_places) for name in fresh}
    is_new = np.zeros(len(keys), bool)
    is_new[new_places] = True
    return {"key": keys, **rows}, is_new


def apply_happened(rows: dict, happened: Happened, attempts_max: int) -> None:
    """Sets state and attempts of the URLs that a list brought; a collected URL stays collected."""
    where = np.searchsorted(rows["key"], happened.key)
    there = where < len(rows["key"])
    there[there] = rows["key"][where[there]] == happened.key[there]
    where, code = where[there], happened.code[there]

    failed = where[code == HAPPENED_FAILED]
    attempts = rows["attempts"].astype(np.uint32)
    np.add.at(attempts, failed, 1)
    rows["attempts"] = np.minimum(attempts, 255).astype(rows["attempts"].dtype)
    rows["state"][where[code == HAPPENED_ANSWERED]] = COLLECTED_STATE

    for happening, state in ((HAPPENED_REFUSED_BY_ROBOTS, REFUSED_BY_ROBOTS), (HAPPENED_REFUSED, REFUSED_BY_RULE)):
        set_uncollected(rows["state"], where[code == happening], state)
    set_uncollected(rows["state"], failed, WAITING)
    set_uncollected(rows["state"], failed[rows["attempts"][failed] >= attempts_max], GIVEN_UP)


def set_uncollected(state: np.ndarray, where: np.ndarray, value: int) -> None:
    state[where[state[where] != COLLECTED_STATE]] = value


def merge_side(parent: dict, key, cycle: int, row, fetched_at_ms, content_digest) -> dict:
    """The side set of collected URLs with this cycle's answers, which replace earlier ones; keys sorted, unique."""
    order = np.argsort(key, kind="stable")
    fresh = {
        "cycle": np.full(len(key), cycle, "u4"), "row": row[order].astype("u4"),
        "fetched_at_ms": fetched_at_ms[order], "content_digest": content_digest[order],
    }
    key = key[order]
    _, replaced = find_in_sorted(key, parent["key"])
    stay = np.ones(len(parent["key"]), bool)
    stay[replaced] = False
    keys, older_places, new_places = merge_sorted(parent["key"][stay], key)
    columns = {name: interleave(np.asarray(parent[name])[stay], fresh[name], older_places, new_places) for name in fresh}
    return {"key": keys, **columns}


def count_sets(parent_states, links: Links, known, places, new, answered_keys) -> dict[str, int]:
    """The four sets of the thesis, over rows that came by links and seeds, and the new URLs of foreign lists."""
    linked = links.linked[known]
    collected_before = parent_states[places] == COLLECTED_STATE
    collected_now = np.isin(links.key[known], answered_keys) & ~collected_before
    distinct = int(links.linked.sum())
    return {
        "rows_merged": links.rows,
        "repeated": links.rows - distinct,
        "already_collected": int((linked & collected_before).sum()),
        "collected_now": int((linked & collected_now).sum()),
        "known_uncollected": int((linked & ~collected_before & ~collected_now).sum()),
        "new": int(links.linked[new].sum()),
        "foreign_new": int((~links.linked[new]).sum()),
    }
