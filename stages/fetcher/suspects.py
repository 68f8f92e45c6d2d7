"""What was in flight when the fetcher died, and what follows: which URLs are asked last, and which are charged.

Each process keeps a file `.aside-inflight-AAAAA-NNNNN` (attempt, run) of little-endian u64. The first counts the pages
that passed: asked, ended and written. The others are the keys of what is in flight, from the start of a request until
its record is written; 0 is a free slot. The file is written and never synced: it has to survive only the death of the
process. A process that ends in order leaves no keys, so keys in a file mean that its process died.

What was in flight at a death is a suspect. Suspects are asked after all others, with nothing else in flight. Once
others have passed, those come first that were alone in flight at an earlier death: so of many pages that kill, each
cycle charges one. A fault of the machine must not be charged to a URL: a suspect is charged only after it was alone in
flight at two deaths, while other pages passed. They may pass in the attempt, or in fetchers of other blocks since this
block's fetcher died in the same run (the supervisor says so). After six deaths in a row without a pass in between,
suspects are not asked any more: they wait for a later cycle, and this one ends.
"""

import mmap
import os
import re
import struct
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import xxhash

from contract.stage import OTHERS_PASS_VARIABLE
from contract.tables import FAILED
from contract.url import server_of
from stages.fetcher.exchange import Exchange
from stages.fetcher.reasons import KILLED_FETCHER
from stages.fetcher.records import Draft
from stages.fetcher.server_queues import HostWork, Server
from stages.fetcher.settlement import Settlement
from stages.fetcher.stopping import say
from storage.publish import ASIDE

IN_FLIGHT = f"{ASIDE}inflight-"
DEATHS_TO_CHARGE = 2
DIED_TWICE = f"the fetcher died {DEATHS_TO_CHARGE} times while this alone was in flight and others passed"
FRUITLESS_MAX = 6  # deaths in a row without a pass: three pages that kill, each asked twice
FILE_MAX_BYTES = 64 << 20  # far more than any number of transfers needs: a larger file is not ours
_NAME = re.compile(rf"{re.escape(IN_FLIGHT)}(\d{{5,9}})-(\d{{5,9}})")
_SLOT = struct.Struct("<Q")


def key_of(text: str) -> int:
    """The key of a page's URL, or of a server whose robots.txt is asked for; never 0."""
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) or 1


class InFlight:
    """What this process has in flight, as the next attempt will find it; a mapped file, because it is written often."""

    def __init__(self, folder: Path, attempt: int, run: int, most: int):
        path, size_bytes = folder / f"{IN_FLIGHT}{attempt:05d}-{run:05d}", (most + 1) * _SLOT.size
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)  # allocates blocks now; else a full disk is a bus error later
            self._map = mmap.mmap(descriptor, size_bytes)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        finally:
            os.close(descriptor)
        self._slots: dict[Exchange, int] = {}
        self._free = list(range(size_bytes - _SLOT.size, 0, -_SLOT.size))  # offsets
        self._passed = 0

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, exchange: Exchange) -> None:
        offset = self._slots[exchange] = self._free.pop()
        _SLOT.pack_into(self._map, offset, key_of(exchange.robots_for or exchange.url))

    def remove(self, exchange: Exchange) -> None:
        if (offset := self._slots.pop(exchange, None)) is not None:  # none: its end was held back
            self._free.append(offset)
            _SLOT.pack_into(self._map, offset, 0)

    def remove_written(self, drafts: list[Draft]) -> None:
        """Takes exchanges whose records are written."""
        self._passed += sum(draft.is_final for draft in drafts)
        _SLOT.pack_into(self._map, 0, self._passed)
        for draft in drafts:
            self.remove(draft.exchange)

    def clear(self) -> None:
        """Called when this process ends in order: nothing that is still in flight is a suspect."""
        self._map[_SLOT.size :] = bytes(len(self._map) - _SLOT.size)

    def close(self) -> None:
        self._map.close()


class Run(NamedTuple):
    """What a process left."""

    attempt: int
    number: int  # within the attempt
    passed: int
    in_flight: frozenset[int]  # keys; none where it ended in order


class Suspects(NamedTuple):
    attempt: int  # that is resumed or begins now
    next_run: int = 0  # in it
    keys: frozenset[int] = frozenset()
    likely: frozenset[int] = frozenset()  # of the keys, those that were alone in flight at a death
    charged: frozenset[int] = frozenset()
    deaths: int = 0  # in all attempts
    fruitless: int = 0  # deaths of this attempt since something passed
    has_passes: bool = False  # in this attempt

    @property
    def are_asked(self) -> bool:
        return self.fruitless < FRUITLESS_MAX

    @property
    def is_hopeless(self) -> bool:
        """Whether the attempt must end: every request kills the fetcher."""
        return self.fruitless > FRUITLESS_MAX or not self.are_asked and not self.has_passes

    def without(self, urls: list[str]) -> list[str]:
        """The URLs that are no suspects, and whose robots.txt is none."""
        return [url for url in urls if not self.keys & {key_of(url), key_of(server_of(url))}] if self.keys else urls


def judge(runs: Iterable[Run], attempt: int | None = None, *, others_pass: bool = False) -> Suspects:
    """The suspects after these runs, for an attempt that is resumed, or for a new one; pure."""
    runs = sorted(runs)
    if attempt is None:
        attempt = max((run.attempt for run in runs), default=0) + 1
    fruitful = {attempt, *(run.attempt for run in runs)} if others_pass else {run.attempt for run in runs if run.passed}
    alone = [(key, run.attempt) for run in runs if len(run.in_flight) == 1 for key in run.in_flight]
    deaths_alone = Counter(key for key, _ in alone)
    charged = {key for key, at in alone if deaths_alone[key] >= DEATHS_TO_CHARGE and at in fruitful}
    present, fruitless = [run for run in runs if run.attempt == attempt], 0
    for run in present:
        fruitless = (0 if run.passed else fruitless) + bool(run.in_flight)
    keys = frozenset().union(*(run.in_flight for run in runs))
    deaths = sum(bool(run.in_flight) for run in runs)
    next_run = max((run.number for run in present), default=-1) + 1
    return Suspects(
        attempt, next_run, keys, frozenset(deaths_alone), frozenset(charged), deaths, fruitless, attempt in fruitful
    )


def read_suspects(folder: Path, attempt: int | None = None) -> Suspects:
    """The suspects by the files in the folder, for an attempt that is resumed, or for a new one."""
    runs = []
    for path in folder.glob(f"{IN_FLIGHT}*"):
        if (found := _NAME.fullmatch(path.name)) and path.is_file() and path.stat().st_size <= FILE_MAX_BYTES:
            data = path.read_bytes()
            values = [value for (value,) in _SLOT.iter_unpack(data[: len(data) // _SLOT.size * _SLOT.size])] or [0]
            runs.append(Run(int(found[1]), int(found[2]), values[0], frozenset(values[1:]) - {0}))
    return judge(runs, attempt, others_pass=bool(os.environ.get(OTHERS_PASS_VARIABLE)))


def forget_runs(folder: Path, suspects: Suspects) -> None:
    """Removes the files of the runs that began with these suspects: a signal ended them, which makes no suspects."""
    for path in folder.glob(f"{IN_FLIGHT}{suspects.attempt:05d}-*"):
        if (found := _NAME.fullmatch(path.name)) and int(found[2]) >= suspects.next_run:
            path.unlink()


class Group(NamedTuple):
    """URLs that are asked after all others."""

    urls: list[tuple[Server, str]]
    is_careful: bool  # with nothing else in flight


def withhold(hosts: list[HostWork], suspects: Suspects) -> list[Group]:
    """Takes the suspects out of the queues, into groups in the order in which they are to be asked.

    Where robots.txt is the suspect, the server's first URL is asked with care; robots.txt is asked before it.
    The others follow in the last group, when robots.txt has passed.
    """
    likely, others, released = [], [], []
    for host in hosts if suspects.keys else ():
        for server in host.servers:
            is_suspect = key_of(server.name) in suspects.keys
            held = [url for url in server.urls if is_suspect or key_of(url) in suspects.keys]
            if taken := set(held):
                server.urls = deque(url for url in server.urls if url not in taken)
            for number, url in enumerate(held):
                is_likely = key_of(url) in suspects.likely or is_suspect and key_of(server.name) in suspects.likely
                group = released if number and key_of(url) not in suspects.keys else likely if is_likely else others
                group.append((server, url))
    first, then = (
        (likely, others) if suspects.has_passes else (others, likely)
    )  # without a pass no suspect can be charged
    return [group for group in (Group(first, True), Group(then, True), Group(released, False)) if group.urls]


def charge(groups: list[Group], suspects: Suspects, settlement: Settlement) -> list[Group]:
    """Ends the suspects that earlier deaths prove to be the cause; returns what is still to be asked."""
    for group in groups:
        for server, url in group.urls:
            if key_of(server.name) in suspects.charged and server.needs_robots and not server.is_left_alone:
                settlement.settle_robots(server, FAILED, KILLED_FETCHER, DIED_TWICE)
            if key_of(url) in suspects.charged:
                settlement.settle(server, url, FAILED, KILLED_FETCHER, DIED_TWICE)
    left = []
    for urls, is_careful in groups:
        urls = [
            (server, url) for server, url in urls if key_of(url) not in suspects.charged and not server.is_left_alone
        ]
        left.append(Group(urls, is_careful))
    if (count := sum(len(group.urls) for group in left)) and not suspects.are_asked:
        say(
            f"the fetcher died {FRUITLESS_MAX} times while nothing passed: {count} URLs that may be the cause "
            "are left to a later cycle"
        )
        return []
    return left
