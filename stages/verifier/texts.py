"""Texts of a turn: one new segment with the lines of new URLs, of older segments that are folded into it, and robots.txt files.

Lines are packed and written by a thread of their own, one piece after the other, while the rows of the piece are merged.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.generation import Generation
from stages.verifier.merge import Piece
from storage.compiled import compiled
from storage.errors import Damaged
from storage.publish import ASIDE, describe, make_folder, sync_file, sync_folder
from storage.tables import only_chunk
from storage.text_segments import LINES, NO_TEXT, Segment, SegmentWriter, read_blobs, segments_of

SEGMENTS_MAX = 16  # more would make reading a selection of rows a walk over many files
FOLDED = (
    SEGMENTS_MAX // 2
)  # the smallest ones, so that a text is rewritten a few times only, however large its block grows
IN_USE_LEAST = 4  # a segment of which less than a part in so many is ours is folded too: the rest may be nobody's


class Texts:
    """`folded_share` is how many of the parent's rows, of all, have their texts folded. `segment_of_old` gives the new number of each segment of the parent; those that are folded get that of the turn's own."""

    def __init__(self, crawl: Path, out: Path, cycle: int, parent: Generation):
        self._crawl = crawl
        self._path = out / names.TEXT / names.segment(cycle)
        self._cycle = cycle
        self._parent = parent
        in_use = np.zeros(256, np.int64)
        count_in_use(parent.rows["segment"], in_use)
        if in_use[len(parent.texts) :].any():
            raise Damaged("segment", f"expected numbers of {len(parent.texts)} segments of text, found others")
        self._folded = choose_folded(in_use, [about["texts"] for about in parent.texts.values()])
        self.folded_share = sum(in_use[self._folded]) / max(len(parent), 1)  # of all rows
        kept = [place for place in range(len(parent.texts)) if place not in self._folded]
        self.own = len(kept)
        self.segment_of_old = np.full(max(len(parent.texts), 1), self.own, np.uint8)
        self.segment_of_old[kept] = np.arange(len(kept))
        self._names = list(parent.texts)
        self._kept = {self._names[place]: parent.texts[self._names[place]] for place in kept}
        self._next_line = [parent.texts[name]["first"] for name in self._names]
        make_folder(self._path.parent)
        self._aside = self._path.with_name(f"{ASIDE}{os.getpid()}-{self._path.name}")
        self._aside.unlink(missing_ok=True)
        self._writer = SegmentWriter(self._aside, cycle)
        self._beside = ThreadPoolExecutor(1)
        self._written: Future | None = None

    def append(self, piece: Piece, lines: pa.LargeBinaryArray) -> None:
        """Takes the next piece, and the lines of its new rows."""
        self.settle()
        self._written = self._beside.submit(self._write, piece, lines)

    def settle(self) -> None:
        """Waits until all that was taken is written, and no longer in memory."""
        if self._written is not None:
            self._written.result()
            self._written = None

    def _write(self, piece: Piece, new_lines: pa.LargeBinaryArray) -> None:
        lines, places = [new_lines], [piece.new_at()]
        for number in self._folded:
            here = np.flatnonzero(self._parent.rows["segment"][piece.start : piece.stop] == number)
            start = self._next_line[number]
            self._next_line[number] += len(here)
            lines += Segment(self._crawl / names.TEXT / self._names[number]).read_lines(
                np.arange(start, start + len(here))
            )
            places.append(piece.old_at(here))
        joined = only_chunk(pa.chunked_array(lines, LINES))
        where = np.concatenate(places)
        if len(joined) != len(where):
            raise Damaged(self._crawl / names.TEXT, f"expected texts of {len(where)} URLs, found {len(joined)}")
        self._writer.append(joined.take(pa.array(np.argsort(where))) if len(places) > 1 else joined)

    def close(self, servers: dict[str, np.ndarray], new_robots: dict[int, bytes]) -> dict[str, dict]:
        """Adds robots.txt files, those of folded segments too, and sets their positions; returns the segments in use, in the order of their numbers.

        Durable, and in one step where an earlier attempt of the same turn has written it.
        """
        self.settle()
        self._beside.shutdown()
        folded = [int(Path(self._names[number]).stem) for number in self._folded]
        has_robots = np.flatnonzero(servers["robots_text"] != NO_TEXT)
        moved = has_robots[np.isin(servers["robots_text"][has_robots] >> np.uint64(32), folded)]
        moved = np.array([place for place in moved.tolist() if place not in new_robots], np.int64)
        old = read_blobs(
            self._crawl / names.TEXT, names.segment, servers["robots_text"][moved], servers["robots_length"][moved]
        )
        robots = {**dict(zip(moved.tolist(), old)), **new_robots}
        places = sorted(robots)
        servers["robots_text"][places] = self._writer.close([robots[place] for place in places])
        servers["robots_length"][places] = [len(robots[place]) for place in places]
        texts = dict(self._kept)
        if self._writer.lines or places:
            sync_file(self._aside)
            self._aside.rename(self._path)
            sync_folder(self._path.parent)
            texts[self._path.name] = {**describe(self._path), "texts": self._writer.lines, "first": 0}
        else:
            self._aside.unlink()
        return texts


@compiled("u1[] i8[]")
def count_in_use(segment, in_use):
    """Adds up how many rows use each segment."""
    for number in segment:
        in_use[number] += 1
    return 0


def choose_folded(in_use: np.ndarray, texts: list[int]) -> list[int]:
    """Which segments are written anew into this turn's one, given how many rows use each and how many texts it has."""
    folded = [place for place, lines in enumerate(texts) if lines and in_use[place] * IN_USE_LEAST < lines]
    if len(texts) - len(folded) >= SEGMENTS_MAX:
        rest = [place for place in range(len(texts)) if place not in folded]
        folded += sorted(rest, key=lambda place: (in_use[place], place))[:FOLDED]
    return sorted(folded)


def part_texts(
    texts: dict[str, dict], segment: np.ndarray, start: int, stop: int, robots_text: np.ndarray
) -> tuple[dict[str, dict], np.ndarray]:
    """Of a part [start, stop) of a block's rows: the segments in use with their first lines moved on, and the numbers of the old ones among them."""
    before = np.bincount(segment[:start], minlength=len(texts))
    here = np.bincount(segment[start:stop], minlength=len(texts))
    with_robots = {names.segment(int(number)) for number in segments_of(robots_text)}
    numbers = np.zeros(max(len(texts), 1), np.uint8)
    kept: dict[str, dict] = {}
    for place, (name, about) in enumerate(texts.items()):
        if here[place] or name in with_robots:
            numbers[place] = len(kept)
            kept[name] = {**about, "first": about["first"] + int(before[place])}
    return kept, numbers
