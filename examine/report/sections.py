"""What a section of a report consists of: a title, sentences, and parts, each a picture over a table of its numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from contract.terminal import make_plain
from examine.report.charts import Chart, bars, columns
from examine.report.sums import OTHERS
from examine.report.words import Words

TABLE_ROWS_MAX = 15
LABEL_MAX = 40  # characters beside a bar, for which there is room; the table has the whole text

Cell = str | int | float | None


@dataclass
class Part:
    """A table, and the picture above it where there is something to draw."""

    name: str  # of the file of the picture
    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    chart: Chart | None = None
    note: str = ""


@dataclass
class Section:
    name: str  # in the address: #name
    title: str
    text: str = ""
    parts: list[Part] = field(default_factory=list)


def plain(text: object) -> str:
    """Text of the web on one line, with visible escapes."""
    return make_plain(str(text))


def shorten(text: str) -> str:
    """Its begin and its end: URLs of one server begin alike."""
    half = LABEL_MAX // 2
    return text if len(text) <= LABEL_MAX else text[: half - 1] + OTHERS + text[-half:]


def thin_out(rows: Sequence[Sequence[Cell]], words: Words) -> tuple[Sequence[Sequence[Cell]], str]:
    """At most TABLE_ROWS_MAX of the rows, evenly chosen with the last one, and what to say about that."""
    if len(rows) <= TABLE_ROWS_MAX:
        return rows, ""
    chosen = [rows[round(number * (len(rows) - 1) / (TABLE_ROWS_MAX - 1))] for number in range(TABLE_ROWS_MAX)]
    shown = words("{shown} of {all} rows, evenly chosen; the picture has all.")
    return chosen, shown.format(shown=TABLE_ROWS_MAX, all=words.number(len(rows)))


def share_part(
    name: str, caption: str, header: str, quantity: str, counts: Sequence[tuple[str, int]], words: Words
) -> Part:
    """Bars of counts by word, over a table with their shares."""
    told = [(plain(word) or words("(none)"), number) for word, number in counts]
    told = [(words("all others") if word == OTHERS else word, number) for word, number in told]
    total = sum(number for _, number in told)
    rows = [(word, number, words.share(number / max(1, total))) for word, number in told]
    drawn = bars([(shorten(word), number) for word, number in told], quantity, words, total) if told else None
    return Part(name, caption, (header, quantity, words("share")), rows, drawn)


def bins_part(
    name: str, caption: str, label: str, quantity: str, rows: Sequence[tuple[str, int]], words: Words
) -> Part:
    """Upright bars of a distribution, over a table with shares."""
    total = sum(number for _, number in rows)
    told = [(bin_name, number, words.share(number / max(1, total))) for bin_name, number in rows]
    drawn = columns(rows, label, quantity, words) if rows else None
    return Part(name, caption, (label, quantity, words("share")), told, drawn)
