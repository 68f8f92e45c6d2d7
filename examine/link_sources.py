"""Link sources in what people see: figures of the collection leave them out and name them apart.

Manifests count every URL, because a crawl asks for link sources as for other URLs, and have the number of link sources
in each state besides. Tables of cycles say nothing of them: the present configuration tells which visits are theirs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contract import names
from contract.config import Scope
from contract.crawl_config import read_crawl_config
from contract.errors import BadConfiguration
from contract.scope.link_sources import LinkSources
from contract.tables import ANSWERED, COLLECTED, COLLECTED_STATE, PRESCHEDULED, STATES, WAITING
from storage.arrays import Array
from storage.tables import column, read_table

KEY = "link_sources"  # of manifests and of what bin/status prints
COUNTED = {"known": STATES, "collected": (STATES[COLLECTED_STATE],), "waiting": (STATES[WAITING], STATES[PRESCHEDULED])}
COLUMNS = ["url", "depth", "outcome", "foreign"]  # of UrlsColetadas
SEED, NO_SEED = 0, 1  # depths


def leave_out(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures from the manifest of a generation, or of the merge that made it, without link sources; KEY has theirs."""
    theirs = figures.get(KEY) or dict.fromkeys(STATES, 0)
    counts = {name: sum(theirs[state] for state in states) for name, states in COUNTED.items()}
    states = {state: number - theirs[state] for state, number in figures["states"].items()}
    rest = {name: figures[name] - number for name, number in counts.items()}
    return {**figures, **rest, "states": states, KEY: {**counts, "states": theirs}}


def add_up(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The link sources of all blocks together."""
    total: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    states: Counter[str] = Counter(dict.fromkeys(STATES, 0))
    for part in parts:
        total.update({name: part[name] for name in COUNTED})
        states.update(part["states"])
    return {**total, "states": dict(states)}


def left_to_fetch(figures: Mapping[str, Any]) -> int:
    """How many URLs wait, link sources too: of a block, or of the whole crawl."""
    waiting: int = figures.get("waiting", 0) + figures.get(KEY, {}).get("waiting", 0)
    return waiting


def is_any(link_sources: Mapping[str, Any]) -> bool:
    """Whether a crawl knows link sources, or has fetched any."""
    return bool(link_sources["known"] or any(link_sources["fetched"].values()))


def read_link_sources(crawl: Path) -> LinkSources:
    """By the crawl's present configuration; none where that cannot be read, which bin/status reports."""
    try:
        return LinkSources(read_crawl_config(crawl).scope)
    except BadConfiguration:
        return LinkSources(Scope())


def mark_collected(link_sources: LinkSources, collected: pa.Table) -> Array:
    """Which rows of UrlsColetadas are of link sources, bool. A URL that the list did not have counts as no seed."""
    depths = np.where(column(collected, "foreign").astype(bool), NO_SEED, column(collected, "depth"))
    return link_sources.mark(collected.column("url").to_pylist(), depths.tolist())


def mark_visits(crawl: Path, cycle: int, link_sources: LinkSources) -> Array:
    """Which rows of MetadadosUrlsColetadas are of link sources, bool: its rows are those that were answered."""
    collected = read_table(crawl / names.cycle(cycle) / names.EXTRACTOR / names.COLLECTED, COLLECTED, COLUMNS)
    answered = column(collected, "outcome") == ANSWERED
    return mark_collected(link_sources, collected.filter(pa.array(answered)))
