"""What a block lacks after a change of the configuration, made before its turn: features, and judgement by the scope.

The manifest of a generation says what it is prepared for (contract/policies, describe). Where the plan's configuration
asks for something else, one pass over the texts of all known URLs computes the features that are missing or have other
values, and judges those again that wait or that a rule refused, if the rules of the scope changed. It goes before the
merge, because budgets need the number of URLs of each rule before the first new one comes. What it finds are whole
columns; they take the place of the parent's. The texts are read some at a time, each segment once.

A rule about the page that links to a URL (deeper_repeats_max, page_links_max_bytes) is not judged again: which page it
was is not known.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.generation import Generation, read_generation_manifest
from contract.plan import Plan
from contract.policies import FEATURES, describe, features_of
from contract.policies.policy import Feature, Urls
from contract.policy_files import verify_files
from contract.scope.requisites import widen
from contract.scope.rules import Scope, year_of
from contract.tables import PRESCHEDULED, REFUSED_BY_RULE, WAITING
from stages.verifier.line_reader import LineReader
from storage.errors import Damaged
from storage.tables import column

READ_AT_ONCE = 1 << 18  # rows whose texts are in memory together: 80 MB where URLs have 100 bytes


@dataclass
class Preparation:
    """`columns` are whole columns of the parent's rows, instead of its own; `counts` is what the report says of it."""

    described: dict[str, Any]
    is_changed: bool = False
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)

    def read(self, parent: Generation, name: str, start: int, stop: int) -> np.ndarray:
        """Rows of a column of the parent as it is prepared; they may be written to."""
        if name in self.columns:
            return self.columns[name][start:stop].copy()
        return parent.rows.read(name, start, stop)


def prepare(crawl: CrawlFolder, plan: Plan, parent: Generation, block: int, number: int | None) -> Preparation:
    """`number` is that of the parent, generation of `block`."""
    files = verify_files(crawl.path, plan.config)
    wanted = describe(plan.config, files)
    had = read_prepared(crawl.path / names.generation(block, number)) if len(parent) and number is not None else wanted
    if had == wanted:
        return Preparation(wanted)
    missing = [one for one in features_of(plan.config) if had["features"].get(one.name) != wanted["features"][one.name]]
    again = find_to_judge(parent) if had["scope"] != wanted["scope"] else np.zeros(len(parent), bool)
    needed = {one.name for one in features_of(plan.config)}
    columns = {
        name: np.zeros(len(parent), one.dtype)
        for name, one in FEATURES.items()
        if one in missing or name not in needed and not parent.rows.is_zero(name)
    }
    is_refused = np.zeros(len(parent), bool)
    if missing or again.any():
        read_through(crawl, plan, parent, files, missing, again, columns, is_refused)
    counts: dict[str, Any] = {"features": sorted(one.name for one in missing)}
    counts |= dict.fromkeys(("judged_again", "refused_again", "waiting_again"), 0)
    if again.any():
        columns["state"], judged = judge_states(parent, again, is_refused)
        counts |= judged
    return Preparation(wanted, True, columns, counts)


def read_prepared(folder: Path) -> dict[str, Any]:
    """What a generation is prepared for."""
    prepared = read_generation_manifest(folder).get("prepared")
    if not isinstance(prepared, dict) or not isinstance(prepared.get("features"), dict) or "scope" not in prepared:
        raise Damaged(folder / names.MANIFEST, "expected what the block is prepared for, found nothing of it")
    return prepared


def find_to_judge(parent: Generation) -> np.ndarray:
    """Which rows are judged again, bool: those that wait or that a rule refused, but no seed and no closed domain."""
    judged = np.zeros(256, bool)
    judged[[WAITING, PRESCHEDULED, REFUSED_BY_RULE]] = True
    again: np.ndarray = judged[parent.rows["state"]]
    again &= (parent.rows["depth"] > 0) | (parent.rows["state"] == REFUSED_BY_RULE)
    closed = column(parent.servers, "closed").astype(bool)
    return again & ~np.repeat(closed_of_domains(parent, closed), np.diff(parent.domains.first_row))


def closed_of_domains(parent: Generation, closed: np.ndarray) -> np.ndarray:
    """Of each domain whether it is closed: all of its servers are, or none."""
    return closed[parent.domains.first_server[:-1]]


def read_through(
    crawl: CrawlFolder,
    plan: Plan,
    parent: Generation,
    files: dict[str, Path],
    missing: list[Feature],
    again: np.ndarray,
    columns: dict[str, np.ndarray],
    is_refused: np.ndarray,
) -> None:
    """Reads every text once; sets the missing features in `columns`, and `is_refused` of the rows to judge again."""
    config = plan.config
    settings = widen(config.scope) if config.extractor.requisites else config.scope
    scope = Scope(settings, crawl.keys(), year_of(plan.now_ms))
    lines_of, memory = LineReader(crawl.path, parent), {}
    domain_of_server, key_of_server = (column(parent.servers, name) for name in ("domain_key", "server_key"))
    for start in range(0, len(parent), READ_AT_ONCE):
        rows = slice(start, min(start + READ_AT_ONCE, len(parent)))
        lines = lines_of.read_all(rows.start, rows.stop)
        here = np.flatnonzero(again[rows])
        is_refused[rows][here] = judge_lines(scope, lines.take(pa.array(here)), parent.rows["depth"][rows][here])
        if not missing:
            continue
        server = parent.index_servers(parent.rows.read("server", rows.start, rows.stop), start)
        urls = Urls(
            lines,
            parent.rows["key"][rows],
            domain_of_server[server],
            key_of_server[server],
            plan.cycle,
            config,
            files,
            memory,
        )
        for one in missing:
            columns[one.name][rows] = one.compute(urls)


def judge_lines(scope: Scope, lines: pa.LargeBinaryArray, depths: np.ndarray) -> np.ndarray:
    """Which URLs a rule refuses, bool: one at depth d came from a page at depth d - 1, and a seed is never refused."""
    return np.array(
        [
            depth > 0 and bool(scope.judge_depth(depth - 1) or scope.judge(line[:-1].decode("utf-8", "replace")))
            for line, depth in zip(lines.to_pylist(), depths.tolist())
        ],
        bool,
    )


def judge_states(parent: Generation, again: np.ndarray, is_refused: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """The states of all rows, where those of `again` are refused or wait now; and what the report says of them."""
    state = parent.rows["state"].copy()
    was_refused = state == REFUSED_BY_RULE
    refused, waits = again & is_refused & ~was_refused, again & ~is_refused & was_refused
    state[refused], state[waits] = REFUSED_BY_RULE, WAITING
    counted = {"judged_again": again, "refused_again": refused, "waiting_again": waits}
    return state, {name: int(np.count_nonzero(rows)) for name, rows in counted.items()}
