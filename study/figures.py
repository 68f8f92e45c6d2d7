"""Figures of a study, as PNG: lines that differ in marker and in style too, so that nobody needs to see colours.

The only module that imports matplotlib.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import numpy.typing as npt

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (after the choice of what draws)

Values = npt.NDArray[np.float64]
MARKERS = "osv^D<>Pp*hXd"  # as many as have nothing in common with the number of colours
STYLES = ("-", "--", "-.", ":")
# The colours of M. Okabe and K. Ito, "Color universal design", 2002.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7")
MARKS = 6  # per line
PANEL_INCHES = (6.2, 4.4)


@dataclass(frozen=True)
class Line:
    name: str
    x: npt.NDArray[np.generic]
    y: Values  # NaN where there is none
    half: Values | None = None  # of the confidence interval


@dataclass(frozen=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    is_logarithmic: bool = False  # the vertical axis


def draw(path: Path, title: str, panels: Sequence[Panel], columns: int) -> None:
    rows = -(-len(panels) // columns)
    size = (PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows + 1)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    for panel, axis in zip(panels, axes.flat):
        for line in panel.lines:
            draw_line(axis, line, names.index(line.name))
        axis.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
        axis.grid(alpha=0.3)
        if panel.is_logarithmic:
            axis.set_yscale("log")
    handles = {}
    for axis in axes.flat:
        found, labels = axis.get_legend_handles_labels()
        handles |= dict(zip(labels, found))
    figure.legend([handles[name] for name in names], names, loc="outside lower center", ncols=6)
    figure.suptitle(title)
    figure.savefig(path, dpi=80, metadata={"Software": None}, pil_kwargs={"optimize": True})
    pyplot.close(figure)


def draw_line(axis, line: Line, number: int) -> None:
    """`number` decides marker, style and colour, the same in all panels; marks of lines stand at different places."""
    every = max(len(line.x) // MARKS, 1)
    axis.plot(
        line.x,
        line.y,
        label=line.name,
        color=COLOURS[number % len(COLOURS)],
        linestyle=STYLES[number % len(STYLES)],
        marker=MARKERS[number % len(MARKERS)],
        markevery=(number % every, every),
        markersize=5,
        linewidth=1.2,
    )
    if line.half is not None and np.isfinite(line.half).any():
        low, high = line.y - line.half, line.y + line.half
        axis.fill_between(line.x, low, high, color=COLOURS[number % len(COLOURS)], alpha=0.12, linewidth=0)
