"""What a small cycle costs besides its stages' own work, in an old crawl and in a new one.

Two crawls of the same size are made by a script: one with 100,000 past commits, one with 40. Entries of the log, plans
and manifests are such as runs leave them. What nobody reads is left out, and past cycles share one folder. Then both
crawls get small cycles by turns. Timed is all that might look at the past: start-up, planning, what the verifier reads
of the log, commit, deletion, the summary at the end of the run, and bin/status. Files that a stage would write are
written untimed.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from contract import names
from contract.config import Config
from contract.crawl_folder import CrawlFolder, create
from contract.log import ABSORB, CRAWL, KINDS, Entry, commit
from contract.log_summary import read_log
from contract.pending import absorber, find_pending
from contract.plan import Plan, cycles_without_plan, fix_verifier_plan, write_plan
from examine.crawl_figures import describe
from stages.verifier.__main__ import entry_of, work
from storage.publish import FORMAT, encode_json, publishing, read_json, read_manifest, sync_folder
from supervise.crawl_state import CrawlState
from supervise.deletion import delete_superseded, remove_garbage
from supervise.inbox import take_inbox
from supervise.seed import leave
from supervise.turns import next_turn

COMMITS_OLD, COMMITS_NEW = 100_000, 40
BLOCKS = 4
REPEATS = 15
SERVERS = 40
PAST_CYCLE = "past_cycle"  # one folder for all: a hundred thousand of them take minutes to make and to remove
NOW_MS = 1_800_000_000_000
COUNTS = {
    names.FETCHER: {"listed": 4, "answered": 3, "failed": 1, "refused": 0, "not_reached": 0, "bytes": 30_000},
    names.EXTRACTOR: {"answered": 3, "failed": 1, "refused": 0, "reasons": {"timeout_connect": 1}},
}


def measure_age(
    commits: int = COMMITS_OLD, folder: Path | None = None, repeats: int = REPEATS, commits_new: int = COMMITS_NEW
) -> dict:
    """Key age_ratio: what a small cycle costs after so many commits, divided by what it costs in a new crawl.

    Also the medians of both in milliseconds; age_parts_ms: of each part, in the old crawl and in the new one; and
    age_rebuild_s: how long the first start took, which found no summary. Files lie in a temporary folder in `folder`.
    """
    with tempfile.TemporaryDirectory(prefix="coletor-age-", dir=folder) as made:
        old, new = (make_crawl(Path(made) / name, length) for name, length in (("old", commits), ("new", commits_new)))
        began = time.perf_counter()
        CrawlState(old)
        rebuild_s = time.perf_counter() - began
        for crawl in (old, new):  # the first cycle writes the summary
            run_small_cycle(crawl)
        timed: dict[str, list[dict[str, float]]] = {"old": [], "new": []}
        for repeat in range(repeats):
            for name, crawl in (("old", old), ("new", new))[:: 1 if repeat % 2 else -1]:
                timed[name].append(run_small_cycle(crawl))
    totals = {name: median(sum(parts.values()) for parts in runs) for name, runs in timed.items()}
    return {
        "age_ratio": round(totals["old"] / totals["new"], 3),
        **{f"age_{name}_ms": round(1_000 * total, 2) for name, total in totals.items()},
        "age_parts_ms": {
            part: [round(1_000 * median(run[part] for run in timed[name]), 2) for name in ("old", "new")]
            for part in timed["old"][0]
        },
        "age_rebuild_s": round(rebuild_s, 2),
    }


def run_small_cycle(crawl: CrawlFolder) -> dict[str, float]:
    """One cycle of the block whose turn it is; seconds of each part."""
    seconds, began = {}, time.perf_counter()

    def mark(part: str) -> None:
        nonlocal began
        seconds[part] = time.perf_counter() - began
        began = time.perf_counter()

    state = CrawlState(crawl)
    sync_folder(crawl.path / names.LOG)
    assert not cycles_without_plan(crawl.path, state.log)
    remove_garbage(state)
    mark("start")
    turn = next_turn(state.views(), NOW_MS)
    cycle, generation = state.next_cycle(), state.log.generation(turn.block)
    plan = Plan(cycle, CRAWL, turn.block, state.log.blocks, generation, NOW_MS, Config())
    write_plan(crawl.path, plan)
    mark("plan")
    log = read_log(crawl)
    fixed = fix_verifier_plan(crawl.path, plan, log.length)
    list(
        find_pending(log, absorber(plan.block, plan.blocks, log.seen[plan.block]), lambda entry: read_aux(crawl, entry))
    )
    mark("verifier_reads")
    write_outputs(crawl.path, plan, log.length)
    began = time.perf_counter()
    commit(crawl.path, entry_of(plan, fixed, log), log.length)
    state.refresh()
    state.views()
    mark("commit")
    delete_superseded(state, Config().blocks.keep_generations)
    mark("delete")
    state.write_summary()
    mark("summary")
    describe(crawl, NOW_MS)
    mark("status")
    return seconds


def read_aux(crawl: CrawlFolder, entry: Entry) -> dict:
    return read_manifest(crawl.path / names.cycle(entry.cycle) / names.VERIFIER)["aux"]


def write_outputs(crawl: Path, plan: Plan, seen: int) -> None:
    """What the stages of a small cycle leave that others read: manifests, and a generation like its parent."""
    for stage in KINDS[CRAWL].stages:
        with publishing(crawl / names.cycle(plan.cycle) / stage) as manifest:
            manifest |= manifest_of(stage, plan.cycle)
    copy_generation(crawl, plan.block, plan.generation, plan.cycle, seen)


def manifest_of(stage: str, cycle: int) -> dict:
    aux = {"rows": 0, "first_keys": [], "last_key": None, "prefixes": "00" * 512}
    about = {"stage": stage, "cycle": cycle, "counts": COUNTS.get(stage, {})}
    return {**about, **({"aux": aux} if stage == names.VERIFIER else {})}


def copy_generation(crawl: Path, block: int, parent: int, number: int, seen: int) -> None:
    """Generation `number` of a block, with the rows of another."""
    target = crawl / names.generation(block, number)
    shutil.copytree(crawl / names.generation(block, parent), target)
    value = read_json(target / names.MANIFEST) | {"cycle": number, "seen": seen}
    (target / names.MANIFEST).write_bytes(encode_json(value))


def make_crawl(path: Path, commits: int) -> CrawlFolder:
    """A crawl of so many commits: seeds, one turn per block that took them in, and cycles by turns from then on."""
    crawl = create(path, BLOCKS, hash_seed=1)
    state = CrawlState(crawl)
    leave(path, [f"http://s{number}.test/" for number in range(SERVERS)])
    take_inbox(state, Config())
    for block in range(BLOCKS):
        plan = Plan(state.next_cycle(), ABSORB, block, BLOCKS, None, NOW_MS, Config())
        write_plan(path, plan)
        _, fixed = work(crawl, path, plan, state.log)
        commit(path, entry_of(plan, fixed, state.log))
        state.refresh()
    add_past(path, dict(state.log.live), state.log.length, commits)
    (path / names.LOG_SUMMARY).unlink(missing_ok=True)
    return crawl


def add_past(crawl: Path, live: dict[int, int], length: int, commits: int) -> None:
    """Adds cycles up to this number of commits. Their folders are links to one, and only the last generations exist."""
    first, before = dict(live), {}
    write_past_cycle(crawl / PAST_CYCLE, length)
    log, cycles, target = str(crawl / names.LOG), str(crawl), os.path.relpath(crawl / PAST_CYCLE, crawl / names.CYCLES)
    for number in range(length, commits):
        block = number % BLOCKS
        entry = Entry(CRAWL, number, BLOCKS, {block: live[block]}, {block: number}, number)
        with open(f"{log}/{names.log_entry(number)}", "xb") as file:
            file.write(encode_json({"format": FORMAT, **vars(entry)}))
        os.symlink(target, f"{cycles}/{names.cycle(number)}")
        live[block], before[block] = number, live[block]
    for block in live:
        for number in {before[block], live[block]} - {first[block]}:
            copy_generation(crawl, block, first[block], number, number)
        if first[block] not in (before[block], live[block]):
            shutil.rmtree(crawl / names.generation(block, first[block]))


def write_past_cycle(folder: Path, cycle: int) -> None:
    """The folder of a past cycle: its plans, and the manifest of each stage."""
    for stage in KINDS[CRAWL].stages:
        (folder / stage).mkdir(parents=True)
        manifest = {"format": FORMAT, "files": {}, **manifest_of(stage, cycle)}
        (folder / stage / names.MANIFEST).write_bytes(encode_json(manifest))
    for name in (names.PLAN, names.VERIFIER_PLAN):
        (folder / name).write_bytes(encode_json({"format": FORMAT, "cycle": cycle, "now_ms": NOW_MS}))
