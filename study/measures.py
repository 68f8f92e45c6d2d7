"""How good an order was: of the pages that it fetched, in their order; and means over several runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from study.collection import Collection, Values
from study.graphs import Rows
from study.pagerank import pagerank
from study.training import LEVEL_MIN, LEVELS, targets_of

POINTS = 25  # of a course
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Course:
    """What an order had collected, after each of POINTS parts of the pages that it was to fetch; NaN after its end."""

    fetched: Rows
    level: Values  # mean over the pages so far
    share: Values  # of the PageRank of the whole collection
    end: tuple[int, float, float]  # pages, level and share when it had fetched them all, or found no more


def levels_of(ranks: Values) -> Values:
    """The level of each rank, -1 to 10, as the learned rank has it (study/training.py)."""
    levels: Values = targets_of(ranks) * LEVELS + LEVEL_MIN
    return levels


def course_of(collection: Collection, levels: Values, rows: Rows, pages: int) -> Course:
    """Of an order that fetched these rows, one at least, and was to fetch so many pages."""
    fetched = np.unique(np.linspace(0, pages, POINTS + 1).astype(np.int64)[1:])
    is_reached = fetched <= len(rows)
    at = np.minimum(fetched, len(rows)) - 1
    level, share = np.cumsum(levels[rows]), np.cumsum(collection.ranks[rows])
    return Course(
        fetched,
        np.where(is_reached, level[at] / fetched, np.nan),
        np.where(is_reached, share[at], np.nan),
        (len(rows), float(level[-1]) / len(rows), float(share[-1])),
    )


def tau_of(collection: Collection, rows: Rows) -> float:
    """Kendall's tau-b between the true ranks of these pages and their PageRank in the part of the graph they make."""
    rows = np.sort(rows)
    return float(stats.kendalltau(pagerank(collection.graph.take(rows), tolerance=1e-7), collection.ranks[rows])[0])


@dataclass(frozen=True)
class Mean:
    """Over runs with several seeds: the mean, and half the width of its confidence interval by Student's t."""

    value: Values
    half: Values  # NaN with one run

    def __format__(self, spec: str) -> str:
        """Of a single number: `mean ± half`; a dash where there is none."""
        if not np.isfinite(self.value):
            return "–"
        return f"{self.value:{spec}} ± {self.half:{spec}}" if np.isfinite(self.half) else f"{self.value:{spec}}"


def mean_of(runs: Sequence[Values | float]) -> Mean:
    values = np.array(runs, np.float64)
    if len(values) < 2:
        return Mean(values[0], np.full_like(values[0], np.nan))
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return Mean(values.mean(axis=0), stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * error)
