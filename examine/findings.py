"""What a check found: how many statements hold, and each that does not, with its file and row."""

from contextlib import contextmanager

from contract.errors import BadConfiguration
from storage.errors import Damaged, UnknownFormat

SHOWN_PER_CLAIM = 5


class Findings:
    def __init__(self):
        self.checked: dict[str, int] = {}
        self.wrong: dict[str, list[str]] = {}

    def hold(self, claim: str, times: int = 1) -> None:
        self.checked[claim] = self.checked.get(claim, 0) + times

    def deny(self, claim: str, path, what: str, row: int | None = None) -> None:
        self.wrong.setdefault(claim, []).append(f"{path}{'' if row is None else f' row {row}'}: {what}")

    def equal(self, claim: str, path, left, right, meaning: str) -> None:
        self.hold(claim)
        if left != right:
            self.deny(claim, path, f"{meaning}: {left} against {right}")

    def rows(self, claim: str, path, bad_mask, what: str) -> None:
        """Counts one statement about every row of a file; the mask (numpy bool) marks rows that break it."""
        self.hold(claim, len(bad_mask))
        for row in bad_mask.nonzero()[0][:SHOWN_PER_CLAIM].tolist():
            self.deny(claim, path, what, row)

    def sorted_pairs(self, claim: str, path, first, second) -> None:
        """Two columns (u64) are sorted by both, and each pair occurs once."""
        rising = (first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (second[1:] > second[:-1]))
        self.rows(claim, path, ~rising, "not above the row before")

    @contextmanager
    def reading(self, claim: str, path=""):
        """A file that cannot be read, or does not hold what it should, is a finding; the check continues."""
        try:
            yield
        except (Damaged, UnknownFormat, BadConfiguration) as error:
            self.wrong.setdefault(claim, []).append(str(error))
        except FileNotFoundError as error:
            self.deny(claim, error.filename, "expected a file, found none")
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            self.deny(claim, path, f"expected what docs/formats.md describes, found {error!r}")

    def report(self) -> list[str]:
        lines = [
            f"ok     {claim}: {number:,} checked" for claim, number in self.checked.items() if claim not in self.wrong
        ]
        for claim, wrong in self.wrong.items():
            lines.append(f"WRONG  {claim}: {len(wrong):,} found")
            lines += [f"         {line}" for line in wrong[:SHOWN_PER_CLAIM]]
        return lines
