"""One pass over the tables of all cycles: what was asked, what was answered, and what the pages are like.

Times, statuses and waits count each visit. What a page is like (type, language, size, ...) counts each collected page
once, by its last full answer: `newest` says which row of which cycle that is.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contract import names
from contract.log import History
from contract.scope.link_sources import LinkSources
from contract.tables import ANSWERED, COLLECTED, METADATA
from contract.units import size
from examine.link_sources import COLUMNS, mark_collected
from examine.report.damage import LeftOut
from examine.report.sums import Bins, Tally, Timeline
from storage.errors import Damaged
from storage.tables import column, open_table, read_groups

GROUPS_AT_ONCE = 32  # row groups of 8,192 rows
SEEDS_MAX = 100_000  # whose last answer is remembered
TIMES = ("waited_ms", "dns_ms", "connect_ms", "first_byte_ms", "total_ms")
TIME_EDGES_MS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 600_000)
SIZE_EDGES = (0, 1, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 10_000_000)
DEGREE_EDGES = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000, 1_000_000)
PAGE_COLUMNS = ["type", "charset", "language", "trouble", "url", "bytes", "links_inside", "links_outside", "parsed"]
OUTCOME_COLUMNS = ["url_key", "depth", "outcome", "reason", "status"]
VISIT_COLUMNS = ["fetched_at_ms", "domain_key", "bytes", *TIMES]


def show_ms(value: float) -> str:
    return f"{value / 1000:,g} s" if value >= 1_000 else f"{value:g} ms"


class Answers:
    def __init__(self):
        self.visits = Timeline("pages", "bytes", "new_domains", *TIMES)
        self.waits, self.totals = Bins(TIME_EDGES_MS, show_ms), Bins(TIME_EDGES_MS, show_ms)
        self.sizes, self.links_out = Bins(SIZE_EDGES, size), Bins(DEGREE_EDGES)
        self.statuses: Tally = Tally()
        self.types, self.charsets, self.languages, self.troubles = Tally(), Tally(), Tally(), Tally()
        self.pages = self.dynamic = 0  # dynamic: its URL has a query
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.seed_words: dict[int, str] = {}  # URL key of a seed -> its last status, or why it failed
        self._domains = np.empty(0, np.uint64)  # that answered, rising

    @property
    def domains(self) -> int:
        return len(self._domains)

    def add_outcomes(self, rows: pa.Table, is_counted: np.ndarray | None = None) -> None:
        """Of UrlsColetadas: every URL that was asked or refused; seeds too where `is_counted` leaves them out."""
        statuses = rows.column("status") if is_counted is None else rows.column("status").filter(pa.array(is_counted))
        self.statuses.add(statuses.filter(pc.greater(statuses, 0)).cast(pa.string()))
        seeds = rows.filter(pc.equal(rows.column("depth"), 0))
        for key, outcome, reason, status in zip(
            *(seeds.column(name).to_pylist() for name in ("url_key", "outcome", "reason", "status"))
        ):
            if key in self.seed_words or len(self.seed_words) < SEEDS_MAX:
                self.seed_words[key] = str(status) if outcome == ANSWERED else reason

    def add_visits(self, rows: pa.Table) -> None:
        if not len(rows):
            return
        at_ms = column(rows, "fetched_at_ms")
        times = [column(rows, name) for name in TIMES]
        self.visits.add(at_ms, np.ones(len(rows)), column(rows, "bytes"), self._find_new_domains(rows), *times)
        self.waits.add(times[0])
        self.totals.add(times[-1])
        first_ms, last_ms = int(at_ms.min()), int(at_ms.max())
        self.first_ms = first_ms if self.first_ms is None else min(self.first_ms, first_ms)
        self.last_ms = last_ms if self.last_ms is None else max(self.last_ms, last_ms)

    def _find_new_domains(self, rows: pa.Table) -> np.ndarray:
        """1 for the first visit of a domain that had none before, else 0."""
        order = np.argsort(column(rows, "fetched_at_ms"), kind="stable")
        keys, first = np.unique(column(rows, "domain_key")[order], return_index=True)
        where = np.searchsorted(self._domains, keys)
        is_new = np.ones(len(keys), bool)
        within = where < len(self._domains)
        is_new[within] = self._domains[where[within]] != keys[within]
        self._domains = np.insert(self._domains, where[is_new], keys[is_new])
        marks = np.zeros(len(rows))
        marks[order[first[is_new]]] = 1
        return marks

    def add_pages(self, rows: pa.Table) -> None:
        self.pages += len(rows)
        self.dynamic += pc.sum(pc.match_substring(rows.column("url"), "?")).as_py() or 0
        self.types.add(rows.column("type"))
        self.charsets.add(pc.utf8_lower(rows.column("charset")))
        # The primary part of the tag: pt-BR and pt_br are pt.
        languages = pc.utf8_lower(rows.column("language"))
        self.languages.add(pc.replace_substring_regex(languages, "[-_].*", ""))
        troubled = pc.filter(rows.column("trouble"), pc.not_equal(rows.column("trouble"), ""))
        self.troubles.add(pc.list_flatten(pc.split_pattern(troubled, " ")))
        self.sizes.add(column(rows, "bytes"))
        parsed = rows.filter(rows.column("parsed"))
        links = column(parsed, "links_inside").astype(np.int64) + column(parsed, "links_outside")
        self.links_out.add(links)


def read_answers(
    crawl: Path, log: History, newest: dict[int, np.ndarray], left_out: LeftOut, link_sources: LinkSources
) -> Answers:
    answers = Answers()
    for entry in log.entries:
        if entry is None or not entry.fetches:
            continue
        folder = crawl / names.cycle(entry.cycle) / names.EXTRACTOR
        is_counted: np.ndarray | None = None  # of the rows that were answered; none: all
        with left_out.reading(folder / names.COLLECTED):
            is_counted = add_collected(answers, folder / names.COLLECTED, link_sources)
        with left_out.reading(folder / names.METADATA):
            bits = newest.get(entry.cycle, np.empty(0, np.uint8))
            add_metadata(answers, folder / names.METADATA, bits, is_counted)
    return answers


def add_collected(answers: Answers, path: Path, link_sources: LinkSources) -> np.ndarray | None:
    """Adds what the URLs of UrlsColetadas ended with; returns which of the answered ones are no link sources, bool."""
    if not link_sources:
        for rows in read_parts(path, COLLECTED, OUTCOME_COLUMNS):
            answers.add_outcomes(rows)
        return None
    parts = [np.empty(0, bool)]
    for rows in read_parts(path, COLLECTED, list(dict.fromkeys(OUTCOME_COLUMNS + COLUMNS))):
        is_counted = ~mark_collected(link_sources, rows)
        parts.append(is_counted[column(rows, "outcome") == ANSWERED])
        answers.add_outcomes(rows, is_counted)
    return np.concatenate(parts)


def add_metadata(answers: Answers, path: Path, newest: np.ndarray, is_counted: np.ndarray | None = None) -> None:
    """`newest`: one bit per row (u1, lowest bit first), up to the last row that is a page's last full answer."""
    start, is_newest = 0, np.unpackbits(newest, bitorder="little").astype(bool)
    for rows in read_parts(path, METADATA, list(dict.fromkeys(VISIT_COLUMNS + PAGE_COLUMNS))):
        counted = None if is_counted is None else pa.array(is_counted[start : start + len(rows)])
        answers.add_visits(rows if counted is None else rows.filter(counted))
        here = is_newest[start : start + len(rows)]
        answers.add_pages(rows.take(pa.array(np.flatnonzero(here))))
        start += len(rows)
    if is_newest[start:].any():
        raise Damaged(path, f"expected {len(is_newest)} rows, as its block names them, found {start}")


def read_parts(path: Path, schema: pa.Schema, columns: list[str]) -> Iterator[pa.Table]:
    """Some columns of a table, in parts of bounded size."""
    with open_table(path, schema) as file:
        groups = list(range(file.metadata.num_row_groups))
        for start in range(0, len(groups), GROUPS_AT_ONCE):
            yield read_groups(path, file, groups[start : start + GROUPS_AT_ONCE], columns)
