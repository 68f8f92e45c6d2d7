"""Commits the files of inbox/, which are seeds and decisions: one entry of the log per file (rule 10).

contract/inbox.py publishes the table of such an entry; this module plans it, commits it and deletes the file.
"""

from pathlib import Path

from contract import names
from contract.config import Config
from contract.inbox import is_taken, kind_of, take
from contract.log import ABANDON, Entry, commit
from contract.plan import Plan, write_plan
from storage.publish import sync_folder
from supervise.crawl_state import CrawlState, now_ms


def take_inbox(crawl_state: CrawlState, config: Config) -> list[dict]:
    """Commits every file of inbox/; returns the counts of each."""
    taken = []
    for path in names.visible_files(crawl_state.path / names.INBOX):
        if path.name not in crawl_state.log.inbox:
            cycle, blocks = crawl_state.next_cycle(), crawl_state.log.blocks
            plan = Plan(cycle, kind_of(path.name), 0, blocks, None, now_ms(), config, path.name)
            write_plan(crawl_state.path, plan)
            taken.append(commit_taken(crawl_state, plan, path))
        delete_taken(crawl_state, path)
    return taken


def resume_taking(crawl_state: CrawlState, plan: Plan) -> None:
    """Finishes a cycle that was interrupted between its plan and its commit."""
    path = crawl_state.path / names.INBOX / plan.inbox
    if path.exists() or is_taken(crawl_state.crawl, plan):
        commit_taken(crawl_state, plan, path)
        delete_taken(crawl_state, path)
    else:
        commit(crawl_state.path, Entry(ABANDON, plan.cycle, plan.blocks, reason=f"inbox/{plan.inbox} is gone"))
        crawl_state.refresh()


def commit_taken(crawl_state: CrawlState, plan: Plan, path: Path) -> dict:
    counts = take(crawl_state.crawl, plan, path)
    commit(crawl_state.path, Entry(plan.kind, plan.cycle, crawl_state.log.blocks, inbox=plan.inbox))
    crawl_state.refresh()
    return counts


def delete_taken(crawl_state: CrawlState, path: Path) -> None:
    """Deletes a file of inbox/ after its entry has become durable: a power cut cannot lose both."""
    sync_folder(crawl_state.path / names.LOG)
    path.unlink(missing_ok=True)
