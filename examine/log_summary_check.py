"""Compares log_summary.json, the cache of what the log says, with the whole log."""

import os

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.log import History, State, replay
from contract.log_summary import read_summary
from contract.pending import find_pending, live_absorber
from examine.findings import Findings
from storage.errors import Damaged
from storage.publish import read_manifest

CLAIM = "the summary of the log agrees with it"
REMEDY = "remove it; it is made anew"
# Fields that follow from the entries alone. Of the others the supervisor forgets what does not matter any more.
EXACT = ("blocks", "length", "live", "seen", "last_turn", "gave_up", "closed", "kinds", "inbox")


def find_unusable(crawl: CrawlFolder) -> str:
    """What to say of a summary that nobody uses, such as one that is ahead of the log; empty where it is good."""
    if not os.path.lexists(crawl.path / names.LOG_SUMMARY) or read_summary(crawl) is not None:
        return ""
    return f"{names.LOG_SUMMARY} is damaged or is not that of this log, and is not used: {REMEDY}"


def check_summary(crawl: CrawlFolder, log: History, findings: Findings) -> None:
    summary = read_summary(crawl)
    if summary is None:
        return
    findings.hold(CLAIM)
    history = log if log.length == summary.length else replay(crawl.path, crawl.blocks_first, summary.length)
    if wrong := find_difference(crawl, summary, history):
        findings.deny(
            CLAIM, crawl.path / names.LOG_SUMMARY, f"expected what the log says, found other {wrong}: {REMEDY}"
        )


def find_difference(crawl: CrawlFolder, summary: State, history: History) -> str:
    """The name of the first field that does not follow from the log; empty where all do."""
    for name in EXACT:
        if getattr(summary, name) != getattr(history, name):
            return name
    if not is_part(dict(summary.tables), dict(history.tables)) or lacks_table(crawl, summary, history):
        return "tables"
    known = {(block, number) for block, numbers in history.generations.items() for number in numbers}
    named = {(block, number) for block, numbers in summary.generations.items() for number in numbers}
    live = {(block, number) for block, number in history.live.items() if number is not None}
    if not live <= named <= known or not set(summary.splits) <= set(history.splits):
        return "generations"
    if not is_part(summary.unsettled, history.unsettled):
        return "unsettled"
    return ""


def is_part(some: dict, every: dict) -> bool:
    return all(key in every and every[key] == value for key, value in some.items())


def lacks_table(crawl: CrawlFolder, summary: State, history: History) -> bool:
    """Whether the summary has forgotten a table that a live generation has not absorbed."""

    def read_aux(entry) -> dict | None:
        try:
            return read_manifest(crawl.path / names.cycle(entry.cycle) / names.VERIFIER)["aux"]
        except (FileNotFoundError, Damaged, KeyError):
            return None  # which the books report

    remembered = {entry.cycle for _, entry in summary.tables}
    return any(
        entry.cycle not in remembered
        for block in range(history.blocks)
        for entry, _ in find_pending(history, live_absorber(history, block), read_aux)
    )
