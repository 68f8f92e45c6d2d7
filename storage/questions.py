"""Asks about more keys than fit into memory, all together, and gives the answers in the order of the questions.

The idea is that of DRUM (H.-T. Lee and others, "IRLbot: scaling to 6 billion pages and beyond", WWW 2008): questions
are cut by their top bits into files; the keys of a file are decided on together, in their order, against whatever is
sorted. An answer is a byte. Answers of a file lie in the order in which its questions came. So whoever asks the same
questions once more, in the same order, finds the next answer of each file, and neither search nor sort is needed.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from storage.arrays import Keys, make_mapped
from storage.cut_files import CutFile, CutFiles, Payload

Answers = npt.NDArray[np.uint8]
# Of keys, rising, with their payloads: all questions about a key together, in the order in which they were asked.
Decide = Callable[[Keys, Payload], Answers]


class Questions:
    """`expected`: about how many will come; `at_once`: how many may be in memory."""

    def __init__(self, folder: Path, bits: int, expected: int, at_once: int, low: int = 0):
        self._folder = folder
        self._at_once = max(at_once, 1)
        self._cut = CutFiles(folder, bits, expected, self._at_once, has_payload=True, low=low)
        self.ask = self._cut.add

    def __len__(self) -> int:
        return len(self._cut)

    def settle(self, decide: Decide) -> None:
        """Has all questions answered, file by file; keys rise from call to call."""
        self._answers = make_mapped(self._folder / "answers", "u1", len(self))
        self._at = np.cumsum(self._cut.sizes) - self._cut.sizes
        start = 0
        for file in self._cut.files():
            if file.rows <= self._at_once or not file.bits:
                for keys, payload in file.load(file.rows):
                    assert payload is not None, "questions have a payload"
                    order = np.argsort(keys, kind="stable")
                    self._answers[start + order] = decide(keys[order], payload[order])
            else:
                self._settle_large(file, start, decide)
            file.remove()
            start += file.rows

    def _settle_large(self, file: CutFile, start: int, decide: Decide) -> None:
        inner = Questions(self._folder / f"{file.path.name}.cut", file.bits, file.rows, self._at_once, file.low)
        for questions in file.load(self._at_once):
            inner.ask(*questions)
        inner.settle(decide)
        for keys, _ in file.load(self._at_once):
            self._answers[start : start + len(keys)] = inner.answer(keys)
            start += len(keys)
        inner.close()

    def answer(self, keys: Keys) -> Answers:
        """The answers to the next questions, which were about these keys."""
        return self._cut.take(keys, self._answers, self._at)

    def close(self) -> None:
        (self._folder / "answers").unlink()
        self._folder.rmdir()
