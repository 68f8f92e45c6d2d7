"""The log: one small file per commit, the only truth about which generation of a block is live.

An entry is void if its cycle has an entry already, or if a parent generation that it names is not live at its
position. Readers skip a void entry and its AUX.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract import names
from storage.errors import Damaged
from storage.publish import FORMAT, encode_json, put_if_absent, read_json, sync_folder

CRAWL, ABSORB, SEED, GROW, ABANDON, RECONSIDER = "crawl", "absorb", "seed", "grow", "abandon", "reconsider"


@dataclass(frozen=True)
class Kind:
    """The properties of a kind of log entry, and of the plan and the cycle that it commits."""

    stages: tuple[str, ...] = ()  # that its cycle runs, in order
    table: str = ""  # file below the verifier's folder with rows that blocks absorb
    from_inbox: bool = False  # its cycle takes in a file of inbox/, which an operator left there
    merges: bool = False  # the verifier merges tables into the block: one new generation, and a table of refused URLs
    splits: bool = False  # the verifier splits the block: two new generations, and N grows by one
    is_turn: bool = False  # the block has had its turn, even if nothing came of it

    @property
    def fetches(self) -> bool:
        """Whether its cycle has a list of URLs, pages and the extractor's tables."""
        return names.FETCHER in self.stages

    @property
    def has_aux(self) -> bool:
        return self.table == names.AUX


# The one table of kinds: the word on disk, and its properties. A new kind touches at most two files: this one, for its
# word and its line, and the module that does its work, such as contract/inbox.py (READERS) for one that takes in a file
# of inbox/. All other code asks for a property, as in KINDS[entry.kind].fetches. docs/formats.md lists the words.
KINDS = {
    CRAWL: Kind(stages=names.STAGES, table=names.AUX, merges=True, is_turn=True),
    ABSORB: Kind(stages=(names.VERIFIER,), merges=True),
    SEED: Kind(table=names.AUX, from_inbox=True),
    GROW: Kind(stages=(names.VERIFIER,), splits=True),
    ABANDON: Kind(is_turn=True),
    RECONSIDER: Kind(table=names.RECONSIDERED, from_inbox=True),
}


@dataclass(frozen=True)
class Entry:
    kind: str  # a key of KINDS
    cycle: int
    blocks: int  # N once this entry is in force
    parents: dict[int, int | None] = field(default_factory=dict)  # block -> generation that must be live
    generations: dict[int, int | None] = field(default_factory=dict)  # block -> generation that becomes live
    seen: int = 0  # the new generations have absorbed all entries before this position
    inbox: str = ""  # of a seed or reconsider entry: the file that it took in
    reason: str = ""  # of an abandon entry

    @property
    def rows_file(self) -> str:
        """The table of its cycle that blocks absorb, below the verifier's folder; empty where it has none."""
        return KINDS[self.kind].table


@dataclass
class State:
    """What the log says, up to a position."""

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

    def is_abandoned(self, cycle: int) -> bool:
        position = self.cycles.get(cycle)
        entry = self.entries[position] if position is not None else None
        return entry is not None and entry.kind == ABANDON

    def apply(self, entry: Entry) -> bool:
        """Takes the next entry; false where it is void."""
        kind, position = KINDS[entry.kind], self.length
        self.length += 1
        stale = any(self.live.get(block) != parent for block, parent in entry.parents.items())
        if entry.cycle in self.cycles or stale:
            self.entries.append(None)
            return False
        self.entries.append(entry)
        self.cycles[entry.cycle] = position
        self.blocks = entry.blocks if kind.splits else self.blocks
        for block, generation in entry.generations.items():
            self.live[block] = generation
            self.seen[block] = entry.seen
        if kind.is_turn:
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
            kind=read_kind(value["kind"]),
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
            raise ValueError("a number out of range")
        return entry
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise Damaged(path, f"expected an entry of the log, found {error!r}") from None


def read_kind(word: object) -> str:
    """The word itself; ValueError where it is the word of no kind."""
    if not isinstance(word, str) or word not in KINDS:
        raise ValueError(f"{word!r} as the kind of an entry")
    return word


def commit(crawl: Path, entry: Entry) -> int:
    """Adds the entry at the end of the log, durably; returns its position."""
    folder = crawl / names.LOG
    content = encode_json({"format": FORMAT, **vars(entry)})
    while True:
        position = len(positions(crawl))
        sync_folder(folder)  # after listing it: all entries before this one must be durable before it is
        if put_if_absent(folder / names.log_entry(position), content):
            return position


def by_block(table: dict[str, Any]) -> dict[int, int | None]:
    return {int(block): None if generation is None else int(generation) for block, generation in table.items()}
