"""A report as one HTML file: it loads nothing and runs nothing, whatever the texts of the web in it say."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from html import escape

from contract.units import moment
from examine.report.charts import draw_svg
from examine.report.figures import Figures
from examine.report.sections import Cell, Part, Section
from examine.report.words import Words

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # no script, no picture, no font, no form from anywhere
MEASURED = re.compile(r"[0-9.,]+(%| [kMGT]?B)")  # a number with its unit
LONG_FROM = 40  # characters: a longer cell may break within a word, as URLs have no blanks
NUMBER = ' class="number"'
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem; margin: 0 auto;
  padding: 1.5rem; }
h1 { font-size: 1.8rem; margin: 0 0 .3rem; }
h2 { font-size: 1.35rem; border-top: 2px solid #1a1a1a; padding-top: .8rem; margin-top: 2.5rem; }
a { color: #004b87; }
nav ul { columns: 3 14rem; padding-left: 1.2rem; margin: 1rem 0; }
figure { margin: 1.5rem 0; }
figcaption, caption { font-weight: 600; text-align: left; margin-bottom: .5rem; }
caption { white-space: nowrap; }
svg { max-width: 100%; height: auto; display: block; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-size: .9rem; }
th, td { padding: .2rem 1.2rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #bbb; }
th { border-bottom: 2px solid #666; }
.long { overflow-wrap: anywhere; min-width: 15rem; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th.number { white-space: normal; }
.note { font-size: .9rem; color: #444; }
.partial { border: 3px solid #9c2a00; padding: .8rem 1rem; margin: 1rem 0; }
@media screen and (max-width: 48rem) { /* pictures keep a size at which their words can be read */
  body { padding: .8rem; }
  figure svg { max-width: none; width: 40rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 11pt; }
  nav { display: none; }
  .wide { overflow: visible; }
  figure, tr { break-inside: avoid; }
  h2, figcaption, section > p { break-after: avoid; }
  thead { display: table-header-group; }
}
"""


def make_page(of: Figures, sections: list[Section], words: Words) -> str:
    name, now = escape(of.status["crawl"]), escape(moment(of.status["now_ms"]))
    links = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in sections)
    heading = escape(words("Report of the crawl"))
    head = (
        f'<!doctype html>\n<html lang="{words.language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{heading} {name}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<header>\n<h1>{heading} {name}</h1>\n"
        f'<p class="note">{escape(words("As of"))} {now}. {escape(words("Crawl"))} {escape(of.status["crawl_id"])}, '
        f"{escape(words('began'))} {escape(moment(of.status['began_at_ms']))}.</p>\n"
    )
    body = "".join(show_section(section, words, partial(draw_inline, words=words)) for section in sections)
    head += f"{warn_of_gaps(of, words)}<nav><ul>{links}</ul></nav>\n</header>\n"
    return f"{head}<main>\n{body}</main>\n</body>\n</html>\n"


def warn_of_gaps(of: Figures, words: Words) -> str:
    if not of.left_out:
        return ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in of.left_out)
    told = words("This report is partial: what could not be read is left out of its sums.")
    return f'<div class="partial" role="note"><strong>{escape(told)}</strong><ul>{notes}</ul></div>\n'


def show_section(section: Section, words: Words, draw: Callable[[Part], str]) -> str:
    """`draw` gives the element of a part's picture."""
    text = f"<p>{escape(section.text)}</p>\n" if section.text else ""
    parts = "".join(show_part(part, words, draw) for part in section.parts)
    return f'<section id="{section.name}">\n<h2>{escape(section.title)}</h2>\n{text}{parts}</section>\n'


def show_part(part: Part, words: Words, draw: Callable[[Part], str]) -> str:
    """The picture with the table of its numbers; the caption belongs to the first of them."""
    caption = escape(part.caption)
    note = f'<p class="note">{escape(part.note)}</p>\n' if part.note else ""
    begin = f'<div class="wide" id="part-{part.name}">'
    if part.chart is None:
        return f"{begin}{show_table(part, words, f'<caption>{caption}</caption>')}{note}</div>\n"
    figure = f"<figure><figcaption>{caption}</figcaption>{draw(part)}</figure>"
    return f"{begin}{figure}\n{show_table(part, words, '')}{note}</div>\n"


def draw_inline(part: Part, words: Words) -> str:
    return draw_svg(part.chart, words).replace("<svg ", f'<svg role="img" aria-label="{escape(part.caption)}" ', 1)


def show_table(part: Part, words: Words, caption: str) -> str:
    numeric = [bool(part.rows) and all(is_number(row[at]) for row in part.rows) for at in range(len(part.headers))]
    body = "".join(f"<tr>{show_row(row, numeric, words)}</tr>\n" for row in part.rows)
    if not part.rows:
        body = f'<tr><td colspan="{len(part.headers)}">{escape(words("none"))}</td></tr>'
    heads = "".join(
        f'<th scope="col"{NUMBER if is_right else ""}>{escape(header)}</th>'
        for header, is_right in zip(part.headers, numeric)
    )
    return f"<table>{caption}<thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table>\n"


def show_row(row: Sequence[Cell], numeric: list[bool], words: Words) -> str:
    """`numeric`: whether a column has numbers only, which stand at its right."""
    cells = ("-" if cell is None else cell if isinstance(cell, str) else words.number(cell) for cell in row)
    kinds = (NUMBER if is_right else "" for is_right in numeric)
    return "".join(f"<td{kind or mark_long(cell)}>{escape(cell)}</td>" for cell, kind in zip(cells, kinds))


def mark_long(cell: str) -> str:
    return ' class="long"' if len(cell) > LONG_FROM else ""


def is_number(cell: Cell) -> bool:
    return not isinstance(cell, str) or MEASURED.fullmatch(cell) is not None
