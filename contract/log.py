"""The log: one small file a commit, the only truth about which generation of a block is live.

An entry is void, and readers skip it and its AUX, when its cycle has an entry already or when a parent
generation that it names is not live at its position.
"""

from dataclasses import dataclass, field
from pathlib import Path

from contract import names
from storage.errors import Damaged
from storage.publish import FORMAT, encode_json, put_if_absent, read_json, sync_folder

CRAWL, ABSORB, SEED, GROW, ABANDON, RECONSIDER = KINDS = ("crawl", "absorb", "seed", "grow", "abandon", "reconsider")
WITH_AUX = (CRAWL, SEED)  # kinds of entries whose cycle has an AUX
WITH_ROWS = (CRAWL, SEED, RECONSIDER)  # kinds of entries whose cycle has a table for the blocks to absorb
FROM_INBOX = (SEED, RECONSIDER)  # kinds of entries that take in a file of inbox/: what an operator asked for


@dataclass(frozen=True)
class Entry:
    kind: str
    cycle: int
    blocks: int  # N once this entry is in force
    parents: dict[int, int | None] = field(default_factory=dict)  # block -> generation that must be live
    generations: dict[int, int | None] = field(default_factory=dict)  # block -> generation that becomes live
    seen: int = 0  # the new generations have absorbed all entries before this position
    inbox: str = ""  # of a seed or reconsider entry: the file that it took in
    reason: str = ""  # of an abandon entry

    @property
    def rows_file(self) -> str:
        """The table of its cycle that blocks absorb, below the verifier's folder."""
        return names.RECONSIDERED if self.kind == RECONSIDER else names.AUX


@dataclass
class State:
    """What follows from the log up to a position."""

    blocks: int
    length: int = 0
    live: dict[int, int | None] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    last_turn: dict[int, int] = field(default_factory=dict)  # block -> position of its last turn of the ring
    cycles: dict[int, int] = field(default_factory=dict)  # cycle -> position of the entry in force
    entries: list[Entry | None] = field(default_factory=list)  # None where void
    inbox: set[str] = field(default_factory=set)

    def generation(self, block: int) -> int | None:
        return self.live.get(block)

    def apply(self, entry: Entry) -> bool:
        """Takes the next entry; false where it is void."""
        position = self.length
        self.length += 1
        stale = any(self.live.get(block) != parent for block, parent in entry.parents.items())
        if entry.cycle in self.cycles or stale:
            self.entries.append(None)
            return False
        self.entries.append(entry)
        self.cycles[entry.cycle] = position
        self.blocks = entry.blocks if entry.kind == GROW else self.blocks
        for block, generation in entry.generations.items():
            self.live[block] = generation
            self.seen[block] = entry.seen
        if entry.kind in (CRAWL, ABANDON):
            self.last_turn.update(dict.fromkeys(entry.parents, position))
        if entry.inbox:
            self.inbox.add(entry.inbox)
        return True


def replay(crawl: Path, blocks_first: int, length: int | None = None) -> State:
    """The state after the first `length` entries (default: all)."""
    state = State(blocks_first)
    for position in positions(crawl)[:length]:
        state.apply(read_entry(crawl, position))
    return state


def positions(crawl: Path) -> list[int]:
    found = names.numbered(crawl / names.LOG, ".json")
    for expected, position in enumerate(found):
        if position != expected:
            raise Damaged(
                crawl / names.LOG / names.log_entry(expected), f"expected an entry, found a gap up to {position}"
            )
    return found


def read_entry(crawl: Path, position: int) -> Entry:
    path = crawl / names.LOG / names.log_entry(position)
    value = read_json(path)
    try:
        entry = Entry(
            kind=KINDS[KINDS.index(value["kind"])],
            cycle=int(value["cycle"]),
            blocks=int(value["blocks"]),
            parents=by_block(value["parents"]),
            generations=by_block(value["generations"]),
            seen=int(value["seen"]),
            inbox=str(value["inbox"]),
            reason=str(value["reason"]),
        )
        numbers = [
            entry.cycle,
            entry.seen,
            entry.blocks - 1,
            *entry.parents,
            *entry.generations,
            *entry.parents.values(),
            *entry.generations.values(),
        ]
        if any(number is not None and not 0 <= number < names.NUMBER_END for number in numbers):
            raise ValueError("a number that cannot be")
        return entry
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise Damaged(path, f"expected an entry of the log, found {error!r}") from None


def commit(crawl: Path, entry: Entry) -> int:
    """Adds the entry at the end of the log, durably; returns its position."""
    folder = crawl / names.LOG
    content = encode_json({"format": FORMAT, **vars(entry)})
    while True:
        position = len(positions(crawl))
        sync_folder(folder)  # after looking: all entries that this one will stand behind must outlive it
        if put_if_absent(folder / names.log_entry(position), content):
            return position


def by_block(table: dict) -> dict[int, int | None]:
    return {int(block): None if generation is None else int(generation) for block, generation in table.items()}
