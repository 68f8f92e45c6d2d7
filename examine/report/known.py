"""What the live generations know: servers, domains, depths, degrees, visits and seeds. One block at a time.

Link sources are left out, except among seeds, and of the slowest servers, which are about requests.
"""

import heapq
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.generation import Generation, open_generation, read_urls
from contract.log import History
from contract.policies.rules import LINK_SOURCE
from contract.scope.link_sources import LinkSources
from contract.tables import COLLECTED_STATE, STATES
from contract.terminal import make_plain
from contract.url import host_of
from examine.report.answers import DEGREE_EDGES, SEEDS_MAX
from examine.report.damage import LeftOut
from examine.report.sums import Bins, Tally
from storage.arrays import starts_of_runs
from storage.tables import column

TOP = 20  # servers, domains and URLs that are named
DAY_MS = 86_400_000
VISIT_EDGES = (1, 2, 3, 4, 5, 10, 20, 50, 100, 1_000)
CHANGE_EDGES = (0, *VISIT_EDGES)
AGE_EDGES_DAYS = (0, 1, 2, 3, 7, 14, 30, 60, 90, 180, 365, 730)


@dataclass
class Seed:
    url: str
    server: str
    key: int
    state: str


class Largest:
    """The rows with the largest numbers, ties by name."""

    def __init__(self):
        self._rows: list[tuple] = []

    def add(self, rows) -> None:
        self._rows = heapq.nsmallest(TOP, [*self._rows, *rows], key=lambda row: (-row[1], row[0]))

    def rows(self) -> list[tuple]:
        return self._rows


@dataclass
class Known:
    servers: Largest = field(default_factory=Largest)  # name, collected, known, mean ms
    domains: Largest = field(default_factory=Largest)  # name, collected, known, servers
    servers_counted: int = 0  # those with URLs that are no link sources
    domains_counted: int = 0
    slowest: Largest = field(default_factory=Largest)  # server, mean ms, requests
    linked: Largest = field(default_factory=Largest)  # URL, pages that link to it
    suffixes: Tally = field(default_factory=Tally)  # of registered domains -> collected pages
    depths: np.ndarray = field(default_factory=lambda: np.zeros(256, np.int64))  # collected pages per depth
    domain_depths: np.ndarray = field(default_factory=lambda: np.zeros(256, np.int64))  # domains per largest depth
    links_in: Bins = field(default_factory=lambda: Bins(DEGREE_EDGES))
    visits: Bins = field(default_factory=lambda: Bins(VISIT_EDGES))
    changes: Bins = field(default_factory=lambda: Bins(CHANGE_EDGES))
    ages: Bins = field(default_factory=lambda: Bins(AGE_EDGES_DAYS))  # days since the last visit
    newest: dict[int, np.ndarray] = field(default_factory=dict)  # cycle -> bit per row of its metadata, lowest first
    seeds: list[Seed] = field(default_factory=list)
    seeds_left_out: int = 0


def read_known(crawl: CrawlFolder, log: History, now_ms: int, left_out: LeftOut, link_sources: LinkSources) -> Known:
    known = Known()
    for block in range(log.blocks):
        number = log.generation(block)
        if number is not None:
            with left_out.reading(crawl.path / names.generation(block, number)):
                add_block(known, crawl, open_generation(crawl.path, block, number), now_ms, link_sources)
    return known


def add_block(known: Known, crawl: CrawlFolder, block: Generation, now_ms: int, link_sources: LinkSources) -> None:
    is_counted = np.ones(len(block), bool)
    if link_sources:
        is_counted = ~link_sources.mark_rows(block.rows[LINK_SOURCE.name], block.rows["depth"])
    is_collected = (block.rows["state"] == COLLECTED_STATE) & is_counted
    add_servers(known, crawl, block, is_counted, is_collected)
    depth = block.rows["depth"]
    known.depths += np.bincount(depth[is_collected], minlength=256)
    if len(block):
        reached = np.maximum.reduceat(np.where(is_collected, depth.astype(np.int16), -1), block.domains.first_row[:-1])
        known.domain_depths += np.bincount(reached[reached >= 0], minlength=256)
    links_in = block.rows["links_in"]
    known.links_in.add(links_in[is_collected])
    best = np.argsort(-np.where(is_counted, links_in.astype(np.int64), -1), kind="stable")[:TOP]
    best = np.sort(best[is_counted[best]])
    urls = read_urls(crawl.path, block, best)
    known.linked.add(zip(map(make_plain, urls), links_in[best].tolist()))
    add_visits(known, block, now_ms, is_counted[block.collected_rows])
    add_seeds(known, crawl.path, block)


def add_servers(
    known: Known, crawl: CrawlFolder, block: Generation, is_counted: np.ndarray, is_collected: np.ndarray
) -> None:
    """`is_counted` and `is_collected`: bool, of the rows."""
    table = block.servers
    if not len(table):
        return
    named = column(table, "server")
    collected, of_known = (
        np.bincount(block.server_index[rows], minlength=len(table)) for rows in (is_collected, is_counted)
    )
    known.servers_counted += int(np.count_nonzero(of_known))
    mean_ms = column(table, "mean_ms")
    best = np.argsort(-collected, kind="stable")[:TOP]
    best = best[of_known[best] > 0]  # the others have link sources alone
    known.servers.add(
        (make_plain(named[row]), *(int(of[row]) for of in (collected, of_known, mean_ms))) for row in best
    )
    requests, mean_ms = column(table, "requests"), column(table, "mean_ms")
    slow = np.argsort(-mean_ms.astype(np.int64), kind="stable")[:TOP]
    known.slowest.add((make_plain(named[row]), int(mean_ms[row]), int(requests[row])) for row in slow if mean_ms[row])
    first = starts_of_runs(column(table, "domain_key"))
    sums = [np.add.reduceat(values, first) for values in (collected, of_known, np.ones(len(table), np.int64))]
    known.domains_counted += int(np.count_nonzero(sums[1]))
    keys = crawl.keys()
    domains = [make_plain(keys.domain(host_of(server))) for server in named[first]]
    rows = zip(domains, *(values.tolist() for values in sums))
    known.domains.add((name, pages, urls, servers) for name, pages, urls, servers in rows if urls)
    for name, pages in zip(domains, sums[0].tolist()):
        if pages:
            known.suffixes.count(name.partition(".")[2] if not name[-1:].isdigit() else "", pages)


def add_visits(known: Known, block: Generation, now_ms: int, is_counted: np.ndarray) -> None:
    """`is_counted`: bool, of the rows of the side set."""
    names_read = ("visits", "changes", "fetched_at_ms", "visited_at_ms", "cycle", "row")
    side = {name: block.side[name][is_counted] for name in names_read}
    known.visits.add(side["visits"])
    known.changes.add(side["changes"])
    last_ms = np.maximum(side["fetched_at_ms"], side["visited_at_ms"])
    known.ages.add(np.maximum(0, now_ms - last_ms) / DAY_MS)
    cycles, rows = side["cycle"], side["row"].astype(np.int64)
    order = np.argsort(cycles, kind="stable")
    for here in np.split(order, starts_of_runs(cycles[order])[1:]) if len(order) else ():
        mark_rows(known.newest, int(cycles[here[0]]), rows[here])


def mark_rows(newest: dict[int, np.ndarray], cycle: int, rows: np.ndarray) -> None:
    is_marked = np.zeros(int(rows.max()) + 1, bool)
    is_marked[rows] = True
    bits, before = np.packbits(is_marked, bitorder="little"), newest.get(cycle, np.empty(0, np.uint8))
    both = np.zeros(max(len(bits), len(before)), np.uint8)
    both[: len(bits)] |= bits
    both[: len(before)] |= before
    newest[cycle] = both


def add_seeds(known: Known, crawl: Path, block: Generation) -> None:
    rows = np.flatnonzero(block.rows["depth"] == 0)
    kept = rows[: SEEDS_MAX - len(known.seeds)]
    known.seeds_left_out += len(rows) - len(kept)
    servers = column(block.servers, "server")[block.server_index[kept]]
    states, keys = block.rows["state"][kept].tolist(), block.rows["key"][kept].tolist()
    for url, server, key, state in zip(read_urls(crawl, block, kept), servers, keys, states):
        known.seeds.append(Seed(make_plain(url), make_plain(server), key, STATES[state]))
