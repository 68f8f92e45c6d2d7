"""Rules that need a whole server in view, judged on the new URLs of a merge: prefixes and queries without end, budgets.

Where a rule has room for some only, URLs nearest to a seed go first: by depth, then by key. The order in which rows
arrive makes no difference. Queries are judged first, then folders, then trees, then the budgets, each on what the ones
before it left, so that a trap does not use up the budget of the rest.

    kind    counts the URLs               by                       at most                   refused as
    QUERY   with a query                  path                     query_max_urls            query
    FOLDER  with two segments and more    folder: the segments     prefix_max_urls           path_prefix
                                          before the last, the
                                          first two of them
    TREE    with three segments and more  first segment            TREE_TIMES as many        path_prefix

So /a/b/c/d counts in the folder /a/b and the tree /a, and /a/b in the folder /a alone. / and /a, where most sites keep
their own pages, count in none: the budget of the server bounds them. The tree catches what has no end in its second
segment.

Before all that, servers are judged that the block does not have yet: domain_max_servers and servers_max. URLs of a
refused server are refused with it, and it gets no row in the table of servers. Last come the rules of [[budget]].
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contract.tables import SERVER_RULES
from contract.url_paths import hash_texts, locate_paths
from stages.verifier.prefixes import FOLDER, QUERY, TREE, Groups, Prefixes, add_granted, group_rows
from storage.arrays import rank_in_run

RULES = SERVER_RULES
GRANTED, SERVER_BUDGET, DOMAIN_BUDGET, PATH_PREFIX, QUERY_PATHS, DOMAIN_SERVERS, SERVERS_BUDGET, RULE_BUDGET = range(
    len(RULES)
)
# /artigos has the pages of many years in /artigos/2020 and its like; a trap that branches exceeds this all the same.
TREE_TIMES = 8
UNLIMITED = 1 << 53


@dataclass(frozen=True)
class Limits:
    """Of each maximum 0 means no limit: the rule then neither counts nor forgets."""

    server_max_urls: int  # that a server may know
    domain_max_urls: int  # that the servers of a domain may know together
    prefix_from_urls: int  # servers that know fewer, these rows included, are not watched for prefixes and queries
    prefix_max_urls: int
    query_max_urls: int
    domain_max_servers: int = 0  # that a domain may have in the table of servers
    servers_max: int = 0  # that the block may have there
    rule_max_urls: tuple[int, ...] = ()  # of each rule of [[budget]]; here 0 means none


@dataclass
class NewRows:
    """URLs that the block did not know; all of one length, keys unique, in any order."""

    server: np.ndarray  # u32, index in the merged table of servers
    key: np.ndarray  # u64
    depth: np.ndarray  # u8
    urls: pa.Array | pa.ChunkedArray  # canonical, with or without newlines
    budget: np.ndarray | None = None  # u8, number of the rule of [[budget]] that each falls under, 0 for none


def judge_new(
    rows: NewRows,
    known_of_server: np.ndarray,
    domain_of_server: np.ndarray,
    table: Prefixes,
    limits: Limits,
    seed: int,
    granted_anyway: np.ndarray | None = None,
    known_of_rule: np.ndarray | None = None,
    domain_urls: np.ndarray | None = None,
) -> tuple[np.ndarray, Prefixes]:
    """The code of the rule that refuses each row, u8, and the table with what was granted.

    known_of_server: integers, URLs known of each server before these rows. domain_of_server: integers, equal for
    servers of one domain. granted_anyway: bool, rows that no rule refuses, but that count. known_of_rule: integers,
    URLs known under each number of a rule of [[budget]] before these rows. domain_urls: i64, for each server the
    maximum URLs of its domain by the policy; domain_max_urls holds besides.
    """
    codes = np.zeros(len(rows.key), np.uint8)
    if not len(codes):
        return codes, table
    known = known_of_server.astype(np.int64)
    counted = []
    if limits.query_max_urls or limits.prefix_max_urls:
        counted = judge_prefixes(codes, rows, known, table, limits, seed)
    if limits.server_max_urls:
        judge_server_budget(codes, rows, known, limits.server_max_urls)
    if limits.domain_max_urls or domain_urls is not None:
        most = np.full(len(known), limits.domain_max_urls or UNLIMITED)
        most = most if domain_urls is None else np.minimum(most, domain_urls)
        judge_domain_budget(codes, rows, known, domain_of_server, most)
    if limits.rule_max_urls and rows.budget is not None and known_of_rule is not None:
        judge_rule_budgets(codes, rows, rows.budget, known_of_rule, limits.rule_max_urls)
    if granted_anyway is not None:
        codes[granted_anyway] = GRANTED
    return codes, add_granted(table, counted, codes == GRANTED) if counted else table


def judge_prefixes(
    codes: np.ndarray, rows: NewRows, known: np.ndarray, table: Prefixes, limits: Limits, seed: int
) -> list[Groups]:
    """Sets the codes of what queries and path prefixes have no room for; returns the groups that were counted."""
    watched = np.flatnonzero(find_watched(rows.server, known, table, limits.prefix_from_urls))
    if not len(watched):
        return []
    paths = locate_paths(rows.urls, watched)
    counted = []

    def judge(kind: int, rule: int, limit: int, where: np.ndarray, end: np.ndarray) -> None:
        judged = np.flatnonzero(where & (codes[watched] == GRANTED)) if limit else np.empty(0, np.int64)
        if not len(judged):
            return
        which = watched[judged]
        hashes = hash_texts(paths.data, paths.start[judged], end[judged], seed)
        groups = group_rows(kind, which, rows.server[which], hashes, table, len(known))
        beyond = find_beyond(groups.group, groups.room(limit), (rows.depth[which], rows.key[which]))
        codes[which[beyond]] = rule
        counted.append(groups)

    judge(QUERY, QUERY_PATHS, limits.query_max_urls, paths.with_query, paths.end)
    judge(
        FOLDER,
        PATH_PREFIX,
        limits.prefix_max_urls,
        paths.levels >= 2,
        np.where(paths.levels >= 3, paths.second_end, paths.first_end),
    )
    judge(TREE, PATH_PREFIX, limits.prefix_max_urls * TREE_TIMES, paths.levels >= 3, paths.first_end)
    return counted


def find_watched(server: np.ndarray, known: np.ndarray, table: Prefixes, from_urls: int) -> np.ndarray:
    """Mask of the rows of servers that are large enough, or large with these rows, or were watched before."""
    large = known + np.bincount(server, minlength=len(known)) >= from_urls
    large[table.server] = True
    return large[server]


def judge_server_budget(codes: np.ndarray, rows: NewRows, known: np.ndarray, most: int) -> None:
    if (known + np.bincount(rows.server, minlength=len(known)) <= most).all():
        return
    left = np.flatnonzero(codes == GRANTED)
    beyond = find_beyond(rows.server[left], most - known, (rows.depth[left], rows.key[left]))
    codes[left[beyond]] = SERVER_BUDGET


def judge_domain_budget(
    codes: np.ndarray, rows: NewRows, known: np.ndarray, domain_of_server: np.ndarray, most_of_server: np.ndarray
) -> None:
    _, first, domain = np.unique(domain_of_server, return_index=True, return_inverse=True)
    most = most_of_server[first]
    known_of_domain = np.bincount(domain, weights=known).astype(np.int64)  # sums in float64 are exact up to 2^53
    arrivals = np.bincount(domain, weights=np.bincount(rows.server, minlength=len(known)))
    if (known_of_domain + arrivals <= most).all():
        return
    left = np.flatnonzero(codes == GRANTED)
    server = rows.server[left]
    beyond = find_beyond(domain[server], most - known_of_domain, (rows.depth[left], server, rows.key[left]))
    codes[left[beyond]] = DOMAIN_BUDGET


def judge_rule_budgets(
    codes: np.ndarray, rows: NewRows, budget: np.ndarray, known: np.ndarray, most: tuple[int, ...]
) -> None:
    left = np.flatnonzero((codes == GRANTED) & (budget > 0))
    room = np.array([0, *most]) - known
    beyond = find_beyond(budget[left], room, (rows.depth[left], rows.key[left]))
    codes[left[beyond]] = RULE_BUDGET


def judge_servers(
    domain_key: np.ndarray, server_key: np.ndarray, depth: np.ndarray, domain_of_known: np.ndarray, limits: Limits
) -> np.ndarray:
    """The code of the rule that refuses each new server, u8: those nearest to a seed go first, then by key.

    All of one length: domain key, own key (u64, unique) and least depth of a link to each new server, in any order.
    domain_of_known: u64, the domain key of each server that the block has. The whole turn is judged at once, before its
    pieces, so it does not matter how many these are.
    """
    codes = np.zeros(len(server_key), np.uint8)
    if limits.domain_max_servers:
        domains, domain = np.unique(np.concatenate([domain_key, domain_of_known]), return_inverse=True)
        domain, of_known = domain[: len(domain_key)], domain[len(domain_key) :]
        room = limits.domain_max_servers - np.bincount(of_known, minlength=len(domains))
        codes[find_beyond(domain, room, (depth, server_key))] = DOMAIN_SERVERS
    if limits.servers_max:
        left = np.flatnonzero(codes == GRANTED)
        room = np.array([limits.servers_max - len(domain_of_known)])
        beyond = find_beyond(np.zeros(len(left), np.int64), room, (depth[left], server_key[left]))
        codes[left[beyond]] = SERVERS_BUDGET
    return codes


def find_beyond(group: np.ndarray, room: np.ndarray, order: tuple[np.ndarray, ...]) -> np.ndarray:
    """Mask of the rows that their group has no room for.

    group: index in `room`, whose values may be negative; order: the most important array first. Only groups that have
    room for some of their rows are sorted: most have it for all, and those of an old trap for none.
    """
    arrivals = np.bincount(group, minlength=len(room))
    beyond = (room <= 0)[group]
    some = np.flatnonzero(((arrivals > room) & (room > 0))[group])
    if len(some):
        some = some[np.lexsort((*(values[some] for values in reversed(order)), group[some]))]
        beyond[some[rank_in_run(group[some]) >= room[group[some]]]] = True
    return beyond
