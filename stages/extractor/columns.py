"""Gathers rows and links, and makes the tables of them that contract/tables.py declares."""

from collections.abc import Callable
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contract.accumulators import ACCUMULATORS, DAY_MS, HANDED_ON, SHARED_NAMES, gifts, share_out
from contract.accumulators import Links as FollowedLinks
from contract.tables import EXTRACTED, LINKS, ORDER, REJECTED, TARGETS
from contract.url import Keys, server_of
from stages.extractor.reading import Links
from storage.arrays import bound, starts_of_runs
from storage.tables import column

DAYS_MAX = 0xFFFF  # of a column of u16: the year 2149


class Rows:
    """Rows of a table keyed by URL."""

    def __init__(self, schema: pa.Schema, order: tuple[str, ...] = ORDER):
        self._schema = schema
        self._order = order
        self._rows: list[tuple] = []
        self.append = self._rows.append

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> pa.Table:
        """The rows, sorted. Rows with equal keys, which are rare, keep the order in which they came."""
        arrays = [
            pa.array(list(map(itemgetter(index), self._rows)), field.type) for index, field in enumerate(self._schema)
        ]
        return sort_by(pa.table(arrays, schema=self._schema), self._order)


class PageLinks(NamedTuple):
    """One page as its links need it."""

    key: int
    domain_key: int
    target_depth: int
    rows: int  # of Links
    amounts: tuple[int, ...]  # per accumulator of HANDED_ON: what the page took along for its followed targets
    visited_at_ms: int = 0
    is_counted: bool = False  # its links were counted at an earlier visit: it adds nothing to sums
    content: bytes = b""  # digest by which a repeated page is found; empty where none is looked for
    relevance: int = 0  # what its text is worth to a topic


class LinkRows:
    """The links of a cycle: one row per page and target. The text of each URL is kept once, where it is needed.

    REQUIRES: no call of extend() or unfollow() after the first table was made.
    """

    def __init__(self):
        self._pages: list[PageLinks] = []  # in the order of their rows in _pieces
        self._pieces: list[Links] = []
        self._urls: dict[int, str] = {}

    def extend(self, pages: list[PageLinks], links: Links) -> None:
        """Adds the links of pages, page after page."""
        self._pages += pages
        self._pieces.append(links)
        self._urls |= links.urls
        links.urls = {}

    def unfollow(self, find: Callable[[list[PageLinks]], np.ndarray]) -> int:
        """Follows no links of the pages that `find` marks (bool, per page); how many would have been followed."""
        refused = self._followed & find(self._pages)[self._page_of_rows]
        self._followed = self._followed & ~refused
        return int(refused.sum())

    def _column(self, name: str, dtype: type) -> np.ndarray:
        return np.concatenate(
            [np.empty(0, dtype), *(np.frombuffer(getattr(piece, name), dtype) for piece in self._pieces)]
        )

    @cached_property
    def _to_key(self) -> np.ndarray:
        return self._column("to_key", np.uint64)

    @cached_property
    def _followed(self) -> np.ndarray:
        return self._column("followed", bool)

    @cached_property
    def _by_target(self) -> np.ndarray:
        """Row numbers in the order of the targets' keys; stable."""
        return np.argsort(self._to_key, kind="stable")

    @cached_property
    def _page_of_rows(self) -> np.ndarray:
        """The index of each row's page."""
        return np.repeat(np.arange(len(self._pages)), [page.rows for page in self._pages])

    def links(self) -> pa.Table:
        """Ligacoes, sorted by (from_key, to_key)."""
        anchors = [anchor for piece in self._pieces for anchor in piece.anchors]
        from_key = np.array([page.key for page in self._pages], np.uint64)
        columns = {
            "from_key": from_key[self._page_of_rows],
            "to_key": self._to_key,
            "kinds": self._column("kinds", np.uint32),
            "nofollow": self._column("nofollow", bool),
            "followed": self._followed,
            "anchor": pa.array(anchors, pa.string())
            if anchors
            else pa.repeat(pa.scalar("", pa.string()), len(self._to_key)),
        }
        rank_of_pages = np.unique(from_key, return_inverse=True)[1]
        order = self._by_target
        for shift in (0, 16):  # digits of 16 bits, which numpy sorts by counting
            digits = (rank_of_pages[self._page_of_rows[order]] >> shift).astype(np.uint16)
            order = order[np.argsort(digits, kind="stable")] if digits.any() else order
        return pa.table(columns, schema=LINKS).take(pa.array(order))

    def targets(self) -> pa.Table:
        """Alvos: key and text of each target that UrlsExtraidas does not have, once, sorted by key."""
        keys = np.setdiff1d(self._to_key, self._to_key[self._followed])
        return pa.table(
            {"key": keys, "url": pa.array([self._urls[key] for key in keys.tolist()], pa.string())}, schema=TARGETS
        )

    @cached_property
    def _followed_of_pages(self) -> np.ndarray:
        """The number of followed targets of each page, u64."""
        return np.bincount(self._page_of_rows[self._followed], minlength=len(self._pages)).astype(np.uint64)

    @cached_property
    def _is_counted(self) -> np.ndarray:
        return np.array([page.is_counted for page in self._pages], bool)

    @property
    def followed_again(self) -> int:
        """The number of followed targets of pages that were counted before."""
        return int(self._followed_of_pages[self._is_counted].sum())

    @cached_property
    def _shares(self) -> dict[str, np.ndarray]:
        """Per accumulator of HANDED_ON: what each page gives to each of its followed targets, u64."""
        amounts = np.array([page.amounts for page in self._pages], np.uint64).reshape(-1, len(HANDED_ON))
        amounts[self._is_counted] = 0
        return {one.name: share_out(one, amount, self._followed_of_pages) for one, amount in zip(HANDED_ON, amounts.T)}

    def handed_on(self) -> dict[str, dict[int, int]]:
        """Per shared accumulator: what each page gave to all its targets together, by key; 0 is left out."""
        given = {name: self._shares[name] * self._followed_of_pages for name in SHARED_NAMES}
        return {
            name: {self._pages[index].key: int(amount[index]) for index in np.flatnonzero(amount).tolist()}
            for name, amount in given.items()
        }

    def extracted(self, keys: Keys) -> pa.Table:
        """UrlsExtraidas: each followed target once, with its least depth and what its pages bring to it."""
        rows = self._by_target[self._followed[self._by_target]]
        to_key, page = self._to_key[rows], self._page_of_rows[rows]
        starts = starts_of_runs(to_key)
        url_key = to_key[starts]
        depth = np.array([page.target_depth for page in self._pages], np.uint8)[page]
        urls = [self._urls[key] for key in url_key.tolist()]
        servers = [keys.server(server_of(url)) for url in urls]
        domain_key = np.array([server.domain_key for server in servers], np.uint64)
        given = gifts(
            FollowedLinks(
                page,
                np.repeat(domain_key, np.diff(np.append(starts, len(page)))),
                to_key == np.array([one.key for one in self._pages], np.uint64)[page],
                self._column("lastmod_s", np.uint32)[rows],
                np.array([one.domain_key for one in self._pages], np.uint64),
                self._is_counted,
                np.array([min(max(one.visited_at_ms, 0) // DAY_MS, DAYS_MAX) for one in self._pages], np.uint16),
                np.array([one.relevance for one in self._pages], np.uint32),
                self._shares,
            )
        )
        table = pa.table(
            {
                "domain_key": domain_key,
                "url_key": url_key,
                "server_key": np.array([server.key for server in servers], np.uint64),
                "url": pa.array(urls, pa.string()),
                "depth": np.minimum.reduceat(depth, starts) if len(starts) else depth,
                **{one.name: bound(one.combine(given[one.name], starts), one.dtype) for one in ACCUMULATORS},
            },
            schema=EXTRACTED,
        )
        return sort_by(table, ORDER)


class RejectedRows:
    """Rejected links, by rule and by server of their targets."""

    def __init__(self):
        self._rows: dict[tuple[str, str], list] = {}

    def add(self, rejected: dict[tuple[str, str], list]) -> None:
        for rule_and_server, (links, example) in rejected.items():
            self._rows.setdefault(rule_and_server, [0, example])[0] += links

    def table(self) -> pa.Table:
        """UrlsRejeitadas, sorted by server and rule; each row has the first URL that was rejected."""
        rows = sorted((server, rule, links, example) for (rule, server), (links, example) in self._rows.items())
        columns = list(zip(*rows)) or [()] * len(REJECTED)
        return pa.table([pa.array(values, field.type) for values, field in zip(columns, REJECTED)], schema=REJECTED)

    def by_rule(self, rules: tuple[str, ...]) -> dict[str, int]:
        counts = dict.fromkeys(rules, 0)
        for (rule, _), (links, _) in self._rows.items():
            counts[rule] += links
        return counts


def mark_repeated(digests: pa.Array, unknown: bytes) -> np.ndarray:
    """Marks values that an earlier row has too; the value `unknown` repeats nothing."""
    seen: set[bytes] = {unknown}
    values = digests.to_pylist()
    marks = np.zeros(len(values), bool)
    for row, value in enumerate(values):
        marks[row] = value in seen and value != unknown
        seen.add(value)
    return marks


def sort_by(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """The rows sorted by these columns of numbers, the first column first; stable."""
    return table.take(pa.array(np.lexsort([column(table, name) for name in reversed(names)])))
