"""Takes files of inbox/ in: seeds and decisions, each as an entry of the log whose cycle holds only a table (rule 10)."""

from pathlib import Path

from contract import names
from contract.config import Config
from contract.inbox import kind_of, publish_taken
from contract.log import ABANDON, Entry, commit
from contract.plan import Plan, write_plan
from storage.publish import confirm_published, read_manifest, sync_folder
from supervise.books import Books, now_ms


def take_inbox(books: Books, config: Config) -> list[dict]:
    """Commits every file that lies in inbox/; returns the counts of each."""
    taken = []
    for path in names.visible_files(books.path / names.INBOX):
        if path.name not in books.log.inbox:
            plan = Plan(books.next_cycle(), kind_of(path.name), 0, books.log.blocks, None, now_ms(), config, path.name)
            write_plan(books.path, plan)
            taken.append(commit_taken(books, plan, path))
        delete_taken(books, path)
    return taken


def resume_taking(books: Books, plan: Plan) -> None:
    """Finishes a cycle that was interrupted while it took a file in."""
    path = books.path / names.INBOX / plan.inbox
    if path.exists() or confirm_published(books.path / names.cycle(plan.cycle) / names.VERIFIER):
        commit_taken(books, plan, path)
        delete_taken(books, path)
    else:
        commit(books.path, Entry(ABANDON, plan.cycle, plan.blocks, reason=f"inbox/{plan.inbox} is gone"))
        books.refresh()


def commit_taken(books: Books, plan: Plan, path: Path) -> dict:
    folder = books.path / names.cycle(plan.cycle) / names.VERIFIER
    if confirm_published(folder):
        counts = read_manifest(folder)["counts"]
    else:
        counts = publish_taken(books.crawl, books.path, plan, path)
    commit(books.path, Entry(plan.kind, plan.cycle, books.log.blocks, inbox=plan.inbox))
    books.refresh()
    return counts


def delete_taken(books: Books, path: Path) -> None:
    """Only once the entry that names it cannot be lost to a power cut."""
    sync_folder(books.path / names.LOG)
    path.unlink(missing_ok=True)
