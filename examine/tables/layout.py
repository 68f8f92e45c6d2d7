"""Prints rows as a table that fits the terminal, as CSV, or as one JSON object per line.

On a terminal, wide columns are cut, columns at the end that find no room are left out and named below the table, and
large numbers get separators. Without a terminal nothing is cut and numbers are plain.
"""

import csv
import json
import math
import sys
import unicodedata
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import chain, count, islice

from contract.lines import say, width_of
from contract.terminal import make_plain

MEASURED = 200  # rows that decide the widths of the columns
NARROW = 3  # a column is cut to no less than the third part of the terminal
PADDED = 80  # without a terminal longer values are whole, but no other row is padded to their length
DETAIL_MAX = 300  # characters of a value in a list of fields, on a terminal
GAP = "  "
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
GROUPED_FROM = 10_000  # smaller numbers, such as years and statuses, have no separators
NAMES = ("key", "cycle", "block", "offset", "row", "fingerprint")  # numbers of columns so named are names
FORMS = ("table", "csv", "json")

Row = Sequence[object]


def add_forms(parser: ArgumentParser) -> None:
    """The options --csv and --json, as `form`; without one of them it is `table`."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--csv", action="store_const", const="csv", dest="form", default="table", help="print CSV")
    forms.add_argument("--json", action="store_const", const="json", dest="form", help="print one JSON object per line")


def print_rows(columns: Sequence[str], rows: Iterable[Row], form: str) -> int:
    """Prints all rows; returns their number."""
    if form == "json":
        return print_json(columns, rows)
    if form == "csv":
        return print_csv(columns, rows)
    return print_table(columns, rows)


def print_json(columns: Sequence[str], rows: Iterable[Row]) -> int:
    number = 0
    for row in rows:
        print(json.dumps({name: as_json(value) for name, value in zip(columns, row)}))
        number += 1
    return number


def print_csv(columns: Sequence[str], rows: Iterable[Row]) -> int:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    number = 0
    for row in rows:
        writer.writerow([as_text(value) for value in row])
        number += 1
    return number


def print_table(columns: Sequence[str], rows: Iterable[Row]) -> int:
    width = width_of(sys.stdout)
    rows = iter(rows)
    first = list(islice(rows, MEASURED))
    grouped = [width is not None and not name.endswith(NAMES) for name in columns]
    right = [is_number([row[index] for row in first]) for index in range(len(columns))]
    cells = [[cell(value, group) for value, group in zip(row, grouped)] for row in first]
    columns = list(map(make_plain, columns))
    widths = [max(map(cells_of, column)) for column in zip(columns, *cells)]
    widths = [min(size, PADDED) for size in widths] if width is None else fit_widths(widths, width)
    left_out = columns[len(widths) :]
    print_cells(columns, widths, right, width)
    print(GAP.join("-" * size for size in widths))
    number = 0
    later = ([cell(value, group) for value, group in zip(row, grouped)] for row in rows)
    for row in chain(cells, later):
        print_cells(row, widths, right, width)
        number += 1
    if left_out:
        say(f"(no room for {', '.join(left_out)}: choose columns, or use --json or --csv)")
    return number


def print_details(row: dict[str, object]) -> None:
    """One row with many fields: one line per field; fields of fields have their names joined by dots."""
    is_cut = width_of(sys.stdout) is not None
    fields = dict(flatten(row))
    longest = max(map(len, fields), default=0)
    for name, value in fields.items():
        text = cell(value, False)
        say(f"{name:{longest}}{GAP}{cut(text, DETAIL_MAX) if is_cut else text}".rstrip(), indent=longest + len(GAP))


def flatten(row: dict, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{make_plain(str(name))}", value


def print_cells(row: Sequence[str], widths: list[int], right: list[bool], width: int | None) -> None:
    parts = []
    for text, size, is_right in zip(row, widths, right):
        text = text if width is None else cut(text, size)
        padding = " " * (size - cells_of(text))
        parts.append(padding + text if is_right else text + padding)
    print(GAP.join(parts).rstrip())


def fit_widths(widths: list[int], width: int) -> list[int]:
    """The widths that fit: columns at the end are left out, and then the widest ones are cut."""
    kept, least = list(widths), width // NARROW
    while len(kept) > 1 and sum(min(size, least) for size in kept) + len(GAP) * (len(kept) - 1) > width:
        kept.pop()
    while sum(kept) + len(GAP) * (len(kept) - 1) > width and max(kept) > 1:
        kept[kept.index(max(kept))] -= 1
    return kept


def is_number(values: Iterable[object]) -> bool:
    kinds = {type(value) for value in values if value is not None}
    return bool(kinds) and kinds <= {int, float, Decimal}


def cell(value: object, is_grouped: bool) -> str:
    """The value on one line, without control characters."""
    if is_grouped and isinstance(value, int) and not isinstance(value, bool) and abs(value) >= GROUPED_FROM:
        return f"{value:,}"
    if is_grouped and isinstance(value, float) and math.isfinite(value):
        return f"{value:,.1f}" if abs(value) >= GROUPED_FROM else f"{value:.5g}"
    return make_plain(as_text(value))


def as_text(value: object) -> str:
    """The value as text; what is not known (NULL) is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode() if is_ascii_text(value) else value.hex()
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}" + (f".{value.microsecond // 1000:03d}" if value.microsecond else "")
    if isinstance(value, list | tuple):
        return ", ".join(map(as_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {as_text(item)}" for name, item in value.items())
    return str(value)


def is_ascii_text(value: bytes) -> bool:
    return value.isascii() and "".join(value.decode().split()).isprintable()


def as_json(value: object) -> object:
    """The value as JSON has it: times in ISO 8601, bytes as text or hexadecimal, no infinite numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {as_text(name): as_json(item) for name, item in value.items()}
    return value if value is None or isinstance(value, bool | int | str) else as_text(value)


def cut(text: str, width: int) -> str:
    """The beginning of a text that fills at most so many columns."""
    if cells_of(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += cells_of(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + ELLIPSIS


def cells_of(text: str) -> int:
    """Columns of a terminal that a printable text fills."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def unique_names(names: Sequence[str]) -> Iterator[str]:
    """The names, each later one of the same name with a number that no other has: `url`, `url_2`."""
    taken, used = set(names), set[str]()
    for name in names:
        free = (f"{name}_{number}" for number in count(2))
        unique = next(one for one in free if one not in taken) if name in used else name
        used.add(unique)
        taken.add(unique)
        yield unique
