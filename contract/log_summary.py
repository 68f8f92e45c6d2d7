"""log_summary.json: a cache of what the log says up to a position, so that a crawl's age costs nothing.

The log stays the only truth. The supervisor writes the summary now and then; every reader takes it and replays the
entries behind it. A summary is used only if it belongs to this log: its crawl id, its check, and a digest of some of
the entries that it covers must be right. What is missing, wrong, or ahead of the log (the folder was restored from an
older copy) is ignored, and the next run writes a new one. `bin/check` compares it with the whole log.
"""

import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import xxhash

from contract import names
from contract.closed_cycles import ClosedCycles
from contract.crawl_folder import CrawlFolder, set_aside
from contract.log import (
    GROW,
    INBOX_NAMES_MAX,
    KINDS,
    Entry,
    Split,
    State,
    decode_entry,
    find_end,
    read_entry,
    read_kind,
)
from contract.totals import FETCHED, Totals
from storage.errors import Damaged, UnknownFormat
from storage.publish import ASIDE, FORMAT, decode_json, encode_json

WITNESSES = (1, 2, 8, 64)  # distances from the position: as many files to read in an old log as in a new one
VERSION = 1  # of the fields below; a summary of another version is made anew
BYTES_MAX = 64 << 20  # far above that of 65,536 blocks
SUM_END = 1 << 64
# What a value that is not as expected raises.
UNUSABLE = (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError, RecursionError, OSError)


def read_log(crawl: CrawlFolder) -> State:
    """What the log says at its end: from the summary, if there is a good one, and the entries behind it.

    Damaged where an entry is, or where the log is seen to have a gap. Writes nothing.
    """
    state = read_summary(crawl) or State(crawl.blocks_first)
    follow_log(crawl.path, state)
    return state


def follow_log(crawl: Path, state: State) -> None:
    """Applies the entries that were added since."""
    for position in range(state.length, find_end(crawl, state.length)):
        state.apply(read_entry(crawl, position))


def read_summary(crawl: CrawlFolder) -> State | None:
    """The state that the summary has; None where there is none that can be used."""
    path = crawl.path / names.LOG_SUMMARY
    try:
        value = decode_json(path, read_regular_file(path))
        if (value["version"], value["crawl_id"]) != (VERSION, crawl.crawl_id):
            return None
        state = decode_state(value, crawl.blocks_first)
        return state if value["witness"] == witness(crawl.path, state.length) else None
    except (*UNUSABLE, Damaged, UnknownFormat):
        return None


def write_summary(crawl: CrawlFolder, state: State) -> bool:
    """Replaces the summary; false where the disk refuses it. Not synced: a torn one fails its check and is made anew.

    Entries must have been added to `state.summed` up to its end: `state.recent` is empty.
    """
    path = crawl.path / names.LOG_SUMMARY
    aside = path.with_name(f"{ASIDE}{os.getpid()}-{path.name}")
    try:
        about = {"format": FORMAT, "version": VERSION, "crawl_id": crawl.crawl_id}
        content = encode_json({**about, "witness": witness(crawl.path, state.length), **encode_state(state)})
        if len(content) > BYTES_MAX:
            return False
        if path.is_dir() and not path.is_symlink():
            set_aside(crawl.path, path, "expected a file, found a folder")
        aside.unlink(missing_ok=True)
        aside.write_bytes(content)
        aside.rename(path)
        return True
    except OSError:
        return False


def read_regular_file(path: Path, bytes_max: int = BYTES_MAX) -> bytes:
    """The content of a file; OSError or ValueError for anything else, such as a pipe, a link, a folder, a huge file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > bytes_max:
            raise ValueError("no regular file of an expected size")
        return os.read(descriptor, about.st_size)
    finally:
        os.close(descriptor)


def witness(crawl: Path, length: int) -> str:
    """A digest of some entries before this position: cheap, and another history has other ones."""
    digest = xxhash.xxh3_128()
    for distance in WITNESSES:
        if distance <= length:
            digest.update(read_regular_file(crawl / names.LOG / names.log_entry(length - distance)))
    return digest.hexdigest()


def encode_state(state: State) -> dict[str, Any]:
    return {
        "position": state.length,
        "blocks": state.blocks,
        "live": state.live,
        "seen": state.seen,
        "last_turn": state.last_turn,
        "gave_up": sorted(state.gave_up),
        "closed_below": state.closed.end,
        "not_closed": state.closed.holes,
        "entries": state.kinds,
        "inbox": list(state.inbox),
        "generations": state.generations,
        "splits": state.splits,
        "tables": [{"position": position, **vars(entry)} for position, entry in state.tables],
        "unsettled": sorted(state.unsettled.items()),
        "fetched": state.summed.fetched,
        "reasons": state.summed.reasons,
        "uncounted": state.summed.uncounted,
        "link_sources": state.summed.link_sources,
    }


def decode_state(value: dict[str, Any], blocks_first: int) -> State:
    """The state from the fields of its file; one of UNUSABLE where a type or a number is wrong."""
    length = number(value["position"])
    state = State(
        blocks_first + number(value["entries"].get(GROW, 0), length + 1),
        length,
        seen=by_number(value["seen"], length + 1),
        last_turn=by_number(value["last_turn"], length),
        closed=decode_closed(number(value["closed_below"]), value["not_closed"]),
        kinds=Counter({read_kind(kind): number(count, length + 1) for kind, count in value["entries"].items()}),
        inbox=dict.fromkeys(map(text, value["inbox"])),
        splits=[Split(*map(number, split)) for split in value["splits"]],
        tables=decode_tables(value["tables"], length),
        summed=decode_totals(value),
    )
    state.live = {block: None if found is None else number(found) for block, found in numbered(value["live"])}
    state.gave_up = {number(block, state.blocks) for block in value["gave_up"]}
    state.generations = {block: list(map(number, found)) for block, found in numbered(value["generations"])}
    state.unsettled = {number(cycle): is_abandoned is True for cycle, is_abandoned in value["unsettled"]}
    blocks = (state.seen, state.last_turn, state.live, state.generations)
    if value["blocks"] != state.blocks or any(block >= state.blocks for table in blocks for block in table):
        raise ValueError("a number of blocks that does not follow from the entries")
    if any(found is not None and found not in state.generations.get(block, ()) for block, found in state.live.items()):
        raise ValueError("a live generation that no entry committed")
    if len(state.inbox) > INBOX_NAMES_MAX:
        raise ValueError("more names than are kept")
    return state


def decode_closed(end: int, holes: list[Any]) -> ClosedCycles:
    ranges = [(number(begin, end), number(stop, end)) for begin, stop in holes]
    bounds = [bound for pair in ranges for bound in pair]
    if any(before > after for before, after in zip(bounds, bounds[1:])) or any(begin >= stop for begin, stop in ranges):
        raise ValueError("ranges that do not rise")
    return ClosedCycles(end, ranges)


def decode_tables(rows: list[Any], length: int) -> list[tuple[int, Entry]]:
    tables = [(number(row["position"], length), decode_entry(row)) for row in rows]
    if any(before >= after for (before, _), (after, _) in zip(tables, tables[1:])):
        raise ValueError("positions that do not rise")
    if not all(KINDS[entry.kind].table for _, entry in tables):
        raise ValueError("an entry without a table")
    return tables


def decode_totals(value: dict[str, Any]) -> Totals:
    return Totals(
        {name: number(value["fetched"][name], SUM_END) for name in FETCHED},
        Counter({text(reason): number(urls, SUM_END) for reason, urls in value["reasons"].items()}),
        list(map(number, value["uncounted"])),
        # A summary that has none is older than the first crawl that counted any.
        {name: number(value.get("link_sources", {}).get(name, 0), SUM_END) for name in FETCHED},
    )


def by_number(table: dict[str, Any], end: int) -> dict[int, int]:
    return {key: number(value, end) for key, value in numbered(table)}


def numbered(table: dict[str, Any]) -> list[tuple[int, Any]]:
    """The items of a table whose keys are numbers."""
    return [(number(int(key)), value) for key, value in table.items()]


def number(value: object, end: int = names.NUMBER_END) -> int:
    if type(value) is not int or not 0 <= value < end:
        raise ValueError(f"expected a number from 0 to {end - 1}")
    return value


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")
    return value
