"""Tables of a study, in Markdown: they read well as plain text too."""

from collections.abc import Sequence


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right; cells are padded to one width per column."""
    cells = [list(headings), *map(list, rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(headings))]

    def line(row: Sequence[str]) -> str:
        first, *others = (cell.ljust(w) if not at else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths)))
        return f"| {' | '.join((first, *others))} |"

    rule = f"| {'-' * widths[0]} | {' | '.join('-' * (width - 1) + ':' for width in widths[1:])} |"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])
