"""The log: its entries, how they are replayed, and how one is committed (rules 2 and 5)."""

from typing import NamedTuple

from .files import TORN
from .web import block_of, merge


class Violation(Exception):
    """The protocol broke a promise; `kind` says which, in one word."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Entry(NamedTuple):
    kind: str  # crawl, absorb, seed, grow, abandon, reconsider
    cycle: int
    block: int | None = None
    n: int | None = None  # grow only: the number of blocks from here on
    parents: tuple = ()  # the one generation, or None, that the new ones replace
    generations: tuple = ()  # each a pair (block, cycle)
    seen: int = 0
    seed: str | None = None
    # Not part of the protocol: the records of a cycle, the seeds, or what is reconsidered. No process
    # looks at it; it lets books.py work out from the log alone what the blocks must hold.
    ghost: tuple = ()


class Replay(NamedTuple):
    entries: tuple
    n: int
    live: dict  # block: (generation or None, seen)
    closed: dict  # cycle: position of its first entry
    void: frozenset  # positions
    born: dict  # generation: position of the entry that made it


class Log:
    """Part of the protocol: reading and writing the log."""

    def read_log(self, look):
        """Replay of what is in log/; a gap or a torn entry is damage."""
        files = look.contents("log")
        numbers = sorted([int(name) for name in files if name.isdigit()])
        if numbers and numbers[-1] != len(numbers) - 1:
            raise Violation("gap", f"log holds {numbers}")
        entries = tuple([files[str(number)] for number in numbers])
        if TORN in entries:
            raise Violation("torn", f"log/{entries.index(TORN)}")
        state = self.replays.get(entries)
        if state is None:
            state = self.replays[entries] = self.replay(entries)
        return state

    def replay(self, entries):
        n = self.setting.n_first
        live, closed, void, born = dict.fromkeys(range(n), (None, 0)), {}, set(), {}
        for position, entry in enumerate(entries):
            if self.is_void(entry, n, live, closed):
                void.add(position)
            else:
                n = entry.n or n
                for generation in entry.generations:
                    live[generation[0]] = (generation, entry.seen)
                    born[generation] = position
            closed.setdefault(entry.cycle, position)
        return Replay(entries, n, live, closed, frozenset(void), born)

    def is_void(self, entry, n, live, closed):
        return self.is_repeated(entry, closed) or self.is_orphan(entry, n, live)

    def is_repeated(self, entry, closed):
        return entry.cycle in closed

    def is_orphan(self, entry, n, live):
        if not entry.parents:
            return False
        if entry.block not in live or (entry.kind == "grow" and entry.n != n + 1):
            return True
        return live[entry.block][0] != entry.parents[0]

    def commit(self, look, entry):
        """Write the entry aside, then try numbers until one is free."""
        aside = f"log/{entry.kind}-{entry.cycle}.new"
        return (("create", aside, entry), ("fsync", aside), ("call", "take_number", aside))

    def take_number(self, look, aside):
        """Look first, sync second, link third: the sync then covers every entry below the number."""
        number = sum(name.isdigit() for name in look.names("log"))
        return (("sync", "log"), self.link_entry(aside, number))

    def link_entry(self, aside, number):
        return (
            "link", aside, f"log/{number}",
            (("unlink", aside), ("sync", "log")),
            (("call", "take_number", aside),),
        )  # fmt: skip

    def slices(self, look, state, block, n, first, last):
        """Rows for a block in the AUX of the entries [first, last)."""
        tables = []
        for position in range(first, last):
            if position in state.void or state.entries[position].kind == "reconsider":
                continue
            table = self.offered(look, state.entries[position])
            tables.append([row for row in table if block_of(self.web.keys[row[0]], n) == block])
        return merge(*tables)

    def decisions(self, look, state, first, last):
        """The URLs whose failures were taken back in the entries [first, last), by a decision or by a seed."""
        urls = set()
        for position in range(first, last):
            if position not in state.void and state.entries[position].kind in ("seed", "reconsider"):
                urls |= {row[0] for row in self.offered(look, state.entries[position])}
        return urls

    def offered(self, look, entry):
        """All rows that an entry holds for blocks to take; routed by key, so a split changes nothing."""
        return () if entry.kind == "abandon" else self.published(look, entry.cycle, "verifier", "AUX")

    def published(self, look, cycle, stage, name):
        """The content of a stage's file; nothing if the stage has no manifest, or no longer."""
        if not look.has(f"cycles/{cycle}/{stage}/manifest"):
            return ()
        return whole(look, f"cycles/{cycle}/{stage}/{name}")


def whole(look, path):
    content = look.read(path)
    if content == TORN:
        raise Violation("torn", path)
    return content
