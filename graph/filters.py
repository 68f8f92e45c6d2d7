"""Which URLs become pages of a graph and which links become its edges: the options of bin/graph build."""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.tables import METADATA
from graph.flags import ANSWERED, KNOWN
from graph.tables import CycleTables
from storage.arrays import Array, Keys, Rows
from storage.tables import column

Mask = npt.NDArray[np.bool_]
VISIT_COLUMNS = ["url_key", "fetched_at_ms", "revisit"]


@dataclass(frozen=True)
class Filters:
    collected: bool = False  # pages: only URLs that were answered
    in_scope: bool = False  # pages: only URLs that the crawl took into R
    nofollow: bool = True  # links: also those that are nofollow
    kinds: int = 0  # links: only of these kinds, as bits; 0: of all
    until_ms: int | None = None  # links: only of visits up to this moment
    newest: bool = False  # links: only those of the newest visit of each page
    link_sources: tuple[str, ...] = ()  # SURT prefixes of what is no page of the collection
    seeds_are_sources: bool = False  # seeds are none either

    def describe(self) -> dict[str, bool | int | list[str] | None]:
        return {**asdict(self), "link_sources": list(self.link_sources)}

    @property
    def can_grow(self) -> bool:
        """Whether a graph of these options only grows with more cycles: what it has then stays right."""
        return not (self.newest or self.seeds_are_sources)

    def are_pages(self, flags: Array) -> Mask | None:
        """Which URLs are pages, by the flags of what is known of them; None: all."""
        wanted = ANSWERED * self.collected | KNOWN * self.in_scope
        return flags & wanted == wanted if wanted else None

    @property
    def link_columns(self) -> list[str]:
        return ["from_key", "to_key"] + ["nofollow"] * (not self.nofollow) + ["kinds"] * bool(self.kinds)

    def are_links(self, links: pa.Table) -> Mask | None:
        """Which rows of Ligacoes count, by their own columns; None: all."""
        kept = None
        if not self.nofollow:
            kept = ~column(links, "nofollow").astype(bool)
        if self.kinds:
            is_kind = column(links, "kinds") & np.uint32(self.kinds) != 0
            kept = is_kind if kept is None else kept & is_kind
        return kept

    @property
    def needs_visits(self) -> bool:
        return self.newest or self.until_ms is not None


@dataclass(frozen=True)
class Visits:
    """The full answers of one cycle; sorted by key, each key once, with the newest answer of the cycle."""

    key: Keys
    at_ms: Rows


def read_visits(tables: CycleTables, name: str, until_ms: int | None) -> Visits:
    """Answers that say no more than an earlier one (304, identical content) count for nothing: its links stay."""
    read = list(tables.read(name, METADATA, VISIT_COLUMNS, 1 << 20))
    rows = pa.concat_tables(read) if read else METADATA.empty_table().select(VISIT_COLUMNS)
    key, at_ms = column(rows, "url_key"), column(rows, "fetched_at_ms")
    kept = ~column(rows, "revisit").astype(bool)
    if until_ms is not None:
        kept &= at_ms <= until_ms
    key, at_ms = key[kept], at_ms[kept]
    order = np.lexsort((at_ms, key))
    key, at_ms = key[order], at_ms[order]
    is_last = np.append(key[1:] != key[:-1], True)[: len(key)]
    return Visits(key[is_last], at_ms[is_last])
