"""The merge of a piece: uniqueness by sorted arrays, states by what happened; no I/O but reading, and no loop over URLs."""

from dataclasses import dataclass, field

import numpy as np

from contract.generation import COLUMNS, SIDE_COLUMNS, Generation
from contract.tables import COLLECTED_STATE, GIVEN_UP, PRESCHEDULED, REFUSED_BY_ROBOTS, REFUSED_BY_RULE, TAKEN, WAITING
from stages.verifier.arrived_links import Links
from stages.verifier.harvest import (
    HAPPENED_ANSWERED,
    HAPPENED_FAILED,
    HAPPENED_REFUSED,
    HAPPENED_REFUSED_BY_ROBOTS,
    Answers,
    Happened,
)
from stages.verifier.server_table import ServerTable
from storage.compiled import compiled
from storage.errors import Damaged
from storage.pairs import Runs, find_pairs, sort_pairs
from storage.weave import Weave

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
    places: np.ndarray  # row of the parent of each of them, counted from `start`
    new: np.ndarray  # which links are not; once judged, those that are granted
    before: np.ndarray  # row of the parent that each of those comes before, counted from `start`
    refused: np.ndarray  # which links a rule about their server refused
    new_servers: np.ndarray | None = None  # places of the servers of the new ones
    old_state: np.ndarray | None = None  # of the rows of the parent
    rows: dict[str, np.ndarray] = field(default_factory=dict)  # of the merged piece
    server_places: np.ndarray | None = None  # of its rows

    def old_at(self, places: np.ndarray) -> np.ndarray:
        """Where rows of the parent, counted from `start`, have gone in the merged piece."""
        return places + np.searchsorted(self.before, places, "right")

    def new_at(self) -> np.ndarray:
        """Where the new ones are in the merged piece."""
        return self.before + np.arange(len(self.before))


def find_known(parent: Generation, start: int, stop: int, links: Links) -> Piece:
    """Divides links into known and new: the uniqueness test itself."""
    runs = Runs(
        parent.domains.key, np.clip(parent.domains.first_row, start, stop) - start, parent.rows["key"][start:stop]
    )
    place, is_known = runs.search(links.domain_key, links.key)
    known, new = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    return Piece(parent, start, stop, runs, links, known, place[known], new, place[new], new[:0])


def merge_rows(
    piece: Piece, servers: ServerTable, segment_of_old: np.ndarray, own_segment: int, features: dict[str, np.ndarray]
) -> None:
    """Sets the columns of the merged piece; features are those of the new rows."""
    parent, links, which, new_places = piece.parent, piece.links, piece.new, piece.new_servers
    older = {name: parent.rows.read(name, piece.start, piece.stop) for name in COLUMNS}
    piece.old_state = older["state"].copy()
    if (segment_of_old != np.arange(len(segment_of_old))).any():
        older["segment"] = segment_of_old[older["segment"]]
    at = piece.places
    older["depth"][at] = np.minimum(older["depth"][at], links.depth[piece.known])
    for name, sums in links.sums.items():
        older[name][at] = add_up(older[name][at], sums[piece.known], COLUMNS[name])
    fresh = {
        "key": links.key[which],
        "server": new_places - servers.first_of_domain[new_places],
        "segment": own_segment,
        "state": WAITING,
        "depth": links.depth[which],
        **features,
        **{name: bound(sums[which], COLUMNS[name]) for name, sums in links.sums.items()},
    }

    weave = Weave(len(older["key"]), piece.before)

    def join(name: str, old: np.ndarray) -> np.ndarray:
        if name not in fresh and parent.rows.is_zero(name):
            return np.zeros(len(weave), old.dtype)  # of fresh memory, which is zero until it is written to
        return weave.join(old, fresh.get(name, NOTHING))

    piece.rows = {name: join(name, older.pop(name)) for name in COLUMNS}


def find_server_places(piece: Piece, servers: ServerTable) -> None:
    """Finds the servers of the merged rows: the runs of their domains are those of the parent's rows, longer by the new ones."""
    domains = servers.domains
    new_rows = np.bincount(
        np.searchsorted(domains.first_server, piece.new_servers, "right") - 1, minlength=len(domains.key)
    )
    old_rows = np.diff(np.clip(domains.first_row, piece.start, piece.stop))
    piece.server_places = np.empty(len(piece.rows["server"]), np.int32)
    wrong = number_servers(
        piece.rows["server"], np.append(0, np.cumsum(old_rows + new_rows)), domains.first_server, piece.server_places
    )
    if wrong:
        raise Damaged("server", f"expected numbers of the servers of each row's domain, found {wrong} others")


@compiled("u4[] i8[] i8[] i4[]")
def number_servers(within, starts, first_server, places):
    """Sets the place of the server of each row, which is counted within the domain that its run of rows is of. How many have none."""
    wrong = 0
    for domain in range(len(first_server) - 1):
        servers = first_server[domain + 1] - first_server[domain]
        for row in range(starts[domain], starts[domain + 1]):
            wrong += within[row] >= servers
            places[row] = first_server[domain] + within[row]
    return wrong


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
    found[there] = piece.old_at(place[there])
    if len(piece.new) and not there.all():
        elsewhere = find_pairs(
            domain_key[~there], key[~there], piece.links.domain_key[piece.new], piece.links.key[piece.new]
        )
        found[~there] = np.where(elsewhere >= 0, piece.new_at()[elsewhere], -1)
    return found


def apply_happened(piece: Piece, happened: Happened, attempts_max: int) -> None:
    """Sets state and attempts of the URLs that a list brought; a collected URL stays collected. What they gave away is taken from them."""
    rows = piece.rows
    where = locate(piece, happened.domain_key, happened.key)
    there = where >= 0
    where, code = where[there], happened.code[there]
    failed = where[code == HAPPENED_FAILED]
    rows["attempts"][failed] = np.minimum(rows["attempts"][failed], ATTEMPTS_MAX - 1) + 1
    rows["state"][where[code == HAPPENED_ANSWERED]] = COLLECTED_STATE
    set_uncollected(rows["state"], failed, WAITING)
    set_uncollected(rows["state"], failed[rows["attempts"][failed] >= attempts_max], GIVEN_UP)
    for happening, state in ((HAPPENED_REFUSED_BY_ROBOTS, REFUSED_BY_ROBOTS), (HAPPENED_REFUSED, REFUSED_BY_RULE)):
        set_uncollected(rows["state"], where[code == happening], state)
    for name in TAKEN:
        values, given = rows[name.removesuffix("_taken")], happened.taken[name][there]
        values[where] -= np.minimum(values[where], given)


def reconsider(piece: Piece, domain_key: np.ndarray, key: np.ndarray, revived: np.ndarray) -> int:
    """Takes back what was decided about these URLs, and the failures of all URLs of the servers that `revived` marks.

    `revived` is bool, by row number of the server. A refused URL stays refused unless it is named itself. Collected
    URLs stay as they are. Returns how many URLs changed.
    """
    state, attempts = piece.rows["state"], piece.rows["attempts"]
    where = locate(piece, domain_key, key)
    named = np.zeros(len(state), bool)
    named[where[where >= 0]] = True
    again = (named | revived[piece.server_places] if revived.any() else named) & (state != COLLECTED_STATE)
    waits = again & ((state == GIVEN_UP) | named & ((state == REFUSED_BY_ROBOTS) | (state == REFUSED_BY_RULE)))
    changed = waits | again & (attempts > 0)
    attempts[again] = 0
    state[waits] = WAITING
    return int(changed.sum())


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


def merge_side(
    piece: Piece, side_start: int, answers: Answers, cycle: int, duplicate: np.ndarray
) -> tuple[dict[str, np.ndarray], int]:
    """The side set of the piece with this cycle's answers, which replace earlier ones, and where the parent's rows from `side_start` on that it took end."""
    was = piece.old_at(np.flatnonzero(piece.old_state == COLLECTED_STATE))
    side_stop = side_start + len(was)
    where = locate(piece, answers.domain_key, answers.key)
    state = piece.rows["state"]
    if (where < 0).any() or (state[where] != COLLECTED_STATE).any() or (where[1:] <= where[:-1]).any():
        raise Damaged(
            "MetadadosUrlsColetadas", "expected answers to URLs of UrlsColetadas, each once and in order, found others"
        )
    if side_stop > piece.parent.side.rows:
        raise Damaged("state", f"expected {piece.parent.side.rows} URLs that were collected before, found more")
    before = np.searchsorted(was, where)
    is_again = np.zeros(len(where), bool)
    within = before < len(was)
    is_again[within] = was[before[within]] == where[within]
    lacking = int(np.count_nonzero(state == COLLECTED_STATE)) - len(was) - int((~is_again).sum())
    if lacking:
        raise Damaged("UrlsColetadas", f"expected metadata of each answer, found {lacking} without")
    weave, columns = Weave(len(was), before[~is_again]), {}
    fresh = {
        "cycle": cycle,
        "row": answers.row,
        "fetched_at_ms": answers.fetched_at_ms,
        "content_digest": answers.content_digest,
        "duplicate": duplicate,
    }
    for name in SIDE_COLUMNS:
        old, new = piece.parent.side.read(name, side_start, side_stop), np.broadcast_to(fresh[name], len(where))
        if is_again.any():
            old = np.array(old)
            old[before[is_again]] = new[is_again]
        columns[name] = weave.join(old, new[~is_again])
    return columns, side_stop


def find_duplicates(parent: Generation, answers: Answers) -> np.ndarray:
    """Which answers have the content of one collected earlier in the block, or of another of now that comes before it; bool.

    A URL that is answered again with the same content counts too.
    """
    halves = np.ascontiguousarray(answers.content_digest).view("u8").reshape(-1, 2)
    order, first, second = sort_pairs(halves[:, 0].copy(), halves[:, 1].copy())
    is_first = np.ones(len(order), bool)
    is_first[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    distinct_first, distinct_second = first[is_first], second[is_first]
    was_there = np.zeros(len(distinct_first), bool)
    may_be = np.zeros(
        1 << _HEAD_BITS, bool
    )  # whether some answer's digest begins so: of the many digests of a block, most need no search then
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
    states = piece.old_state[piece.places]
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
