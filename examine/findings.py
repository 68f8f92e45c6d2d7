"""What a check found: a count of what holds, and each thing that does not, with its file and row."""

from contextlib import contextmanager

from contract.errors import BadConfiguration
from storage.errors import Damaged, UnknownFormat

SHOWN_OF_A_KIND = 5


class Findings:
    def __init__(self):
        self.checked: dict[str, int] = {}
        self.wrong: dict[str, list[str]] = {}

    def hold(self, claim: str, times: int = 1) -> None:
        self.checked[claim] = self.checked.get(claim, 0) + times

    def deny(self, claim: str, place, what: str, row: int | None = None) -> None:
        self.wrong.setdefault(claim, []).append(f"{place}{'' if row is None else f' row {row}'}: {what}")

    def equal(self, claim: str, place, left, right, meaning: str) -> None:
        self.hold(claim)
        if left != right:
            self.deny(claim, place, f"{meaning}: {left} against {right}")

    def rows(self, claim: str, place, bad_mask, what: str) -> None:
        """Counts one statement about every row of a file; the mask (numpy bool) marks rows that break it."""
        self.hold(claim, len(bad_mask))
        for row in bad_mask.nonzero()[0][:SHOWN_OF_A_KIND].tolist():
            self.deny(claim, place, what, row)

    @contextmanager
    def reading(self, claim: str, place=""):
        """A file that cannot be read, or does not hold what it should, is a finding, not the end of the check."""
        try:
            yield
        except (Damaged, UnknownFormat, BadConfiguration) as error:
            self.wrong.setdefault(claim, []).append(str(error))
        except FileNotFoundError as error:
            self.deny(claim, error.filename, "expected a file, found none")
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            self.deny(claim, place, f"expected what docs/formats.md describes, found {error!r}")

    def report(self) -> list[str]:
        lines = [
            f"ok     {claim}: {number:,} checked" for claim, number in self.checked.items() if claim not in self.wrong
        ]
        for claim, places in self.wrong.items():
            lines.append(f"WRONG  {claim}: {len(places):,} found")
            lines += [f"         {place}" for place in places[:SHOWN_OF_A_KIND]]
        return lines
