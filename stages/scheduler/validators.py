"""What a page was like at its last full answer: validators for a conditional request, from the tables of its cycles.

MetadadosUrlsColetadas of each cycle is opened once, and only the row groups that are needed are read. A table that is
missing or damaged gives no validators: the page is then asked without a condition.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract import names
from contract.tables import METADATA
from storage.arrays import Array, Rows
from storage.errors import Damaged, UnknownFormat
from storage.tables import ROW_GROUP_ROWS, column, open_table, read_groups

TEXTS = ("etag", "last_modified", "payload_digest")
THREADS = 2  # most of the time goes to opening tables


class Validators(NamedTuple):
    """Columns of texts, as objects; empty where nothing is known."""

    etag: Array
    last_modified: Array
    payload_digest: Array


def no_validators(rows: int) -> Validators:
    return Validators(*(np.full(rows, "", object) for _ in TEXTS))


def read_validators(crawl: Path, cycle: Array, row: Array, key: npt.NDArray[np.uint64]) -> Validators:
    """Of pages whose last full answers stand at these rows of the tables of these cycles, in the order asked."""
    validators = no_validators(len(cycle))
    order = np.lexsort((row, cycle))
    edges = np.append(np.flatnonzero(np.diff(cycle[order].astype(np.int64), prepend=-1)), len(order)).tolist()
    groups = [order[low:high] for low, high in zip(edges, edges[1:])]

    def read(which: Rows) -> list[Array] | None:
        path = crawl / names.cycle(int(cycle[which[0]])) / names.EXTRACTOR / names.METADATA
        try:
            return read_rows(path, row[which].astype(np.int64), key[which])
        except (Damaged, UnknownFormat):
            return None

    with ThreadPoolExecutor(THREADS) as pool:
        for which, found in zip(groups, pool.map(read, groups)):
            if found is not None:
                for values, part in zip(validators, found):
                    values[which] = part
    return validators


def read_rows(path: Path, rows: Rows, key: npt.NDArray[np.uint64]) -> list[Array]:
    """The texts at these rows (rising); empty where a row is not that of the URL of this key."""
    with open_table(path, METADATA) as file:
        if int(rows[-1]) >= file.metadata.num_rows:
            raise Damaged(path, f"expected more than {rows[-1]} rows, found {file.metadata.num_rows}")
        group, within = np.divmod(rows, ROW_GROUP_ROWS)
        needed, number = np.unique(group, return_inverse=True)
        table = read_groups(path, file, needed.tolist(), ["url_key", *TEXTS])
    at = number * ROW_GROUP_ROWS + within
    is_same = column(table, "url_key")[at] == key
    return [np.where(is_same, column(table.select([name]).take(pa.array(at)), name), "") for name in TEXTS]
