"""Conditions on rows, such as `status>=400` or `type=text/html`: what bin/show --where takes."""

import operator
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple

from contract.errors import Usage
from examine.tables.layout import as_text

CONDITION = re.compile(r"\s*([^\s=!<>~]+)\s*(<=|>=|!=|=|<|>|~)\s*(.*?)\s*", re.S)
COMPARE: dict[str, Callable] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Condition(NamedTuple):
    """Holds for a row whose value compares so: numbers as numbers, all else as text; `~`: contains the text."""

    column: str
    comparison: str
    value: str

    def holds(self, row: dict) -> bool:
        if self.column not in row:
            return False
        found = row[self.column]
        if self.comparison == "~":
            return self.value in as_text(found)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return COMPARE[self.comparison](found, self._number())
        return COMPARE[self.comparison](as_text(found), self.value)

    def _number(self) -> int | float:
        try:
            return int(self.value) if self.value.lstrip("-").isdecimal() else float(self.value)
        except ValueError:
            raise Usage(f"--where: expected a number to compare {self.column} with, found {self.value!r}") from None


def parse_condition(text: str) -> Condition:
    found = CONDITION.fullmatch(text)
    if found is None:
        raise Usage(f"--where: expected a column, one of = != < <= > >= ~ and a value, found {text!r}")
    return Condition(*found.groups())


def expect_columns(wanted: list[str], known: list[str]) -> None:
    """Usage where a wanted column is none of those that the rows have."""
    for name in wanted:
        if known and name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"the columns are {', '.join(known)}"
            raise Usage(f"expected a column, found {name}: {hint}")
