"""Texts of a turn: one new segment, with the lines of new URLs and of folded older segments, and robots.txt files.

A thread packs and writes the lines, one piece after the other, while the rows of the piece are merged.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.generation import Generation
from stages.verifier.line_reader import LineReader
from stages.verifier.merge import Match
from storage.errors import Damaged
from storage.publish import ASIDE, describe, make_folder, sync_file, sync_folder
from storage.tables import only_chunk
from storage.text_segments import LINES, NO_TEXT, SegmentWriter, read_blobs, segments_of

SEGMENTS_MAX = 16  # more would make reading a selection of rows a walk over many files
# The smallest ones are folded, so that a text is rewritten a few times only, however large its block grows.
FOLDED = SEGMENTS_MAX // 2
COUNTED_AT_ONCE = 1 << 20  # rows: numpy makes eight bytes of each
IN_USE_LEAST = 4  # a segment of which we use less than one part in so many is folded too: the rest may be unused


class Texts:
    """The segments of text of a turn.

    `segment_of_old` gives the new number of each segment of the parent; folded ones get the number of the turn's own.
    `folded_share` is the share of the parent's rows whose texts are folded. With `folds_all` no old segment stays.
    """

    def __init__(self, crawl: Path, out: Path, cycle: int, parent: Generation, folds_all: bool = False):
        self._crawl = crawl
        self._path = out / names.TEXT / names.segment(cycle)
        self._cycle = cycle
        self._parent = parent
        in_use = count_in_use(parent.rows["segment"])
        if in_use[len(parent.texts) :].any():
            raise Damaged("segment", f"expected numbers of {len(parent.texts)} segments of text, found others")
        lines = [about["texts"] for about in parent.texts.values()]
        self._folded = list(range(len(lines))) if folds_all else choose_folded(in_use, lines)
        self.folded_share = sum(in_use[self._folded]) / max(len(parent), 1)
        kept = [number for number in range(len(parent.texts)) if number not in self._folded]
        self.own = len(kept)
        self.segment_of_old = np.full(max(len(parent.texts), 1), self.own, np.uint8)
        self.segment_of_old[kept] = np.arange(len(kept))
        self._names = list(parent.texts)
        self._kept = {self._names[number]: parent.texts[self._names[number]] for number in kept}
        self._lines = LineReader(crawl, parent)
        make_folder(self._path.parent)
        self._aside = self._path.with_name(f"{ASIDE}{os.getpid()}-{self._path.name}")
        self._aside.unlink(missing_ok=True)
        self._writer = SegmentWriter(self._aside, cycle)
        self._beside = ThreadPoolExecutor(1)
        self._written: Future | None = None

    def append(self, match: Match, lines: pa.LargeBinaryArray) -> None:
        """Takes the match of the next piece, and the lines of its new rows."""
        self.settle()
        self._written = self._beside.submit(self._write, match, lines)

    def append_lines(self, lines: pa.LargeBinaryArray) -> None:
        """Takes the lines of the next rows, where the caller folds."""
        self.settle()
        self._written = self._beside.submit(self._writer.append, lines)

    def settle(self) -> None:
        """Waits until all that was taken is written, and no longer in memory."""
        if self._written is not None:
            self._written.result()
            self._written = None

    def _write(self, match: Match, new_lines: pa.LargeBinaryArray) -> None:
        if not self._folded:
            self._writer.append(new_lines)
            return
        old, old_lines = self._lines.read(self._folded, match.start, match.stop)
        where = np.concatenate([match.new_rows(), match.move_old(old)])
        joined = only_chunk(pa.chunked_array([new_lines, old_lines], LINES))
        self._writer.append(joined.take(pa.array(np.argsort(where))))

    def close(self, servers: dict[str, np.ndarray], new_robots: dict[int, bytes]) -> dict[str, dict]:
        """Adds robots.txt files, those of folded segments too, and sets their positions in the columns of `servers`.

        Returns the segments in use, in the order of their numbers. The new segment is durable. It replaces one that
        an earlier attempt of the same turn wrote in one step. `new_robots` has a text by index of its server.
        """
        self.settle()
        self._beside.shutdown()
        folded = [int(Path(self._names[number]).stem) for number in self._folded]
        has_robots = np.flatnonzero(servers["robots_text"] != NO_TEXT)
        moved = has_robots[np.isin(servers["robots_text"][has_robots] >> np.uint64(32), folded)]
        moved = np.array([server for server in moved.tolist() if server not in new_robots], np.int64)
        old = read_blobs(
            self._crawl / names.TEXT, names.segment, servers["robots_text"][moved], servers["robots_length"][moved]
        )
        robots = {**dict(zip(moved.tolist(), old)), **new_robots}
        owners = sorted(robots)
        servers["robots_text"][owners] = self._writer.close([robots[server] for server in owners])
        servers["robots_length"][owners] = [len(robots[server]) for server in owners]
        texts = dict(self._kept)
        if self._writer.lines or owners:
            sync_file(self._aside)
            self._aside.rename(self._path)
            sync_folder(self._path.parent)
            texts[self._path.name] = {**describe(self._path), "texts": self._writer.lines, "first": 0}
        else:
            self._aside.unlink()
        return texts


def count_in_use(segment: np.ndarray) -> np.ndarray:
    """How many rows use each segment, by its number (u8)."""
    in_use = np.zeros(256, np.int64)
    for start in range(0, len(segment), COUNTED_AT_ONCE):
        in_use += np.bincount(segment[start : start + COUNTED_AT_ONCE], minlength=256)
    return in_use


def choose_folded(in_use: np.ndarray, texts: list[int]) -> list[int]:
    """Numbers of the segments whose texts this turn writes anew; given are the rows in use and the texts of each."""
    folded = [number for number, lines in enumerate(texts) if lines and in_use[number] * IN_USE_LEAST < lines]
    if len(texts) - len(folded) >= SEGMENTS_MAX:
        rest = [number for number in range(len(texts)) if number not in folded]
        folded += sorted(rest, key=lambda number: (in_use[number], number))[:FOLDED]
    return sorted(folded)


def part_texts(
    texts: dict[str, dict], segment: np.ndarray, start: int, stop: int, robots_text: np.ndarray
) -> tuple[dict[str, dict], np.ndarray]:
    """(segments that the rows [start, stop) of a block use, new number of each old segment).

    The first line of each segment is that of the first of these rows.
    """
    before = np.bincount(segment[:start], minlength=len(texts))
    here = np.bincount(segment[start:stop], minlength=len(texts))
    with_robots = {names.segment(int(number)) for number in segments_of(robots_text)}
    numbers = np.zeros(max(len(texts), 1), np.uint8)
    kept: dict[str, dict] = {}
    for old, (name, about) in enumerate(texts.items()):
        if here[old] or name in with_robots:
            numbers[old] = len(kept)
            kept[name] = {**about, "first": about["first"] + int(before[old])}
    return kept, numbers
