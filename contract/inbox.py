"""What a file of inbox/ becomes: the table of a seed or reconsider cycle, with a copy of the file beside it.

Such a cycle runs no stage. Its verifier's folder is written by this module alone: for the supervisor when it takes the
file in, and for `bin/verifier --repair` when a table is damaged. The table is a function of the plan and the copy, so
that it can be made again.
"""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from contract import aux_rows, names
from contract.accumulators import ACCUMULATORS
from contract.canonical import Canonical
from contract.crawl_folder import CrawlFolder
from contract.log import KINDS, RECONSIDER, SEED
from contract.plan import Plan
from contract.seeds import parse_lines, read_lines
from contract.tables import AUX, AUX_DISTINCT, ORDER, RECONSIDERED
from contract.url import Keys, server_of
from storage.errors import Damaged, UnknownFormat
from storage.publish import FORMAT, confirm_published, encode_json, publishing, read_manifest
from storage.tables import column, footer_digest, read_table, write_table

DECISION_SUFFIX = ".parquet"  # of a file that bin/reconsider left; a file of any other name holds seeds


class Taken(NamedTuple):
    table: pa.Table  # for the blocks to absorb
    counts: dict[str, int]


def kind_of(name: str) -> str:
    """What a file of inbox/ of this name asks for."""
    return RECONSIDER if name.endswith(DECISION_SUFFIX) else SEED


def is_taken(crawl: CrawlFolder, plan: Plan) -> bool:
    """Whether the cycle has published its table, which is durable then."""
    return confirm_published(folder_of(crawl.path, plan))


def take(crawl: CrawlFolder, plan: Plan, source: Path) -> dict[str, Any]:
    """Publishes the table of the plan's cycle unless that was done before; returns the counts of its manifest."""
    if is_taken(crawl, plan):
        return dict(read_manifest(folder_of(crawl.path, plan))["counts"])
    return publish_taken(crawl, crawl.path, plan, source)


def publish_taken(crawl: CrawlFolder, out: Path, plan: Plan, source: Path) -> dict[str, Any]:
    """Publishes below `out` what the plan's cycle takes in from the file `source`; returns the counts."""
    folder = folder_of(out, plan)
    taken = READERS[plan.kind](crawl, plan, source)
    counts = {"kind": plan.kind, "cycle": plan.cycle, **taken.counts}
    with publishing(folder) as manifest:
        shutil.copyfile(source, folder / names.taken_in(plan.inbox))
        path = folder / KINDS[plan.kind].table
        write_table(path, taken.table, AUX_DISTINCT if KINDS[plan.kind].has_aux else ())
        (folder / names.REPORT).write_bytes(encode_json({"format": FORMAT, **counts}))
        manifest |= {
            "stage": names.VERIFIER,
            "cycle": plan.cycle,
            "counts": counts,
            "aux": {**aux_rows.summarise(column(taken.table, "domain_key")), "footer": footer_digest(path)},
        }
    return counts


def folder_of(root: Path, plan: Plan) -> Path:
    return root / names.cycle(plan.cycle) / names.VERIFIER


def take_seeds(crawl: CrawlFolder, plan: Plan, source: Path) -> Taken:
    table, bad = read_seeds(source, crawl.keys(), Canonical(plan.config.url))
    return Taken(table, {"new": len(table), "bad_lines": bad})


def take_decision(crawl: CrawlFolder, plan: Plan, source: Path) -> Taken:
    table = read_decision(source)
    servers = int(column(table, "is_server").sum())
    return Taken(table, {"urls": len(table) - servers, "servers": servers})


READERS = {SEED: take_seeds, RECONSIDER: take_decision}  # by kind: one for each that takes in a file of inbox/


def read_seeds(path: Path, keys: Keys, canonical: Canonical) -> tuple[pa.Table, int]:
    """The distinct URLs of a file as rows of AUX, sorted by (domain key, URL key), and the number of bad lines."""
    with open(path, "rb") as stream:
        lines = list(parse_lines(read_lines(stream)))
    urls = sorted({canonical.fold(line.url) for line in lines if line.url})  # folded as links are: one request for both
    servers = [keys.server(server_of(url)) for url in urls]
    table = pa.table(
        {
            "domain_key": pa.array([server.domain_key for server in servers], pa.uint64()),
            "url_key": pa.array([keys.of(url) for url in urls], pa.uint64()),
            "server_key": pa.array([server.key for server in servers], pa.uint64()),
            "url": pa.array(urls, pa.string()),
            "depth": np.zeros(len(urls), np.uint8),
            **{one.name: np.full(len(urls), one.of_seed, one.dtype) for one in ACCUMULATORS},
        },
        schema=AUX,
    )
    return sort_by_keys(table), sum(bool(line.problem) for line in lines)


def read_decision(path: Path) -> pa.Table:
    """The rows that bin/reconsider left, in order; Damaged where they are not in order."""
    try:
        table = read_table(path, RECONSIDERED)
    except UnknownFormat as error:  # not a file of ours: set aside, or it would stop every run
        raise Damaged(path, str(error)) from None
    if not sort_by_keys(table).equals(table):
        raise Damaged(path, "expected rows sorted by domain key and URL key, found others")
    return table


def sort_by_keys(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.lexsort([column(table, name) for name in reversed(ORDER)])))
