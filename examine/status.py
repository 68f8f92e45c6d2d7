"""status: what a crawl is doing and has done.

  bin/status [--crawl DIR]          a page for people
  bin/status --crawl DIR --json     the same as one JSON object

Reads only the log and manifests, so it is quick at any size, and it needs no lock: it may be run
while a crawl is at work.

Example: bin/status --crawl demo/crawl
"""

import fcntl
import json
import os
from datetime import datetime
from pathlib import Path

from contract import names
from contract.command import make_parser, run
from contract.crawl_folder import CrawlFolder, notes_of_damage, open_folder
from contract.errors import EX_DATAERR
from contract.log import CRAWL, State, replay
from contract.plan import open_cycles, read_plan
from storage.errors import Damaged
from storage.publish import is_published, read_manifest

NAME = "status"


def main() -> int:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    status = describe(open_folder(arguments.crawl))
    if arguments.json:
        print(json.dumps(status))
    else:
        print_status(status)
    return EX_DATAERR if any(note["run"] for note in status["damage"]) else 0


def describe(crawl: CrawlFolder) -> dict:
    log = replay(crawl.path, crawl.blocks_first)
    blocks = []
    for block in range(log.blocks):
        generation = log.generation(block)
        blocks.append({"block": block, "generation": generation, "seen": log.seen.get(block, 0), **figures_of(crawl.path, block, generation)})
    kinds: dict[str, int] = {}
    fetched = {"answered": 0, "failed": 0, "refused": 0, "bytes": 0}
    for entry in log.entries:
        if entry is not None:
            kinds[entry.kind] = kinds.get(entry.kind, 0) + 1
            if entry.kind == CRAWL:
                counts = read_manifest(crawl.path / names.cycle(entry.cycle) / names.FETCHER)["counts"]
                fetched = {name: fetched[name] + counts[name] for name in fetched}
    states: dict[str, int] = {}
    for block in blocks:
        for state, number in block.get("states", {}).items():
            states[state] = states.get(state, 0) + number
    return {
        "crawl": str(crawl.path), "crawl_id": crawl.crawl_id, "began_at_ms": crawl.began_at_ms, "running": is_locked(crawl.path),
        "blocks": log.blocks, "commits": log.length, "entries": kinds, "fetched": fetched, "states": states,
        "known": sum(block.get("known", 0) for block in blocks), "servers": sum(block.get("servers", 0) for block in blocks),
        "servers_failing": sum(block.get("servers_failing", 0) for block in blocks),
        "servers_given_up": sum(block.get("servers_given_up", 0) for block in blocks),
        "inbox": len(names.visible_files(crawl.path / names.INBOX)),
        "open": [open_cycle(crawl.path, cycle) for cycle in open_cycles(crawl.path, log)],
        "damage": [{**note, "run": advice(crawl.path, log, note["path"])} for note in notes_of_damage(crawl.path)],
        "by_block": blocks,
    }


def figures_of(crawl: Path, block: int, generation: int | None) -> dict:
    if generation is None:
        return {}
    try:
        manifest = read_manifest(crawl / names.generation(block, generation))
    except (FileNotFoundError, Damaged):
        return {"damaged": True}
    wanted = ("known", "collected", "waiting", "earliest_due_ms", "servers", "servers_failing", "servers_given_up", "domains", "states")
    return {name: manifest[name] for name in wanted}


def open_cycle(crawl: Path, cycle: int) -> dict:
    plan = read_plan(crawl, cycle)
    done = [stage for stage in names.STAGES if is_published(crawl / names.cycle(cycle) / stage)]
    return {"cycle": cycle, "kind": plan.kind, "block": plan.block, "stages_done": done}


def is_locked(crawl: Path) -> bool:
    """Whether a run holds the lock; looking does not take it away from one that starts just now for longer than an instant."""
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
    """What to run for a file that was set aside; nothing where the crawl goes on without it."""
    parts = Path(path).parts
    if parts[0] == names.GENERATIONS:
        cycle, block = int(Path(parts[2]).stem), block_in_need(crawl, log, Path(path))
        if block is None or can_repair(crawl, log, cycle):
            return f"bin/verifier --crawl {crawl} --cycle {cycle} --repair"
        return f"bin/verifier --crawl {crawl} --rebuild {block}"
    if len(parts) > 2 and parts[2] == names.VERIFIER:
        return f"bin/verifier --crawl {crawl} --cycle {int(parts[1])} --repair"
    return ""


def can_repair(crawl: Path, log: State, cycle: int) -> bool:
    """Whether the generation that the cycle's merge began from is kept."""
    position = log.cycles.get(cycle)
    parents = log.entries[position].parents if position is not None else {}
    return all(number is None or is_published(crawl / names.generation(block, number)) for block, number in parents.items())


def block_in_need(crawl: Path, log: State, path: Path) -> int | None:
    """The block whose live generation has this file or, of a segment of text, uses it; blocks that were one share them."""
    for block in range(log.blocks):
        number = log.generation(block)
        folder = Path(names.generation(block, number)) if number is not None else None
        if path.parent == folder:
            return block
        try:
            if folder and path.parent == Path(names.TEXT) and path.name in read_manifest(crawl / folder)["texts"]:
                return block
        except (FileNotFoundError, Damaged):
            continue
    return None


def moment(at_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(at_ms / 1000):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def print_status(status: dict) -> None:
    fetched = status["fetched"]
    print(f"{status['crawl']}: {'running now' if status['running'] else 'not running'}; began {moment(status['began_at_ms'])}, {status['commits']} commits "
          + "(" + ", ".join(f"{number} {kind}" for kind, number in status["entries"].items()) + ")")
    print(f"fetched   {fetched['answered']} pages, {fetched['bytes']} bytes; {fetched['failed']} failed, {fetched['refused']} refused")
    print(f"known     {status['known']} URLs: "
          + ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in status["states"].items()))
    print(f"servers   {status['servers']} known, {status['servers_failing']} failing, {status['servers_given_up']} given up")
    for cycle in status["open"]:
        print(f"open      cycle {cycle['cycle']} ({cycle['kind']}, block {cycle['block']}), done: {', '.join(cycle['stages_done']) or 'nothing yet'}")
    if status["inbox"]:
        print(f"inbox     {status['inbox']} files of seeds wait for the next turn")
    for note in status["damage"]:
        print(f"damage    {note['path']}: {note['reason']}")
        print(f"          run: {note['run']}" if note["run"] else "          the crawl goes on without it")
    print("block  generation      known  collected    waiting    servers  due")
    for block in status["by_block"]:
        due = block.get("earliest_due_ms")
        print(f"{block['block']:5d}  {block['generation'] if block['generation'] is not None else '-':>10}"
              f" {block.get('known', 0):10d} {block.get('collected', 0):10d} {block.get('waiting', 0):10d} {block.get('servers', 0):10d}  "
              + ("damaged" if block.get("damaged") else "-" if due is None else "now" if due == 0 else moment(due)))


if __name__ == "__main__":
    run(main, NAME)
