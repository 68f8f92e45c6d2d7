"""Rows gathered as columns and written as the tables that contract/tables.py declares."""

from functools import cached_property
from operator import itemgetter

import numpy as np
import pyarrow as pa

from contract.tables import EXTRACTED, LINKS, ORDER, REJECTED, TARGETS
from contract.url import Keys, server_of
from stages.extractor.reading import Links
from storage.arrays import starts_of_runs
from storage.tables import column


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
        """The rows in the order of every table keyed by URL; equal keys, if ever, in the order they came."""
        arrays = [
            pa.array(list(map(itemgetter(place), self._rows)), field.type) for place, field in enumerate(self._schema)
        ]
        return sort_by(pa.table(arrays, schema=self._schema), self._order)


class LinkRows:
    """The links of a cycle: one row a page and target; text is kept once for each URL that is needed. Once the first table is asked for, none is added."""

    def __init__(self):
        self._pages: list[
            tuple[int, int, int, int]
        ] = []  # from_key, depth of the targets, rows, cash to hand on; rows follow each other
        self._pieces: list[Links] = []
        self._urls: dict[int, str] = {}

    def extend(self, pages: list[tuple[int, int, int, int]], links: Links) -> None:
        """Adds the links of pages, each given by its key, the depth of its targets, the number of its rows, and what it hands on to them."""
        self._pages += pages
        self._pieces.append(links)
        self._urls |= links.urls
        links.urls = {}

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
        """The rows in the order of their targets' keys; stable."""
        return np.argsort(self._to_key, kind="stable")

    @cached_property
    def _page_of_rows(self) -> np.ndarray:
        return np.repeat(np.arange(len(self._pages)), [page[2] for page in self._pages])

    def _of_pages(self, place: int, dtype: type) -> np.ndarray:
        """A value of each page."""
        return np.array([page[place] for page in self._pages], dtype)

    def links(self) -> pa.Table:
        """Ligacoes, sorted by (from_key, to_key)."""
        anchors = [anchor for piece in self._pieces for anchor in piece.anchors]
        from_key = self._of_pages(0, np.uint64)
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
        for shift in (0, 16):  # digits that numpy sorts by counting
            digits = (rank_of_pages[self._page_of_rows[order]] >> shift).astype(np.uint16)
            order = order[np.argsort(digits, kind="stable")] if digits.any() else order
        return pa.table(columns, schema=LINKS).take(pa.array(order))

    def targets(self) -> pa.Table:
        """Alvos: key and text of the targets that UrlsExtraidas does not have, each once, by key."""
        keys = np.setdiff1d(self._to_key, self._to_key[self._followed])
        return pa.table(
            {"key": keys, "url": pa.array([self._urls[key] for key in keys.tolist()], pa.string())}, schema=TARGETS
        )

    @cached_property
    def _followed_of_pages(self) -> np.ndarray:
        """How many followed targets each page has."""
        return np.bincount(self._page_of_rows[self._followed], minlength=len(self._pages)).astype(np.uint64)

    @cached_property
    def _shares(self) -> np.ndarray:
        """What each page hands on to each of its followed targets, u64; the rest of the division stays with it."""
        return self._of_pages(3, np.uint64) // np.maximum(self._followed_of_pages, 1)

    def handed_on(self) -> dict[int, int]:
        """What pages hand on in all, by key; those that hand on nothing are not there."""
        given = self._shares * self._followed_of_pages
        return {self._pages[place][0]: int(given[place]) for place in np.flatnonzero(given).tolist()}

    def extracted(self, keys: Keys) -> pa.Table:
        """UrlsExtraidas: each followed target once, with its least depth and the number of pages that link to it."""
        rows = self._by_target[self._followed[self._by_target]]
        to_key, page = self._to_key[rows], self._page_of_rows[rows]
        starts = starts_of_runs(to_key)
        url_key = to_key[starts]
        depth, cash = self._of_pages(1, np.uint8)[page], self._shares[page]
        urls = [self._urls[key] for key in url_key.tolist()]
        servers = [keys.server(server_of(url)) for url in urls]
        table = pa.table(
            {
                "domain_key": np.array([server.domain_key for server in servers], np.uint64),
                "url_key": url_key,
                "server_key": np.array([server.key for server in servers], np.uint64),
                "url": pa.array(urls, pa.string()),
                "depth": np.minimum.reduceat(depth, starts) if len(starts) else depth,
                "links_in": np.diff(np.append(starts, len(rows))).astype(np.uint32),
                "cash": np.add.reduceat(cash, starts) if len(starts) else cash,
            },
            schema=EXTRACTED,
        )
        return sort_by(table, ORDER)


class RejectedRows:
    """What was rejected and why: links by rule and server of their targets."""

    def __init__(self):
        self._rows: dict[tuple[str, str], list] = {}

    def add(self, rejected: dict[tuple[str, str], list]) -> None:
        for place, (links, example) in rejected.items():
            self._rows.setdefault(place, [0, example])[0] += links

    def table(self) -> pa.Table:
        """UrlsRejeitadas, by server and rule, each with the first URL that was met."""
        rows = sorted((server, rule, links, example) for (rule, server), (links, example) in self._rows.items())
        columns = list(zip(*rows)) or [()] * len(REJECTED)
        return pa.table([pa.array(values, field.type) for values, field in zip(columns, REJECTED)], schema=REJECTED)

    def by_rule(self, rules: tuple[str, ...]) -> dict[str, int]:
        counts = dict.fromkeys(rules, 0)
        for (rule, _), (links, _) in self._rows.items():
            counts[rule] += links
        return counts


def mark_repeated(digests: pa.Array, unknown: bytes) -> np.ndarray:
    """Which values an earlier row has already; the unknown one repeats nothing."""
    seen: set[bytes] = {unknown}
    values = digests.to_pylist()
    marks = np.zeros(len(values), bool)
    for place, value in enumerate(values):
        marks[place] = value in seen and value != unknown
        seen.add(value)
    return marks


def sort_by(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """The rows by those columns of numbers, the first one first; stable."""
    return table.take(pa.array(np.lexsort([column(table, name) for name in reversed(names)])))
