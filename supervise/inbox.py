"""Takes files of inbox/ in: seeds and decisions, each as an entry of the log whose cycle holds only a table (rule 10)."""

from pathlib import Path

from contract import names
from contract.config import Config
from contract.inbox import kind_of, publish_taken
from contract.log import ABANDON, Entry, commit
from contract.plan import Plan, write_plan
from storage.publish import confirm_published, read_manifest, sync_folder
from supervise.crawl_state import CrawlState, now_ms


def take_inbox(crawl_state: CrawlState, config: Config) -> list[dict]:
    """Commits every file that lies in inbox/; returns the counts of each."""
    taken = []
    for path in names.visible_files(crawl_state.path / names.INBOX):
        if path.name not in crawl_state.log.inbox:
            plan = Plan(
                crawl_state.next_cycle(),
                kind_of(path.name),
                0,
                crawl_state.log.blocks,
                None,
                now_ms(),
                config,
                path.name,
            )
            write_plan(crawl_state.path, plan)
            taken.append(commit_taken(crawl_state, plan, path))
        delete_taken(crawl_state, path)
    return taken


def resume_taking(crawl_state: CrawlState, plan: Plan) -> None:
    """Finishes a cycle that was interrupted while it took a file in."""
    path = crawl_state.path / names.INBOX / plan.inbox
    if path.exists() or confirm_published(crawl_state.path / names.cycle(plan.cycle) / names.VERIFIER):
        commit_taken(crawl_state, plan, path)
        delete_taken(crawl_state, path)
    else:
        commit(crawl_state.path, Entry(ABANDON, plan.cycle, plan.blocks, reason=f"inbox/{plan.inbox} is gone"))
        crawl_state.refresh()


def commit_taken(crawl_state: CrawlState, plan: Plan, path: Path) -> dict:
    folder = crawl_state.path / names.cycle(plan.cycle) / names.VERIFIER
    if confirm_published(folder):
        counts = read_manifest(folder)["counts"]
    else:
        counts = publish_taken(crawl_state.crawl, crawl_state.path, plan, path)
    commit(crawl_state.path, Entry(plan.kind, plan.cycle, crawl_state.log.blocks, inbox=plan.inbox))
    crawl_state.refresh()
    return counts


def delete_taken(crawl_state: CrawlState, path: Path) -> None:
    """Only once the entry that names it cannot be lost to a power cut."""
    sync_folder(crawl_state.path / names.LOG)
    path.unlink(missing_ok=True)
