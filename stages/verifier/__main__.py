"""verifier: merges what a cycle found into its block of known URLs.

  bin/verifier --crawl DIR --cycle ID              merge and commit the cycle
  bin/verifier --crawl DIR --cycle ID --out DIR2   write the same files below DIR2, commit nothing
  bin/verifier --crawl DIR --cycle ID --repair     make damaged files of that cycle anew; also of one that took in seeds
  bin/verifier --crawl DIR --rebuild BLOCK         make a block anew from the tables of all its cycles
  bin/verifier ... --cycle ID --times FILE         also write how many seconds each part took, as JSON

Reads the extractor's tables of the cycle, the block's live generation and the slices of AUX that
wait for the block. Writes a new generation R/BLOCK/CYCLE, a segment of text, AUX.parquet with the
URLs of other blocks, report.json, and last the entry in log/ that makes them count. For a cycle of
kind 'grow' it splits the block instead, for one of kind 'forget' it removes the URLs that no page has
linked to for [revisit] forget_after_days. A rerun writes the same bytes, as long as the generation that
it began from is kept: that is so for the last cycle of each block ([blocks] keep_generations).

--rebuild is for a block whose live generation or text is damaged and whose generation before it is not
whole either. It runs the turns that led to it again, from the newest earlier generation that is whole,
else from nothing. It makes deleted AUX again from the tables of its cycle. The result must have the bytes
that the manifest describes. Damaged files go to corrupt/ and the new ones replace them.

Example: bin/verifier --crawl demo/crawl --cycle 30 --out /tmp/again
(the cycle must be the last of its block, whose parent generation is kept: bin/status --blocks lists the last ones)
"""

import json
import tempfile
from pathlib import Path

from contract import names
from contract.blocks import interval
from contract.command import make_parser, run, setting_aside
from contract.crawl_folder import CrawlFolder, hold_lock, note_mended, notes_of_damage, open_folder
from contract.errors import BadInput, Usage
from contract.generation import read_generation_manifest
from contract.inbox import publish_taken
from contract.log import KINDS, Entry, State, commit, replay
from contract.log_summary import read_log
from contract.plan import Plan, VerifierPlan, fix_verifier_plan, read_plan
from contract.stage import expect_ours, live_with_supervisor
from contract.units import count
from stages.verifier.forgetting import forget
from stages.verifier.harvest import Harvest
from stages.verifier.rebuild import rebuild_block
from stages.verifier.split import split_block
from stages.verifier.timing import Timing
from stages.verifier.turn import take_turn, write_aux
from storage.errors import Damaged
from storage.publish import describe, make_folder, put, read_manifest, verify

NAME = "verifier"


def main() -> int | None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--cycle", type=int, metavar="ID", help="the cycle whose tables are merged")
    parser.add_argument("--out", type=Path, metavar="DIR2", help="write below this folder and commit nothing")
    parser.add_argument("--repair", action="store_true", help="make damaged files of a committed merge anew")
    parser.add_argument("--rebuild", type=int, metavar="BLOCK", help="make the live generation of this block anew")
    parser.add_argument(
        "--times", type=Path, metavar="FILE", help="write the seconds that each part took to this file, as JSON"
    )
    arguments = parser.parse_args()
    if (arguments.cycle is None) == (arguments.rebuild is None) or (
        arguments.rebuild is not None and (arguments.out or arguments.repair)
    ):
        raise Usage(
            "give --cycle ID, with --out or --repair where you want that, or --rebuild BLOCK alone "
            f"(see bin/{NAME} --help)"
        )
    timing = Timing()
    live_with_supervisor()
    crawl = open_folder(arguments.crawl)
    hold_lock(crawl)
    if arguments.rebuild is not None:
        print(f"{NAME}: " + rebuild_block(crawl, replay(crawl.path, crawl.blocks_first), arguments.rebuild))
        return None
    with setting_aside(crawl, is_asked=not (arguments.out or arguments.repair)):
        plan = read_plan(crawl.path, arguments.cycle)
        if KINDS[plan.kind].from_inbox and not arguments.repair:
            raise Usage(
                f"cycle {plan.cycle} is of kind {plan.kind}: it has nothing to verify; --repair makes its table anew"
            )
        log = read_log(crawl)
        if arguments.out or arguments.repair or log.generation(plan.block) != plan.generation:
            log = replay(crawl.path, crawl.blocks_first)  # it may need tables that live generations have absorbed
        if arguments.repair:
            return repair(crawl, plan, log)
        if arguments.out:
            expect_ours(arguments.out)
            print(json.dumps(work(crawl, arguments.out, plan, log, timing)[0], indent=1))
            write_times(timing, arguments.times)
            return None
        if log.is_closed(plan.cycle):
            print(f"{NAME}: cycle {plan.cycle} is committed already")
            return None
        report, fixed = work(crawl, crawl.path, plan, log, timing)
        position = commit(crawl.path, entry_of(plan, fixed, log), log.length)
    timing.mark("commit")
    write_times(timing, arguments.times)
    print(f"{NAME}: cycle {plan.cycle} committed at {position}: " + json.dumps(report))
    return None


def write_times(timing: Timing, path: Path | None) -> None:
    if path:
        path.write_text(json.dumps(timing.summary(), indent=1))


def work(
    crawl: CrawlFolder, out: Path, plan: Plan, log: State, timing: Timing | None = None
) -> tuple[dict, VerifierPlan | None]:
    if KINDS[plan.kind].splits:
        return split_block(crawl.path, out, plan), None
    if KINDS[plan.kind].forgets:
        return forget(crawl, out, plan), None
    if KINDS[plan.kind].from_inbox:
        return publish_taken(crawl, out, plan, find_copy(crawl.path, plan)), None
    fixed = fix_verifier_plan(crawl.path, plan, log.length)
    return take_turn(crawl, out, plan, fixed, log, timing), fixed


def entry_of(plan: Plan, fixed: VerifierPlan | None, log: State) -> Entry:
    parents = {plan.block: plan.generation}
    if KINDS[plan.kind].splits:
        children = dict.fromkeys((plan.block, plan.blocks), plan.cycle if plan.generation is not None else None)
        return Entry(plan.kind, plan.cycle, plan.blocks + 1, parents, children, log.seen.get(plan.block, 0))
    seen = log.seen.get(plan.block, 0) if fixed is None else fixed.absorb_to  # what forgets absorbs nothing
    return Entry(plan.kind, plan.cycle, plan.blocks, parents, {plan.block: plan.cycle}, seen)


def find_copy(crawl: Path, plan: Plan) -> Path:
    """The copy of the file of inbox/ that the cycle took in; BadInput where it is not as the manifest says."""
    folder = crawl / names.cycle(plan.cycle) / names.VERIFIER
    path = folder / names.taken_in(plan.inbox)
    try:
        described = read_manifest(folder)["files"]
    except (FileNotFoundError, Damaged):
        described = {}
    try:
        verify(path, described.get(path.name) or describe(path))
    except (FileNotFoundError, Damaged) as error:
        raise BadInput(
            f"{error}: cycle {plan.cycle} cannot be made anew without it; "
            f"put {path} back from a copy of the crawl folder"
        ) from None
    return path


def repair(crawl: CrawlFolder, plan: Plan, log: State) -> None:
    """Runs a committed merge again beside the crawl and puts back those files that fail their check."""
    with tempfile.TemporaryDirectory(prefix="coletor-repair-", dir=crawl.path) as made:
        root = Path(made)
        mended = repair_aux(crawl.path, root, plan)
        try:
            work(crawl, root, plan, log)
        except Damaged as error:
            if mended:  # no other file of an old merge can be made anew
                expect_whole(crawl.path / names.cycle(plan.cycle) / names.VERIFIER)
                print(f"{NAME}: AUX of cycle {plan.cycle} made again, {count(mended, 'file')} put back")
                return
            if not Path(error.path).is_relative_to(crawl.path / names.GENERATIONS):
                raise
            raise BadInput(
                f"{error}; bin/{NAME} --crawl {crawl.path} --rebuild {plan.block} makes the block anew without it"
            ) from None
        for folder in sorted(path.parent for path in root.rglob(names.MANIFEST)):
            manifest, relative = read_generation_manifest(folder), folder.relative_to(root)
            described = {relative / name: about for name, about in manifest["files"].items()}
            described[relative / names.MANIFEST] = describe(folder / names.MANIFEST)
            described |= {Path(names.TEXT) / name: about for name, about in manifest.get("texts", {}).items()}
            for name, description in described.items():
                if put_back(root / name, crawl.path / name, description, plan.block):
                    note_mended(crawl.path, name)
                    mended += 1
    print(f"{NAME}: cycle {plan.cycle} made again, {count(mended, 'file')} put back")


def expect_whole(folder: Path) -> None:
    """BadInput where a file of a published folder fails its check; AUX may be deleted."""
    for name, about in read_manifest(folder)["files"].items():
        try:
            verify(folder / name, about)
        except Damaged as error:
            raise BadInput(f"{error}; it cannot be made anew: put it back from a copy of the crawl folder") from None


def repair_aux(crawl: Path, scratch: Path, plan: Plan) -> int:
    """Makes a damaged AUX of a crawl cycle again from the extractor's tables alone; returns how many files it put back.

    The merge that wrote it may be long superseded, and the generation that it began from deleted.
    """
    folder = crawl / names.cycle(plan.cycle) / names.VERIFIER
    try:
        about = read_manifest(folder)["files"].get(names.AUX)
    except (FileNotFoundError, Damaged):
        return 0
    if not KINDS[plan.kind].fetches or about is None:
        return 0
    is_missed = any(
        note["path"] == (folder / names.AUX).relative_to(crawl).as_posix() for note in notes_of_damage(crawl)
    )
    if not (folder / names.AUX).exists() and not is_missed:
        return 0  # deleted, for every block has absorbed it
    try:
        verify(folder / names.AUX, about)
        return 0
    except Damaged:
        made = scratch / f"{plan.cycle}-{names.AUX}"
        write_aux(made, Harvest(crawl / names.cycle(plan.cycle) / names.EXTRACTOR, interval(plan.block, plan.blocks)))
        verify(made, about)
        put(folder / names.AUX, made.read_bytes())
        note_mended(crawl, (folder / names.AUX).relative_to(crawl))
        made.unlink()
        return 1


def put_back(made: Path, target: Path, description: dict, block: int) -> bool:
    """Replaces a file that fails its check by the one that was made again; false where it is whole."""
    try:
        verify(target, description)
        return False
    except Damaged as error:
        if not made.exists():
            raise BadInput(
                f"{error}; it was not written by this cycle: repair the cycle that its name gives, or --rebuild {block}"
            ) from None
        make_folder(target.parent)
        put(target, made.read_bytes())
        return True


if __name__ == "__main__":
    run(main, NAME)
