"""The merge of a piece: uniqueness by sorted arrays, states by what happened.

No I/O but reading, and no loop over URLs. `piece_merge.py` runs these functions in their order.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from contract.accumulators import ACCUMULATORS, SHARED_NAMES
from contract.config import Revisit
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
from stages.verifier.preparation import Preparation
from stages.verifier.server_table import ServerTable
from stages.verifier.visits import first_visits, judge_claims, miss, visit_again
from storage.arrays import bound
from storage.errors import Damaged
from storage.pairs import Runs, find_pairs, sort_pairs
from storage.weave import Weave

ATTEMPTS_MAX = 255  # of the u8 column
LASTMOD = "lastmod_s"
NOTHING = 0  # value of a new row in a column that has no information yet
_HEAD_BITS = 21  # 2 MB of flags: twenty for each of 100,000 answers
_HEAD_SHIFT = np.uint64(64 - _HEAD_BITS)


@dataclass(frozen=True)
class Match:
    """Rows [start, stop) of the parent generation, and where the links of a piece lie among them.

    Parent rows are counted from `start`. The merged piece has the parent's rows with the new ones among them.
    """

    parent: Generation
    start: int
    stop: int
    runs: Runs  # these rows, to be searched by their keys
    links: Links
    known: np.ndarray  # numbers of the links that are known
    known_rows: np.ndarray  # parent row of each of those
    new: np.ndarray  # numbers of the links that are not known, without refused ones
    before: np.ndarray  # the parent row that each new one comes before
    refused: np.ndarray  # numbers of the links that a rule about their server refused

    def grant(self, granted: np.ndarray, refused: np.ndarray) -> "Match":
        """The same where only some of the new links, given by their index in `new`, become rows."""
        return replace(self, new=self.new[granted], before=self.before[granted], refused=self.new[refused])

    def move_old(self, rows: np.ndarray) -> np.ndarray:
        """Row numbers in the merged piece of rows of the parent."""
        return rows + np.searchsorted(self.before, rows, "right")

    def new_rows(self) -> np.ndarray:
        """Row numbers in the merged piece of the new links."""
        return self.before + np.arange(len(self.before))

    def locate(self, domain_key: np.ndarray, key: np.ndarray) -> np.ndarray:
        """Row numbers in the merged piece of URLs; -1 where they are not there."""
        row, there = self.runs.search(domain_key, key)
        found = np.full(len(key), -1, np.int64)
        found[there] = self.move_old(row[there])
        if len(self.new) and not there.all():
            among_new = find_pairs(
                domain_key[~there], key[~there], self.links.domain_key[self.new], self.links.key[self.new]
            )
            found[~there] = np.where(among_new >= 0, self.new_rows()[among_new], -1)
        return found


@dataclass(frozen=True)
class JudgedClaims:
    """Claims of sitemaps that a page has changed, which visits have tested."""

    row: np.ndarray  # of the page in the merged piece
    is_true: np.ndarray


def find_known(parent: Generation, start: int, stop: int, links: Links) -> Match:
    """Divides links into known and new: the uniqueness test itself."""
    runs = Runs(
        parent.domains.key, np.clip(parent.domains.first_row, start, stop) - start, parent.rows["key"][start:stop]
    )
    row, is_known = runs.search(links.domain_key, links.key)
    known, new = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    return Match(parent, start, stop, runs, links, known, row[known], new, row[new], refused=new[:0])


def merge_rows(
    match: Match,
    new_servers: np.ndarray,
    servers: ServerTable,
    segment_of_old: np.ndarray,
    own_segment: int,
    features: dict[str, np.ndarray],
    preparation: Preparation,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """(columns of the merged piece, old states of the parent's rows); `new_servers`: index of each new row's server."""
    parent, links, which = match.parent, match.links, match.new
    older = {name: preparation.read(parent, name, match.start, match.stop) for name in COLUMNS}
    old_state = older["state"].copy()
    if (segment_of_old != np.arange(len(segment_of_old))).any():
        older["segment"] = segment_of_old[older["segment"]]
    at = match.known_rows
    older["depth"][at] = np.minimum(older["depth"][at], links.depth[match.known])
    for one in ACCUMULATORS:
        if one.name in links.brought:
            older[one.name][at] = one.join(older[one.name][at], links.brought[one.name][match.known])
    fresh = {
        "key": links.key[which],
        "server": new_servers - servers.first_of_domain[new_servers],
        "segment": own_segment,
        "state": WAITING,
        "depth": links.depth[which],
        **features,
        **{name: bound(values[which], COLUMNS[name]) for name, values in links.brought.items()},
    }
    weave = Weave(len(older["key"]), match.before)

    def join(name: str, old: np.ndarray) -> np.ndarray:
        if name not in fresh and name not in preparation.columns and parent.rows.is_zero(name):
            return np.zeros(len(weave), old.dtype)  # of fresh memory, which is zero until it is written to
        return weave.join(old, fresh.get(name, NOTHING))

    return {name: join(name, older.pop(name)) for name in COLUMNS}, old_state


def index_servers(match: Match, new_servers: np.ndarray, within: np.ndarray, servers: ServerTable) -> np.ndarray:
    """Index in the table of servers of each merged row's server, i32; `within` is its number within its domain.

    The runs of rows of a domain are those of the parent, longer by the new rows.
    """
    domains = servers.domains
    new_rows = np.bincount(np.searchsorted(domains.first_server, new_servers, "right") - 1, minlength=len(domains.key))
    old_rows = np.diff(np.clip(domains.first_row, match.start, match.stop))
    rows = old_rows + new_rows
    wrong = np.count_nonzero(within >= np.repeat(np.diff(domains.first_server).astype(np.uint32), rows))
    if wrong:
        raise Damaged("server", f"expected numbers of the servers of each row's domain, found {wrong} others")
    server_index = np.repeat(domains.first_server[:-1].astype(np.int32), rows)
    return np.add(server_index, within, out=server_index, casting="unsafe")


def apply_happened(match: Match, rows: dict[str, np.ndarray], happened: Happened, attempts_max: int) -> None:
    """Sets state and attempts of the URLs that a list brought, and subtracts what they gave away.

    A collected URL stays collected.
    """
    where = match.locate(happened.domain_key, happened.key)
    there = where >= 0
    where, code = where[there], happened.code[there]
    failed = where[code == HAPPENED_FAILED]
    rows["attempts"][failed] = np.minimum(rows["attempts"][failed], ATTEMPTS_MAX - 1) + 1
    rows["state"][where[code == HAPPENED_ANSWERED]] = COLLECTED_STATE
    set_uncollected(rows["state"], failed, WAITING)
    set_uncollected(rows["state"], failed[rows["attempts"][failed] >= attempts_max], GIVEN_UP)
    for happening, state in ((HAPPENED_REFUSED_BY_ROBOTS, REFUSED_BY_ROBOTS), (HAPPENED_REFUSED, REFUSED_BY_RULE)):
        set_uncollected(rows["state"], where[code == happening], state)
    for name, taken in zip(SHARED_NAMES, TAKEN):
        values, given = rows[name], happened.taken[taken][there]
        values[where] -= np.minimum(values[where], given)


def reconsider(
    match: Match,
    rows: dict[str, np.ndarray],
    server_index: np.ndarray,
    domain_key: np.ndarray,
    key: np.ndarray,
    revived: np.ndarray,
) -> int:
    """Takes back what was decided about these URLs, and the failures of all URLs of the servers that `revived` marks.

    `revived` is bool, by index of the server. A refused URL stays refused unless it is named itself. Collected
    URLs stay as they are. Returns how many URLs changed.
    """
    state, attempts = rows["state"], rows["attempts"]
    where = match.locate(domain_key, key)
    named = np.zeros(len(state), bool)
    named[where[where >= 0]] = True
    again = (named | revived[server_index] if revived.any() else named) & (state != COLLECTED_STATE)
    waits = again & ((state == GIVEN_UP) | named & ((state == REFUSED_BY_ROBOTS) | (state == REFUSED_BY_RULE)))
    changed = waits | again & (attempts > 0)
    attempts[again] = 0
    state[waits] = WAITING
    return int(changed.sum())


def set_uncollected(state: np.ndarray, where: np.ndarray, value: int) -> None:
    state[where[state[where] != COLLECTED_STATE]] = value


def apply_servers(
    state: np.ndarray, server_index: np.ndarray, servers: ServerTable, changed_robots: np.ndarray
) -> None:
    """URLs that robots.txt refused wait again where those rules changed; no URL of a given-up server waits."""
    if len(changed_robots):
        changed = np.zeros(len(servers), bool)
        changed[changed_robots] = True
        state[(state == REFUSED_BY_ROBOTS) & changed[server_index]] = WAITING
    if servers["given_up"].any():
        hopeless = servers["given_up"].astype(bool)[server_index]
        state[hopeless & ((state == WAITING) | (state == PRESCHEDULED))] = GIVEN_UP


def close_rows(state: np.ndarray, server_index: np.ndarray, closed: np.ndarray) -> None:
    """No URL of a closed domain waits, a new one neither; `closed` is bool, by index of the server."""
    state[closed[server_index] & ((state == WAITING) | (state == PRESCHEDULED))] = REFUSED_BY_RULE


def merge_side(
    match: Match,
    old_state: np.ndarray,
    state: np.ndarray,
    side_start: int,
    answers: Answers,
    happened: Happened,
    duplicate: np.ndarray,
    cycle: int,
    config: Revisit,
) -> tuple[dict[str, np.ndarray], int, Counter[str], JudgedClaims]:
    """(side set of the piece, end of the parent's side rows from `side_start` on that are in it, counts, claims).

    Answers to collected pages are visits; what else happened to such a page is a visit that missed it.
    """
    parent = match.parent
    was = match.move_old(np.flatnonzero(old_state == COLLECTED_STATE))
    side_stop = side_start + len(was)
    where = match.locate(answers.domain_key, answers.key)
    if (where < 0).any() or (state[where] != COLLECTED_STATE).any() or (where[1:] <= where[:-1]).any():
        raise Damaged(
            "MetadadosUrlsColetadas", "expected answers to URLs of UrlsColetadas, each once and in order, found others"
        )
    if side_stop > parent.side.rows:
        raise Damaged("state", f"expected {parent.side.rows} URLs that were collected before, found more")
    before, is_again = find_rows(where, was)
    lacking = int(np.count_nonzero(state == COLLECTED_STATE)) - len(was) - int((~is_again).sum())
    if lacking:
        raise Damaged("UrlsColetadas", f"expected metadata of each answer, found {lacking} without")
    failed = happened.code != HAPPENED_ANSWERED
    missed, is_missed = find_rows(match.locate(happened.domain_key[failed], happened.key[failed]), was)
    side = {name: parent.side.read(name, side_start, side_stop) for name in SIDE_COLUMNS}
    counts, is_visited = Counter(duplicates=int(duplicate[~is_again].sum())), bool(is_again.any() or is_missed.any())
    claims = JudgedClaims(before[:0], is_again[:0])
    if is_visited:
        visited, answered = before[is_again], answers.take(is_again)
        if not parent.rows.is_zero(LASTMOD):
            was_collected = old_state == COLLECTED_STATE
            lastmod_s = parent.rows.read(LASTMOD, match.start, match.stop)[was_collected][visited]
            is_tested, is_true = judge_claims(side, visited, answered, lastmod_s)
            claims = JudgedClaims(where[is_again][is_tested], is_true[is_tested])
        side = {name: np.array(values) if not values.flags.writeable else values for name, values in side.items()}
        counts += visit_again(side, visited, answered, duplicate[is_again], cycle, config)
        counts += miss(side, missed[is_missed], happened.at_ms[failed][is_missed])
    weave = Weave(len(was), before[~is_again])
    fresh = first_visits(answers.take(~is_again), duplicate[~is_again], cycle)

    def join(name: str, old: np.ndarray) -> np.ndarray:
        if name not in fresh and parent.side.is_zero(name) and not is_visited:
            return np.zeros(len(weave), old.dtype)
        return weave.join(old, fresh.get(name, NOTHING))

    return {name: join(name, side.pop(name)) for name in SIDE_COLUMNS}, side_stop, counts, claims


def find_rows(wanted: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the first row of `among`, which rises, that is not below each value, whether it is that value)."""
    row = np.searchsorted(among, wanted)
    is_there = np.zeros(len(wanted), bool)
    within = row < len(among)
    is_there[within] = among[row[within]] == wanted[within]
    return row, is_there


def find_duplicates(parent: Generation, answers: Answers) -> np.ndarray:
    """Which answers have the content of an earlier one, of the block or of this cycle; bool.

    A page that is answered again with its own content is marked too; visit_again() takes that back.
    """
    halves = np.ascontiguousarray(answers.content_digest).view("u8").reshape(-1, 2)
    order, first, second = sort_pairs(halves[:, 0].copy(), halves[:, 1].copy())
    is_first = np.ones(len(order), bool)
    is_first[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    distinct_first, distinct_second = first[is_first], second[is_first]
    was_there = np.zeros(len(distinct_first), bool)
    # Whether some answer's digest begins so: most of the many digests of a block then need no search.
    may_be = np.zeros(1 << _HEAD_BITS, bool)
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


def count_sets(match: Match, old_state: np.ndarray, answered: Answers) -> dict[str, int]:
    """The four sets of the thesis, over rows that came by links and seeds; and new URLs of lists that are not ours."""
    links = match.links
    states = old_state[match.known_rows]
    linked = links.linked[match.known]
    collected_before = states == COLLECTED_STATE
    now = find_pairs(links.domain_key[match.known], links.key[match.known], answered.domain_key, answered.key) >= 0
    collected_now = now & ~collected_before
    new = links.linked[match.new]
    return {
        "rows_merged": links.rows,
        "repeated": links.rows - int(links.linked.sum()),
        "already_collected": int((linked & collected_before).sum()),
        "collected_now": int((linked & collected_now).sum()),
        "known_uncollected": int((linked & ~collected_before & ~collected_now).sum()),
        "new": int(new.sum()),
        "foreign_new": int((~new).sum()),
        "refused_linked": int(links.linked[match.refused].sum()),
    }
