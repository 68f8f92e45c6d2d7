"""What revisits cost the verifier: the same turn of the same block, with [revisit] policy optimal and with none.

Each has its own parent, a generation that is prepared for it, and its own list: with revisits, half of the answers
are second visits. The new URLs are the same.
"""

import os
import shutil
import time
from dataclasses import replace

import numpy as np

from bench.scheduler.block import NOW_MS, SEED, Size, draw_urls
from bench.verifier.inputs import write_inputs
from bench.verifier.stream import Stream, Urls
from contract import names
from contract.config import Config
from contract.crawl_folder import CrawlFolder
from contract.generation import COLUMNS, open_generation, read_generation_manifest
from contract.log import CRAWL
from contract.log_summary import read_log
from contract.plan import Plan, VerifierPlan
from contract.policies import FEATURES, describe, features_of
from contract.policy_files import files_of
from contract.revisits import NONE, OPTIMAL
from stages.scheduler.listing import choose_urls
from stages.verifier.turn import take_turn
from storage.columns import PACKED
from storage.publish import publishing

REPEATS = 5


def time_turns(crawl: CrawlFolder, size: Size, config: Config, stream: Stream) -> dict[str, list[float]]:
    """Seconds of each turn, by policy of [revisit]; both in turn, so that the machine treats them alike."""
    known = stream._urls(*draw_urls(stream, np.random.Generator(np.random.PCG64(SEED)), size.rows), np.zeros(size.rows))
    stream.counts = stream.absorbed = np.bincount(known.server, minlength=size.servers).astype(np.uint32)
    extracted = stream.extract(size.cycles)
    plans = []
    for number, policy in enumerate((NONE, OPTIMAL)):
        own = replace(config, revisit=replace(config.revisit, policy=policy))
        parent, cycle = size.cycles + 1 + number, size.cycles + 3 + number
        prepare(crawl, size.cycles, parent, own)
        plan = Plan(cycle, CRAWL, 0, 1, parent, NOW_MS, own)
        rows = np.sort(choose_urls(plan, open_generation(crawl.path, 0, parent))[0].row)
        listed = Urls(*(values[rows] for values in vars(known).values()))
        write_inputs(crawl.path / names.cycle(cycle) / names.EXTRACTOR, stream, plan, extracted, listed)
        plans.append(plan)
    seconds: dict[str, list[float]] = {plan.config.revisit.policy: [] for plan in plans}
    for _ in range(REPEATS):
        for plan in plans:
            seconds[plan.config.revisit.policy].append(time_turn(crawl, plan))
    return seconds


def prepare(crawl: CrawlFolder, source: int, number: int, config: Config) -> None:
    """A generation with the files of another one but the features that this configuration does not need."""
    folder = crawl.path / names.generation(0, source)
    needed = {feature.name for feature in features_of(config)}
    left_out = {f"{name}{PACKED}" for name in COLUMNS if name in FEATURES and name not in needed}
    source_manifest = read_generation_manifest(folder)
    with publishing(crawl.path / names.generation(0, number)) as manifest:
        for name in set(source_manifest["files"]) - left_out:
            os.link(folder / name, crawl.path / names.generation(0, number) / name)
        manifest |= {name: source_manifest[name] for name in ("texts", "seen", "known")}
        manifest["prepared"] = describe(config, files_of(crawl.path, config))


def time_turn(crawl: CrawlFolder, plan: Plan) -> float:
    out = crawl.path / "turn"
    log = read_log(crawl)
    began = time.perf_counter()
    take_turn(crawl, out, plan, VerifierPlan(plan.cycle, 0, 1, plan.generation, 0), log)
    spent = time.perf_counter() - began
    shutil.rmtree(out)
    return spent
