"""[extractor] follow_duplicates = false: which pages have a content that is known already, from another URL.

A server that answers many URLs with one page would else lead on without end: relative links lead from each of them to
new URLs. Known is the content of an earlier page of the cycle, in the order of records, and of a page that the block's
generation has as collected. A page that is answered again with its own content follows its links as before. Contents of
other blocks are not seen. Only pages that were parsed count, and empty ones do not: all empty pages are alike.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from contract import names
from contract.generation import (
    COLUMNS,
    PACKED_COLUMNS,
    SIDE_COLUMNS,
    SIDE_PACKED_COLUMNS,
    SIDE_PREFIX,
    read_generation_manifest,
)
from contract.tables import COLLECTED_STATE, UNKNOWN_DIGEST
from storage.arrays import Array
from storage.columns import PACKED, PLAIN, Columns
from storage.errors import Damaged
from storage.pairs import find_pairs
from storage.publish import verify

ROWS_AT_ONCE = 1 << 20
_ROWS, _SIDE = ("key", "state"), ("content_digest", "parsed")
_HEAD_BITS = 21  # 2 MB of flags, by which most digests of a block need no search
_HEAD_SHIFT = np.uint64(64 - _HEAD_BITS)

Marks = npt.NDArray[np.bool_]


class KnownContents:
    """The contents of the collected pages of a generation."""

    def __init__(self, rows: Columns, side: Columns, rows_at_once: int = ROWS_AT_ONCE):
        self._rows = rows
        self._side = side
        self._rows_at_once = rows_at_once

    def match(self, keys: npt.NDArray[np.uint64], digests: Sequence[bytes]) -> tuple[Marks, Marks]:
        """Of pages (u64 keys, each once, any order; 16 bytes each): whether their URL has this content in the
        generation, and, where it has not, whether another URL has it that was parsed."""
        wanted = sorted(set(digests))
        numbers = {digest: number for number, digest in enumerate(wanted)}
        index = np.array([numbers[digest] for digest in digests])
        first, second = to_pairs(np.frombuffer(b"".join(wanted), np.uint8))
        may_be = np.zeros(1 << _HEAD_BITS, bool)
        may_be[first >> _HEAD_SHIFT] = True
        own, is_held = np.zeros(len(keys), bool), np.zeros(len(wanted), bool)
        key_order = np.argsort(keys)
        side_start = 0
        for start in range(0, self._rows.rows, self._rows_at_once):
            state = self._rows.read("state", start, min(start + self._rows_at_once, self._rows.rows))
            collected = np.flatnonzero(state == COLLECTED_STATE)
            side_stop = side_start + len(collected)
            their_first, their_second = to_pairs(self._side.read("content_digest", side_start, side_stop))
            near = np.flatnonzero(may_be[their_first >> _HEAD_SHIFT])
            found = find_pairs(their_first[near], their_second[near], first, second)
            near, found = near[found >= 0], found[found >= 0]
            if len(near):
                parsed = self._side.read("parsed", side_start, side_stop)[near].astype(bool)
                is_held[found[parsed]] = True
                their_keys = self._rows.read("key", start, start + len(state))[collected[near]]
                place = np.minimum(np.searchsorted(keys, their_keys, sorter=key_order), len(keys) - 1)
                page = key_order[place]
                own[page[(keys[page] == their_keys) & (index[page] == found)]] = True
            side_start = side_stop
        return own, is_held[index] & ~own


def to_pairs(digests: Array) -> tuple[Array, Array]:
    """Digests of 16 bytes as two columns of u64, whose order is that of the bytes."""
    halves = np.ascontiguousarray(digests).view(">u8").astype(np.uint64)
    return halves[::2].copy(), halves[1::2].copy()


def open_known_contents(
    crawl: Path, block: int, generation: int | None, rows_at_once: int = ROWS_AT_ONCE
) -> KnownContents | None:
    """Of a published generation, the columns that are needed; each is checked."""
    if generation is None:
        return None
    folder = crawl / names.generation(block, generation)
    try:
        files = read_generation_manifest(folder)["files"]
    except FileNotFoundError:
        raise Damaged(
            folder / names.MANIFEST,
            "expected a manifest, found none: the generation is damaged, or was superseded and deleted (see [blocks] "
            "keep_generations); with follow_duplicates = false the extractor needs it",
        ) from None
    wanted = [f"{name}{PACKED if name in PACKED_COLUMNS else PLAIN}" for name in _ROWS]
    wanted += [f"{SIDE_PREFIX}{name}{PACKED if name in SIDE_PACKED_COLUMNS else PLAIN}" for name in _SIDE]
    for name in wanted:
        if name in files:  # a packed column of zeros has none
            verify(folder / name, files[name])
    return KnownContents(
        Columns(folder, {name: COLUMNS[name] for name in _ROWS}, PACKED_COLUMNS),
        Columns(folder, {name: SIDE_COLUMNS[name] for name in _SIDE}, SIDE_PACKED_COLUMNS, SIDE_PREFIX),
        rows_at_once,
    )


def find_repeated(keys: Sequence[int], contents: Sequence[bytes], known: KnownContents | None) -> Marks:
    """Which pages repeat a content, of pages in the order of their records; `contents` are digests, or b"" for a page
    that is not looked at."""
    pages = [number for number, content in enumerate(contents) if content and content != UNKNOWN_DIGEST]
    repeated = np.zeros(len(keys), bool)
    if not pages:
        return repeated
    own = elsewhere = np.zeros(len(pages), bool)
    if known is not None:
        own, elsewhere = known.match(
            np.array([keys[number] for number in pages], np.uint64), [contents[number] for number in pages]
        )
    seen: set[bytes] = set()
    for number, is_own, is_elsewhere in zip(pages, own.tolist(), elsewhere.tolist()):
        repeated[number] = not is_own and (is_elsewhere or contents[number] in seen)
        seen.add(contents[number])
    return repeated
