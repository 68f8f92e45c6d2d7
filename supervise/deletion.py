"""Removes what nothing needs any more (rule 7), and at start-up what a crash left half-made (rule 8)."""

from pathlib import Path

from contract import names
from contract.aux_rows import may_hold
from contract.blocks import interval
from contract.log import ABANDON, CRAWL, FROM_INBOX, GROW
from contract.warc import ANSWERS, ROBOTS, PageReader
from storage.errors import Damaged, UnknownFormat
from storage.publish import ASIDE, is_published, read_manifest, remove_tree, sync_folder, unpublish
from supervise.books import Books


def delete_superseded(books: Books, keep: int) -> None:
    """Generations beyond the kept ones, their text, and AUX that every kept generation has absorbed."""
    if not all(number is None or is_published(books.path / names.generation(block, number)) for block, number in books.log.live.items()):
        return  # while a block is damaged nothing is deleted: a repair may need it
    sync_folder(books.path / names.LOG)
    open_cycles = set(books.open_cycles())
    committed = {pair for entry in books.log.entries if entry for pair in entry.generations.items() if pair[1] is not None}
    committed -= find_outlived(books, committed, keep)
    kept: dict[int, list[int]] = {}
    for block in range(books.log.blocks):
        live = books.log.generation(block)
        published = [number for number in names.numbered(folder_of_block(books, block)) if number not in open_cycles]
        older = [number for number in published if (block, number) in committed and number != live]
        kept[block] = [*older[max(0, len(older) - keep):], *([live] if live is not None else [])]
        for number in set(published) - set(kept[block]):
            unpublish(books.path / names.generation(block, number))
    delete_texts(books, kept, open_cycles)
    delete_aux(books, kept)


def find_outlived(books: Books, committed: set[tuple[int, int]], keep: int) -> set[tuple[int, int]]:
    """Generations that were split, and whose upper half has had `keep` turns since: they are as old for that half, which is another block, as for the lower one."""
    numbers: dict[int, list[int]] = {}
    for block, number in committed:
        numbers.setdefault(block, []).append(number)
    grown = [entry for entry in books.log.entries if entry and entry.kind == GROW]
    return {parent for entry in grown for parent in entry.parents.items()
            if sum(number > entry.cycle for number in numbers.get(entry.blocks - 1, ())) >= keep}


def folder_of_block(books: Books, block: int) -> Path:
    return (books.path / names.generation(block, 0)).parent


def delete_texts(books: Books, kept: dict[int, list[int]], open_cycles: set[int]) -> None:
    named = {names.segment(cycle) for cycle in open_cycles}
    for block, generations in kept.items():
        for number in generations:
            folder = books.path / names.generation(block, number)
            named |= set(read_manifest(folder)["texts"]) if is_published(folder) else set()
    for path in (books.path / names.TEXT).glob("*"):
        if path.name not in named:
            path.unlink()


def delete_aux(books: Books, kept: dict[int, list[int]]) -> None:
    """What an operator gave stays, seeds and decisions: a block that is made anew needs it."""
    needs = [need for block, generations in kept.items() for need in needs_of(books, block, generations)]
    for position in range(books.aux_kept_from, books.log.length):
        entry = books.log.entries[position]
        if entry is None or entry.kind in FROM_INBOX:
            continue
        behind = [(low, high) for low, high, seen in needs if position >= seen]
        aux = books.aux(entry) if behind else None  # what all have absorbed need not be looked at
        if entry.kind == CRAWL and not any(may_hold(aux, low, high) for low, high in behind):
            (books.path / names.cycle(entry.cycle) / names.VERIFIER / names.AUX).unlink(missing_ok=True)
    books.aux_kept_from = min((seen for _, _, seen in needs), default=0)  # all before it are gone: not looked at again


def needs_of(books: Books, block: int, generations: list[int]) -> list[tuple[int, int, int]]:
    """For each kept generation: its interval of keys, and the position from which it lacks entries."""
    if not generations:
        return [(*interval(block, books.log.blocks), 0)]
    manifests = [read_manifest(books.path / names.generation(block, number)) for number in generations]
    return [(*interval(block, manifest["blocks"]), manifest["seen"]) for manifest in manifests]


def remove_garbage(books: Books) -> None:
    """What no manifest names and no open plan will go on with. Inbox and corrupt/ are left alone."""
    open_cycles = set(books.open_cycles())
    remove_asides(books.path / names.LOG)
    remove_asides(books.path)
    for cycle in names.numbered(books.path / names.CYCLES):
        folder = books.path / names.cycle(cycle)
        remove_asides(folder)
        if not (folder / names.PLAN).exists():
            if cycle not in books.log.cycles:
                unpublish(folder)
        elif is_abandoned(books, cycle):  # of a committed cycle, a stage without a manifest is damage, not garbage
            for stage in names.STAGES:
                if not is_published(folder / stage) and not has_pages(folder / stage):
                    unpublish(folder / stage)
    for block in range(books.log.blocks + 1):
        for number in names.numbered(folder_of_block(books, block)):
            generation = books.path / names.generation(block, number)
            if number not in open_cycles and not is_published(generation):
                if number == books.log.generation(block):
                    continue  # not garbage but damage, which the reader of it will name
                unpublish(generation)
    for leftover in books.path.glob("coletor-repair-*"):
        remove_tree(leftover)


def is_abandoned(books: Books, cycle: int) -> bool:
    position = books.log.cycles.get(cycle)
    return position is not None and books.log.entries[position].kind == ABANDON


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
