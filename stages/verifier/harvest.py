"""What a turn takes in: the extractor's tables of its cycle, and slices of AUX."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contract import names
from contract.accumulators import ACCUMULATORS
from contract.blocks import KEY_BITS, in_interval
from contract.log import Entry, Kind, State
from contract.pending import absorber, find_pending
from contract.plan import VerifierPlan
from contract.stage import read_input_manifest
from contract.tables import (
    ANSWERED,
    AUX,
    COLLECTED,
    CYCLE_SERVERS,
    EXTRACTED,
    FAILED,
    METADATA,
    ORDER,
    REASON_ROBOTS,
    TAKEN,
)
from storage.keyed_file import KeyedFile
from storage.pairs import PAIR_END, find_pair, find_pairs, sort_pairs
from storage.publish import verify
from storage.tables import column, fixed_bytes, read_table, verify_footer

# What happened to a URL, as a code in an array.
HAPPENED_ANSWERED, HAPPENED_FAILED, HAPPENED_REFUSED_BY_ROBOTS, HAPPENED_REFUSED = range(4)
HAPPENED = [
    "domain_key",
    "url_key",
    "server_key",
    "outcome",
    "reason",
    "foreign",
    "fetched_at_ms",
    *TAKEN,
]  # the columns that it is read from
ANSWER_COLUMNS = ("fetched_at_ms", "status", "parsed", "revisit")  # of MetadadosUrlsColetadas, taken as they are


@dataclass
class Happened:
    """What happened to URLs of the block in this cycle; sorted by (domain key, URL key), each once."""

    domain_key: np.ndarray
    key: np.ndarray
    server_key: np.ndarray
    code: np.ndarray
    at_ms: np.ndarray
    taken: dict[str, np.ndarray]  # of each shared accumulator, what the URL gave away

    def part(self, low: int, high: int) -> "Happened":
        here = slice(find_pair(self.domain_key, self.key, low), find_pair(self.domain_key, self.key, high))
        return Happened(
            self.domain_key[here],
            self.key[here],
            self.server_key[here],
            self.code[here],
            self.at_ms[here],
            {name: values[here] for name, values in self.taken.items()},
        )


@dataclass
class Answers:
    """The answers of the cycle to URLs of the block; sorted by (domain key, URL key), each once."""

    domain_key: np.ndarray
    key: np.ndarray
    row: np.ndarray  # of MetadadosUrlsColetadas
    content_digest: np.ndarray
    fetched_at_ms: np.ndarray
    status: np.ndarray
    parsed: np.ndarray
    revisit: np.ndarray  # bool: it says no more than an earlier one

    def part(self, low: int, high: int) -> "Answers":
        return self.take(slice(find_pair(self.domain_key, self.key, low), find_pair(self.domain_key, self.key, high)))

    def take(self, which: slice | np.ndarray) -> "Answers":
        return Answers(*(getattr(self, field.name)[which] for field in fields(self)))


class Harvest:
    """The extractor's tables of a cycle, divided into this block and the others; empty without a folder.

    `unlisted_here` and `unlisted_elsewhere`: URLs of this block, and of others without a link, that are in
    UrlsColetadas although no list of ours had them; as rows of UrlsExtraidas.
    """

    def __init__(self, folder: Path | None, block: tuple[int, int]):
        self._pairs = (block[0] << KEY_BITS, block[1] << KEY_BITS)
        self._extracted = None
        empty = EXTRACTED.empty_table()
        self.unlisted_here, self.unlisted_elsewhere = empty, empty
        self.collected, self.metadata, self.servers = (
            COLLECTED.empty_table(),
            METADATA.empty_table(),
            CYCLE_SERVERS.empty_table(),
        )
        if folder is None:
            return
        manifest = read_input_manifest(folder)
        for name in (names.EXTRACTED, names.COLLECTED, names.METADATA, names.SERVERS):
            verify(folder / name, manifest["files"].get(name, {"bytes": 0, "xxh3": ""}))
        self._extracted = KeyedFile(folder / names.EXTRACTED, EXTRACTED, ORDER, is_verified=True)
        collected = read_table(folder / names.COLLECTED, COLLECTED, HAPPENED, is_verified=True)
        if column(collected, "foreign").any():  # then their URLs are needed too
            collected = read_table(folder / names.COLLECTED, COLLECTED, is_verified=True)
        self.metadata = read_table(
            folder / names.METADATA,
            METADATA,
            ["url_key", "domain_key", "content_digest", *ANSWER_COLUMNS],
            is_verified=True,
        )
        self.servers = read_table(folder / names.SERVERS, CYCLE_SERVERS, is_verified=True)
        own = in_interval(column(collected, "domain_key"), *block)
        self.collected = collected if own.all() else collected.filter(pa.array(own))
        if "url" not in collected.column_names:
            return
        self.unlisted_here = as_extracted(self.collected.filter(self.collected.column("foreign")))
        unlisted = as_extracted(collected.filter(pa.array(~own & column(collected, "foreign").astype(bool))))
        if len(unlisted):
            self.unlisted_elsewhere = unlisted.filter(pa.array(self._are_unlinked(unlisted)))

    def _are_unlinked(self, rows: pa.Table) -> np.ndarray:
        """Which of these rows of other blocks no link of the cycle leads to."""
        unlinked = np.ones(len(rows), bool)
        domain, key = column(rows, "domain_key"), column(rows, "url_key")
        for table in self._extracted.read_pieces(0, PAIR_END):
            unlinked &= find_pairs(domain, key, column(table, "domain_key"), column(table, "url_key")) < 0
        return unlinked

    @property
    def extracted_rows(self) -> int:
        return len(self._extracted) if self._extracted is not None else 0

    def sources(self) -> list[KeyedFile]:
        return [self._extracted] if self._extracted is not None else []

    def spilled(self) -> Iterator[pa.Table]:
        """The rows of AUX: what lies outside the block, in order, some at a time."""
        low, high = self._pairs
        if self._extracted is None:
            return
        unlisted = self.unlisted_elsewhere
        for begin, end in ((0, low), (high, PAIR_END)):
            for table in self._extracted.read_pieces(begin, end):
                if len(unlisted) and len(table):
                    last = int(column(table, "domain_key")[-1]) << KEY_BITS | int(column(table, "url_key")[-1])
                    before = find_pair(column(unlisted, "domain_key"), column(unlisted, "url_key"), last)
                    table, unlisted = join_sorted(table, unlisted.slice(0, before)), unlisted.slice(before)
                yield table
        if len(unlisted):
            yield unlisted


def join_sorted(table: pa.Table, more: pa.Table) -> pa.Table:
    if not len(more):
        return table
    joined = pa.concat_tables([table, more])
    return joined.take(pa.array(np.lexsort((column(joined, "url_key"), column(joined, "domain_key")))))


def as_extracted(collected: pa.Table) -> pa.Table:
    """Rows of UrlsColetadas that no list of ours had, as rows of UrlsExtraidas without links."""
    zeros = {accumulator.name: pa.array(np.zeros(len(collected), accumulator.dtype)) for accumulator in ACCUMULATORS}
    return pa.table(
        {name: zeros[name] if name in zeros else collected.column(name) for name in EXTRACTED.names}, schema=EXTRACTED
    )


def find_tables(
    crawl: Path, log: State, plan: VerifierPlan, seen: int, wanted: Callable[[Kind], bool]
) -> Iterator[tuple[Entry, Path, dict]]:
    """Tables that may hold rows of this block, of the entries in force of these kinds at positions [seen, absorb_to).

    Of each only the slice is read: its pages carry checksums, and the manifest, which is returned too, has that of the
    footer.
    """

    def read_summary(entry: Entry) -> dict:
        return read_input_manifest(crawl / names.cycle(entry.cycle) / names.VERIFIER)["aux"]

    block = absorber(plan.block, plan.blocks, seen)
    for entry, about in find_pending(log, block, read_summary, plan.absorb_to, wanted):
        path = crawl / names.cycle(entry.cycle) / names.VERIFIER / entry.rows_file
        verify_footer(path, about["footer"])
        yield entry, path, about


def open_slices(crawl: Path, log: State, plan: VerifierPlan, seen: int) -> list[KeyedFile]:
    """The AUX that the turn takes in."""
    return [
        KeyedFile(path, AUX, ORDER, None, about["first_keys"], about["last_key"])
        for _, path, about in find_tables(crawl, log, plan, seen, lambda kind: kind.has_aux)
    ]


def read_happened(harvest: Harvest, now_ms: int) -> Happened:
    """Outcomes of the cycle; what has no time happened at `now_ms`."""
    outcome, reason = harvest.collected.column("outcome"), harvest.collected.column("reason")
    code = np.select(
        [is_equal(outcome, ANSWERED), is_equal(outcome, FAILED), is_equal(reason, REASON_ROBOTS)],
        [HAPPENED_ANSWERED, HAPPENED_FAILED, HAPPENED_REFUSED_BY_ROBOTS],
        HAPPENED_REFUSED,
    ).astype(np.uint8)
    order, domain_key, key = sort_pairs(*(np.array(column(harvest.collected, name)) for name in ORDER))
    at_ms = column(harvest.collected, "fetched_at_ms")[order]
    return Happened(
        domain_key,
        key,
        column(harvest.collected, "server_key")[order],
        code[order],
        np.where(at_ms > 0, at_ms, now_ms),
        {name: column(harvest.collected, name)[order] for name in TAKEN},
    )


def is_equal(texts: pa.ChunkedArray, wanted: str) -> np.ndarray:
    return pc.equal(texts, wanted).to_numpy(zero_copy_only=False).astype(bool)


def read_answers(harvest: Harvest, low: int, high: int) -> Answers:
    here = np.flatnonzero(in_interval(column(harvest.metadata, "domain_key"), low, high))
    digests = fixed_bytes(harvest.metadata, "content_digest", METADATA.field("content_digest").type.byte_width)
    return Answers(
        *(column(harvest.metadata, name)[here] for name in ORDER),
        here,
        digests[here],
        *(column(harvest.metadata, name)[here] for name in ANSWER_COLUMNS),
    )
