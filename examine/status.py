"""status: prints what a crawl is doing and has done.

  bin/status [--crawl DIR]          a page for people
  bin/status --crawl DIR --json     the same as one JSON object

Reads only the log and manifests, so it is quick at any size. Needs no lock: run it while a crawl is at work.

The line `known` counts URLs by state: `prescheduled` ones may be in the next list, `waiting` ones not yet. The column
`to fetch` counts both.

Example: bin/status --crawl demo/crawl
"""

import fcntl
import json
import os
import shlex
from collections import Counter
from pathlib import Path

from contract import names
from contract.command import make_parser, run
from contract.crawl_config import read_crawl_config
from contract.crawl_folder import CrawlFolder, notes_of_damage, open_folder
from contract.errors import EX_DATAERR, BadConfiguration
from contract.generation import is_whole, read_generation_manifest
from contract.held import read_held
from contract.lines import say
from contract.log import KINDS, State, replay
from contract.plan import cycles_without_plan, open_cycles, read_plan
from contract.terminal import make_plain
from contract.units import count, moment, size
from storage.errors import Damaged, UnknownFormat
from storage.publish import is_published, read_manifest

NAME = "status"
UNKNOWN = "unknown"  # kind of a cycle whose plan cannot be read
REASONS_SHOWN = 10
HINTS = {"forbidden_address": " (fetcher.allow_private_addresses)"}  # the setting that a reason is about


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    status = describe(open_folder(arguments.crawl))
    if arguments.json:
        print(json.dumps(status))
    else:
        print_status(status)
    is_damaged = status["without_plan"] or status["configuration"] or any(note["run"] for note in status["damage"])
    return EX_DATAERR if is_damaged else 0


def describe(crawl: CrawlFolder) -> dict:
    log = replay(crawl.path, crawl.blocks_first)
    blocks = []
    for block in range(log.blocks):
        generation = log.generation(block)
        blocks.append(
            {
                "block": block,
                "generation": generation,
                "seen": log.seen.get(block, 0),
                **figures_of(crawl.path, block, generation),
            }
        )
    kinds: dict[str, int] = {}
    fetched = {"answered": 0, "failed": 0, "refused": 0, "bytes": 0}
    reasons: Counter[str] = Counter()
    uncounted = []  # cycles whose manifest of pages cannot be read
    for entry in log.entries:
        if entry is not None:
            kinds[entry.kind] = kinds.get(entry.kind, 0) + 1
            if KINDS[entry.kind].fetches:
                try:
                    counts = read_manifest(crawl.path / names.cycle(entry.cycle) / names.FETCHER)["counts"]
                    fetched = {name: fetched[name] + counts[name] for name in fetched}
                except (FileNotFoundError, Damaged, UnknownFormat, KeyError):
                    uncounted.append(entry.cycle)
                reasons.update(reasons_of(crawl.path / names.cycle(entry.cycle) / names.EXTRACTOR))
    opened = [open_cycle(crawl.path, cycle) for cycle in open_cycles(crawl.path, log)]
    unplanned = [cycle["cycle"] for cycle in opened if cycle["kind"] == UNKNOWN]
    states: dict[str, int] = {}
    for block in blocks:
        for state, number in block.get("states", {}).items():
            states[state] = states.get(state, 0) + number
    return {
        "crawl": str(crawl.path),
        "crawl_id": crawl.crawl_id,
        "began_at_ms": crawl.began_at_ms,
        "running": is_locked(crawl.path),
        "blocks": log.blocks,
        "commits": log.length,
        "entries": kinds,
        "fetched": fetched,
        "states": states,
        "reasons": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        "known": sum(block.get("known", 0) for block in blocks),
        "servers": sum(block.get("servers", 0) for block in blocks),
        "servers_failing": sum(block.get("servers_failing", 0) for block in blocks),
        "servers_given_up": sum(block.get("servers_given_up", 0) for block in blocks),
        "server_failures": join_failures([row for block in blocks for row in block.get("server_failures", ())]),
        "inbox": len(names.visible_files(crawl.path / names.INBOX)),
        "open": [cycle for cycle in opened if cycle["kind"] != UNKNOWN],
        "configuration": configuration_problem(crawl.path),
        "without_plan": sorted([*cycles_without_plan(crawl.path, log), *unplanned]),
        "uncounted": uncounted,
        "damage": [{**note, "run": advice(crawl.path, log, note["path"])} for note in notes_of_damage(crawl.path)],
        "by_block": blocks,
    }


def figures_of(crawl: Path, block: int, generation: int | None) -> dict:
    if generation is None:
        return {}
    try:
        manifest = read_generation_manifest(crawl / names.generation(block, generation))
    except (FileNotFoundError, Damaged):
        return {"damaged": True}
    wanted = (
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
    return {name: manifest[name] for name in wanted}


def reasons_of(extractor: Path) -> dict[str, int]:
    """Why listed URLs of a cycle were not answered: reason -> URLs; empty where its tables were not kept."""
    try:
        return read_manifest(extractor)["counts"]["reasons"]
    except (FileNotFoundError, Damaged, UnknownFormat, KeyError):
        return {}


def join_failures(rows: list[dict]) -> list[dict]:
    """The failing servers of all blocks as one table by reason, the most common first."""
    found: dict[str, dict] = {}
    for row in rows:
        known = found.setdefault(row["reason"], {**row, "failing": 0, "given_up": 0})
        known["failing"] += row["failing"]
        known["given_up"] += row["given_up"]
    return sorted(found.values(), key=lambda row: (-row["failing"] - row["given_up"], row["reason"]))


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
        read_crawl_config(crawl)
    except BadConfiguration as error:
        return str(error)
    return ""


def is_locked(crawl: Path) -> bool:
    """Whether a run holds the lock. Looking takes a shared lock, for an instant only."""
    try:
        descriptor = os.open(crawl / names.LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def advice(crawl: Path, log: State, path: str) -> str:
    """The command to run for a file that was set aside; empty where the crawl continues without it."""
    parts, verifier = Path(path).parts, f"bin/verifier --crawl {shlex.quote(str(crawl))}"
    try:
        if parts[0] == names.GENERATIONS:
            cycle, block = int(Path(parts[2]).stem), block_in_need(crawl, log, Path(path))
            if block is None or can_repair(crawl, log, cycle):
                return f"{verifier} --cycle {cycle} --repair"
            return f"{verifier} --rebuild {block}"
        if parts[2:3] == (names.VERIFIER,):
            return f"{verifier} --cycle {int(parts[1])} --repair"
    except (ValueError, IndexError):
        pass  # not a note of ours
    return ""


def can_repair(crawl: Path, log: State, cycle: int) -> bool:
    """Whether the generation that the cycle merged into is kept and whole."""
    position = log.cycles.get(cycle)
    parents = log.entries[position].parents if position is not None else {}
    return all(number is None or is_whole(crawl, block, number) for block, number in parents.items())


def block_in_need(crawl: Path, log: State, path: Path) -> int | None:
    """The block whose live generation has this file, or uses this segment of text; halves of a split share segments."""
    for block in range(log.blocks):
        number = log.generation(block)
        folder = Path(names.generation(block, number)) if number is not None else None
        if path.parent == folder:
            return block
        try:
            if (
                folder
                and path.parent == Path(names.TEXT)
                and path.name in read_generation_manifest(crawl / folder)["texts"]
            ):
                return block
        except (FileNotFoundError, Damaged):
            continue
    return None


def print_status(status: dict) -> None:
    fetched = status["fetched"]
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in status["entries"].items())
    states = ", ".join(f"{number:,} {state.replace('_', ' ')}" for state, number in status["states"].items())
    print_line(
        f"{status['crawl']}: {'running now' if status['running'] else 'not running'}; "
        f"began {moment(status['began_at_ms'])}, {count(status['commits'], 'commit')}"
        + (f" ({kinds})" if kinds else "")
    )
    print_line(
        f"fetched   {count(fetched['answered'], 'page')}, {size(fetched['bytes'])}; "
        f"{fetched['failed']:,} failed, {fetched['refused']:,} refused"
    )
    if status["reasons"]:
        shown = list(status["reasons"].items())[:REASONS_SHOWN]
        reasons = ", ".join(f"{reason}{HINTS.get(reason, '')} {number:,}" for reason, number in shown)
        print_line(make_plain(f"          {reasons}"))
    print_line(f"known     {count(status['known'], 'URL')}" + (f": {states}" if states else ""))
    print_line(
        f"servers   {status['servers']:,} known, {status['servers_failing']:,} failing, "
        f"{status['servers_given_up']:,} given up"
    )
    for row in status["server_failures"][:REASONS_SHOWN]:
        numbers = ", ".join(f"{row[name]:,} {name.replace('_', ' ')}" for name in ("failing", "given_up") if row[name])
        print_line(make_plain(f"          {row['reason']}: {numbers}, such as {row['example']}: {row['message']}"))
    for cycle in status["open"]:
        print_line(
            f"open      cycle {cycle['cycle']} ({cycle['kind']}, block {cycle['block']}), "
            f"done: {', '.join(cycle['stages_done']) or 'nothing yet'}"
        )
        if cycle["held"]:
            print_line(
                f"held      cycle {cycle['cycle']} waits for the next run of bin/crawl or bin/run-cycle: "
                f"{cycle['held']}"
            )
    for cycle in status["uncounted"]:
        print_line(
            f"damage    {names.cycle(cycle)}/{names.FETCHER}/{names.MANIFEST} cannot be read: "
            "its pages are not counted above, the crawl goes on"
        )
    for cycle in status["without_plan"]:
        print_line(
            f"damage    cycle {cycle} has no {names.PLAN} that can be read: the next run sets what it made aside in "
            f"{names.CORRUPT}/ and goes on without it"
        )
    if status["configuration"]:
        print_line(make_plain(f"damage    {status['configuration']}"))
    if status["inbox"]:
        print_line(f"inbox     {count(status['inbox'], 'file')} of seeds or decisions for the next turn")
    for note in status["damage"]:
        print_line(f"damage    {note['path']}: {note['reason']}")
        print(f"          run: {note['run']}" if note["run"] else "          the crawl goes on without it")
    rows = [["block", "generation", "known", "collected", "to fetch", "servers", "due"]]
    for block in status["by_block"]:
        due = block.get("earliest_due_ms")
        figures = (f"{block.get(name, 0):,}" for name in ("known", "collected", "waiting", "servers"))
        rows.append(
            [
                str(block["block"]),
                "-" if block["generation"] is None else str(block["generation"]),
                *figures,
                "damaged" if block.get("damaged") else "-" if due is None else "now" if due == 0 else moment(due),
            ]
        )
    widths = [max(map(len, column)) for column in list(zip(*rows))[:-1]]
    for row in rows:
        print_line("  ".join([*(f"{cell:>{width}}" for cell, width in zip(row, widths)), row[-1]]))


def print_line(line: str) -> None:
    say(line, indent=10)  # continued below what follows the first word


if __name__ == "__main__":
    run(main, NAME)
