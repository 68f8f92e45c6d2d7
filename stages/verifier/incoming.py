"""What a turn merges into its block: own rows, slices of AUX, and what happened to the URLs of the list."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import aux_rows, names
from contract.abandoned import read_abandoned_list
from contract.blocks import in_interval, interval
from contract.log import ABANDON, WITH_AUX, State
from contract.plan import VerifierPlan
from contract.stage import read_input_manifest
from contract.tables import ANSWERED, AUX, COLLECTED, EXTRACTED, FAILED, METADATA, ROBOTS, SERVERS
from storage.arrays import starts_of_runs
from storage.publish import verify
from storage.tables import column, read_table

# What happened to a URL, as a code in an array.
HAPPENED_ANSWERED, HAPPENED_FAILED, HAPPENED_REFUSED_BY_ROBOTS, HAPPENED_REFUSED = range(4)


@dataclass
class Links:
    """Distinct URLs that arrived, by key: u64, sorted, unique."""

    key: np.ndarray
    server_key: np.ndarray
    domain_key: np.ndarray
    depth: np.ndarray  # least
    links_in: np.ndarray  # sum, u64
    linked: np.ndarray  # bool: found by a link or a seed; false: only in somebody else's list
    rows: int  # that came by links and seeds, repeats included
    urls: pa.ChunkedArray
    first: np.ndarray  # row of `urls` of each key

    def url(self, which: np.ndarray) -> list[str]:
        return self.urls.take(pa.array(self.first[which])).to_pylist()


@dataclass
class Happened:
    """What happened to URLs of this block; key is u64, sorted, not always unique (abandoned lists)."""

    key: np.ndarray
    code: np.ndarray


def gather(tables: list[pa.Table], foreign: pa.Table) -> Links:
    """Unites tables of the columns of UrlsExtraidas; `foreign` rows count as no link."""
    table = pa.concat_tables([*tables, foreign]).combine_chunks()
    linked = np.arange(len(table)) < len(table) - len(foreign)
    keys = column(table, "url_key")
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = starts_of_runs(keys)
    first = order[starts]

    def reduce(operation, values):
        return operation.reduceat(values[order], starts) if len(starts) else values[:0]

    return Links(
        key=keys[starts], server_key=column(table, "server_key")[first], domain_key=column(table, "domain_key")[first],
        depth=reduce(np.minimum, column(table, "depth")),
        links_in=reduce(np.add, column(table, "links_in").astype(np.uint64)),
        linked=reduce(np.logical_or, linked), rows=int(linked.sum()), urls=table.column("url"), first=first,
    )


def read_slices(crawl: Path, log: State, plan: VerifierPlan, seen: int) -> list[pa.Table]:
    """The rows of this block in the AUX of the entries in force at positions [seen, absorb_to)."""
    low, high = interval(plan.block, plan.blocks)
    slices = []
    for entry in log.entries[seen:plan.absorb_to]:
        if entry is None or entry.kind not in WITH_AUX:
            continue
        folder = crawl / names.cycle(entry.cycle) / names.VERIFIER
        manifest = read_input_manifest(folder)
        aux = manifest["aux"]
        if aux_rows.may_hold(aux, low, high):
            verify(folder / names.AUX, manifest["files"][names.AUX])
            table = read_table(folder / names.AUX, AUX, row_groups=aux_rows.row_groups(aux, low, high))
            slices.append(table.filter(pa.array(in_interval(column(table, "domain_key"), low, high))))
    return slices


def read_abandoned(crawl: Path, log: State, plan: VerifierPlan, seen: int) -> list[np.ndarray]:
    """Keys of this block in the lists of cycles that were abandoned: they count as failed."""
    low, high = interval(plan.block, plan.blocks)  # by key and not by number: the block may have been split since
    keys = []
    for entry in log.entries[seen:plan.absorb_to]:
        if entry is not None and entry.kind == ABANDON and entry.parents:  # without parents it was no fault of the list
            table = read_abandoned_list(crawl, entry.cycle)
            keys.append(column(table, "url_key")[mask_of(table, low, high)])
    return keys


@dataclass
class Harvest:
    """The extractor's tables of a cycle, divided into this block and the others."""

    own: pa.Table  # of UrlsExtraidas
    spilled: pa.Table  # what goes to AUX
    foreign: pa.Table  # own rows of UrlsColetadas that no list of ours brought, as rows of UrlsExtraidas
    collected: pa.Table  # own rows of UrlsColetadas
    metadata: pa.Table
    servers: pa.Table
    extracted_rows: int
    foreign_spilled: int


def read_harvest(folder: Path, low: int, high: int) -> Harvest:
    extracted = read_table(folder / names.EXTRACTED, EXTRACTED)
    collected = read_table(folder / names.COLLECTED, COLLECTED)
    foreign = collected.filter(collected.column("foreign"))
    foreign_rows = pa.table({**{name: foreign.column(name) for name in ("domain_key", "url_key", "server_key", "url", "depth")},
                             "links_in": pa.array(np.zeros(len(foreign), np.uint32))}, schema=EXTRACTED)
    own = mask_of(extracted, low, high)
    own_foreign = mask_of(foreign_rows, low, high)
    strangers = ~own_foreign & ~np.isin(column(foreign_rows, "url_key"), column(extracted, "url_key"))
    spilled = pa.concat_tables([extracted.filter(pa.array(~own)), foreign_rows.filter(pa.array(strangers))])
    return Harvest(
        own=extracted.filter(pa.array(own)),
        spilled=spilled.take(np.lexsort((column(spilled, "url_key"), column(spilled, "domain_key")))),
        foreign=foreign_rows.filter(pa.array(own_foreign)),
        collected=collected.filter(pa.array(mask_of(collected, low, high))),
        metadata=read_table(folder / names.METADATA, METADATA, columns=["url_key", "domain_key", "fetched_at_ms", "content_digest"]),
        servers=read_table(folder / names.SERVERS, SERVERS),
        extracted_rows=len(extracted), foreign_spilled=int(strangers.sum()),
    )


def mask_of(table: pa.Table, low: int, high: int) -> np.ndarray:
    return in_interval(column(table, "domain_key"), low, high)


def read_happened(collected: pa.Table | None, abandoned: list[np.ndarray]) -> Happened:
    keys = list(abandoned)
    codes = [np.full(len(part), HAPPENED_FAILED, np.uint8) for part in abandoned]
    if collected is not None:
        outcome = column(collected, "outcome")
        reason = column(collected, "reason")
        keys.append(column(collected, "url_key"))
        codes.append(np.select(
            [outcome == ANSWERED, outcome == FAILED, reason == ROBOTS],
            [HAPPENED_ANSWERED, HAPPENED_FAILED, HAPPENED_REFUSED_BY_ROBOTS], HAPPENED_REFUSED,
        ).astype(np.uint8))
    key = np.concatenate([np.empty(0, np.uint64), *keys])
    code = np.concatenate([np.empty(0, np.uint8), *codes])
    order = np.argsort(key, kind="stable")
    return Happened(key[order], code[order])
