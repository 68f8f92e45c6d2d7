"""Growth: one block becomes two, each with its half of the keys, and N becomes N + 1 with the entry in the log."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.blocks import interval
from contract.generation import Generation, open_generation
from contract.plan import Plan
from stages.verifier.figures import describe_generation
from stages.verifier.incoming import mask_of
from stages.verifier.turn import publish_cycle, publish_generation
from storage.arrays import find_in_sorted
from storage.tables import column
from storage.text_segments import segments_of


def split_block(crawl: Path, out: Path, plan: Plan) -> dict:
    """Writes the two children of the plan's block; returns the report. A block without a generation has nothing to write."""
    parent = open_generation(crawl, plan.block, plan.generation)
    report = {"kind": plan.kind, "cycle": plan.cycle, "block": plan.block, "blocks": plan.blocks + 1,
              "parent": plan.generation, "known_before": len(parent)}
    about = {"cycle": plan.cycle, "blocks": plan.blocks + 1, "config_digest": plan.config.digest(), "inputs": {}}
    if plan.generation is not None:
        for block in (plan.block, plan.blocks):
            child = take_part(parent, *interval(block, plan.blocks + 1))
            figures = describe_generation(child)
            report[f"known_{block}"] = len(child)
            publish_generation(out / names.generation(block, plan.cycle), child, {**about, "block": block, **figures})
    publish_cycle(out / names.cycle(plan.cycle) / names.VERIFIER, None, {**about, "block": plan.block, "counts": report})
    return report


def take_part(parent: Generation, low: int, high: int) -> Generation:
    """The rows and servers whose domain key is in [low, high), with the texts that they use and the parent's `seen`."""
    here = mask_of(parent.servers, low, high)
    servers = parent.servers.filter(pa.array(here))
    place = np.cumsum(here) - 1
    mine = here[parent.rows["server"]] if len(parent) else np.empty(0, bool)
    rows = {name: np.asarray(array)[mine] for name, array in parent.rows.items()}
    rows["server"] = place[rows["server"]].astype(np.uint32)
    kept, _ = find_in_sorted(np.asarray(parent.side["key"]), rows["key"])
    side = {name: np.asarray(array)[kept] for name, array in parent.side.items()}
    in_use = segments_of(np.concatenate([rows["text"], column(servers, "robots_text")]))
    texts = {names.segment(int(number)): parent.texts[names.segment(int(number))] for number in in_use}
    return Generation(rows, side, servers, texts, parent.seen)
