"""A cycle whose plan.json is lost or damaged: its files go to corrupt/, and its id is not used again.

The abandon entry comes first. After a crash in between, the next start recognises the folder by that entry and by the
missing plan. bin/status and bin/check report the folder until the next run begins: nothing needs it.
"""

import re
from pathlib import Path

from contract import names
from contract.crawl_folder import note_mended, read_notes, set_aside
from contract.log import ABANDON, Entry, commit
from storage.publish import sync_folder
from supervise.crawl_state import CrawlState

CYCLE_FOLDER = re.compile(rf"{names.CYCLES}/([0-9]{{1,18}})")


def set_cycle_aside(crawl_state: CrawlState, cycle: int, reason: str) -> Path | None:
    """Moves the folder of a cycle without a readable plan to corrupt/, with any generation that it made."""
    if not crawl_state.log.is_closed(cycle):
        entry = Entry(ABANDON, cycle, crawl_state.log.blocks, reason=reason)
        commit(crawl_state.path, entry, crawl_state.log.length)
        crawl_state.refresh()
    folder = crawl_state.path / names.cycle(cycle)
    made = [crawl_state.path / names.generation(block, cycle) for block in range(crawl_state.log.blocks + 1)]
    for path in (*made, crawl_state.path / names.TEXT / names.segment(cycle)):
        if path.exists() and not folder.is_symlink():
            path.rename(folder / "-".join(path.relative_to(crawl_state.path).parts))
            sync_folder(folder)
            sync_folder(path.parent)
    return set_aside(crawl_state.path, folder, reason)


def close_notes(crawl_state: CrawlState) -> None:
    """Closes the notes about folders of cycles that earlier runs set aside; the folders stay in corrupt/."""
    for _, note in read_notes(crawl_state.path):
        found = CYCLE_FOLDER.fullmatch(note["path"])
        if found and not note.get("is_mended") and crawl_state.log.is_closed(int(found[1])):
            note_mended(crawl_state.path, Path(note["path"]))
