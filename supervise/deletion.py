"""Removes what nothing needs any more (rule 7), and at start-up what a crash left half-made (rule 8)."""

from pathlib import Path

from contract import names
from contract.aux_rows import may_hold
from contract.blocks import interval
from contract.generation import read_generation_manifest
from contract.log import ABANDON, CRAWL, FROM_INBOX, GROW
from contract.warc import ANSWERS, ROBOTS, PageReader
from storage.errors import Damaged, UnknownFormat
from storage.publish import ASIDE, is_published, remove_tree, sync_folder, unpublish
from supervise.crawl_state import CrawlState


def delete_superseded(crawl_state: CrawlState, keep: int) -> None:
    """Generations beyond the kept ones, their text, and AUX that every kept generation has absorbed."""
    if not all(
        number is None or is_published(crawl_state.path / names.generation(block, number))
        for block, number in crawl_state.log.live.items()
    ):
        return  # while a block is damaged nothing is deleted: a repair may need it
    sync_folder(crawl_state.path / names.LOG)
    open_cycles = set(crawl_state.open_cycles())
    committed = {
        pair for entry in crawl_state.log.entries if entry for pair in entry.generations.items() if pair[1] is not None
    }
    committed -= find_outlived(crawl_state, committed, keep)
    kept: dict[int, list[int]] = {}
    for block in range(crawl_state.log.blocks):
        live = crawl_state.log.generation(block)
        published = [
            number for number in names.numbered(folder_of_block(crawl_state, block)) if number not in open_cycles
        ]
        older = [number for number in published if (block, number) in committed and number != live]
        kept[block] = [*older[max(0, len(older) - keep) :], *([live] if live is not None else [])]
        for number in set(published) - set(kept[block]):
            unpublish(crawl_state.path / names.generation(block, number))
    delete_texts(crawl_state, kept, open_cycles)
    delete_aux(crawl_state, kept)


def find_outlived(crawl_state: CrawlState, committed: set[tuple[int, int]], keep: int) -> set[tuple[int, int]]:
    """Generations that were split, and whose upper half has had `keep` turns since: they are as old for that half, which is another block, as for the lower one."""
    numbers: dict[int, list[int]] = {}
    for block, number in committed:
        numbers.setdefault(block, []).append(number)
    grown = [entry for entry in crawl_state.log.entries if entry and entry.kind == GROW]
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
    """What an operator gave stays, seeds and decisions: a block that is made anew needs it."""
    needs = [need for block, generations in kept.items() for need in needs_of(crawl_state, block, generations)]
    for position in range(crawl_state.aux_kept_from, crawl_state.log.length):
        entry = crawl_state.log.entries[position]
        if entry is None or entry.kind in FROM_INBOX:
            continue
        behind = [(low, high) for low, high, seen in needs if position >= seen]
        aux = crawl_state.aux(entry) if behind else None  # what all have absorbed need not be looked at
        if entry.kind == CRAWL and not any(may_hold(aux, low, high) for low, high in behind):
            (crawl_state.path / names.cycle(entry.cycle) / names.VERIFIER / names.AUX).unlink(missing_ok=True)
    crawl_state.aux_kept_from = min(
        (seen for _, _, seen in needs), default=0
    )  # all before it are gone: not looked at again


def needs_of(crawl_state: CrawlState, block: int, generations: list[int]) -> list[tuple[int, int, int]]:
    """For each kept generation: its interval of keys, and the position from which it lacks entries."""
    if not generations:
        return [(*interval(block, crawl_state.log.blocks), 0)]
    manifests = [read_generation_manifest(crawl_state.path / names.generation(block, number)) for number in generations]
    return [(*interval(block, manifest["blocks"]), manifest["seen"]) for manifest in manifests]


def remove_garbage(crawl_state: CrawlState) -> None:
    """What no manifest names and no open plan will go on with. Inbox and corrupt/ are left alone."""
    open_cycles = set(crawl_state.open_cycles())
    remove_asides(crawl_state.path / names.LOG)
    remove_asides(crawl_state.path)
    for cycle in names.numbered(crawl_state.path / names.CYCLES):
        folder = crawl_state.path / names.cycle(cycle)
        remove_asides(folder)
        if not (folder / names.PLAN).exists():
            if cycle not in crawl_state.log.cycles:
                unpublish(folder)
        elif is_abandoned(
            crawl_state, cycle
        ):  # of a committed cycle, a stage without a manifest is damage, not garbage
            for stage in names.STAGES:
                if not is_published(folder / stage) and not has_pages(folder / stage):
                    unpublish(folder / stage)
    for block in range(crawl_state.log.blocks + 1):
        for number in names.numbered(folder_of_block(crawl_state, block)):
            generation = crawl_state.path / names.generation(block, number)
            if number not in open_cycles and not is_published(generation):
                if number == crawl_state.log.generation(block):
                    continue  # not garbage but damage, which the reader of it will name
                unpublish(generation)
    for leftover in crawl_state.path.glob("coletor-repair-*"):
        remove_tree(leftover)


def is_abandoned(crawl_state: CrawlState, cycle: int) -> bool:
    position = crawl_state.log.cycles.get(cycle)
    return position is not None and crawl_state.log.entries[position].kind == ABANDON


def has_pages(folder: Path) -> bool:
    """Whether a fetcher's folder holds pages, published or not; answers for robots.txt are none."""
    if not (folder / names.PAGES).is_dir():
        return False
    return any(holds_page(path) for path in sorted((folder / names.PAGES).iterdir()))


def holds_page(path: Path) -> bool:
    """Whether a file has a record of a page; what cannot be read may be one."""
    try:
        return any(record.type in ANSWERS and not record.get(ROBOTS) for record in PageReader(path).records())
    except (Damaged, UnknownFormat, OSError):
        return True


def remove_asides(folder: Path) -> None:
    for path in folder.glob(f"{ASIDE}*"):
        path.unlink()
