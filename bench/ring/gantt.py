"""A Gantt chart of a run, from its journal: which stage of which cycle worked when.

`lay_out` is pure; `draw` makes a PNG of it with pillow.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.ring.journal import Attempt
from contract import names
from examine.rates import union

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 1_400, 90, 20, 70, 50
ROW, BAR = 20, 14  # heights
ROWS_MAX = 60  # with more cycles, the rows are blocks
TICKS = 10  # about so many on the axis
STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1_800, 3_600)
COLOURS = {names.SCHEDULER: "#9467bd", names.FETCHER: "#1f77b4", names.EXTRACTOR: "#2ca02c", names.VERIFIER: "#ff7f0e"}
BUSY_ROW = "fetching"  # the first row: whether any fetcher works


class Bar(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float
    stage: str


class Chart(NamedTuple):
    width: int
    height: int
    rows: list[str]  # labels, from the top
    bars: list[Bar]
    ticks: list[tuple[float, str]]  # x, label


def lay_out(attempts: Sequence[Attempt]) -> Chart:
    """One row per cycle, or per block where there are many cycles; above them whether any fetcher works."""
    begin, end = min(attempt.begin_ms for attempt in attempts), max(attempt.end_ms for attempt in attempts)
    by_cycle = len({attempt.cycle for attempt in attempts}) <= ROWS_MAX

    def label_of(attempt: Attempt) -> str:
        return f"{attempt.cycle} (R_{attempt.block})" if by_cycle else f"R_{attempt.block}"

    def to_x(at_ms: float) -> float:
        return LEFT + (at_ms - begin) / max(1, end - begin) * (WIDTH - LEFT - RIGHT)

    def to_bar(row: int, begin_ms: int, end_ms: int, stage: str) -> Bar:
        top = TOP + row * ROW + (ROW - BAR) / 2
        return Bar(to_x(begin_ms), top, max(to_x(end_ms), to_x(begin_ms) + 1), top + BAR, stage)

    order = sorted(attempts, key=lambda attempt: attempt.begin_ms if by_cycle else attempt.block)
    rows = list(dict.fromkeys([BUSY_ROW, *map(label_of, order)]))
    number = {label: row for row, label in enumerate(rows)}
    fetches = union((one.begin_ms, one.end_ms) for one in attempts if one.stage == names.FETCHER)
    bars = [to_bar(0, *interval, names.FETCHER) for interval in fetches]
    bars += [to_bar(number[label_of(one)], one.begin_ms, one.end_ms, one.stage) for one in attempts]
    step_s = next((step for step in STEPS_S if (end - begin) / 1000 / step <= TICKS), STEPS_S[-1])
    count = int((end - begin) / 1000 / step_s) + 1
    ticks = [(to_x(begin + turn * step_s * 1000), f"{turn * step_s:g}") for turn in range(count)]
    return Chart(WIDTH, TOP + len(rows) * ROW + BOTTOM, rows, bars, ticks)


def draw(attempts: Sequence[Attempt], title: str, path: Path) -> None:
    from PIL import Image, ImageDraw, ImageFont  # only here: the test and bench extras have it

    chart = lay_out(attempts)
    image = Image.new("RGB", (chart.width, chart.height), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(12)
    foot = chart.height - BOTTOM
    pen.text((LEFT, 10), title, fill="black", font=ImageFont.load_default(15))
    for turn, (stage, colour) in enumerate(COLOURS.items()):
        x = LEFT + 110 * turn
        pen.rectangle((x, 40, x + 14, 54), fill=colour)
        pen.text((x + 20, 40), stage, fill="black", font=font)
    for x, label in chart.ticks:
        pen.line((x, TOP, x, foot), fill="#dddddd")
        pen.text((x, foot + 6), label, fill="black", font=font, anchor="ma")
    pen.text(((LEFT + chart.width - RIGHT) / 2, foot + 26), "seconds", fill="black", font=font, anchor="ma")
    for row, label in enumerate(chart.rows):
        pen.text((LEFT - 8, TOP + row * ROW + ROW / 2), label, fill="black", font=font, anchor="rm")
    for bar in chart.bars:
        pen.rectangle(bar[:4], fill=COLOURS.get(bar.stage, "#7f7f7f"))
    pen.line((LEFT, foot, chart.width - RIGHT, foot), fill="black")
    image.save(path)
