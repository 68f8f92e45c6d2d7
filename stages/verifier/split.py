"""Growth: one block becomes two, each with its half of the keys, and N becomes N + 1 with the entry in the log.

Rows are sorted by domain key and a block is an interval of domain keys, so each half is a run of rows.
"""

from pathlib import Path

import numpy as np

from contract import names
from contract.blocks import in_interval, interval
from contract.config import Config
from contract.generation import COLUMNS, SIDE_COLUMNS, Generation, GenerationWriter, open_generation
from contract.plan import Plan
from contract.tables import COLLECTED_STATE, STATES
from stages.verifier import prefixes as prefix_table
from stages.verifier.figures import SERVERS_READ, RowFigures, VisitFigures, describe_generation
from stages.verifier.preparation import read_prepared
from stages.verifier.texts import part_texts
from storage.publish import FORMAT, confirm_published, encode_json, publishing
from storage.tables import column

PIECE_ROWS = 1 << 20


def split_block(crawl: Path, out: Path, plan: Plan) -> dict:
    """Writes the two children of the plan's block; returns the report. Without a generation it writes none."""
    parent = open_generation(crawl, plan.block, plan.generation)
    report = {
        "kind": plan.kind,
        "cycle": plan.cycle,
        "block": plan.block,
        "blocks": plan.blocks + 1,
        "parent": plan.generation,
        "known_before": len(parent),
    }
    about = {"cycle": plan.cycle, "blocks": plan.blocks + 1, "config_digest": plan.config.digest(), "inputs": {}}
    if plan.generation is not None:
        prepared = read_prepared(crawl / names.generation(plan.block, plan.generation))
        for block in (plan.block, plan.blocks):
            here = np.flatnonzero(in_interval(column(parent.servers, "domain_key"), *interval(block, plan.blocks + 1)))
            servers = slice(here[0], here[-1] + 1) if len(here) else slice(0, 0)
            report[f"known_{block}"] = int(column(parent.servers, "known")[servers].sum(dtype=np.int64))
            folder = out / names.generation(block, plan.cycle)
            if not confirm_published(folder):
                with publishing(folder) as manifest:
                    manifest |= {
                        **about,
                        "block": block,
                        **write_part(folder, parent, servers, plan.config),
                        "prepared": prepared,
                    }
    folder = out / names.cycle(plan.cycle) / names.VERIFIER
    if not confirm_published(folder):
        with publishing(folder) as manifest:
            (folder / names.REPORT).write_bytes(encode_json({"format": FORMAT, **report}))
            manifest |= {"stage": names.VERIFIER, **about, "block": plan.block, "counts": report}
    return report


def write_part(folder: Path, parent: Generation, part: slice, config: Config) -> dict:
    """Writes the servers of a slice of the parent's table, and their rows; returns the figures of the manifest.

    Texts stay in their segments, and `seen` is that of the parent.
    """
    known = column(parent.servers, "known").astype(np.int64)
    start, stop = int(known[: part.start].sum()), int(known[: part.stop].sum())
    servers = parent.servers.slice(part.start, part.stop - part.start)
    texts, segments = part_texts(parent.texts, parent.rows["segment"], start, stop, column(servers, "robots_text"))
    writer = GenerationWriter(folder)
    states, figures, visits = np.zeros(len(STATES), np.int64), RowFigures(config), VisitFigures(config)
    side_start = int(np.count_nonzero(parent.rows.read("state", 0, start) == COLLECTED_STATE))
    for begin in range(start, stop, PIECE_ROWS):
        rows = {name: parent.rows.read(name, begin, min(begin + PIECE_ROWS, stop)) for name in COLUMNS}
        rows["segment"] = segments[rows["segment"]]
        writer.rows.append(rows)
        states += np.bincount(rows["state"], minlength=len(STATES))
        figures.take(rows)
        side_stop = side_start + int(np.count_nonzero(rows["state"] == COLLECTED_STATE))
        side = {name: parent.side.read(name, side_start, side_stop) for name in SIDE_COLUMNS}
        writer.side.append(side)
        visits.take(side, rows, parent.index_servers(rows["server"], begin) - part.start)
        side_start = side_stop
    here = np.zeros(len(parent.servers), bool)
    here[part] = True
    prefixes = prefix_table.take_servers(
        prefix_table.from_table(parent.prefixes), here, np.arange(len(here)) - part.start
    )
    writer.close_rows()
    writer.write_servers(servers, prefix_table.to_table(prefixes))
    return {
        **describe_generation(servers, states),
        **visits.figures({name: column(servers, name) for name in SERVERS_READ}),
        **figures.figures(),
        "texts": texts,
        "seen": parent.seen,
    }
