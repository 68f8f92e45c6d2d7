"""The key of each page, sorted, with the page's number: turns sorted keys into numbers by merging, within a range."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from storage.arrays import Keys, Rows, find_in_sorted, open_array, starts_of_runs
from storage.columns import PlainWriter
from storage.external_sort import ExternalSort

NO_PAGE = -1
Shared = tuple[int, int, int]  # a key and the numbers of two URLs that have it


class PageKeys:
    def __init__(self, folder: Path):
        self._paths = folder / "keys.npy", folder / "numbers.npy"

    def write(self, keys: ExternalSort) -> Iterator[Shared]:
        """Writes keys with numbers; yields what is shared by two URLs, of which the first one keeps the key."""
        writers = PlainWriter(self._paths[0], "<u8"), PlainWriter(self._paths[1], "<u4")
        for piece in keys.read():  # equal keys are in one piece
            found, numbers = piece.numbers, piece.payload
            is_first = np.append(True, found[1:] != found[:-1])
            if not is_first.all():
                order = np.lexsort((numbers, found))
                found, numbers = found[order], numbers[order]
                for row in np.flatnonzero(~is_first).tolist():
                    yield int(found[row]), int(numbers[row - 1]), int(numbers[row])
                found, numbers = found[is_first], numbers[is_first]
            writers[0].append(found)
            writers[1].append(numbers)
        for writer in writers:
            writer.close()

    def find(self, keys: Keys) -> Rows:
        """The number of the page of each key (u64, sorted, each once), NO_PAGE where there is none; i64."""
        found = np.full(len(keys), NO_PAGE, np.int64)
        if len(keys):  # opened anew each time, so that what was read does not count as memory in use
            all_keys, numbers = open_array(self._paths[0], "<u8"), open_array(self._paths[1], "<u4")
            low, high = np.searchsorted(all_keys, keys[[0, -1]])
            rows, among = find_in_sorted(keys, all_keys[low : high + 1])
            found[rows] = numbers[low + among]
        return found

    def find_all(self, keys: Keys) -> Rows:
        """The same for keys that are sorted and may repeat."""
        starts = starts_of_runs(keys)
        return np.repeat(self.find(keys[starts]), np.diff(np.append(starts, len(keys))))
