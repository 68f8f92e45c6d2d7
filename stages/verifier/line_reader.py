"""Texts of a generation's rows, read in the order of rows: the n-th row of a segment has its n-th line."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from contract import names
from contract.generation import Generation
from storage.errors import Damaged
from storage.tables import only_chunk
from storage.text_segments import LINES, Segment


class LineReader:
    """Reads lines of a generation's rows in the order of rows, each line once: the next rows have the next lines."""

    def __init__(self, crawl: Path, generation: Generation):
        self._folder = crawl / names.TEXT
        self._segment = generation.rows["segment"]
        self._names = list(generation.texts)
        self._next_line = [about["first"] for about in generation.texts.values()]

    def read(self, numbers: Iterable[int], start: int, stop: int) -> tuple[np.ndarray, pa.LargeBinaryArray]:
        """(rows of these segments among [start, stop), counted from `start`, by segment; their lines)."""
        rows, lines = [np.empty(0, np.int64)], []
        for number in numbers:
            here = np.flatnonzero(self._segment[start:stop] == number)
            first = self._next_line[number]
            self._next_line[number] += len(here)
            if len(here):
                wanted = np.arange(first, first + len(here))
                lines += Segment(self._folder / self._names[number]).read_lines(wanted)
            rows.append(here)
        joined = only_chunk(pa.chunked_array(lines, LINES))
        found = np.concatenate(rows)
        if len(joined) != len(found):
            raise Damaged(self._folder, f"expected texts of {len(found)} URLs, found {len(joined)}")
        return found, joined

    def read_all(self, start: int, stop: int) -> pa.LargeBinaryArray:
        """The lines of the rows [start, stop), in their order."""
        rows, lines = self.read(range(len(self._names)), start, stop)
        if len(rows) != stop - start:
            raise Damaged("segment", f"expected numbers of {len(self._names)} segments of text, found others")
        return lines if (rows[1:] > rows[:-1]).all() else lines.take(pa.array(np.argsort(rows)))
