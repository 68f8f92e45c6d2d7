"""Finds all about one URL in a crawl's files: its row in R, its page, its cycles, the pages that link to it.

Tables keyed by URL are sorted by domain key, so the statistics of their row groups show which few must be read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contract import names
from contract.accumulators import ACCUMULATORS
from contract.blocks import block_of
from contract.config import LINK_KINDS, Config
from contract.crawl_folder import CrawlFolder
from contract.generation import COLUMNS, SIDE_COLUMNS, open_generation, read_urls
from contract.log import KINDS, History
from contract.pending import find_pending_aux
from contract.plan import open_cycles
from contract.policies import FEATURES
from contract.tables import (
    ANSWERED,
    AUX,
    COLLECTED,
    COLLECTED_STATE,
    EXTRACTED,
    FAILURES,
    FORGOTTEN,
    LINKS,
    METADATA,
    REFUSED_ROWS,
    SERVER_RULES,
    STATES,
    URL_LIST,
)
from contract.url import server_of
from examine.visits import find_listed, find_next
from storage.errors import Damaged
from storage.publish import is_published
from storage.tables import ROW_GROUP_ROWS, column, open_table, read_groups, read_table
from storage.text_segments import NO_TEXT, read_blobs

LINKING_SHOWN = 3  # pages that link to a URL


class Subject(NamedTuple):
    """A canonical URL with its keys in one crawl."""

    url: str
    key: int
    domain_key: int
    block: int


def identify(crawl: CrawlFolder, log: History, url: str) -> Subject:
    keys = crawl.keys()
    domain_key = keys.server(server_of(url)).domain_key
    return Subject(url, keys.of(url), domain_key, block_of(domain_key, log.blocks))


def find_row(path: Path, schema: pa.Schema, subject: Subject, columns: list[str] | None = None) -> dict | None:
    """The row of the URL in a table that is sorted by domain key; none where it has none."""
    with open_table(path, schema) as file:
        index = file.schema_arrow.names.index("domain_key")
        groups = []
        for group in range(file.metadata.num_row_groups):
            statistics = file.metadata.row_group(group).column(index).statistics
            if (
                statistics is None
                or not statistics.has_min_max
                or statistics.min <= subject.domain_key <= statistics.max
            ):
                groups.append(group)
    if not groups:
        return None
    table = read_table(path, schema, columns and list(dict.fromkeys([*columns, "url_key", "domain_key"])), groups)
    rows = np.flatnonzero(
        (column(table, "url_key") == subject.key) & (column(table, "domain_key") == subject.domain_key)
    )
    return table.slice(int(rows[0]), 1).to_pylist()[0] if len(rows) else None


def find_known(crawl: Path, log: History, subject: Subject, config: Config = Config()) -> dict | None:
    """Its row in R with what is known of its server; none where R does not have it."""
    number = log.generation(subject.block)
    generation = open_generation(crawl, subject.block, number)
    row_number = generation.find(subject.domain_key, subject.key)
    if row_number is None:
        return None
    row = {name: int(generation.rows.read(name, row_number, row_number + 1)[0]) for name in COLUMNS}
    (text,) = read_urls(crawl, generation, np.array([row_number]))
    server_row = int(generation.index_servers(np.array([row["server"]]), row_number)[0])
    server = generation.servers.slice(server_row, 1).to_pylist()[0]
    known = {
        "generation": number,
        "text": text,
        "state": STATES[row["state"]],
        "attempts": row["attempts"],
        "depth": row["depth"],
        **{accumulator.name: row[accumulator.name] for accumulator in ACCUMULATORS},
        "features": {name: row[name] for name in FEATURES},
        "server": server,
        "robots": None,
        "collected": None,
        "next": None,
    }
    if server["robots_text"] != int(NO_TEXT):
        position, length = np.array([server["robots_text"]], np.uint64), np.array([server["robots_length"]])
        known["robots"] = read_blobs(crawl / names.TEXT, names.segment, position, length)[0]
    if row["state"] == COLLECTED_STATE:
        side_row = int(np.count_nonzero(generation.rows.read("state", 0, row_number) == COLLECTED_STATE))
        side = {name: generation.side.read(name, side_row, side_row + 1)[0] for name in SIDE_COLUMNS}
        digest = bytes(side.pop("content_digest")).hex()
        known["collected"] = {**{name: int(value) for name, value in side.items()}, "content_digest": digest}
        known["next"] = find_next(generation, side_row, server_row, text.encode() + b"\n", row["lastmod_s"], config)
    return known


def find_page(crawl: Path, collected: dict) -> dict | None:
    """The row of MetadadosUrlsColetadas that the side set points at; none where that table was not kept."""
    path = crawl / names.cycle(collected["cycle"]) / names.EXTRACTOR / names.METADATA
    if not path.exists():
        return None
    group, row = divmod(collected["row"], ROW_GROUP_ROWS)
    with open_table(path, METADATA) as file:
        rows = file.metadata.row_group(group).num_rows if group < file.metadata.num_row_groups else 0
        if row >= rows:
            raise Damaged(path, f"expected a row {collected['row']}, found {file.metadata.num_rows} rows")
        return read_groups(path, file, [group]).slice(row, 1).to_pylist()[0]


def find_pending(crawl: Path, log: History, subject: Subject) -> Iterator[dict]:
    """The AUX that bring it to its block and wait for the block's turn."""
    for entry, path in find_pending_aux(crawl, log, subject.block):
        if row := find_row(path, AUX, subject):
            yield {"cycle": entry.cycle, "depth": row["depth"]}


def find_refusals(crawl: Path, log: History, subject: Subject) -> Iterator[dict]:
    """The turns of its block in which a rule about its whole server refused it, in the order of the log."""
    for entry in log.entries:
        if entry is None or not KINDS[entry.kind].merges:
            continue
        path = crawl / names.cycle(entry.cycle) / names.VERIFIER / names.REFUSED_URLS
        if path.exists() and (row := find_row(path, REFUSED_ROWS, subject)):
            yield {"cycle": entry.cycle, "rule": SERVER_RULES[row["rule"]]}


def find_events(crawl: Path, log: History, subject: Subject) -> Iterator[dict]:
    """Each committed cycle that found it, asked for it or forgot it, in the order of the log.

    `missing`: tables that were not kept.
    """
    for position, entry in enumerate(log.entries):
        if entry is None or not (KINDS[entry.kind].has_aux or KINDS[entry.kind].forgets):
            continue
        folder = crawl / names.cycle(entry.cycle)
        about = {"commit": position, "cycle": entry.cycle}
        if KINDS[entry.kind].forgets:
            tables = [("forgotten", folder / names.VERIFIER / names.FORGOTTEN, FORGOTTEN)]
        elif KINDS[entry.kind].from_inbox:
            tables = [("seeded", folder / names.VERIFIER / names.AUX, AUX)]
        else:
            tables = [
                ("asked", folder / names.EXTRACTOR / names.COLLECTED, COLLECTED),
                ("found", folder / names.EXTRACTOR / names.EXTRACTED, EXTRACTED),
            ]
        for event, path, schema in tables:
            if not path.exists():
                yield {**about, "event": "missing", "file": path.relative_to(crawl).as_posix()}
            elif row := find_row(path, schema, subject):
                row = {name: value for name, value in row.items() if not name.endswith("_key") and name != "url"}
                more = describe_asked(crawl, entry.cycle, row["outcome"], subject) if event == "asked" else {}
                yield {**about, "event": event, **row, **more}


def describe_asked(crawl: Path, cycle: int, outcome: str, subject: Subject) -> dict:
    """Why the cycle listed it, and what came of it, beside its row of UrlsColetadas."""
    folder = crawl / names.cycle(cycle) / names.EXTRACTOR
    listed = {"listed": find_listed(crawl, cycle, subject.key)}
    if outcome != ANSWERED:
        return listed | find_failure(folder, subject)
    path = folder / names.METADATA
    wanted = ["revisit", "content_digest", "status", "etag", "last_modified"]
    page = find_row(path, METADATA, subject, wanted) if path.exists() else None
    return listed | {"page": page and {name: page[name] for name in wanted}}


def find_failure(extractor: Path, subject: Subject) -> dict:
    """Why it was not answered in a cycle; empty where Falhas was not kept. Of a URL's rows the page's is first."""
    path = extractor / names.FAILURES
    row = find_row(path, FAILURES, subject, ["message", "address", "failed_at_ms"]) if path.exists() else None
    return {name: row[name] for name in ("message", "address", "failed_at_ms")} if row else {}


def find_links(crawl: Path, cycle: int, subject: Subject) -> list[dict]:
    """Some of the pages of a cycle that link to it, and how; a page without URL is a server's robots.txt."""
    folder = crawl / names.cycle(cycle) / names.EXTRACTOR
    if not (folder / names.LINKS).exists():
        return []
    rows = np.flatnonzero(
        column(read_table(folder / names.LINKS, LINKS, ["to_key"]), "to_key") == np.uint64(subject.key)
    )[:LINKING_SHOWN]
    if not len(rows):
        return []
    links = read_table(folder / names.LINKS, LINKS, row_groups=np.unique(rows // ROW_GROUP_ROWS).tolist())
    links = (
        links.filter(pa.array(column(links, "to_key") == np.uint64(subject.key))).slice(0, LINKING_SHOWN).to_pylist()
    )
    pages = (
        read_table(folder / names.METADATA, METADATA, ["url_key", "url"])
        if (folder / names.METADATA).exists()
        else METADATA.empty_table()
    )
    keys = column(pages, "url_key")
    found = []
    for link in links:
        page = np.flatnonzero(keys == np.uint64(link["from_key"]))
        kinds = [kind for bit, kind in enumerate(LINK_KINDS) if link["kinds"] >> bit & 1]
        found.append(
            {
                "cycle": cycle,
                "page": pages.column("url")[int(page[0])].as_py() if len(page) else "",
                "kinds": kinds,
                "nofollow": link["nofollow"],
                "followed": link["followed"],
                "anchor": link["anchor"],
            }
        )
    return found


def find_depth(crawl: Path, cycle: int, page: str) -> int:
    """How many hops from a seed a page of a cycle was."""
    path = crawl / names.cycle(cycle) / names.EXTRACTOR / names.COLLECTED
    table = read_table(path, COLLECTED, ["url", "depth"])
    rows = np.flatnonzero(column(table, "url") == page)
    return int(column(table, "depth")[rows[0]]) if len(rows) else 0


def find_lists(crawl: Path, log: History, subject: Subject) -> Iterator[dict]:
    """The cycles that have it in their list: open ones, and those that are committed."""
    opened = set(open_cycles(crawl, log, whole=True))
    for cycle in sorted({*opened, *log.cycles}):
        path = crawl / names.cycle(cycle) / names.SCHEDULER / names.URL_LIST
        if not is_published(path.parent) or not path.exists():
            continue
        if (column(read_table(path, URL_LIST, ["url_key"]), "url_key") == np.uint64(subject.key)).any():
            yield {"cycle": cycle, "open": cycle in opened, "is_dropped": log.is_abandoned(cycle)}
