"""Pictures of a report: a chart as a description of Vega-Lite, which vl-convert draws as SVG or PNG without a browser.

Nothing is told by colour alone: bars have their numbers, lines have dashes of their own, stages have their letter.
The only module that imports altair. vl-convert runs inside this process and loads nothing.
"""

import io
import re
from collections.abc import Sequence
from itertools import count

import altair as alt

from contract.terminal import make_plain
from examine.report.words import Words
from examine.tables.layout import unique_names

Chart = alt.LayerChart
WIDTH, HEIGHT, ROW_HEIGHT = 820, 250, 22
COLUMN_MAX = 90  # pixels of an upright bar with its gap
LETTER_WIDTH = 7  # pixels of a letter of a label, about
LABEL_MAX = 260  # pixels of a label beside a bar
# Of Okabe and Ito (2008), told apart with any colour sight; their lightness differs, for print without colour.
COLOURS = ("#0072B2", "#D55E00", "#000000", "#56B4E9", "#E69F00")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
INK, GRID = "#1a1a1a", "#d9d9d9"
LETTER_FROM = 0.02  # of the time that the chart shows: a shorter bar has no room for its letter
PNG_SCALE = 2
TIME_FORMATS = ((604_800, "%Y-%m-%d"), (7_200, "%m-%d %H:%M"), (600, "%H:%M"), (8, "%H:%M:%S"), (0, "%H:%M:%S.%L"))
_numbers = count(1)


def values_of(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> alt.Data:
    """Texts become plain here: a character that XML does not allow would end vl-convert, and with it this process."""
    return alt.Data(values=[dict(zip(columns, map(make_safe, row))) for row in rows])


def make_safe(value: object) -> object:
    return make_plain(value) if isinstance(value, str) else value


def bars(rows: Sequence[tuple[str, float]], quantity: str, words: Words, total: float = 0) -> Chart:
    """Horizontal bars, in the order of the rows, each with its number, and its share of a total."""

    def tell(value: float) -> str:
        return words.number(value) + (f"  ({words.share(value / total)})" if total else "")

    # Bars of one label would lie on each other, as of long URLs that were shortened alike.
    labels = unique_names([label for label, _ in rows])
    told = [(label, value, tell(value)) for label, (_, value) in zip(labels, rows)]
    base = alt.Chart(values_of(("label", "value", "told"), told)).encode(
        y=alt.Y(
            "label:N",
            sort=None,
            title=None,
            axis=alt.Axis(labelLimit=LABEL_MAX, labelPadding=6, ticks=False, domain=False),
        ),
        x=alt.X(
            "value:Q",
            title=quantity,
            scale=alt.Scale(domainMax=1.25 * max(value for _, value in rows) or 1),
            axis=alt.Axis(tickCount=6),
        ),
    )
    numbers = base.mark_text(align="left", dx=4, color=INK).encode(text="told:N")
    return (base.mark_bar(color=COLOURS[0]) + numbers).properties(
        width=WIDTH - LABEL_MAX, height=ROW_HEIGHT * len(rows)
    )


def columns(rows: Sequence[tuple[str, float]], label: str, quantity: str, words: Words) -> Chart:
    """Upright bars of a distribution, in the order of its bins, each with its number."""
    told = [(name, value, words.number(value)) for name, value in rows]
    width = min(WIDTH, COLUMN_MAX * len(rows))
    is_crowded = LETTER_WIDTH * max(len(name) for name, _ in rows) > width / len(rows)
    base = alt.Chart(values_of(("label", "value", "told"), told)).encode(
        x=alt.X("label:N", sort=None, title=label, axis=alt.Axis(labelAngle=-35 if is_crowded else 0)),
        y=alt.Y("value:Q", title=quantity),
    )
    numbers = base.mark_text(dy=-7, color=INK).encode(text="told:N")
    return (base.mark_bar(color=COLOURS[0]) + numbers).properties(width=width, height=HEIGHT)


def lines(
    series: dict[str, Sequence[tuple[float, float]]],
    quantity: str,
    words: Words,
    *,
    by: str = "",
    limit: float | None = None,
    limit_name: str = "",
) -> Chart:
    """Lines over time (milliseconds since 1970), or over the numbers named `by`; the limit is a dashed rule."""
    rows = [(name, at, value) for name, points in series.items() for at, value in points]
    names, is_alone = list(series), max(map(len, series.values())) == 1
    if by:
        x = alt.X("at:Q", title=by, scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(format="d", tickMinStep=1))
    else:
        x = time_axis("at:T", [at for _, at, _ in rows], words)
    style = {"point": True} if is_alone or len(rows) < 20 * len(names) else {}
    chart = alt.Chart(values_of(("series", "at", "value"), rows)).mark_line(strokeWidth=2, **style)
    chart = chart.encode(x=x, y=alt.Y("value:Q", title=quantity))
    if len(names) > 1:
        legend = alt.Legend(
            title=None, orient="bottom", symbolType="stroke", symbolSize=400, symbolStrokeWidth=2, labelLimit=LABEL_MAX
        )
        chart = chart.encode(
            color=alt.Color("series:N", scale=alt.Scale(domain=names, range=COLOURS[: len(names)]), legend=legend),
            strokeDash=alt.StrokeDash(
                "series:N", scale=alt.Scale(domain=names, range=list(DASHES[: len(names)])), legend=legend
            ),
        )
    else:
        chart = chart.encode(color=alt.value(COLOURS[0]))
    layers = [chart]
    if limit is not None:
        at = alt.Chart(values_of(("value", "name"), [(limit, limit_name)])).encode(y="value:Q")
        layers.append(at.mark_rule(color=COLOURS[1], strokeDash=[6, 3], strokeWidth=2))
        for halo in ({"stroke": "white", "strokeWidth": 4}, {}):  # the name stays readable where a line crosses it
            text = at.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=INK, **halo)
            layers.append(text.encode(x=alt.value(0), text="name:N"))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def gantt(rows: Sequence[tuple[str, str, int, int]], stages: Sequence[str], words: Words) -> Chart:
    """Bars of (row, stage, begin, end), with the first letter of the stage where there is room."""
    span = max(1, max(row[3] for row in rows) - min(row[2] for row in rows))
    told = [(*row, row[1][0].upper() if row[3] - row[2] >= LETTER_FROM * span else "") for row in rows]
    fills = ("#8c8c8c", "#56B4E9", "#F0E442", "#E69F00")  # light enough for a dark letter
    base = alt.Chart(values_of(("row", "stage", "begin", "end", "letter"), told)).encode(
        y=alt.Y("row:N", sort=None, title=words("cycle (block)")),
        x=time_axis("begin:T", [moment for row in rows for moment in row[2:]], words),
        x2="end:T",
    )
    painted = base.mark_bar(stroke=INK, strokeWidth=0.6).encode(
        color=alt.Color(
            "stage:N",
            scale=alt.Scale(domain=list(stages), range=list(fills[: len(stages)])),
            legend=alt.Legend(title=None, orient="bottom"),
        )
    )
    letters = base.mark_text(align="left", dx=2, fontSize=10, color=INK).encode(text="letter:N")
    height = ROW_HEIGHT * len({row[0] for row in rows})
    return (painted + letters).properties(width=WIDTH, height=height)


def time_axis(field: str, moments_ms: Sequence[float], words: Words) -> alt.X:
    """An axis in UTC with as much of the date and time as its span needs."""
    span_s = (max(moments_ms) - min(moments_ms)) / 1000
    shown = next((shown for least_s, shown in TIME_FORMATS if span_s >= least_s), TIME_FORMATS[-1][1])
    axis = alt.Axis(format=shown, tickCount=7, labelOverlap=True)
    return alt.X(field, title=words("time (UTC)"), scale=alt.Scale(type="utc"), axis=axis)


def configured(chart: Chart, words: Words) -> Chart:
    """With the font, colours and numbers of all charts."""
    return (
        chart.configure(font="sans-serif", background="white", locale=words.chart_locale(), padding=6)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK, titleColor=INK, gridColor=GRID, labelFontSize=12, titleFontSize=12, titleFontWeight="normal"
        )
        .configure_axisY(titleAngle=0, titleAlign="left", titleAnchor="end", titleY=-12, titleX=-20)
        .configure_legend(labelColor=INK, labelFontSize=12)
        .configure_text(fontSize=11)
    )


def draw_svg(chart: Chart, words: Words) -> str:
    """The picture as an element of an HTML page, with ids that no other picture has."""
    stream = io.StringIO()
    configured(chart, words).save(stream, format="svg")
    number = next(_numbers)
    svg = stream.getvalue()
    for name in set(re.findall(r' id="([^"]+)"', svg)):
        svg = svg.replace(f' id="{name}"', f' id="p{number}-{name}"').replace(
            f"url(#{name})", f"url(#p{number}-{name})"
        )
    return svg


def draw_png(chart: Chart, words: Words, note: str = "") -> bytes:
    """The picture alone, with a note above it where there is something to say."""
    stream = io.BytesIO()
    if note:
        chart = chart.properties(title=alt.Title(make_plain(note), anchor="start", fontSize=12, color=COLOURS[1]))
    configured(chart, words).save(stream, format="png", scale_factor=PNG_SCALE)
    return stream.getvalue()
