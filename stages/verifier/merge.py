"""The merge of a piece: uniqueness by sorted arrays, states by what happened; no I/O but reading, and no loop over URLs."""

from dataclasses import dataclass, field

import numpy as np

from contract.accumulators import ACCUMULATORS
from contract.generation import COLUMNS, SIDE_COLUMNS, Generation
from contract.tables import COLLECTED_STATE, GIVEN_UP, PRESCHEDULED, REFUSED_BY_ROBOTS, REFUSED_BY_RULE, TAKEN, WAITING
from stages.verifier.harvest import (
    HAPPENED_ANSWERED, HAPPENED_FAILED, HAPPENED_REFUSED, HAPPENED_REFUSED_BY_ROBOTS, Answers, Happened,
)
from stages.verifier.links import Links
from stages.verifier.servers import ServerTable
from storage.errors import Damaged
from storage.pairs import Runs, find_pairs, sort_pairs

ATTEMPTS_MAX = 255  # of the u8 column
NOTHING = 0  # what a new row has in a column that nothing is known of yet
_HEAD_BITS = 21  # 2 MB of flags: twenty for each of 100,000 answers
_HEAD_SHIFT = np.uint64(64 - _HEAD_BITS)


@dataclass
class Piece:
    """Rows [start, stop) of the parent generation, and where arrived URLs lie among them."""

    parent: Generation
    start: int
    stop: int
    runs: Runs  # these rows, to be searched by their keys
    links: Links
    known: np.ndarray  # which links are known
    places: np.ndarray  # row of the parent of each of them
    new: np.ndarray  # which links are not; once judged, those that are granted
    before: np.ndarray  # row of the parent that each of those comes before
    refused: np.ndarray  # which links a rule about their server refused
    new_servers: np.ndarray | None = None  # places of the servers of the new ones
    rows: dict[str, np.ndarray] = field(default_factory=dict)  # of the merged piece
    server_places: np.ndarray | None = None  # of its rows
    old_at: np.ndarray | None = None  # where the parent's rows have gone
    new_at: np.ndarray | None = None  # and the new ones


def find_known(parent: Generation, start: int, stop: int, links: Links) -> Piece:
    """Divides links into known and new: the uniqueness test itself."""
    runs = Runs(parent.domains.key, np.clip(parent.domains.first_row, start, stop) - start, parent.rows["key"][start:stop])
    place, is_known = runs.search(links.domain_key, links.key)
    known, new = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    place += start
    return Piece(parent, start, stop, runs, links, known, place[known], new, place[new], new[:0])


def place_rows(piece: Piece) -> None:
    """Finds where the parent's rows and the new ones go in the merged piece."""
    is_old = np.ones(piece.stop - piece.start + len(piece.new), bool)
    piece.new_at = piece.before - piece.start + np.arange(len(piece.new))
    is_old[piece.new_at] = False
    piece.old_at = np.flatnonzero(is_old)


def merge_rows(piece: Piece, servers: ServerTable, segment_of_old: np.ndarray, own_segment: int, features: dict[str, np.ndarray]) -> None:
    """Sets the columns of the merged piece, once its rows have their places; features are those of the new rows."""
    parent, links = piece.parent, piece.links
    older = {name: parent.rows.read(name, piece.start, piece.stop) for name in COLUMNS}
    old_places = servers.place_of_old[parent.server_places(older["server"], piece.start)] if len(older["key"]) else np.empty(0, np.int64)
    older["segment"] = segment_of_old[older["segment"]]
    at = piece.places - piece.start
    older["depth"][at] = np.minimum(older["depth"][at], links.depth[piece.known])
    brought = {name for name, sums in links.sums.items() if sums.any()}
    for accumulator in ACCUMULATORS:
        values = older[accumulator.name]
        if accumulator.name in brought:
            values[at] = add_up(values[at], links.sums[accumulator.name][piece.known], accumulator.dtype)
    which = piece.new
    new_places = piece.new_servers
    fresh = {
        "key": links.key[which], "server": new_places - servers.first_of_domain[new_places], "segment": own_segment, "state": WAITING,
        "depth": links.depth[which], **features,
        **{accumulator.name: bound(links.sums[accumulator.name][which], accumulator.dtype) for accumulator in ACCUMULATORS if accumulator.name in brought},
    }
    source = np.empty(len(piece.old_at) + len(which), np.int64)  # of each merged row, its place in the old ones with the new ones behind
    source[piece.old_at] = np.arange(len(piece.old_at))
    source[piece.new_at] = np.arange(len(piece.old_at), len(source))
    scratch = np.empty(len(source), np.uint64)

    def interleave(old: np.ndarray, new: np.ndarray | int) -> np.ndarray:
        if not len(which):
            return old
        if new is NOTHING and not old.any():
            return np.zeros(len(source), old.dtype)
        both = scratch.view(old.dtype)[:len(source)]
        both[:len(old)], both[len(old):] = old, new
        return both.take(source)  # half the time of writing both to their places

    piece.rows = {name: interleave(older.pop(name), fresh.get(name, NOTHING)) for name in COLUMNS}
    piece.server_places = interleave(old_places, new_places)


def bound(values: np.ndarray, dtype: str) -> np.ndarray:
    """u64 values, at most the largest of a type, in that type."""
    return np.minimum(values, np.uint64(np.iinfo(dtype).max)).astype(dtype)


def add_up(values: np.ndarray, more: np.ndarray, dtype: str) -> np.ndarray:
    """Sums that stay at the largest value of their type; `more` is u64."""
    most = np.uint64(np.iinfo(dtype).max)
    values = values.astype(np.uint64)
    room = most - values
    return np.where(more > room, most, values + more).astype(dtype)


def locate(piece: Piece, domain_key: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Where URLs lie in the merged piece; -1 where they are not there."""
    place, there = piece.runs.search(domain_key, key)
    found = np.full(len(key), -1, np.int64)
    found[there] = piece.old_at[place[there]]
    if len(piece.new) and not there.all():
        elsewhere = find_pairs(domain_key[~there], key[~there], piece.links.domain_key[piece.new], piece.links.key[piece.new])
        found[~there] = np.where(elsewhere >= 0, piece.new_at[elsewhere], -1)
    return found


def apply_happened(piece: Piece, happened: Happened, attempts_max: int) -> None:
    """Sets state and attempts of the URLs that a list brought; a collected URL stays collected. What they gave away is taken from them."""
    rows = piece.rows
    where = locate(piece, happened.domain_key, happened.key)
    there = where >= 0
    where, code = where[there], happened.code[there]
    failed = where[code == HAPPENED_FAILED]
    times = np.bincount(failed, minlength=0)
    again = np.flatnonzero(times)
    rows["attempts"][again] = np.minimum(rows["attempts"][again].astype(np.int64) + times[again], ATTEMPTS_MAX)
    rows["state"][where[code == HAPPENED_ANSWERED]] = COLLECTED_STATE
    # An abandoned list failed before this cycle asked: what the cycle was told comes after it.
    set_uncollected(rows["state"], failed, WAITING)
    set_uncollected(rows["state"], failed[rows["attempts"][failed] >= attempts_max], GIVEN_UP)
    for happening, state in ((HAPPENED_REFUSED_BY_ROBOTS, REFUSED_BY_ROBOTS), (HAPPENED_REFUSED, REFUSED_BY_RULE)):
        set_uncollected(rows["state"], where[code == happening], state)
    for name in TAKEN:
        values, given = rows[name.removesuffix("_taken")], happened.taken[name][there]
        giving = given > 0  # a URL is there once more for each abandoned list, which gave nothing: its row must not be written back
        values[where[giving]] -= np.minimum(values[where[giving]], given[giving])


def set_uncollected(state: np.ndarray, where: np.ndarray, value: int) -> None:
    state[where[state[where] != COLLECTED_STATE]] = value


def apply_servers(piece: Piece, servers: ServerTable, changed_robots: np.ndarray) -> None:
    """URLs that robots.txt refused wait again where the rules of their server changed, and none of a server that is given up waits."""
    state = piece.rows["state"]
    if len(changed_robots):
        changed = np.zeros(len(servers), bool)
        changed[changed_robots] = True
        state[(state == REFUSED_BY_ROBOTS) & changed[piece.server_places]] = WAITING
    if servers["given_up"].any():
        hopeless = servers["given_up"].astype(bool)[piece.server_places]
        state[hopeless & ((state == WAITING) | (state == PRESCHEDULED))] = GIVEN_UP


def merge_side(piece: Piece, side_start: int, answers: Answers, cycle: int, duplicate: np.ndarray) -> tuple[dict[str, np.ndarray], int]:
    """The side set of the piece with this cycle's answers, which replace earlier ones, and how many rows of the parent's it took from `side_start` on."""
    parent = piece.parent
    was = piece.old_at[np.flatnonzero(parent.rows.read("state", piece.start, piece.stop) == COLLECTED_STATE)]
    side_stop = side_start + len(was)
    where = locate(piece, answers.domain_key, answers.key)
    is_collected = piece.rows["state"] == COLLECTED_STATE
    number = np.cumsum(is_collected) - 1
    covered = np.zeros(int(is_collected.sum()), bool)
    covered[number[was]] = True
    if (where < 0).any() or not is_collected[where].all():
        raise Damaged("MetadadosUrlsColetadas", "expected answers to URLs of UrlsColetadas, found others")
    covered[number[where]] = True
    if not covered.all():
        raise Damaged("UrlsColetadas", f"expected metadata of each answer, found {int((~covered).sum())} without")
    columns = {}
    fresh = {"cycle": cycle, "row": answers.row, "fetched_at_ms": answers.fetched_at_ms, "content_digest": answers.content_digest, "duplicate": duplicate}
    for name, dtype in SIDE_COLUMNS.items():
        columns[name] = np.zeros(len(covered), dtype)
        columns[name][number[was]] = parent.side.read(name, side_start, side_stop)
        columns[name][number[where]] = fresh[name]
    return columns, side_stop


def find_duplicates(parent: Generation, answers: Answers) -> np.ndarray:
    """Which answers have the content of one collected earlier in the block, or of another of now that comes before it; bool.

    A URL that is answered again with the same content counts too.
    """
    halves = np.ascontiguousarray(answers.content_digest).view("u8").reshape(-1, 2)
    order, first, second = sort_pairs(halves[:, 0], halves[:, 1], 0)
    is_first = np.ones(len(order), bool)
    is_first[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    distinct_first, distinct_second = first[is_first], second[is_first]
    was_there = np.zeros(len(distinct_first), bool)
    may_be = np.zeros(1 << _HEAD_BITS, bool)  # whether some answer's digest begins so: of the many digests of a block, most need no search then
    may_be[distinct_first >> _HEAD_SHIFT] = True
    for start in range(0, parent.side.rows, 1 << 20):
        digests = parent.side.read("content_digest", start, min(start + (1 << 20), parent.side.rows))
        theirs = np.ascontiguousarray(digests).view("u8").reshape(-1, 2)
        theirs = theirs[may_be[theirs[:, 0] >> _HEAD_SHIFT]]
        found = find_pairs(theirs[:, 0], theirs[:, 1], distinct_first, distinct_second)
        was_there[found[found >= 0]] = True
    repeated = np.empty(len(order), bool)
    repeated[order] = ~is_first | was_there[np.cumsum(is_first) - 1]
    return repeated & halves.any(axis=1)  # UNKNOWN_DIGEST is all zeros


def count_sets(piece: Piece, answered: Answers) -> dict[str, int]:
    """The four sets of the thesis, over rows that came by links and seeds, and the new URLs of foreign lists."""
    links = piece.links
    states = piece.parent.rows.read("state", piece.start, piece.stop)[piece.places - piece.start]
    linked = links.linked[piece.known]
    collected_before = states == COLLECTED_STATE
    now = find_pairs(links.domain_key[piece.known], links.key[piece.known], answered.domain_key, answered.key) >= 0
    collected_now = now & ~collected_before
    new = links.linked[piece.new]
    return {
        "rows_merged": links.rows,
        "repeated": links.rows - int(links.linked.sum()),
        "already_collected": int((linked & collected_before).sum()),
        "collected_now": int((linked & collected_now).sum()),
        "known_uncollected": int((linked & ~collected_before & ~collected_now).sum()),
        "new": int(new.sum()),
        "foreign_new": int((~new).sum()),
        "refused_linked": int(links.linked[piece.refused].sum()),
    }
