"""A block made anew from the cycles' own tables: the turns that led to its live generation, run again in their order.

Theory. The log has the cycle that made each generation, and its parent: a turn of its block, or the split of the block
that it came from. Each such turn is a function of its plan, the extractor's tables of its cycle, and the AUX that it
absorbed. All but AUX are kept, and AUX follows from the tables of its own cycle. So the turns run again in a scratch
folder that looks like the crawl folder did then. They begin at the newest earlier generation that is whole, else at
nothing.
"""

import errno
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from contract import names
from contract.blocks import interval
from contract.crawl_folder import CrawlFolder, note_mended, set_aside
from contract.errors import BadInput, Usage
from contract.generation import is_whole, read_generation_manifest
from contract.log import KINDS, Entry, History
from contract.pending import absorber, entries_with_table
from contract.plan import Plan, VerifierPlan, read_plan
from contract.units import count
from stages.verifier.forgetting import forget
from stages.verifier.harvest import Harvest
from stages.verifier.split import split_block
from stages.verifier.turn import take_turn, write_aux
from storage.errors import Damaged, UnknownFormat
from storage.publish import (
    describe,
    is_published,
    make_folder,
    publishing,
    read_manifest,
    remove_tree,
    sync_folder,
    verify,
)

SCRATCH = "coletor-repair-"  # start-up removes what a killed rebuild left


@dataclass(frozen=True)
class Step:
    """One turn of the lineage: the entry that committed it, and the generation of the block that it made."""

    entry: Entry
    block: int
    parent: tuple[int, int | None]  # block and generation that it began from


def rebuild_block(crawl: CrawlFolder, log: History, block: int) -> str:
    """Makes the live generation of the block anew and replaces the files that fail their check; returns what it did."""
    if not 0 <= block < log.blocks:
        raise Usage(f"--rebuild {block}: expected a block, 0 to {log.blocks - 1}")
    if log.generation(block) is None:
        raise Usage(
            f"--rebuild {block}: no turn has made a generation of this block yet, there is nothing to make anew"
        )
    for leftover in crawl.path.glob(f"{SCRATCH}*"):  # of a rebuild that was killed: the lock is ours
        remove_tree(leftover)
    steps, start = find_steps(crawl.path, log, block)
    for step in steps:
        require_tables(crawl.path, log, step)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=crawl.path) as made:
        scratch = replace(crawl, path=Path(made))
        with naming_the_crawls_own(crawl.path, scratch.path):
            begin(crawl.path, scratch.path, start)
            for step in steps:
                gather_inputs(crawl.path, scratch.path, log, step, {other.entry.cycle for other in steps})
                take_step(scratch, log, step, read_plan(crawl.path, step.entry.cycle))
        folder = Path(names.generation(block, log.generation(block)))
        is_sure = compare(crawl.path, scratch.path, folder)
        mended = replace_damaged(crawl.path, scratch.path, folder)
    began = f"generation {start[1]} of block {start[0]}" if start else "nothing"
    sure = (
        "the same bytes as in its manifest"
        if is_sure
        else "its manifest could not be read, so it is not known whether they are the same bytes"
    )
    return (
        f"block {block} made again from {began} by {count(len(steps), 'turn')}, {sure}; "
        f"{count(len(mended), 'file')} put back" + "".join(f"\n  {name}" for name in mended)
    )


def find_steps(crawl: Path, log: History, block: int) -> tuple[list[Step], tuple[int, int] | None]:
    """The turns to run, oldest first, and the whole generation to begin from; none where they begin at nothing."""
    steps: list[Step] = []
    generation: tuple[int, int | None] = (block, log.generation(block))
    while generation[1] is not None:
        if steps and is_whole(crawl, *generation):
            return steps[::-1], generation
        entry = log.entries[log.cycles[generation[1]]]
        (parent,) = entry.parents.items()
        steps.append(Step(entry, generation[0], parent))
        generation = parent
    return steps[::-1], None


def require_tables(crawl: Path, log: History, step: Step) -> None:
    """BadInput that names the first table that was not kept, before any work begins."""
    cycle = crawl / names.cycle(step.entry.cycle)
    if not (cycle / names.PLAN).exists():
        raise BadInput(
            f"{cycle / names.PLAN}: not there, and without it block {step.block} cannot be made anew; "
            "put it back from a copy"
        )
    if KINDS[step.entry.kind].fetches:
        require_stage(cycle / names.EXTRACTOR, step.block)
    for other in absorbed(log, step):
        if may_have_rows(crawl, other, step) and not has_whole_table(crawl, other):
            folder = crawl / names.cycle(other.cycle)
            if KINDS[other.kind].from_inbox:
                raise BadInput(
                    f"{folder / names.VERIFIER / other.rows_file}: missing or damaged, and block {step.block} cannot "
                    f"be made anew without it. First run: bin/verifier --crawl {crawl} --cycle {other.cycle} --repair"
                )
            require_stage(
                folder / names.EXTRACTOR, step.block, (names.EXTRACTED, names.COLLECTED, names.METADATA, names.SERVERS)
            )


def require_stage(folder: Path, block: int, wanted: tuple[str, ...] = ()) -> None:
    if not is_published(folder):
        raise BadInput(
            f"{folder / names.MANIFEST}: not there; the tables of that cycle were not kept, "
            f"and without them block {block} cannot be made anew"
        )
    for name in wanted or read_manifest(folder)["files"]:
        if not (folder / name).exists():
            raise BadInput(
                f"{folder / name}: not there; that table was not kept, and without it block {block} cannot be made anew"
            )


def absorbed(log: History, step: Step) -> list[Entry]:
    """The entries whose tables the turn took in."""
    if not KINDS[step.entry.kind].merges:
        return []
    parent = step.parent[1]
    seen = log.entries[log.cycles[parent]].seen if parent is not None else 0
    return [entry for _, entry in entries_with_table(log, seen, step.entry.seen)]


def may_have_rows(crawl: Path, entry: Entry, step: Step) -> bool:
    """Whether the table of the entry has rows for the block of the step; true where its manifest cannot be read."""
    summary = read_summary(crawl, entry)
    return summary is None or absorber(step.block, step.entry.blocks).lacks(0, summary)


def read_summary(crawl: Path, entry: Entry) -> dict | None:
    """What the manifest records of the AUX of an entry; none where it cannot be read."""
    try:
        return read_manifest(crawl / names.cycle(entry.cycle) / names.VERIFIER)["aux"]
    except (OSError, KeyError, Damaged, UnknownFormat):
        return None


def has_whole_table(crawl: Path, entry: Entry) -> bool:
    folder = crawl / names.cycle(entry.cycle) / names.VERIFIER
    try:
        verify(folder / entry.rows_file, read_manifest(folder)["files"][entry.rows_file])
        return True
    except (OSError, KeyError, Damaged, UnknownFormat):
        return False


def begin(crawl: Path, scratch: Path, start: tuple[int, int] | None) -> None:
    """Makes the scratch folder look like the crawl folder: what is only read is a link to it."""
    for name in (names.CRAWL_FILE, names.SUFFIX_LIST, names.LOG, names.FILES):
        if (crawl / name).exists():
            os.symlink(crawl.resolve() / name, scratch / name)
    make_folder(scratch / names.TEXT)
    if start:
        folder = names.generation(*start)
        make_folder((scratch / folder).parent)
        os.symlink(crawl.resolve() / folder, scratch / folder)
        for name in read_generation_manifest(crawl / folder)["texts"]:
            os.symlink(crawl.resolve() / names.TEXT / name, scratch / names.TEXT / name)


def gather_inputs(crawl: Path, scratch: Path, log: History, step: Step, remade: set[int]) -> None:
    """Links the tables that the turn reads; makes deleted or damaged AUX again, except that of turns that run here."""
    if KINDS[step.entry.kind].fetches:
        link(crawl, scratch, Path(names.cycle(step.entry.cycle)) / names.EXTRACTOR)
    for entry in absorbed(log, step):
        cycle = Path(names.cycle(entry.cycle))
        if entry.cycle not in remade and not (scratch / cycle / names.VERIFIER).exists():
            if has_whole_table(crawl, entry) or not may_have_rows(crawl, entry, step):
                # Where nothing in it is for this block, its manifest is enough.
                link(crawl, scratch, cycle / names.VERIFIER)
            else:
                make_aux(crawl, scratch, entry)


def link(crawl: Path, scratch: Path, folder: Path) -> None:
    make_folder((scratch / folder).parent)
    if not (scratch / folder).exists():
        os.symlink(crawl.resolve() / folder, scratch / folder)


def make_aux(crawl: Path, scratch: Path, entry: Entry) -> None:
    """The AUX of a crawl cycle from its tables; BadInput where its manifest, if it can be read, has other rows."""
    folder, summary = Path(names.cycle(entry.cycle)) / names.VERIFIER, read_summary(crawl, entry)
    tables = crawl / names.cycle(entry.cycle) / names.EXTRACTOR
    ((block, _),) = entry.parents.items()
    with publishing(scratch / folder) as manifest:
        found = write_aux(scratch / folder / names.AUX, Harvest(tables, interval(block, entry.blocks)))
        if summary is not None and summary != found:
            raise BadInput(
                f"{crawl / folder / names.AUX}: made again from {tables} it has other rows than in its manifest "
                f"({found['rows']} against {summary['rows']})"
            )
        manifest |= {"aux": found}


def take_step(scratch: CrawlFolder, log: History, step: Step, plan: Plan) -> None:
    """Runs the turn in the scratch folder, and removes there what no later turn reads."""
    entry = step.entry
    if KINDS[entry.kind].splits:
        split_block(scratch.path, scratch.path, plan)
    elif KINDS[entry.kind].forgets:
        forget(scratch, scratch.path, plan)
    elif KINDS[entry.kind].merges:
        # What the log says of it is the truth.
        fixed = VerifierPlan(entry.cycle, step.block, entry.blocks, step.parent[1], entry.seen)
        take_turn(scratch, scratch.path, plan, fixed, log)
    else:
        raise BadInput(
            f"cycle {entry.cycle} is of kind {entry.kind}, which makes no generation: "
            "this program does not know such a log"
        )
    made = names.generation(step.block, entry.cycle)
    for folder in (scratch.path / names.GENERATIONS).glob("[0-9]*/[0-9]*"):
        if folder != scratch.path / made:
            remove_tree(folder)
    in_use = read_generation_manifest(scratch.path / made)["texts"]
    for path in (scratch.path / names.TEXT).iterdir():
        if path.name not in in_use:
            path.unlink()


def compare(crawl: Path, scratch: Path, folder: Path) -> bool:
    """Whether the old manifest has the same bytes; false where it cannot be read, BadInput where it has others."""
    made = read_generation_manifest(scratch / folder)
    for other in (crawl / names.GENERATIONS).glob(f"[0-9]*/[0-9]*/{names.MANIFEST}"):  # blocks that were one share text
        try:
            texts = read_generation_manifest(other.parent)["texts"]
        except (OSError, Damaged, UnknownFormat, KeyError):
            continue
        different = [
            name for name in made["texts"] if name in texts and texts[name]["xxh3"] != made["texts"][name]["xxh3"]
        ]
        if different:
            raise BadInput(
                f"{names.TEXT}/{different[0]} made again has other bytes than in {other}; nothing was changed"
            )
    try:
        expected = read_generation_manifest(crawl / folder)
    except (OSError, Damaged, UnknownFormat):
        return False
    if expected != made:
        files = (*made["files"], *expected["files"])
        different = [name for name in files if made["files"].get(name) != expected["files"].get(name)]
        raise BadInput(
            f"{crawl / folder} made again is not as its manifest describes it "
            f"({different[0] if different else names.MANIFEST} differs): a table of its cycles was changed, "
            "or another version of this program made it; nothing was changed"
        )
    return True


def replace_damaged(crawl: Path, scratch: Path, folder: Path) -> list[str]:
    """Sets aside files that fail their check and puts the new ones there, the manifest last; returns their names."""
    manifest = read_generation_manifest(scratch / folder)
    described = {Path(names.TEXT) / name: about for name, about in manifest["texts"].items()}
    described |= {folder / name: about for name, about in manifest["files"].items()}
    described[folder / names.MANIFEST] = describe(scratch / folder / names.MANIFEST)
    mended = []
    for name, about in described.items():
        if not (fault := fault_of(crawl / name, about)):
            continue
        if (crawl / name).exists():
            set_aside(crawl, crawl / name, fault)
        make_folder((crawl / name).parent)
        (scratch / name).rename(crawl / name)
        sync_folder((crawl / name).parent)
        note_mended(crawl, name)
        mended.append(name.as_posix())
    return mended


def fault_of(path: Path, about: dict) -> str:
    """What is wrong with a file, as words; a disk that cannot read it back is as bad as other bytes."""
    try:
        verify(path, about)
        return ""
    except Damaged as error:
        return str(error)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return f"{path}: {error.strerror}"


@contextmanager
def naming_the_crawls_own(crawl: Path, scratch: Path):
    """Damage that a turn finds in the scratch folder is reported as that of the crawl's own file."""
    try:
        yield
    except Damaged as error:
        path = Path(error.path)
        if not path.is_relative_to(scratch):
            raise
        raise Damaged(crawl / path.relative_to(scratch), error.what, error.offset) from None
