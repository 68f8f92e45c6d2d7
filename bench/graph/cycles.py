"""Writes committed cycles with tables of links, as the extractor does, without pages: what a graph is made of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.log import CRAWL, Entry, commit
from contract.tables import ANSWERED, COLLECTED, EXTRACTED, LINKS, METADATA, TARGETS
from storage.publish import publishing
from storage.tables import TableWriter


@dataclass(frozen=True)
class CycleOfLinks:
    """Each a table by its columns; columns that are not given are zero or empty."""

    collected: dict[str, Any]  # url, url_key
    extracted: dict[str, Any]  # url, url_key
    links: dict[str, Any]  # from_key, to_key; sorted by both
    metadata: dict[str, Any] | None = None  # default: none of the pages
    targets: dict[str, Any] | None = None  # key, url; default: no such table


def write_cycle(crawl: CrawlFolder, cycle: int, tables: CycleOfLinks) -> Path:
    """The extractor's folder of a cycle that is committed then."""
    folder = crawl.path / names.cycle(cycle) / names.EXTRACTOR
    collected = {"outcome": ANSWERED, **tables.collected}
    with publishing(folder) as manifest:
        manifest["counts"] = {}
        fill(folder / names.COLLECTED, COLLECTED, collected, ("url", "url_key"))
        fill(folder / names.EXTRACTED, EXTRACTED, tables.extracted, ("url", "url_key"))
        fill(folder / names.METADATA, METADATA, tables.metadata or {"url_key": np.empty(0, np.uint64)}, ("url_key",))
        fill(folder / names.LINKS, LINKS, tables.links, ("to_key",))
        if tables.targets is not None:
            fill(folder / names.TARGETS, TARGETS, tables.targets, ("key", "url"))
    commit(crawl.path, Entry(CRAWL, cycle, crawl.blocks_first))
    return folder


def fill(path: Path, schema: pa.Schema, given: dict[str, Any], distinct: tuple[str, ...]) -> None:
    rows = max(len(values) for values in given.values() if not isinstance(values, (str, bool, int)))
    columns = []
    for field in schema:
        value = given.get(field.name, default_of(field.type))
        is_column = not isinstance(value, (str, bytes, bool, int)) and value is not None
        columns.append(pa.array(value, field.type) if is_column else pa.repeat(pa.scalar(value, field.type), rows))
    writer = TableWriter(path, schema, distinct)
    writer.append(pa.Table.from_arrays(columns, schema=schema))
    writer.close()


def default_of(kind: pa.DataType) -> str | bytes | bool | int:
    if pa.types.is_string(kind):
        return ""
    if pa.types.is_fixed_size_binary(kind):
        return bytes(kind.byte_width)
    return False if pa.types.is_boolean(kind) else 0
