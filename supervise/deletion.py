"""Deletes what nothing needs any more (rule 7), and at start-up what a crash left unfinished (rule 8)."""

import time
from pathlib import Path

from contract import names
from contract.generation import read_generation_manifest
from contract.log import KINDS
from contract.pending import Absorber, absorber, entries_with_table
from contract.warc import ANSWERS, ROBOTS_FOR, PageReader
from storage.errors import Damaged, UnknownFormat
from storage.publish import ASIDE, is_published, remove_tree, sync_folder, unpublish
from supervise.crawl_state import CrawlState

# bin/seed and bin/reconsider write into inbox/ without the lock. Neither writes a file for so long; if one did, its
# rename would fail with an error.
INBOX_ASIDE_MAX_S = 86_400.0


def delete_superseded(crawl_state: CrawlState, keep: int) -> None:
    """Deletes generations beyond the kept ones, their text, and AUX that every kept generation has absorbed."""
    path, log = crawl_state.path, crawl_state.log
    if not all(
        number is None or is_published(path / names.generation(block, number)) for block, number in log.live.items()
    ):
        return  # while a block is damaged, nothing is deleted: a repair may need it
    sync_folder(path / names.LOG)
    open_cycles = set(crawl_state.open_cycles())
    committed = {pair for entry in log.entries if entry for pair in entry.generations.items() if pair[1] is not None}
    committed -= find_outlived(crawl_state, committed, keep)
    kept: dict[int, list[int]] = {}
    for block in range(log.blocks):
        live = log.generation(block)
        published = [
            number for number in names.numbered(folder_of_block(crawl_state, block)) if number not in open_cycles
        ]
        older = [number for number in published if (block, number) in committed and number != live]
        kept[block] = [*older[max(0, len(older) - keep) :], *([live] if live is not None else [])]
        for number in set(published) - set(kept[block]):
            unpublish(path / names.generation(block, number))
    delete_texts(crawl_state, kept, open_cycles)
    delete_aux(crawl_state, kept)


def find_outlived(crawl_state: CrawlState, committed: set[tuple[int, int]], keep: int) -> set[tuple[int, int]]:
    """Split generations whose upper half has had `keep` turns since.

    The upper half is another block. A split generation is as old for it as for the lower half.
    """
    numbers: dict[int, list[int]] = {}
    for block, number in committed:
        numbers.setdefault(block, []).append(number)
    grown = [entry for entry in crawl_state.log.entries if entry and KINDS[entry.kind].splits]
    return {
        parent
        for entry in grown
        for parent in entry.parents.items()
        if sum(number > entry.cycle for number in numbers.get(entry.blocks - 1, ())) >= keep
    }


def folder_of_block(crawl_state: CrawlState, block: int) -> Path:
    return (crawl_state.path / names.generation(block, 0)).parent


def delete_texts(crawl_state: CrawlState, kept: dict[int, list[int]], open_cycles: set[int]) -> None:
    named = {names.segment(cycle) for cycle in open_cycles}
    for block, generations in kept.items():
        for number in generations:
            folder = crawl_state.path / names.generation(block, number)
            named |= set(read_generation_manifest(folder)["texts"]) if is_published(folder) else set()
    for path in (crawl_state.path / names.TEXT).glob("*"):
        if path.name not in named:
            path.unlink()


def delete_aux(crawl_state: CrawlState, kept: dict[int, list[int]]) -> None:
    """Deletes AUX that all have absorbed. Seeds and decisions stay: `bin/verifier --rebuild` needs them."""
    absorbers = [one for block, generations in kept.items() for one in absorbers_of(crawl_state, block, generations)]
    entries = entries_with_table(crawl_state.log, crawl_state.aux_kept_from, wanted=lambda kind: not kind.from_inbox)
    for position, entry in entries:
        behind = [one for one in absorbers if position >= one.seen]
        summary = crawl_state.aux(entry) if behind else None  # no manifest is read of a table that all have absorbed
        if not any(one.lacks(position, summary) for one in behind):
            table = crawl_state.path / names.cycle(entry.cycle) / names.VERIFIER / entry.rows_file
            table.unlink(missing_ok=True)
    # Before this position every table is deleted: the next call need not look there.
    crawl_state.aux_kept_from = min((one.seen for one in absorbers), default=0)


def absorbers_of(crawl_state: CrawlState, block: int, generations: list[int]) -> list[Absorber]:
    """One per kept generation; a block without one still lacks all entries."""
    if not generations:
        return [absorber(block, crawl_state.log.blocks)]
    manifests = [read_generation_manifest(crawl_state.path / names.generation(block, number)) for number in generations]
    return [absorber(block, manifest["blocks"], manifest["seen"]) for manifest in manifests]


def remove_garbage(crawl_state: CrawlState) -> None:
    """Removes what no manifest names and no open plan will resume; corrupt/ is left alone."""
    crawl, log, open_cycles = crawl_state.path, crawl_state.log, set(crawl_state.open_cycles())
    remove_asides(crawl / names.LOG)
    remove_asides(crawl)
    remove_asides(crawl / names.INBOX, older_than_s=INBOX_ASIDE_MAX_S)
    for cycle in names.numbered(crawl / names.CYCLES):
        folder = crawl / names.cycle(cycle)
        remove_asides(folder)
        if not (folder / names.PLAN).exists():
            if cycle not in log.cycles:
                unpublish(folder)
        elif log.is_abandoned(cycle):  # in a committed cycle, a stage without a manifest is damage
            for stage in names.STAGES:
                if not is_published(folder / stage) and not has_pages(folder / stage):
                    unpublish(folder / stage)
    for block in range(log.blocks + 1):
        for number in names.numbered(folder_of_block(crawl_state, block)):
            generation = crawl / names.generation(block, number)
            if number not in open_cycles and not is_published(generation):
                if number == log.generation(block):
                    continue  # not garbage but damage, which its reader will report
                unpublish(generation)
    for leftover in crawl.glob("coletor-repair-*"):
        remove_tree(leftover)


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
