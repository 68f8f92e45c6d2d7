"""The table and the figure of bin/simulate freshness."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from contract.revisits import OPTIMAL, PROPORTIONAL, UNIFORM
from study.figures import Line, Panel, draw
from study.freshness import Result, simulate
from study.measures import mean_of
from study.orders import Progress
from study.tables import markdown

KNOWN = f"{OPTIMAL}, known rates"
CONTESTS = {
    UNIFORM: (UNIFORM, False),
    PROPORTIONAL: (PROPORTIONAL, False),
    f"{OPTIMAL}, estimated rates": (OPTIMAL, False),
    KNOWN: (OPTIMAL, True),
}
BEST = "computed optimum"
DAYS_TOGETHER = 5  # of a point of the figure: the time between two visits at equal intervals

Results = Mapping[str, list[Result]]


def run_visits(days: int, runs: int, show: Progress) -> Results:
    found: dict[str, list[Result]] = {name: [] for name in CONTESTS}
    for seed in range(1, runs + 1):
        for name, (policy, knows) in CONTESTS.items():
            show(f"seed {seed} of {runs}: {name}")
            found[name].append(simulate(policy, days, knows=knows, seed=seed))
    return found


def table(found: Results) -> str:
    """Means over the second half of the days."""
    rows = []
    for name, runs in found.items():
        share = mean_of([100 * run.freshness / run.best for run in runs])
        freshness, age = mean_of([run.freshness for run in runs]), mean_of([run.age for run in runs])
        rows.append([name, f"{freshness:.3f}", f"{share:.1f}", f"{age:.2f}"])
    best = mean_of([run.best for run in found[KNOWN]])
    rows.append([BEST, f"{best:.3f}", "100.0", "–"])
    return markdown(["policy of [revisit]", "freshness", "% of the optimum", "mean age, days"], rows)


def figure(found: Results, path: Path, title: str) -> None:
    panels = []
    for what, label in (("daily_freshness", "share of pages that are fresh"), ("daily_age", "mean age, days")):
        lines = []
        for name, runs in found.items():
            mean = mean_of([group(getattr(run, what)) for run in runs])
            x = DAYS_TOGETHER * np.arange(1, len(mean.value) + 1)
            lines.append(Line(name, x, mean.value, mean.half))
        if what == "daily_freshness":
            best = mean_of([run.best for run in found[KNOWN]])
            lines.append(Line(BEST, x, np.full(len(x), best.value), np.full(len(x), best.half)))
        panels.append(Panel(label, "days", label, lines))
    draw(path, title, panels, columns=2)


def group(daily: np.ndarray) -> np.ndarray:
    whole = len(daily) - len(daily) % DAYS_TOGETHER
    return daily[:whole].reshape(-1, DAYS_TOGETHER).mean(axis=1)
