"""Forgetting: a block without the URLs that no page has linked to for `[revisit] forget_after_days`.

A cycle of its own, because it rewrites what a merge leaves as it is: the texts of all rows, whose lines are in the
order of rows. What it removes is kept in UrlsEsquecidas, so that the books still agree. A URL that is found again is a
new one.
A domain without any URL left loses its servers too, unless it is closed: that is for good.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names, revisits
from contract.accumulators import COUNTED_NAMES
from contract.crawl_folder import CrawlFolder
from contract.generation import COLUMNS, SIDE_COLUMNS, Generation, GenerationWriter, open_generation
from contract.plan import Plan
from contract.stage import Progress
from contract.tables import COLLECTED_STATE, FORGOTTEN
from stages.verifier import prefixes as prefix_table
from stages.verifier.figures import RowFigures, VisitFigures, describe_generation
from stages.verifier.line_reader import LineReader
from stages.verifier.preparation import READ_AT_ONCE, read_prepared
from stages.verifier.server_table import ServerTable
from stages.verifier.texts import Texts
from storage.publish import FORMAT, confirm_published, encode_json, publishing, read_manifest
from storage.tables import TableWriter

NO_KEYS = np.empty(0, np.uint64)


def forget(crawl: CrawlFolder, out: Path, plan: Plan) -> dict:
    """Writes the block without what it forgets, and UrlsEsquecidas, below `out`; returns the report."""
    cycle_folder = out / names.cycle(plan.cycle) / names.VERIFIER
    generation_folder = out / names.generation(plan.block, plan.cycle)
    if confirm_published(cycle_folder) and confirm_published(generation_folder):
        counts: dict = read_manifest(cycle_folder)["counts"]
        return counts
    parent = open_generation(crawl.path, plan.block, plan.generation)
    about = {
        "cycle": plan.cycle,
        "block": plan.block,
        "blocks": plan.blocks,
        "config_digest": plan.config.digest(),
        "inputs": {},
    }
    report = {
        "kind": plan.kind,
        "cycle": plan.cycle,
        "block": plan.block,
        "blocks": plan.blocks,
        "parent": plan.generation,
        "known_before": len(parent),
    }
    with publishing(cycle_folder, again=True) as manifest:
        with publishing(generation_folder, again=True) as generation_manifest:
            figures, texts = Forgetting(crawl.path, out, plan, parent).write(generation_folder, cycle_folder)
            prepared = read_prepared(crawl.path / names.generation(plan.block, plan.generation))
            generation_manifest |= {**about, **figures, "texts": texts, "seen": parent.seen, "prepared": prepared}
        report |= {"forgotten": len(parent) - figures["known"], **figures}
        (cycle_folder / names.REPORT).write_bytes(encode_json({"format": FORMAT, **report}))
        manifest |= {"stage": names.VERIFIER, **about, "counts": report}
    return report


class Forgetting:
    def __init__(self, crawl: Path, out: Path, plan: Plan, parent: Generation):
        self._parent, self._config, self._now_ms = parent, plan.config, plan.now_ms
        self._lines = LineReader(crawl, parent)
        self._texts = Texts(crawl, out, plan.cycle, parent, folds_all=True)
        self._servers = ServerTable(parent.servers, NO_KEYS, NO_KEYS)
        self._rows, self._visits = RowFigures(plan.config), VisitFigures(plan.config)
        self._side_done = 0  # of the parent's side set

    def write(self, folder: Path, cycle_folder: Path) -> tuple[dict, dict]:
        """Writes the generation and the table; returns the figures of the manifest, and its segments of text."""
        parent, progress = self._parent, Progress(names.VERIFIER)
        writer, forgotten = GenerationWriter(folder), TableWriter(cycle_folder / names.FORGOTTEN, FORGOTTEN, ("url",))
        for start in range(0, len(parent), READ_AT_ONCE):
            if progress.is_due():
                progress.report(rows_done=start, known=len(parent))
            forgotten.append(self._take(start, min(start + READ_AT_ONCE, len(parent)), writer))
        forgotten.close()
        texts = self._texts.close(self._servers.columns, {})
        writer.close_rows()
        visits = self._visits.figures(self._servers.columns)
        servers, kept = self._servers.table(), self._find_kept_servers()
        prefixes = prefix_table.take_servers(prefix_table.from_table(parent.prefixes), kept, np.cumsum(kept) - 1)
        servers = servers.filter(pa.array(kept))
        writer.write_servers(servers, prefix_table.to_table(prefixes))
        states = self._servers.states.sum(axis=0)
        return {**describe_generation(servers, states), **visits, **self._rows.figures()}, texts

    def _take(self, start: int, stop: int, writer: GenerationWriter) -> pa.Table:
        """Writes what stays of some rows of the parent; returns what is forgotten of them."""
        parent = self._parent
        rows = {name: parent.rows.read(name, start, stop) for name in COLUMNS}
        gone = revisits.is_forgotten(self._config.revisit, self._now_ms, rows["linked_day"], rows["depth"])
        stays, lost = np.flatnonzero(~gone), np.flatnonzero(gone)
        server = parent.index_servers(rows["server"], start)
        collected = np.flatnonzero(rows["state"] == COLLECTED_STATE)
        side_start, self._side_done = self._side_done, self._side_done + len(collected)
        kept_side = np.flatnonzero(~gone[collected])
        side = {name: parent.side.read(name, side_start, self._side_done)[kept_side] for name in SIDE_COLUMNS}
        lines = self._lines.read_all(start, stop)
        table = self._describe({name: values[lost] for name, values in rows.items()}, server[lost], lines, lost)
        rows = {name: values[stays] for name, values in rows.items()}
        rows["segment"] = np.full(len(stays), self._texts.own, rows["segment"].dtype)
        self._texts.append_lines(lines.take(pa.array(stays)))
        writer.rows.append(rows)
        writer.side.append(side)
        self._servers.count(server[stays], rows["state"])
        self._servers.add_mentions(server[stays], rows["mentions"])
        self._rows.take(rows)
        self._visits.take(side, rows, server[stays])
        return table

    def _describe(
        self, rows: dict[str, np.ndarray], server: np.ndarray, lines: pa.LargeBinaryArray, lost: np.ndarray
    ) -> pa.Table:
        urls = [line[:-1].decode("utf-8", "replace") for line in lines.take(pa.array(lost)).to_pylist()]
        columns = {
            "domain_key": self._servers["domain_key"][server],
            "url_key": rows["key"],
            "url": pa.array(urls, pa.string()),
            "state": rows["state"],
            **{name: rows[name].astype(np.uint64) for name in COUNTED_NAMES},
        }
        return pa.table({name: columns[name] for name in FORGOTTEN.names}, schema=FORGOTTEN)

    def _find_kept_servers(self) -> np.ndarray:
        """Those whose domain has URLs left, or is closed; bool."""
        domain = np.repeat(np.arange(len(self._servers.domains.key)), np.diff(self._servers.domains.first_server))
        has_rows = np.bincount(domain, self._servers.states.sum(axis=1), minlength=len(self._servers.domains.key)) > 0
        kept: np.ndarray = has_rows[domain] | self._servers["closed"].astype(bool)
        return kept
