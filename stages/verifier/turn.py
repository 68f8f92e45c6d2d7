"""One turn of a block: parent generation + own rows + slices of AUX -> new generation, AUX and report.

The verifier is a function of its plan and its input files: a rerun writes the same bytes. Nothing that it
writes counts before its entry in the log, which makes the generation and the AUX visible at one instant.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import aux_rows, names
from contract.blocks import interval
from contract.crawl_folder import CrawlFolder
from contract.generation import Generation, open_generation, write_generation
from contract.log import CRAWL, State
from contract.plan import Plan, VerifierPlan
from contract.stage import describe_inputs, open_inputs
from contract.tables import EXTRACTED, METADATA
from stages.verifier import servers as server_table
from stages.verifier.figures import describe_generation
from stages.verifier.incoming import (
    HAPPENED_ANSWERED, Harvest, gather, mask_of, read_abandoned, read_happened, read_harvest, read_slices,
)
from stages.verifier.merge import apply_happened, count_sets, merge_rows, merge_side, split_known
from stages.verifier.prescheduling import refill
from stages.verifier.texts import store_texts
from storage.publish import confirm_published, encode_json, publishing
from storage.tables import column, fixed_bytes, write_table
from storage.text_segments import NO_TEXT, read_texts


def take_turn(crawl: CrawlFolder, out: Path, plan: Plan, fixed: VerifierPlan, log: State) -> dict:
    """Writes the new generation, text and, for a crawl cycle, AUX below `out`; returns the report."""
    parent = open_generation(crawl.path, fixed.block, fixed.generation)
    harvest, inputs = None, {}
    low, high = interval(fixed.block, fixed.blocks)
    if plan.kind == CRAWL:
        folder = crawl.path / names.cycle(plan.cycle) / names.EXTRACTOR
        open_inputs(folder)
        inputs = describe_inputs(folder, crawl.path)
        harvest = read_harvest(folder, low, high)
    generation, counts = merge(crawl.path, out, parent, plan, fixed, log, harvest)
    figures = describe_generation(generation)
    report = {"kind": plan.kind, "cycle": plan.cycle, "block": fixed.block, "blocks": fixed.blocks,
              "parent": fixed.generation, "absorbed_from": parent.seen, "absorbed_to": fixed.absorb_to,
              "known_before": len(parent), **counts, **figures}
    about = {"cycle": plan.cycle, "block": fixed.block, "blocks": fixed.blocks, "config_digest": plan.config.digest(), "inputs": inputs}

    publish_generation(out / names.generation(fixed.block, plan.cycle), generation, {**about, **figures})
    publish_cycle(out / names.cycle(plan.cycle) / names.VERIFIER, harvest, {**about, "counts": report})
    return report


def merge(crawl: Path, out: Path, parent: Generation, plan: Plan, fixed: VerifierPlan, log: State,
          harvest: Harvest | None) -> tuple[Generation, dict]:
    empty = EXTRACTED.empty_table()
    links = gather([harvest.own if harvest else empty, *read_slices(crawl, log, fixed, parent.seen)],
                   harvest.foreign if harvest else empty)
    happened = read_happened(harvest.collected if harvest else None, read_abandoned(crawl, log, fixed, parent.seen))
    answered = happened.key[happened.code == HAPPENED_ANSWERED]

    known, places, new = split_known(parent.rows["key"], links)
    counts = count_sets(parent.rows["state"], links, known, places, new, answered)
    servers, old_server, new_server = server_table.merge_servers(server_table.to_columns(parent.servers), links, new)
    rows, is_new = merge_rows(parent.rows, links, known, places, new, old_server, new_server)

    apply_happened(rows, happened, plan.config.verifier.attempts_max)
    changed_robots = take_observed(crawl, rows, servers, harvest)
    server_table.judge(servers, plan.now_ms, plan.config)
    server_table.give_up(rows, servers)
    limits = plan.config.verifier
    refill(rows, len(servers["server_key"]), limits.prescheduled_refill, limits.prescheduled_max)
    server_table.count(servers, rows)

    texts = store_texts(crawl, out, plan.cycle, parent.texts, rows, is_new, links.url(new), servers, changed_robots)
    side = parent.side
    if harvest:
        side = add_answers(parent.side, harvest.metadata, plan.cycle, *interval(fixed.block, fixed.blocks))
        counts |= {"extracted": harvest.extracted_rows, "own": len(harvest.own), "spilled": len(harvest.spilled),
                   "foreign_spilled": harvest.foreign_spilled}
    return Generation(rows, side, server_table.to_table(servers), texts, fixed.absorb_to), counts


def take_observed(crawl: Path, rows: dict, servers: dict, harvest: Harvest | None) -> dict[int, bytes]:
    """Merges Servidores into the table; returns the robots.txt that are new, by place."""
    if harvest is None:
        return {}
    places, observed_rows = server_table.take_over(servers, harvest.servers)
    robots = harvest.servers.column("robots").take(pa.array(observed_rows)).to_pylist()
    asked = [(place, text) for place, text in zip(places.tolist(), robots) if text is not None]
    had = np.array([place for place, _ in asked if servers["robots_text"][place] != NO_TEXT], np.int64)
    stored = read_texts(crawl / names.TEXT, names.segment, servers["robots_text"][had], servers["robots_length"][had])
    before = dict(zip(had.tolist(), stored))
    changed = {place: text for place, text in asked if before.get(place) != text}
    server_table.forgive_refusals(rows, np.array([place for place in changed if place in before], np.int64))
    return changed


def add_answers(side: dict, metadata: pa.Table, cycle: int, low: int, high: int) -> dict:
    here = np.flatnonzero(mask_of(metadata, low, high))
    digests = fixed_bytes(metadata, "content_digest", METADATA.field("content_digest").type.byte_width)
    return merge_side(side, column(metadata, "url_key")[here], cycle, here, column(metadata, "fetched_at_ms")[here], digests[here])


def publish_generation(folder: Path, generation: Generation, about: dict) -> None:
    if confirm_published(folder):  # by an earlier attempt of this same turn: the same bytes
        return
    with publishing(folder) as manifest:
        write_generation(folder, generation)
        manifest |= {**about, "texts": generation.texts, "seen": generation.seen}


def publish_cycle(folder: Path, harvest: Harvest | None, about: dict) -> None:
    if confirm_published(folder):
        return
    with publishing(folder) as manifest:
        if harvest:
            write_table(folder / names.AUX, harvest.spilled)
            manifest["aux"] = aux_rows.summarise(column(harvest.spilled, "domain_key"))
        (folder / names.REPORT).write_bytes(encode_json({"format": 1, **about["counts"]}))
        manifest |= {"stage": names.VERIFIER, **about}
