"""Commits the files of inbox/, which are seeds and decisions: one entry of the log per file (rule 10).

contract/inbox.py publishes the table of such an entry; this module plans it, commits it and deletes the file.
"""

from collections.abc import Iterator
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
    for plan in plan_takings(crawl_state, config):
        taken.append(publish_taking(crawl_state, plan))
        commit_taking(crawl_state, plan)
    return taken


def plan_takings(crawl_state: CrawlState, config: Config) -> Iterator[Plan]:
    """Plans a cycle for each file of inbox/. The caller commits it before it asks for the next one."""
    for path in names.visible_files(crawl_state.path / names.INBOX):
        if path.name in crawl_state.log.inbox:
            delete_taken(crawl_state, path)
            continue
        cycle, blocks = crawl_state.next_cycle(), crawl_state.log.blocks
        plan = Plan(cycle, kind_of(path.name), 0, blocks, None, now_ms(), config, path.name)
        write_plan(crawl_state.path, plan)
        yield plan


def publish_taking(crawl_state: CrawlState, plan: Plan) -> dict | None:
    """Publishes the table of the plan's cycle; returns its counts, none where its file is gone.

    A million seeds take seconds. It only writes to the cycle's own folder, so it may run in a thread of its own.
    """
    path = crawl_state.path / names.INBOX / plan.inbox
    return take(crawl_state.crawl, plan, path) if path.exists() or is_taken(crawl_state.crawl, plan) else None


def commit_taking(crawl_state: CrawlState, plan: Plan, *, is_gone: bool = False) -> None:
    entry = Entry(plan.kind, plan.cycle, crawl_state.log.blocks, inbox=plan.inbox)
    if is_gone:
        entry = Entry(ABANDON, plan.cycle, plan.blocks, reason=f"inbox/{plan.inbox} is gone")
    commit(crawl_state.path, entry, crawl_state.log.length)
    crawl_state.refresh()
    delete_taken(crawl_state, crawl_state.path / names.INBOX / plan.inbox)


def delete_taken(crawl_state: CrawlState, path: Path) -> None:
    """Deletes a file of inbox/ after its entry has become durable: a power cut cannot lose both.

    The deletion is durable too, because the state of the log remembers the newest names only.
    """
    sync_folder(crawl_state.path / names.LOG)
    path.unlink(missing_ok=True)
    sync_folder(path.parent)
