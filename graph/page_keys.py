"""The key of each page, sorted, with the page's number: turns sorted keys into numbers by merging, within a range.

Keys of link sources are there too, without a number: a link to them, or from them, is then known for what it is.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from storage.arrays import Keys, Rows, find_in_sorted, interleave, merge_sorted, open_array, starts_of_runs
from storage.columns import PlainWriter
from storage.external_sort import ExternalSort
from storage.side_by_side import Columns, side_by_side

KEY_BITS = 64
NO_PAGE, LINK_SOURCE = -1, -2
SOURCE_NUMBER = (1 << 32) - 1  # what the file has in place of a number
Shared = tuple[int, int, int]  # a key and the numbers of two URLs that have it


class PageKeys:
    def __init__(self, folder: Path):
        self._paths = folder / "pages.keys.npy", folder / "pages.numbers.npy"

    def write(self, keys: ExternalSort, before: Iterator[Columns]) -> Iterator[Shared]:
        """Writes keys with numbers, those of `before` (keys, numbers u32) among them.

        Yields what is shared by two URLs, of which the first one keeps the key.
        """
        writers = PlainWriter(self._paths[0], "<u8"), PlainWriter(self._paths[1], "<u4")
        shared: list[Shared] = []
        for old, new in side_by_side(before, distinct_keys(keys, shared)):
            found, numbers = old or new
            if old and new:
                found, *rows = merge_sorted(old[0], new[0])
                numbers = interleave(old[1], new[1], *rows)
            writers[0].append(found)
            writers[1].append(numbers)
        for writer in writers:
            writer.close()
        yield from shared

    def pieces(self, at_once: int) -> Iterator[Columns]:
        """All keys with their numbers (u32), in the order of keys."""
        all_keys, numbers = self._open()
        for start in range(0, len(all_keys), at_once):
            yield all_keys[start : start + at_once], numbers[start : start + at_once]

    def find(self, keys: Keys) -> Rows:
        """The number of the page of each key (u64, sorted, each once), or NO_PAGE, or LINK_SOURCE; i64."""
        found = np.full(len(keys), NO_PAGE, np.int64)
        if len(keys):  # opened anew each time, so that what was read does not count as memory in use
            all_keys, numbers = self._open()
            low, high = np.searchsorted(all_keys, keys[[0, -1]])
            rows, among = find_in_sorted(keys, all_keys[low : high + 1])
            found[rows] = numbers[low + among]
            found[found == SOURCE_NUMBER] = LINK_SOURCE
        return found

    def find_all(self, keys: Keys) -> Rows:
        """The same for keys that are sorted and may repeat."""
        starts = starts_of_runs(keys)
        return np.repeat(self.find(keys[starts]), np.diff(np.append(starts, len(keys))))

    def _open(self) -> tuple[Keys, Keys]:
        return open_array(self._paths[0], "<u8"), open_array(self._paths[1], "<u4")


def distinct_keys(keys: ExternalSort, shared: list[Shared]) -> Iterator[Columns]:
    """Keys with numbers; of a key that URLs share only the first one, and what is shared goes to `shared`."""
    for piece in keys.read():  # equal keys are in one piece
        found, numbers = piece.numbers, piece.payload
        is_first = np.append(True, found[1:] != found[:-1])
        if not is_first.all():
            order = np.lexsort((numbers, found))
            found, numbers = found[order], numbers[order]
            shared += [
                (int(found[row]), int(numbers[row - 1]), int(numbers[row]))
                for row in np.flatnonzero(~is_first & (numbers != SOURCE_NUMBER)).tolist()
            ]
            found, numbers = found[is_first], numbers[is_first]
        yield found, numbers
