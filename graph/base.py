"""The earlier graph, which a build extends: what it has is neither read nor sorted again.

New pages come between the old ones, so the numbers of old pages move, but their order stays. Old edges with moved
numbers are therefore still sorted, and what a cycle adds is merged with them. So it is with servers and domains. Links
whose target had no page are kept beside the graph, because a later cycle may bring its text.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graph.csr import join_pairs
from graph.folder import BACKWARD, DOMAINS, FORWARD, PAGES, SERVERS, Graph
from graph.levels import DOMAIN_KEY, ServerOf
from graph.page_keys import NO_PAGE, SOURCE_NUMBER, PageKeys
from storage.arrays import Array, Keys, Rows, open_array
from storage.columns import PlainWriter
from storage.side_by_side import Columns

Bools = npt.NDArray[np.bool_]
UNKNOWN_TARGETS = {"unknown_targets.to_key.npy": "<u8", "unknown_targets.source.npy": "<u4"}


class SharedWithBase(Exception):
    """A new URL has a key that is taken: which of the two keeps it, only a build of the whole can say."""


class Base:
    """`graph` is none where a build begins with nothing."""

    def __init__(self, graph: Graph | None, scratch: Path, numbers_at_once: int):
        self._graph, self._scratch, self._at_once = graph, scratch, numbers_at_once
        self._keys = PageKeys(graph.folder) if graph else None
        self._moved: dict[str, Array] = {}
        if graph is not None:
            shutil.copyfile(graph.folder / "pages.collected.npy", scratch / "collected.npy")
            self.collected = np.load(scratch / "collected.npy", mmap_mode="r+")
            self._server_of = ServerOf(graph.first_pages, numbers_at_once)
            self._domain_key = open_array(graph.folder / f"servers.{DOMAIN_KEY}", "<u8")

    @property
    def is_empty(self) -> bool:
        return self._graph is None

    @property
    def counts_that_stay(self) -> dict[str, int]:
        """Of links, but for those that are read once more and those that the edges tell."""
        counts = self._graph.manifest["counts"] if self._graph else {}
        return {name: counts[name] for name in counts if name not in ("no_target", "repeated")}

    @property
    def unknown_count(self) -> int:
        return int(self._graph.manifest["counts"]["no_target"]) if self._graph else 0

    def find(self, keys: Keys) -> Rows:
        """As PageKeys.find: the number of the page of each key (sorted, each once), NO_PAGE or LINK_SOURCE."""
        return self._keys.find(keys) if self._keys else np.full(len(keys), NO_PAGE, np.int64)

    def note_answered(self, numbers: Rows, is_answered: Bools) -> None:
        """Pages that were answered now, whatever was known of them."""
        self.collected[numbers[is_answered & (numbers >= 0)]] = 1

    def expect_domains(self, numbers: Rows, marks: Array, bits: int) -> None:
        """SharedWithBase unless the pages are of the domains whose keys begin with these bits, 0 for not known."""
        is_judged = (numbers >= 0) & (marks > 0)
        domain_keys = self._domain_key[self._server_of(numbers[is_judged])]
        if (domain_keys >> np.uint64(64 - bits) != marks[is_judged]).any():
            raise SharedWithBase

    def texts(self, frames_at_once: int) -> Iterator[Any]:
        """The URLs of all pages, in their order."""
        return iter(()) if self.is_empty else self._graph.pages.texts.batches(frames_at_once)

    def begin_moving(self) -> PlainWriter:
        """Takes the new number of each page, in their order."""
        return PlainWriter(self._scratch / "moved.npy", "<u4")

    def open_moved(self, first_page: Array, domain: Array) -> None:
        """After numbering: `first_page` and `domain` are those of the new servers."""
        if self.is_empty:
            return
        pages = open_array(self._scratch / "moved.npy", "<u4")
        old_first, old_domain = self._graph.first_pages, self._graph.domain_of_server
        servers = np.asarray(ServerOf(first_page, self._at_once)(pages[old_first[:-1]]))
        domains = np.zeros(int(old_domain.max()) + 1, domain.dtype)
        domains[old_domain] = domain[servers]
        self._moved = dict(zip((PAGES, SERVERS, DOMAINS), (pages, servers, domains)))

    def keys(self) -> Iterator[Columns]:
        """The keys of all pages with their new numbers (u32)."""
        if self._keys is None:
            return
        for keys, numbers in self._keys.pieces(self._at_once):
            moved, is_page = np.full(len(numbers), SOURCE_NUMBER, np.uint32), numbers != SOURCE_NUMBER
            moved[is_page] = self._moved[PAGES][numbers[is_page]]
            yield keys, moved

    def unknown_targets(self) -> Iterator[tuple[Keys, Array]]:
        """(key of the target, number of the page u32) of each link without a target; sorted by key."""
        if self.is_empty:
            return
        to_key, source = (open_array(self._graph.folder / name, kind) for name, kind in UNKNOWN_TARGETS.items())
        for start in range(0, len(to_key), self._at_once):
            part = slice(start, start + self._at_once)
            yield to_key[part], self._moved[PAGES][source[part]]

    def edges(self, level: str, direction: str, nodes: int) -> Iterator[Columns]:
        """The edges of a level as pairs of new numbers, sorted; with weights (u32), except of pages."""
        if self.is_empty:
            return
        about, moved = self._graph.level(level), self._moved[level]
        csr = {FORWARD: about.links, BACKWARD: about.backlinks}[direction]
        for sources, targets, weights in csr.edge_pieces(self._at_once):
            pairs = join_pairs(moved[sources], moved[targets], nodes)
            yield (pairs,) if weights is None else (pairs, weights)
