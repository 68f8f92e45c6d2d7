"""The URLs of cycles that are pages and that the earlier graph does not have, each once, sorted by their text.

Most URLs stand in the tables of many cycles. Sorting texts is slow, so a text is sorted once. The keys of all rows are
asked about together (storage/questions.py): the answer to one row of a new page is what is known of the page, to all
others it is 0. A second reading, in the same order, takes the texts of the rows with an answer.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contract import names
from contract.tables import ANSWERED as OUTCOME_ANSWERED
from contract.tables import COLLECTED, EXTRACTED, TARGETS
from graph.base import Base, SharedWithBase
from graph.filters import Filters
from graph.flags import ANSWERED, FLAG_BITS, KNOWN, SEED
from graph.page_keys import KEY_BITS, NO_PAGE
from graph.sorted_urls import Urls, join, merge_runs, sort_urls, texts_of, write_run
from graph.tables import CycleTables
from storage.ahead import ahead
from storage.arrays import Array, Keys, Rows, starts_of_runs
from storage.cut_files import Payload
from storage.questions import Answers, Questions
from storage.tables import column

TAKEN = 128  # a bit of an answer beside the flags: this row's text is taken
FLAGS = np.uint32((1 << FLAG_BITS) - 1)  # of a payload
MARK_BITS = 32 - FLAG_BITS  # of a payload: the top bits of the domain key; 0: not known
READ_ROWS = 1 << 19
TABLES = (names.COLLECTED, names.EXTRACTED, names.TARGETS)

Report = Callable[..., None]


def mark_of(domain_key: Keys) -> Payload:
    """The top bits of a domain key: enough to tell two domains apart whose URLs share a key."""
    return (domain_key >> np.uint64(64 - MARK_BITS)).astype(np.uint32)


class NewUrls:
    def __init__(
        self,
        scratch: Path,
        tables: list[CycleTables],
        filters: Filters,
        base: Base,
        urls_at_once: int,
        keys_at_once: int,
        report: Report,
    ):
        self._scratch, self._tables, self._filters, self._base, self._report = scratch, tables, filters, base, report
        self._urls_at_once = urls_at_once
        self.rows = sum(count_rows(one) for one in tables)
        self._questions = Questions(scratch / "urls", KEY_BITS, self.rows, keys_at_once)
        self.seeds: list[Keys] = []  # keys that are no pages, because seeds are link sources

    def find(self) -> Iterator[Urls]:
        """All new pages, sorted by their text."""
        done = 0
        for one in self._tables:
            for keys, payload, _ in ahead(key_rows(one)):
                self._questions.ask(keys, payload)
                done += len(keys)
                self._report("URLs read", done, self.rows)
        self._questions.settle(self._decide)
        runs = [
            write_run(self._scratch / f"run-{number}.parquet", iter([urls]))
            for number, urls in enumerate(ahead(map(sort_urls, self._read_texts())))
        ]
        self._questions.close()
        if runs:
            yield from merge_runs(runs, self._scratch, self._urls_at_once)

    def _decide(self, keys: Keys, payload: Payload) -> Answers:
        starts = starts_of_runs(keys)
        distinct = keys[starts]
        flags = np.bitwise_or.reduceat(payload & FLAGS, starts)
        marks = payload >> np.uint32(FLAG_BITS)
        known = self._base.find(distinct)
        in_base = known != NO_PAGE
        least, most = extremes_of_runs(marks, starts)
        if in_base.any():
            self._base.note_answered(known[in_base], flags[in_base] & ANSWERED > 0)
            for of_domains in (least, most):
                self._base.expect_domains(known[in_base], of_domains[in_base], MARK_BITS)
        is_new = ~in_base
        kept = self._filters.are_pages(flags)
        if kept is not None:
            is_new &= kept
        if self._filters.seeds_are_sources:
            is_seed = flags & SEED > 0
            self.seeds.append(distinct[is_seed & is_new])
            is_new &= ~is_seed
        answers = np.zeros(len(keys), np.uint8)
        of_rows = payload & FLAGS
        passing = self._passing(of_rows)  # one row has all that the filters want of a URL, if all rows together do
        rows = passing[np.searchsorted(passing, starts[is_new])]
        answers[rows] = flags[is_new].astype(np.uint8) | TAKEN
        self._take_shared(np.flatnonzero(is_new & (least < most)), of_rows, marks, starts, answers)
        return answers

    def _passing(self, flags: Array) -> Array:
        """Which rows, with these flags, the filters take."""
        kept = self._filters.are_pages(flags)
        return np.arange(len(flags)) if kept is None else np.flatnonzero(kept)

    def _take_shared(self, runs: Rows, flags: Array, marks: Array, starts: Rows, answers: Answers) -> None:
        """In these runs URLs of several domains share a key: each of them gets its answer, by its own rows."""
        ends = np.append(starts[1:], len(marks))
        for run in runs.tolist():
            if not self._base.is_empty:
                raise SharedWithBase
            rows = np.arange(starts[run], ends[run])
            answers[rows] = 0
            for mark in np.unique(marks[rows][marks[rows] > 0]).tolist():
                its_rows = rows[marks[rows] == mark]
                for row in its_rows[self._passing(flags[its_rows])[:1]]:
                    answers[row] = np.bitwise_or.reduce(flags[its_rows]) | TAKEN

    def _read_texts(self) -> Iterator[Urls]:
        """The texts that are taken, some at a time, in any order."""
        pending: list[Urls] = []
        done = 0
        for one in self._tables:
            for keys, _, texts in ahead(key_rows(one, with_texts=True)):
                answers = self._questions.answer(keys)
                kept = answers > 0
                done += len(keys)
                self._report("texts read", done, self.rows)
                if kept.any():
                    pending.append(Urls(texts.filter(pa.array(kept)), keys[kept], answers[kept] & ~np.uint8(TAKEN)))
                if sum(map(len, pending)) >= self._urls_at_once:
                    yield join(pending)
                    pending = []
        if pending:
            yield join(pending)


def extremes_of_runs(marks: Array, starts: Rows) -> tuple[Array, Array]:
    """The least and the largest mark of each run among those that are known; 0 where none is."""
    one = np.uint32(1)
    return np.minimum.reduceat(marks - one, starts) + one, np.maximum.reduceat(marks, starts)  # 0 - 1 is the largest


def count_rows(tables: CycleTables) -> int:
    schemas = zip(TABLES, (COLLECTED, EXTRACTED, TARGETS))
    return sum(tables.count(name, kind) for name, kind in schemas if tables.has(name))


def key_rows(
    tables: CycleTables, with_texts: bool = False
) -> Iterator[tuple[Keys, Payload, pa.LargeBinaryArray | None]]:
    """The key of each URL of a cycle with what its row says of it, and its text; in a fixed order."""
    texts = ["url"] * with_texts
    for table in tables.read(
        names.COLLECTED, COLLECTED, ["url_key", "domain_key", "outcome", "depth", *texts], READ_ROWS
    ):
        flags = np.full(len(table), KNOWN, np.uint32)
        flags[are_answered(table)] |= ANSWERED
        flags[column(table, "depth") == 0] |= SEED
        yield column(table, "url_key"), payload_of(table, flags), texts_of(table) if texts else None
    for table in tables.read(names.EXTRACTED, EXTRACTED, ["url_key", "domain_key", *texts], READ_ROWS):
        yield column(table, "url_key"), payload_of(table, KNOWN), texts_of(table) if texts else None
    if tables.has(names.TARGETS):
        for table in tables.read(names.TARGETS, TARGETS, ["key", *texts], READ_ROWS):
            yield column(table, "key"), np.zeros(len(table), np.uint32), texts_of(table) if texts else None


def payload_of(table: pa.Table, flags: Array | int) -> Payload:
    """Flags, and above them what tells the domain apart from others."""
    mark = mark_of(column(table, "domain_key"))
    return mark << np.uint32(FLAG_BITS) | np.uint32(flags)


def are_answered(table: pa.Table) -> npt.NDArray[np.bool_]:
    is_answered: npt.NDArray[np.bool_] = (
        pc.equal(table.column("outcome"), OUTCOME_ANSWERED).combine_chunks().to_numpy(zero_copy_only=False)
    )
    return is_answered
