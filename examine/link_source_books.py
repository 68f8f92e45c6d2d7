"""The books of link sources: how many of them a generation has in each state, and what a cycle fetched of them.

The configuration of each plan says which URLs they are. That the feature link_source is that of its text, the books of
features prove.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.generation import Generation, read_generation_manifest
from contract.plan import read_plan
from contract.policies.rules import LINK_SOURCE
from contract.scope.link_sources import LinkSources
from contract.tables import ANSWERED, STATES
from contract.totals import FETCHED
from examine.findings import Findings
from examine.link_sources import KEY, mark_collected
from storage.tables import column

KNOWN = "link sources of R, by state = their counts in the manifest"
OF_CYCLE = "link sources of UrlsColetadas, by outcome = their counts in the manifest"


def read_sources(crawl: Path, cycle: int) -> LinkSources | None:
    """Those of the plan of a cycle; none where the plan is not there, which another book names."""
    if not (crawl / names.cycle(cycle) / names.PLAN).is_file():
        return None
    return LinkSources(read_plan(crawl, cycle).config.scope)


def check_known(crawl: Path, generation: Generation, folder: Path, findings: Findings) -> None:
    manifest = read_generation_manifest(folder)
    sources = read_sources(crawl, manifest["cycle"])
    if sources is None:
        return
    counted = None
    if sources:
        mark = sources.mark_rows(generation.rows[LINK_SOURCE.name], generation.rows["depth"])
        counts = np.bincount(np.asarray(generation.rows["state"])[mark], minlength=len(STATES))
        counted = dict(zip(STATES, counts.tolist()))
    findings.equal(KNOWN, folder, manifest.get(KEY), counted, "link sources, and rows")


def check_fetched(
    crawl: Path, cycle: int, collected: pa.Table, metadata: pa.Table, counts: dict, findings: Findings
) -> None:
    """`counts` are those of the extractor. REQUIRES: the rows of `metadata` are those of `collected` that answered."""
    sources = read_sources(crawl, cycle)
    if sources is None:
        return
    counted = None
    if sources:
        mark = mark_collected(sources, collected) & ~column(collected, "foreign").astype(bool)
        outcome = column(collected, "outcome")
        counted = {name: int((mark & (outcome == name)).sum()) for name in FETCHED}
        counted["bytes"] = int(column(metadata, "bytes")[mark[outcome == ANSWERED]].sum())
    folder = crawl / names.cycle(cycle) / names.EXTRACTOR
    findings.equal(OF_CYCLE, folder, counts.get(KEY), counted, "link sources, and rows")
