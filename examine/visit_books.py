"""The books of visits: what a block keeps of its collected pages, counted again from the tables of all cycles.

The turns of a block follow each other in the log, and those of the block that it was split from come before. So the
cycles that fetched are taken in the order of the log, each for the URLs of its own block.
"""

from pathlib import Path

import numpy as np

from contract import names
from contract.blocks import in_interval, interval
from contract.generation import SIDE_COLUMNS, Generation
from contract.log import KINDS, Entry, History
from contract.plan import read_plan
from contract.revisits import MINUTE_MS
from contract.tables import ANSWERED, COLLECTED, METADATA, URL_LIST
from examine.findings import Findings
from examine.forgotten import read_forgotten
from storage.errors import Damaged
from storage.pairs import find_pairs
from storage.tables import column, fixed_bytes, read_table

GONE = (404, 410)
ORDER = ("domain_key", "url_key")
VISITS = "visits of R = answers of all cycles"
CHANGES = "changes of R = answers with other content, fewer than visits"
NEWEST = "collected URLs point at their newest full answer"
OTHERS = "times and misses of R are those of its visits"
LISTED = "a list asks again what was collected, and knows whose links are counted"
CLAIMS = {
    VISITS: ("visits",),
    CHANGES: ("changes",),
    NEWEST: ("cycle", "row", "fetched_at_ms"),
    OTHERS: ("parsed", "visited_at_ms", "unchanged_min", "changed_min", "misses"),
}
COUNTED = tuple(name for columns in CLAIMS.values() for name in columns)


class Visits:
    """The side set of one block, counted again; a row for each row of the block, in its order."""

    def __init__(self, generation: Generation):
        self._keys = (column(generation.servers, "domain_key")[generation.server_index], generation.rows["key"][:])
        self._collected = generation.collected_rows
        self.columns = {name: np.zeros(len(generation), np.int64) for name in COUNTED}
        self._digest = np.zeros((len(generation), 2), np.uint64)

    def find(self, keys: list[np.ndarray]) -> np.ndarray:
        """The row of each URL, by the keys of its domain and of itself; -1 where it is not in the block."""
        return find_pairs(*keys, *self._keys)

    def take_answers(self, cycle: int, answers: dict[str, np.ndarray]) -> None:
        row = self.find([answers[name] for name in ORDER])
        there = row >= 0
        row, answers = row[there], {name: values[there] for name, values in answers.items()}
        now, at_ms, is_full = self.columns, answers["fetched_at_ms"], ~answers["revisit"].astype(bool)
        is_again, digest = now["visits"][row] > 0, self._digest[row]
        is_known = is_full & digest.any(axis=1) & answers["digest"].any(axis=1)
        is_changed = is_again & is_known & (digest != answers["digest"]).any(axis=1)
        seen = np.maximum(now["fetched_at_ms"][row], now["visited_at_ms"][row])
        minutes = np.maximum((at_ms - seen + MINUTE_MS // 2) // MINUTE_MS, 1)
        now["changed_min"][row] += minutes * is_changed
        now["unchanged_min"][row] += minutes * (is_again & ~is_changed)
        now["visits"][row] += 1
        now["changes"][row] += is_changed
        now["parsed"][row] |= answers["parsed"].astype(bool)
        now["misses"][row] = np.where(np.isin(answers["status"], GONE), now["misses"][row] + 1, 0)
        now["visited_at_ms"][row] = np.where(is_full | ~is_again, 0, at_ms)
        stored = is_full | ~is_again
        self._digest[row[stored]] = answers["digest"][stored]
        now["cycle"][row[stored]] = cycle
        for name in ("row", "fetched_at_ms"):
            now[name][row[stored]] = answers[name][stored]

    def take_failures(self, keys: list[np.ndarray], at_ms: np.ndarray) -> None:
        row = self.find(keys)
        is_collected = row >= 0
        is_collected[is_collected] = self.columns["visits"][row[is_collected]] > 0
        self.columns["misses"][row[is_collected]] += 1
        self.columns["visited_at_ms"][row[is_collected]] = at_ms[is_collected]

    def forget(self, keys: list[np.ndarray]) -> None:
        """Visits before a URL was forgotten do not count, where it is known again."""
        row = self.find(keys)
        row = row[row >= 0]
        for values in (*self.columns.values(), self._digest):
            values[row] = 0

    def compare(self, generation: Generation, folder: Path, findings: Findings) -> None:
        side = generation.side
        for claim, columns in CLAIMS.items():
            for name in columns:
                most = np.iinfo(SIDE_COLUMNS[name]).max - (name == "changes")  # fewer than visits, however many
                wrong = side[name] != np.minimum(self.columns[name][self._collected], most)
                findings.rows(claim, folder, wrong, f"another {name} than in the cycles' tables")
        findings.rows(CHANGES, folder, side["changes"] >= side["visits"], "as many changes as visits, or more")


def check_visits(crawl: Path, log: History, generations: dict[int, Generation], findings: Findings) -> None:
    """Over the live generations of all blocks."""
    blocks = {block: Visits(generation) for block, generation in generations.items()}
    for entry in log.entries:
        if entry is not None and KINDS[entry.kind].forgets:
            forgotten = read_forgotten(crawl, entry)
            for visits in blocks.values():
                visits.forget([column(forgotten, name) for name in ORDER])
        if entry is None or not KINDS[entry.kind].fetches:
            continue
        path = crawl / names.cycle(entry.cycle) / names.SCHEDULER / names.URL_LIST
        listed = read_table(path, URL_LIST, columns=[*ORDER, "revisit", "counted"])
        answers, failed = read_answers(crawl, entry), read_failures(crawl, entry)
        for visits in blocks.values():
            check_listed(path, listed, visits, findings)
            visits.take_answers(entry.cycle, answers)
            visits.take_failures(*failed)
    for block, visits in blocks.items():
        visits.compare(generations[block], crawl / names.generation(block, log.generation(block)), findings)


def check_listed(path: Path, listed, visits: Visits, findings: Findings) -> None:
    """The columns of a list that follow from earlier visits; `visits` has those before the list's cycle."""
    row = visits.find([column(listed, name) for name in ORDER])
    there = np.flatnonzero(row >= 0)
    for name, known in (("revisit", visits.columns["visits"] > 0), ("counted", visits.columns["parsed"] > 0)):
        wrong = np.zeros(len(listed), bool)
        wrong[there] = column(listed, name)[there].astype(bool) != known[row[there]]
        findings.rows(LISTED, path, wrong, f"another {name} than the cycles before say")


def read_answers(crawl: Path, entry: Entry) -> dict[str, np.ndarray]:
    """The answers to URLs of the cycle's own block: keys, row in the table, and what visits are counted from."""
    path = crawl / names.cycle(entry.cycle) / names.EXTRACTOR / names.METADATA
    wanted = [*ORDER, "fetched_at_ms", "status", "parsed", "revisit"]
    table = read_table(path, METADATA, columns=[*wanted, "content_digest"])
    own = is_own(entry, table)
    digest = fixed_bytes(table, "content_digest", METADATA.field("content_digest").type.byte_width)
    halves = np.ascontiguousarray(digest).view(np.uint64).reshape(-1, 2)
    return {**{name: column(table, name)[own] for name in wanted}, "row": np.flatnonzero(own), "digest": halves[own]}


def read_failures(crawl: Path, entry: Entry) -> tuple[list[np.ndarray], np.ndarray]:
    """(keys, time) of URLs of the cycle's own block that failed or were refused."""
    path = crawl / names.cycle(entry.cycle) / names.EXTRACTOR / names.COLLECTED
    table = read_table(path, COLLECTED, columns=[*ORDER, "outcome", "fetched_at_ms"])
    failed = is_own(entry, table) & (column(table, "outcome") != ANSWERED)
    at_ms = column(table, "fetched_at_ms")[failed]
    if (at_ms <= 0).any():  # one that was never asked has no time of its own
        plan = crawl / names.cycle(entry.cycle) / names.PLAN
        if not plan.is_file():
            raise Damaged(plan, "expected the plan of a committed cycle, found none")
        at_ms = np.where(at_ms > 0, at_ms, read_plan(crawl, entry.cycle).now_ms)
    return [column(table, name)[failed] for name in ORDER], at_ms


def is_own(entry: Entry, table) -> np.ndarray:
    ((block, _),) = entry.parents.items()
    return in_interval(column(table, "domain_key"), *interval(block, entry.blocks))
