"""All figures of bin/status, gathered from the files of a crawl: the log, manifests, live.json and the journal.

Figures of URLs and of what was fetched leave link sources out; `link_sources` has theirs.

No table is read but the failures of a few new cycles, for examples; nothing takes longer with the age of the crawl.
"""

import fcntl
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contract import names, policies
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder, notes_of_damage
from contract.errors import BadConfiguration
from contract.generation import read_generation_manifest
from contract.held import read_held
from contract.journal_tail import Tail, read_tail
from contract.log import KINDS, State
from contract.log_summary import read_log
from contract.plan import cycles_without_plan, open_cycles, read_plan
from contract.policy_files import advise_policy_file, files_of, lost_copy
from contract.totals import Totals, read_totals, without_link_sources
from examine.damage_advice import Adviser
from examine.link_sources import KEY, add_up, leave_out, left_to_fetch
from examine.problems import find_problems
from examine.rates import estimate_end, list_work, measure_rates, share_busy_time
from examine.run_files import read_live
from storage.errors import Damaged, UnknownFormat
from storage.publish import is_published, read_manifest
from storage.unsynced_files import open_regular

UNKNOWN = "unknown"  # kind of a cycle whose plan cannot be read
NEW_CYCLES = 32  # that examples of failures, and the growth of the folder, are taken from ...
STAGES_SEARCHED = 500  # ... among so many lines of the journal
PACE_LEAST_S = 600  # a pace over a shorter time does not tell what a day brings
FAILURES_MAX_BYTES = 4 << 20  # a larger Falhas is not opened for an example
FIGURES = (
    "known",
    "collected",
    "waiting",
    "earliest_due_ms",
    "servers",
    "servers_failing",
    "servers_given_up",
    "server_failures",
    "domains",
    "states",
)
MORE_FIGURES = (
    "visits",
    "changes",
    "revisitable",
    "revisit_due_ms",
    "domains_closed",
    "ranked",
)  # where a manifest has them


def describe(crawl: CrawlFolder, now_ms: int) -> dict:
    """What --json prints."""
    log = read_log(crawl)
    totals = read_totals(crawl.path, log)
    status = describe_books(crawl, log, totals)
    status |= describe_policy(crawl.path, status["by_block"])
    live, note = read_live(crawl.path)
    tail = read_tail(crawl.path)
    work = list_work(tail, live)
    due_ms = min((block["earliest_due_ms"] or 0 for block in status["by_block"] if left_to_fetch(block)), default=None)
    rates = measure_rates(work, tail.since_ms, live, now_ms)
    ended_ms = None if status["running"] else max((one.end_ms for one in work), default=None)
    estimate = estimate_end(left_to_fetch(status), rates, is_running=status["running"], due_ms=due_ms, now_ms=now_ms)
    fresh = new_cycles(log, tail)
    status |= {
        "now_ms": now_ms,
        "live": None if live is None else asdict(live),
        "rates": rates,
        # Where no run is at work: when the last stage ended, and the rates until then.
        "work_ended_at_ms": ended_ms,
        "rates_at_end": None if ended_ms is None else measure_rates(work, tail.since_ms, None, ended_ms),
        "journal_since_ms": tail.since_ms,
        "stages": share_busy_time(work, now_ms),
        "errors": join_errors(
            totals.reasons, status["server_failures"], find_examples(crawl.path, fresh, set(totals.reasons))
        ),
        "disk": describe_disk(crawl.path, fresh, rates["day"], is_running=status["running"]),
        "due_ms": due_ms,
        "estimate": {**asdict(estimate), "text": estimate.text},
        "notes": [*([note] if note else []), *tail.notes],
    }
    return {**status, "problems": find_problems(status, tail.stages)}


def describe_books(crawl: CrawlFolder, log: State, totals: Totals) -> dict:
    """What the log and the manifests say."""
    blocks = [describe_block(crawl.path, log, block) for block in range(log.blocks)]
    opened = [open_cycle(crawl.path, cycle) for cycle in open_cycles(crawl.path, log)]
    adviser = Adviser(crawl, log)
    unplanned = [cycle["cycle"] for cycle in opened if cycle["kind"] == UNKNOWN]
    states: Counter[str] = Counter()
    for block in blocks:
        states.update(block.get("states", {}))
    reasons = sorted(totals.reasons.items(), key=lambda item: (-item[1], item[0]))
    return {
        "crawl": str(crawl.path),
        "crawl_id": crawl.crawl_id,
        "began_at_ms": crawl.began_at_ms,
        "running": is_locked(crawl.path),
        "blocks": log.blocks,
        "commits": log.length,
        "entries": {kind: log.kinds[kind] for kind in KINDS if log.kinds[kind]},
        "fetched": without_link_sources(totals.fetched, totals.link_sources),
        "states": dict(states),
        "reasons": dict(reasons),
        **{
            name: sum(block.get(name, 0) for block in blocks)
            for name in ("known", "collected", "waiting", "servers", "servers_failing", "servers_given_up")
        },
        KEY: add_up(block[KEY] for block in blocks if KEY in block) | {"fetched": totals.link_sources},
        "server_failures": join_failures([row for block in blocks for row in block.get("server_failures", ())]),
        "inbox": len(names.visible_files(crawl.path / names.INBOX)),
        "open": [cycle for cycle in opened if cycle["kind"] != UNKNOWN],
        "configuration": configuration_problem(crawl.path),
        "without_plan": sorted([*cycles_without_plan(crawl.path, log), *unplanned]),
        "uncounted": totals.uncounted,
        "damage": [{**note, "run": adviser.advise(note["path"])} for note in notes_of_damage(crawl.path)],
        "by_block": blocks,
    }


def describe_block(crawl: Path, log: State, block: int) -> dict:
    generation = log.generation(block)
    about = {"block": block, "generation": generation, "seen": log.seen.get(block, 0)}
    if generation is None:
        return about
    try:
        manifest = read_generation_manifest(crawl / names.generation(block, generation))
    except (FileNotFoundError, Damaged):
        return {**about, "damaged": True}
    counted = leave_out(manifest)
    figures = {name: counted[name] for name in (*FIGURES, KEY)} | {name: manifest.get(name) for name in MORE_FIGURES}
    return {**about, **figures, "prepared": manifest.get("prepared")}


def describe_policy(crawl: Path, blocks: list[dict]) -> dict:
    """What the next list is ordered by, and what is known of visits; `blocks` lose what they are prepared for."""
    prepared = [block.pop("prepared", None) for block in blocks]
    due = [block["revisit_due_ms"] for block in blocks if block.get("revisit_due_ms") is not None]
    about: dict = {
        "policy": None,
        "revisit_policy": None,
        "unprepared": None,  # blocks that get a turn first, which computes what the policy needs
        **{name: add_known(blocks, name) for name in ("visits", "changes", "revisitable", "domains_closed", "ranked")},
        "domains": sum(block.get("domains", 0) for block in blocks),
        "revisit_due_ms": min(due, default=None),
    }
    try:
        config = read_crawl_config(crawl)
    except BadConfiguration:
        return about
    wanted = policies.describe(config, files_of(crawl, config))
    unprepared = [
        block
        for block, found in zip(blocks, prepared)
        if found != wanted and (block.get("known") or block.get(KEY, {}).get("known"))
    ]
    return about | {
        "policy": config.scheduler.policy,
        "revisit_policy": config.revisit.policy,
        "unprepared": len(unprepared),
    }


def add_known(blocks: list[dict], name: str) -> int | None:
    """The sum of a figure; none where no block has it."""
    values = [block[name] for block in blocks if block.get(name) is not None]
    return sum(values) if values else None


def join_failures(rows: list[dict]) -> list[dict]:
    """The failing servers of all blocks as one table by reason, the most common first."""
    found: dict[str, dict] = {}
    for row in rows:
        known = found.setdefault(row["reason"], {**row, "failing": 0, "given_up": 0})
        known["failing"] += row["failing"]
        known["given_up"] += row["given_up"]
    return sorted(found.values(), key=lambda row: (-row["failing"] - row["given_up"], row["reason"]))


def join_errors(reasons: Counter[str], servers: list[dict], examples: dict[str, tuple[str, str]]) -> list[dict]:
    """One row per reason: URLs that were not answered, failing servers, and an example with its message."""
    by_reason = {row["reason"]: row for row in servers}
    rows = []
    for reason in {*reasons, *by_reason}:
        server = by_reason.get(reason, {})
        example, message = (server["example"], server["message"]) if server else examples.get(reason, ("", ""))
        rows.append(
            {
                "reason": reason,
                "urls": reasons.get(reason, 0),
                "servers_failing": server.get("failing", 0),
                "servers_given_up": server.get("given_up", 0),
                "example": example,
                "message": message,
            }
        )
    return sorted(
        rows, key=lambda row: (-row["urls"], -row["servers_failing"] - row["servers_given_up"], row["reason"])
    )


def new_cycles(log: State, tail: Tail) -> list[int]:
    """Some of the newest cycles that fetched: those of the journal, and those that made the live generations."""
    live = {number for number in log.live.values() if number is not None}
    extracted = {line["cycle"] for line in tail.stages[-STAGES_SEARCHED:] if line["stage"] == names.EXTRACTOR}
    return sorted(live | extracted, reverse=True)[:NEW_CYCLES]


def find_examples(crawl: Path, cycles: list[int], reasons: set[str]) -> dict[str, tuple[str, str]]:
    """A URL and its message per reason, where a new cycle has one."""
    found: dict[str, tuple[str, str]] = {}
    for cycle in cycles:
        if set(found) >= reasons:
            break
        path = crawl / names.cycle(cycle) / names.EXTRACTOR / names.FAILURES
        try:
            if not path.is_file() or path.stat().st_size > FAILURES_MAX_BYTES:
                continue
            table = pq.read_table(path, columns=["reason", "url", "message"], page_checksum_verification=True)
            encoded = table.column("reason").combine_chunks().dictionary_encode()
            for number, reason in enumerate(encoded.dictionary.to_pylist()):
                row = table.slice(encoded.indices.index(number).as_py(), 1).to_pylist()[0]
                found.setdefault(reason, (row["url"], row["message"]))
        except (OSError, pa.ArrowException, KeyError, ValueError):
            continue  # damaged, or deleted meanwhile: bin/check names it
    return found


def describe_disk(crawl: Path, cycles: list[int], day: dict, *, is_running: bool) -> dict:
    """The file system of the crawl folder, and how the crawl fills it."""
    about = os.statvfs(crawl)
    per_page = measure_page(crawl, cycles)
    pages = count_daily_pages(day, is_running=is_running)
    return {
        "total_bytes": about.f_blocks * about.f_frsize,
        "used_bytes": (about.f_blocks - about.f_bfree) * about.f_frsize,
        "free_bytes": about.f_bavail * about.f_frsize,
        "bytes_per_page": None if per_page is None else round(per_page),
        "growth_bytes_per_day": None if per_page is None or pages is None else round(per_page * pages),
    }


def count_daily_pages(day: dict, *, is_running: bool) -> float | None:
    """Pages of the last day; while a run is at work and less than a day is known, its pace goes on.

    None where a run has been at work too short for that.
    """
    if not is_running or not day["pages_per_s"]:
        return float(day["pages"])
    return day["pages_per_s"] * 86_400 if day["covers_s"] >= PACE_LEAST_S else None


def measure_page(crawl: Path, cycles: list[int]) -> float | None:
    """Bytes on disk per page in new cycles, with their tables; none where they have no pages."""
    pages, size_bytes = 0, 0
    for cycle in cycles:
        folder = crawl / names.cycle(cycle)
        try:
            answered = read_manifest(folder / names.FETCHER)["counts"]["answered"]
            stages = [stage for stage in names.STAGES if is_published(folder / stage)]
            files = [about for stage in stages for about in read_manifest(folder / stage)["files"].values()]
            pages, size_bytes = pages + answered, size_bytes + sum(about["bytes"] for about in files)
        except (OSError, Damaged, UnknownFormat, KeyError, TypeError):
            continue
    return size_bytes / pages if pages else None


def open_cycle(crawl: Path, cycle: int) -> dict:
    done = [stage for stage in names.STAGES if is_published(crawl / names.cycle(cycle) / stage)]
    try:
        plan = read_plan(crawl, cycle)
    except (Damaged, OSError) as error:  # the second: a folder in its place
        return {"cycle": cycle, "kind": UNKNOWN, "block": None, "stages_done": done, "held": str(error)}
    return {
        "cycle": cycle,
        "kind": plan.kind,
        "block": plan.block,
        "stages_done": done,
        "held": read_held(crawl, cycle),
    }


def configuration_problem(crawl: Path) -> str:
    """What is wrong with the crawl's configuration, and what to do; empty where it can be used."""
    try:
        config = read_crawl_config(crawl)
    except BadConfiguration as error:
        return str(error)
    if lost := lost_copy(crawl, config):
        return f"{lost}: expected the crawl's copy of a file, found none; {advise_policy_file(crawl)}"
    return ""


def is_locked(crawl: Path) -> bool:
    """Whether a run holds the lock.

    Looking takes a shared lock, for an instant, and only where nobody holds it: a run at work is not disturbed, and one
    that begins at that instant looks again (contract/crawl_folder.py). There is no better way: /proc/locks does not
    show locks of another container, or of a process that died and whose stages still hold them.
    """
    try:
        descriptor = open_regular(crawl / names.LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
