"""A block made anew from the cycles' own tables: the turns that led to its live generation, run again in their order.

Theory. The log tells which cycles made a generation, and from which other one: a turn of its block, or the split of the
block that it came from. Each such turn is a function of its plan, the extractor's tables of its cycle, and the AUX that it
absorbed; all but AUX are kept, and AUX follows from the tables of its own cycle. So the turns are taken again in a folder
aside that looks like the crawl folder up to then, beginning at the newest earlier generation that is whole, else at nothing.
"""

import errno
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from contract import names
from contract.aux_rows import may_hold
from contract.blocks import interval
from contract.crawl_folder import CrawlFolder, note_mended, set_aside
from contract.errors import BadInput, Usage
from contract.generation import is_whole
from contract.log import ABSORB, CRAWL, FROM_INBOX, GROW, WITH_ROWS, Entry, State
from contract.plan import Plan, VerifierPlan, read_plan
from contract.units import count
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


def rebuild_block(crawl: CrawlFolder, log: State, block: int) -> str:
    """Makes the live generation of the block anew and puts its files in place of those that fail their check; says what it did."""
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
        place = Path(names.generation(block, log.generation(block)))
        is_sure = compare(crawl.path, scratch.path, place)
        mended = put_in_place(crawl.path, scratch.path, place)
    began = f"generation {start[1]} of block {start[0]}" if start else "nothing"
    sure = (
        "the same bytes as its manifest tells"
        if is_sure
        else "its manifest could not be read, so it is not known whether they are the same bytes"
    )
    return (
        f"block {block} made again from {began} by {count(len(steps), 'turn')}, {sure}; {count(len(mended), 'file')} put back"
        + "".join(f"\n  {name}" for name in mended)
    )


def find_steps(crawl: Path, log: State, block: int) -> tuple[list[Step], tuple[int, int] | None]:
    """The turns to take, oldest first, and the whole generation to begin from; none where they begin at nothing."""
    steps: list[Step] = []
    place: tuple[int, int | None] = (block, log.generation(block))
    while place[1] is not None:
        if steps and is_whole(crawl, *place):
            return steps[::-1], place
        entry = log.entries[log.cycles[place[1]]]
        (parent,) = entry.parents.items()
        steps.append(Step(entry, place[0], parent))
        place = parent
    return steps[::-1], None


def require_tables(crawl: Path, log: State, step: Step) -> None:
    """BadInput that names the first table that was not kept, before any work is done."""
    cycle = crawl / names.cycle(step.entry.cycle)
    if not (cycle / names.PLAN).exists():
        raise BadInput(
            f"{cycle / names.PLAN}: not there, and without it block {step.block} cannot be made anew; put it back from a copy"
        )
    if step.entry.kind == CRAWL:
        require_stage(cycle / names.EXTRACTOR, step.block)
    for other in absorbed(log, step):
        if may_have_rows(crawl, other, step) and not has_whole_table(crawl, other):
            folder = crawl / names.cycle(other.cycle)
            if other.kind in FROM_INBOX:
                raise BadInput(
                    f"{folder / names.VERIFIER / other.rows_file}: missing or damaged, and block {step.block} cannot be made anew "
                    f"without it. First run: bin/verifier --crawl {crawl} --cycle {other.cycle} --repair"
                )
            require_stage(
                folder / names.EXTRACTOR, step.block, (names.EXTRACTED, names.COLLECTED, names.METADATA, names.SERVERS)
            )


def require_stage(folder: Path, block: int, wanted: tuple[str, ...] = ()) -> None:
    if not is_published(folder):
        raise BadInput(
            f"{folder / names.MANIFEST}: not there; the tables of that cycle were not kept, and without them block {block} cannot be made anew"
        )
    for name in wanted or read_manifest(folder)["files"]:
        if not (folder / name).exists():
            raise BadInput(
                f"{folder / name}: not there; that table was not kept, and without it block {block} cannot be made anew"
            )


def absorbed(log: State, step: Step) -> list[Entry]:
    """The entries whose tables the turn took in."""
    if step.entry.kind == GROW:
        return []
    parent = step.parent[1]
    seen = log.entries[log.cycles[parent]].seen if parent is not None else 0
    return [entry for entry in log.entries[seen : step.entry.seen] if entry is not None]


def may_have_rows(crawl: Path, entry: Entry, step: Step) -> bool:
    """Whether the table of the entry has rows for the block of the step, as far as its manifest tells."""
    told = read_summary(crawl, entry)
    return entry.kind in WITH_ROWS and (told is None or may_hold(told, *interval(step.block, step.entry.blocks)))


def read_summary(crawl: Path, entry: Entry) -> dict | None:
    """What the manifest tells of the AUX of an entry; none where it cannot be read."""
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
    """Makes the folder aside look like the crawl folder: what is only read is a link to it."""
    for name in (names.CRAWL, names.SUFFIX_LIST, names.LOG):
        os.symlink(crawl.resolve() / name, scratch / name)
    make_folder(scratch / names.TEXT)
    if start:
        place = names.generation(*start)
        make_folder((scratch / place).parent)
        os.symlink(crawl.resolve() / place, scratch / place)
        for name in read_manifest(crawl / place)["texts"]:
            os.symlink(crawl.resolve() / names.TEXT / name, scratch / names.TEXT / name)


def gather_inputs(crawl: Path, scratch: Path, log: State, step: Step, remade: set[int]) -> None:
    """Links the tables that the turn reads; AUX that was deleted or damaged is made again, but for that of turns taken here."""
    if step.entry.kind == CRAWL:
        link(crawl, scratch, Path(names.cycle(step.entry.cycle)) / names.EXTRACTOR)
    for entry in absorbed(log, step):
        cycle = Path(names.cycle(entry.cycle))
        if entry.kind in WITH_ROWS and entry.cycle not in remade and not (scratch / cycle / names.VERIFIER).exists():
            if has_whole_table(crawl, entry) or not may_have_rows(crawl, entry, step):
                link(
                    crawl, scratch, cycle / names.VERIFIER
                )  # where nothing in it is for this block its manifest is enough
            else:
                make_aux(crawl, scratch, entry)


def link(crawl: Path, scratch: Path, place: Path) -> None:
    make_folder((scratch / place).parent)
    if not (scratch / place).exists():
        os.symlink(crawl.resolve() / place, scratch / place)


def make_aux(crawl: Path, scratch: Path, entry: Entry) -> None:
    """The AUX of a crawl cycle from its tables; where its manifest is there, that tells whether the rows are the same."""
    place, told = Path(names.cycle(entry.cycle)) / names.VERIFIER, read_summary(crawl, entry)
    folder = crawl / names.cycle(entry.cycle) / names.EXTRACTOR
    ((block, _),) = entry.parents.items()
    with publishing(scratch / place) as manifest:
        found = write_aux(scratch / place / names.AUX, Harvest(folder, interval(block, entry.blocks)))
        if told is not None and told != found:
            raise BadInput(
                f"{crawl / place / names.AUX}: made again from {folder} it has other rows than its manifest tells ({found['rows']} against {told['rows']})"
            )
        manifest |= {"aux": found}


def take_step(scratch: CrawlFolder, log: State, step: Step, plan: Plan) -> None:
    """Takes the turn below the folder aside, and drops there what no later turn reads."""
    entry = step.entry
    if entry.kind == GROW:
        split_block(scratch.path, scratch.path, plan)
    elif entry.kind in (CRAWL, ABSORB):
        fixed = VerifierPlan(
            entry.cycle, step.block, entry.blocks, step.parent[1], entry.seen
        )  # the log is the truth about it
        take_turn(scratch, scratch.path, plan, fixed, log)
    else:
        raise BadInput(
            f"cycle {entry.cycle} is of kind {entry.kind}, which makes no generation: the log is not what this program knows"
        )
    made = names.generation(step.block, entry.cycle)
    for folder in (scratch.path / names.GENERATIONS).glob("[0-9]*/[0-9]*"):
        if folder != scratch.path / made:
            remove_tree(folder)
    in_use = read_manifest(scratch.path / made)["texts"]
    for path in (scratch.path / names.TEXT).iterdir():
        if path.name not in in_use:
            path.unlink()


def compare(crawl: Path, scratch: Path, place: Path) -> bool:
    """Whether the manifest that was there tells the same bytes; false where it cannot be read, BadInput where it tells others."""
    made = read_manifest(scratch / place)
    for other in (crawl / names.GENERATIONS).glob(f"[0-9]*/[0-9]*/{names.MANIFEST}"):  # blocks that were one share text
        try:
            texts = read_manifest(other.parent)["texts"]
        except (OSError, Damaged, UnknownFormat, KeyError):
            continue
        different = [
            name for name in made["texts"] if name in texts and texts[name]["xxh3"] != made["texts"][name]["xxh3"]
        ]
        if different:
            raise BadInput(
                f"{names.TEXT}/{different[0]} made again has other bytes than {other} tells; nothing was changed"
            )
    try:
        told = read_manifest(crawl / place)
    except (OSError, Damaged, UnknownFormat):
        return False
    if told != made:
        different = [
            name for name in (*made["files"], *told["files"]) if made["files"].get(name) != told["files"].get(name)
        ]
        raise BadInput(
            f"{crawl / place} made again is not what its manifest tells ({different[0] if different else names.MANIFEST} differs): a table of its "
            "cycles was changed, or another version of this program made it; nothing was changed"
        )
    return True


def put_in_place(crawl: Path, scratch: Path, place: Path) -> list[str]:
    """Sets aside what fails its check and puts what was made there, the manifest last; names of the files."""
    manifest = read_manifest(scratch / place)
    described = {Path(names.TEXT) / name: about for name, about in manifest["texts"].items()}
    described |= {place / name: about for name, about in manifest["files"].items()}
    described[place / names.MANIFEST] = describe(scratch / place / names.MANIFEST)
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
    """Damage that a turn met in the folder aside is that of the crawl's own file."""
    try:
        yield
    except Damaged as error:
        path = Path(error.path)
        if not path.is_relative_to(scratch):
            raise
        raise Damaged(crawl / path.relative_to(scratch), error.what, error.offset) from None
