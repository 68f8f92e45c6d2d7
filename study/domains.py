"""bin/simulate domains: pages and registered domains against time, where a domain rests between two requests.

As in the crawler of E. Valle (UFMG), who drew both for his order new-domains: the pause is 30 s per domain. A list has
at most as many URLs per server as its pause allows within `cycle_max_s`, and is fetched in its order: each domain's
k-th page when k - 1 pauses have passed. The next list begins when the last page of this one is there; nothing else
takes time. The whole collection is one heap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contract.config import Config
from storage.arrays import rank_in_run
from study.collection import Collection, Values
from study.contestants import enter
from study.figures import Line, Panel, draw
from study.graphs import Rows
from study.measures import Mean, mean_of
from study.orders import Progress, Source
from study.simulation import Simulation
from study.tables import markdown

POINTS = 48
SHOWN_PARTS = (24, 4, 1)  # of the time, in a table: a 24th, a quarter, all of it
HOUR_S = 3_600.0


@dataclass(frozen=True)
class Times:
    """After each of POINTS parts of the hours."""

    pages: Values
    domains: Values


def run_times(
    source: Source, names: Sequence[str], config: Config, runs: int, hours: float, earlier: float, folder: Path,
    show: Progress,
) -> Mapping[str, list[Times]]:  # fmt: skip
    found: dict[str, list[Times]] = {name: [] for name in names}
    for seed, collection, seeds in source.collections(runs, show):
        for name in names:
            show(f"seed {seed} of {runs}: {name}")
            contestant = enter(name, collection, config, folder, seed, earlier)
            if contestant is not None:
                simulation = Simulation(collection, seeds, contestant.config, 0, contestant.files)
                found[name].append(follow_time(collection, simulation, config.fetcher.delay_s, hours))
    return found


def follow_time(collection: Collection, simulation: Simulation, delay_s: float, hours: float) -> Times:
    began_s, ends, rows = 0.0, [np.empty(0)], [np.empty(0, np.int64)]
    for listed in simulation.lists(len(collection)):
        number = count_before(collection.domain_key[listed])
        ends.append(began_s + delay_s * number)
        rows.append(listed)
        began_s += delay_s * float(number.max() + 1)
        if began_s > hours * HOUR_S:
            break
    return times_of(collection, np.concatenate(rows), np.concatenate(ends), hours)


def count_before(domains: np.ndarray) -> Rows:
    """For each page of a list, how many of its domain stand before it."""
    order = np.argsort(domains, kind="stable")
    number = np.empty(len(domains), np.int64)
    number[order] = rank_in_run(domains[order])
    return number


def times_of(collection: Collection, rows: Rows, fetched_s: Values, hours: float) -> Times:
    order = np.argsort(fetched_s, kind="stable")
    _, first = np.unique(collection.domain_key[rows[order]], return_index=True)
    until = points(hours) * HOUR_S
    pages = np.searchsorted(fetched_s[order], until, "right")
    domains = np.searchsorted(np.sort(fetched_s[order][first]), until, "right")
    return Times(pages.astype(np.float64), domains.astype(np.float64))


def points(hours: float) -> Values:
    return np.linspace(0, hours, POINTS + 1)[1:]


def table(found: Mapping[str, list[Times]], hours: float) -> str:
    """The most domains at the end come first."""
    shown = [POINTS // part - 1 for part in SHOWN_PARTS]
    headings = [f"{what}, {points(hours)[at]:.3g} h" for what in ("domains", "pages") for at in shown]
    rows = []
    for name, runs in found.items():
        means = [mean_of([getattr(run, what) for run in runs]) if runs else None for what in ("domains", "pages")]
        cells = [f"{Mean(mean.value[at], mean.half[at]):,.0f}" if mean else "–" for mean in means for at in shown]
        rows.append((float(means[0].value[-1]) if means[0] else -1, [f"`{name}`", *cells]))
    return markdown(["order", *headings], [cells for _, cells in sorted(rows, key=lambda row: -row[0])])


def figure(found: Mapping[str, list[Times]], hours: float, path: Path, title: str) -> None:
    panels = []
    for what in ("domains", "pages"):
        means = {name: mean_of([getattr(run, what) for run in runs]) for name, runs in found.items() if runs}
        lines = [Line(name, points(hours), mean.value, mean.half) for name, mean in means.items()]
        panels.append(Panel(what, "hours", f"{what} visited", lines, is_logarithmic=True))
    draw(path, title, panels, columns=2)
