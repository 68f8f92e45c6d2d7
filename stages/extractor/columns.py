"""Rows gathered as columns and written as the tables that contract/tables.py declares."""

from array import array

import numpy as np
import pyarrow as pa

from contract.tables import EXTRACTED, LINKS, ORDER
from contract.url import Keys, server_of
from stages.extractor.links import Judged
from storage.arrays import starts_of_runs
from storage.tables import column


class Rows:
    """Rows of a table keyed by URL, as one list a column."""

    def __init__(self, schema: pa.Schema):
        self._schema = schema
        self._columns: list[list] = [[] for _ in schema]

    def __len__(self) -> int:
        return len(self._columns[0])

    def append(self, row: tuple) -> None:
        for values, value in zip(self._columns, row, strict=True):
            values.append(value)

    def table(self) -> pa.Table:
        """The rows in the order of every table keyed by URL; equal keys, if ever, in the order they came."""
        arrays = [pa.array(values, field.type) for values, field in zip(self._columns, self._schema)]
        return sort_by(pa.table(arrays, schema=self._schema), ORDER)


class LinkRows:
    """The links of a cycle: one row a page and target in scope; text is kept once for each URL that is followed."""

    def __init__(self):
        self._from_key, self._to_key = array("Q"), array("Q")
        self._kinds, self._depth = array("I"), array("B")
        self._nofollow, self._followed = array("B"), array("B")
        self._urls: dict[int, str] = {}

    def extend(self, from_key: int, depth: int, judged: Judged) -> None:
        """Adds the links of a page; `depth` is that of its targets."""
        count = len(judged.keys)
        self._from_key.extend([from_key] * count)
        self._depth.extend([depth] * count)
        self._to_key.extend(judged.keys)
        self._kinds.extend(judged.kinds)
        self._nofollow.extend(judged.nofollow)
        self._followed.extend(judged.followed)
        for key, url, followed in zip(judged.keys, judged.urls, judged.followed):
            if followed and key not in self._urls:
                self._urls[key] = url

    def links(self) -> pa.Table:
        """Ligacoes, sorted by (from_key, to_key)."""
        columns = {
            "from_key": np.array(self._from_key, np.uint64), "to_key": np.array(self._to_key, np.uint64),
            "kinds": np.array(self._kinds, np.uint32), "nofollow": np.array(self._nofollow, bool),
            "followed": np.array(self._followed, bool),
        }
        return sort_by(pa.table(columns, schema=LINKS), ("from_key", "to_key"))

    def extracted(self, keys: Keys) -> pa.Table:
        """UrlsExtraidas: each followed target once, with its least depth and the number of pages that link to it."""
        followed = np.flatnonzero(np.array(self._followed, bool))
        to_key = np.array(self._to_key, np.uint64)[followed]
        order = np.argsort(to_key, kind="stable")
        starts = starts_of_runs(to_key[order])
        url_key = to_key[order][starts]
        depth = np.array(self._depth, np.uint8)[followed][order]
        urls = [self._urls[key] for key in url_key.tolist()]
        servers = [keys.server(server_of(url)) for url in urls]
        table = pa.table({
            "domain_key": np.array([server.domain_key for server in servers], np.uint64), "url_key": url_key,
            "server_key": np.array([server.key for server in servers], np.uint64), "url": pa.array(urls, pa.string()),
            "depth": np.minimum.reduceat(depth, starts) if len(starts) else depth,
            "links_in": np.diff(np.append(starts, len(order))).astype(np.uint32),
        }, schema=EXTRACTED)
        return sort_by(table, ORDER)


def sort_by(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """The rows by those u64 columns, the first one first; stable."""
    return table.take(pa.array(np.lexsort([column(table, name) for name in reversed(names)])))
