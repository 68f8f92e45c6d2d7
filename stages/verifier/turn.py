"""One turn of a block: parent generation + own rows + slices of AUX -> new generation, AUX and report.

The verifier is a function of its plan and its input files: a rerun writes the same bytes. Nothing that it
writes counts before its entry in the log, which makes the generation and the AUX visible at one instant.
A thread writes AUX while the block is merged.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from contract import aux_rows, names
from contract.blocks import interval
from contract.crawl_folder import CrawlFolder
from contract.generation import open_generation, read_generation_manifest
from contract.log import KINDS, State
from contract.plan import Plan, VerifierPlan
from contract.stage import Progress, describe_inputs
from contract.tables import AUX, AUX_DISTINCT
from stages.verifier.decisions import open_decisions
from stages.verifier.harvest import Harvest, open_slices, read_answers, read_happened
from stages.verifier.timing import Timing
from stages.verifier.walk import Walk
from storage.publish import FORMAT, confirm_published, encode_json, publishing, read_manifest
from storage.tables import LEVEL_SHORT_LIVED, TableWriter, column, footer_digest, write_table


def take_turn(
    crawl: CrawlFolder, out: Path, plan: Plan, fixed: VerifierPlan, log: State, timing: Timing | None = None
) -> dict:
    """Writes the new generation, text and, for a crawl cycle, AUX below `out`; returns the report."""
    timing = timing or Timing()
    cycle_folder = out / names.cycle(plan.cycle) / names.VERIFIER
    generation_folder = out / names.generation(fixed.block, plan.cycle)
    if confirm_published(cycle_folder) and confirm_published(generation_folder):
        counts = read_manifest(cycle_folder)["counts"]
        seen = read_generation_manifest(generation_folder)["seen"]
        if counts["absorbed_to"] == fixed.absorb_to == seen:  # of an earlier attempt of this turn: the same bytes
            return counts
    folder = crawl.path / names.cycle(plan.cycle) / names.EXTRACTOR if KINDS[plan.kind].fetches else None
    block = interval(fixed.block, fixed.blocks)
    harvest = Harvest(folder, block)
    parent = open_generation(crawl.path, fixed.block, fixed.generation)
    about = {
        "cycle": plan.cycle,
        "block": fixed.block,
        "blocks": fixed.blocks,
        "config_digest": plan.config.digest(),
        "inputs": describe_inputs(folder, crawl.path) if folder else {},
    }
    report = {
        "kind": plan.kind,
        "cycle": plan.cycle,
        "block": fixed.block,
        "blocks": fixed.blocks,
        "parent": fixed.generation,
        "absorbed_from": parent.seen,
        "absorbed_to": fixed.absorb_to,
        "known_before": len(parent),
    }
    progress = Progress(names.VERIFIER)

    def report_piece(done: int, pieces: int) -> None:
        if progress.is_due():
            progress.report(pieces_done=done, pieces=pieces, known=len(parent))

    timing.mark("open")
    with publishing(cycle_folder, again=True) as manifest, ThreadPoolExecutor(1) as beside:
        aux = beside.submit(write_aux, cycle_folder / names.AUX, harvest) if folder else None
        walk = Walk(
            crawl,
            plan,
            fixed,
            parent,
            harvest,
            open_slices(crawl.path, log, fixed, parent.seen),
            open_decisions(crawl.path, log, fixed, parent.seen),
            read_happened(harvest, plan.now_ms),
            read_answers(harvest, *block),
            timing,
            report_piece,
        )
        with publishing(generation_folder, again=True) as generation_manifest:
            figures, texts = walk.write(generation_folder, out)
            generation_manifest |= {**about, **figures, "texts": texts, "seen": fixed.absorb_to}
        timing.mark("sync")
        if aux is not None:
            manifest["aux"] = aux.result()
            spilled = manifest["aux"]["rows"]
            report |= {
                "extracted": harvest.extracted_rows,
                "own": harvest.extracted_rows + len(harvest.unlisted_elsewhere) - spilled,
                "spilled": spilled,
                "foreign_spilled": len(harvest.unlisted_elsewhere),
            }
        report |= {**walk.counts, "refused_by_rule": walk.refusals.counts(), **figures}
        write_table(cycle_folder / names.REFUSED_URLS, walk.refusals.table())
        (cycle_folder / names.REPORT).write_bytes(encode_json({"format": FORMAT, **report}))
        manifest |= {"stage": names.VERIFIER, **about, "counts": report}
    timing.mark("aux")
    return report


def write_aux(path: Path, harvest: Harvest) -> dict:
    """Writes AUX; returns what a manifest records of it."""
    writer, keys = TableWriter(path, AUX, AUX_DISTINCT, LEVEL_SHORT_LIVED), [np.empty(0, np.uint64)]
    for table in harvest.spilled():
        keys.append(column(table, "domain_key"))
        writer.append(table)
    writer.close()
    return {**aux_rows.summarise(np.concatenate(keys)), "footer": footer_digest(path)}
