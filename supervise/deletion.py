"""Deletes what nothing needs any more (rule 7), and at start-up what a crash left unfinished (rule 8).

A deletion has two parts. `take_snapshot` notes, at once, what the crawl is like. `delete` does the work; it may run in
another thread while cycles are planned, run and committed. It removes only what cycles made that were committed or
abandoned at the snapshot, so it meets no file that is being written, and no generation that is newer. A generation that
is live at the snapshot, and the older ones that are kept, keep their text and the AUX that they have not absorbed. What
is committed later begins from a live generation, so it finds all that it needs. A deletion that is killed anywhere
leaves garbage at most: the next one, or start-up, finds it.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from contract import names
from contract.aux_rows import bits_of
from contract.closed_cycles import ClosedCycles
from contract.generation import read_generation_manifest
from contract.log import KINDS, Entry, State
from contract.pending import Absorber, absorber, find_lacked
from contract.plan import unclosed_folders
from contract.warc import ANSWERS, ROBOTS_FOR, PageReader
from storage.errors import Damaged, UnknownFormat
from storage.publish import ASIDE, is_published, remove_tree, sync_folder, unpublish
from supervise.crawl_state import CrawlState, Deleted, Kept, read_aux

# bin/seed and bin/reconsider write into inbox/ without the lock. Neither writes a file for so long; if one did, its
# rename would fail with an error.
INBOX_ASIDE_MAX_S = 86_400.0


@dataclass(frozen=True)
class Snapshot:
    """What a deletion needs to know of a crawl, as it was at one moment. Nobody changes it."""

    crawl: Path
    keep: int  # how many superseded generations stay, per block
    length: int  # of the log
    blocks: int
    live: dict[int, int | None]
    closed: ClosedCycles
    generations: dict[int, tuple[int, ...]]  # those committed, of blocks where something may have to go
    outlived: frozenset[tuple[int, int]]  # block and generation
    kept: dict[int, tuple[Kept, ...]]  # by block, of the last deletion
    tables: tuple[tuple[int, Entry, int | None], ...]  # AUX that is still there: position, entry, key prefixes
    committed: frozenset[int]  # cycles whose folder was not looked through yet


def delete_superseded(crawl_state: CrawlState, keep: int) -> None:
    """Deletes generations beyond the kept ones, their text, and AUX that every kept generation has absorbed."""
    deleted = delete(take_snapshot(crawl_state, keep))
    if deleted is not None:
        crawl_state.note_deleted(deleted)


def take_snapshot(crawl_state: CrawlState, keep: int) -> Snapshot:
    """For `delete`; one deletion at a time, and its result goes to `CrawlState.note_deleted`. Reads no file."""
    log, outlived = crawl_state.log, frozenset(find_outlived(crawl_state.log, keep))
    changed = {*crawl_state.changed, *(block for block, _ in outlived)}
    changed |= {block for block, numbers in log.generations.items() if len(numbers) > keep + 1}
    return Snapshot(
        crawl_state.path,
        keep,
        log.length,
        log.blocks,
        dict(log.live),
        log.closed.copy(),
        {block: tuple(log.generations.get(block, ())) for block in sorted(changed)},
        outlived,
        dict(crawl_state.kept),
        tuple(
            (position, entry, crawl_state.known_bits(position))
            for position, entry in log.tables
            if not KINDS[entry.kind].from_inbox
        ),
        frozenset(cycle for cycle, is_abandoned in log.unsettled.items() if not is_abandoned),
    )


def find_outlived(log: State, keep: int) -> Iterable[tuple[int, int]]:
    """Split generations whose upper half has had `keep` turns since.

    The upper half is another block. A split generation is as old for it as for the lower half.
    """
    for split in log.splits:
        if sum(number > split.cycle for number in log.generations.get(split.upper, ())) >= keep:
            yield split.block, split.generation


def delete(snapshot: Snapshot) -> Deleted | None:
    """Removes what the snapshot lets go; none where a kept generation is damaged: a repair may need anything.

    A superseded one is not kept for long, so the damage holds deletion up for some turns only.
    """
    crawl = snapshot.crawl
    if not all(
        number is None or is_published(crawl / names.generation(block, number))
        for block, number in snapshot.live.items()
    ):
        return None
    sync_folder(crawl / names.LOG)
    try:
        changed = {block: find_kept(snapshot, block) for block in snapshot.generations}
    except (Damaged, UnknownFormat):
        return None
    kept = {**snapshot.kept, **changed}
    tables = find_absorbed(snapshot, kept)
    texts: set[str] = set()
    for block in changed:
        texts |= delete_generations(snapshot, block, changed[block])
    delete_texts(snapshot, kept, texts)
    for position, entry, _ in snapshot.tables:
        if position in tables:
            (crawl / names.cycle(entry.cycle) / names.VERIFIER / entry.rows_file).unlink(missing_ok=True)
    for cycle in snapshot.committed:
        remove_asides(crawl / names.cycle(cycle))
    return Deleted(snapshot.length, snapshot.generations, changed, tables, snapshot.committed)


def find_kept(snapshot: Snapshot, block: int) -> tuple[Kept, ...]:
    """The live generation of a block, and the newest of those that it superseded; oldest first."""
    live = snapshot.live.get(block)
    older = [
        number
        for number in snapshot.generations[block]
        if number != live
        and (block, number) not in snapshot.outlived
        and is_published(snapshot.crawl / names.generation(block, number))
    ]
    known = {one.number: one for one in snapshot.kept.get(block, ())}
    numbers = [*older[max(0, len(older) - snapshot.keep) :], *([live] if live is not None else [])]
    return tuple(known.get(number) or read_kept(snapshot.crawl, block, number) for number in numbers)


def read_kept(crawl: Path, block: int, number: int) -> Kept:
    manifest = read_generation_manifest(crawl / names.generation(block, number))
    return Kept(number, manifest["blocks"], manifest["seen"], frozenset(manifest["texts"]))


def find_absorbed(snapshot: Snapshot, kept: dict[int, tuple[Kept, ...]]) -> frozenset[int]:
    """Positions of the AUX that no kept generation lacks; a block without a generation lacks all."""
    absorbers: list[Absorber] = []
    for block in range(snapshot.blocks):
        absorbers += [absorber(block, one.blocks, one.seen) for one in kept.get(block, ())] or [
            absorber(block, snapshot.blocks)
        ]
    least = min(one.seen for one in absorbers)
    tables = []  # no manifest is read of a table that all have absorbed
    for position, entry, bits in snapshot.tables:
        if position >= least:
            tables.append((position, bits_of(read_aux(snapshot.crawl, entry)) if bits is None else bits))
    lacked = find_lacked(tables, absorbers)
    return frozenset(position for position, _, _ in snapshot.tables if position not in lacked)


def delete_generations(snapshot: Snapshot, block: int, kept: tuple[Kept, ...]) -> set[str]:
    """Deletes what the block does not keep; returns the segments of text that it named."""
    texts: set[str] = set()
    if snapshot.live.get(block) is None:
        return texts  # it never had a generation: what lies there is not understood, and stays
    for number in names.numbered(folder_of_block(snapshot.crawl, block)):
        if number in snapshot.closed and number not in {one.number for one in kept}:
            folder = snapshot.crawl / names.generation(block, number)
            try:
                texts |= set(read_generation_manifest(folder)["texts"])
            except (OSError, Damaged, UnknownFormat, KeyError):
                pass  # start-up looks at all segments
            unpublish(folder)
    return texts


def delete_texts(snapshot: Snapshot, kept: dict[int, tuple[Kept, ...]], unnamed: set[str]) -> None:
    """Deletes segments that deleted generations named and no kept one does; at first, all that none names."""
    folder = snapshot.crawl / names.TEXT
    if not snapshot.kept:
        unnamed = {names.segment(number) for number in names.numbered(folder, ".zst")}
    if unnamed:
        named = set[str]().union(*(one.texts for generations in kept.values() for one in generations))
        for name in unnamed - named:
            number = Path(name).stem
            if number.isdecimal() and int(number) in snapshot.closed:  # else a cycle in flight writes it
                (folder / name).unlink(missing_ok=True)


def folder_of_block(crawl: Path, block: int) -> Path:
    return (crawl / names.generation(block, 0)).parent


def remove_garbage(crawl_state: CrawlState) -> None:
    """Removes what no manifest names and no open plan will resume; corrupt/ is left alone. For start-up, before stages.

    Looks at cycles that are open, or that ended since the last time; at all of them if there was no summary of the log.
    """
    crawl, log, open_cycles = crawl_state.path, crawl_state.log, set(crawl_state.open_cycles())
    remove_asides(crawl)
    remove_asides(crawl / names.TEXT)
    remove_asides(crawl / names.FILES)
    remove_asides(crawl / names.INBOX, older_than_s=INBOX_ASIDE_MAX_S)
    if crawl_state.is_rebuilt:
        remove_asides(crawl / names.LOG)
        cycles = names.numbered(crawl / names.CYCLES)
    else:
        cycles = sorted({*log.unsettled, *unclosed_folders(crawl, log)})
    for cycle in cycles:
        remove_garbage_of_cycle(crawl, log, cycle)
    for block in range(log.blocks + 1):
        for number in names.numbered(folder_of_block(crawl, block)):
            generation = crawl / names.generation(block, number)
            if number not in open_cycles and not is_published(generation):
                if number == log.generation(block):
                    continue  # not garbage but damage, which its reader will report
                unpublish(generation)
    for leftover in crawl.glob("coletor-repair-*"):
        remove_tree(leftover)
    crawl_state.settle()


def remove_garbage_of_cycle(crawl: Path, log: State, cycle: int) -> None:
    folder = crawl / names.cycle(cycle)
    remove_asides(folder)
    if not (folder / names.PLAN).exists():
        if not log.is_closed(cycle):
            unpublish(folder)
    elif log.is_abandoned(cycle):  # in a committed cycle, a stage without a manifest is damage
        for stage in names.STAGES:
            if not is_published(folder / stage) and not has_pages(folder / stage):
                unpublish(folder / stage)


def has_pages(folder: Path) -> bool:
    """Whether a fetcher's folder holds pages, published or not; answers for robots.txt are none."""
    if not (folder / names.PAGES).is_dir():
        return False
    return any(holds_page(path) for path in sorted((folder / names.PAGES).iterdir()))


def holds_page(path: Path) -> bool:
    """Whether a file has a record of a page; what cannot be read may be one."""
    try:
        return any(record.type in ANSWERS and not record.get(ROBOTS_FOR) for record in PageReader(path).records())
    except (Damaged, UnknownFormat, OSError):
        return True


def remove_asides(folder: Path, older_than_s: float | None = None) -> None:
    """Removes unfinished files; with a limit, only those whose last write is longer ago."""
    for path in folder.glob(f"{ASIDE}*"):
        try:
            if older_than_s is None or time.time() - path.stat().st_mtime > older_than_s:
                path.unlink()
        except FileNotFoundError:
            continue  # its writer has just given it its name
