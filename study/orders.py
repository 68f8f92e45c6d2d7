"""bin/simulate order: every order over the same collections, in one heap and in blocks; its table and figure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from contract.config import Config
from study.collection import Collection, collect
from study.contestants import enter
from study.figures import Line, Panel, draw
from study.graphs import Graph, Rows
from study.measures import Course, Mean, course_of, levels_of, mean_of, tau_of
from study.pagerank import pagerank
from study.simulation import Simulation
from study.synthetic import NOISE, SEEDS, make_web
from study.tables import markdown

HEAP, BLOCKS = "heap", "blocks"
WHAT = ("pages", "mean level", "% of PageRank", "tau")  # when the pages were fetched, or none was left
SHOWN_POINTS = (1, 5, 10, 25)  # parts of 25, of a table

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Where collections come from: a graph that is given, or one of so many pages made from each seed."""

    pages: int
    graph: Graph | None = None
    noise: float = NOISE  # of URLs that are made

    def collections(self, runs: int, show: Progress) -> Iterator[tuple[int, Collection, Rows]]:
        """(seed, collection, seeds of the crawl) of each run."""
        ranks = None if self.graph is None else pagerank(self.graph)
        for seed in range(1, runs + 1):
            show(f"seed {seed} of {runs}: the collection")
            graph = make_web(self.pages, seed, self.noise) if self.graph is None else self.graph
            graph = graph if len(graph.seeds) else replace(graph, seeds=draw_seeds(graph, seed))
            collection = collect(graph, pagerank(graph) if ranks is None else ranks, seed)
            yield seed, collection, collection.graph.seeds


def draw_seeds(graph: Graph, seed: int) -> Rows:
    """Some pages that have links."""
    random = np.random.Generator(np.random.PCG64(seed))
    linked = np.flatnonzero(graph.degrees)
    return np.sort(random.choice(linked, min(SEEDS, len(linked)), replace=False))


@dataclass(frozen=True)
class Trial:
    course: Course
    tau: float


def share_list(config: Config, blocks: int) -> Config:
    """With lists of the size that makes a round of all blocks fetch as many pages as one list of the heap."""
    most = max(config.scheduler.list_max_urls // max(blocks, 1), 1)
    return replace(config, scheduler=replace(config.scheduler, list_max_urls=most))


Trials = Mapping[tuple[str, str], list[Trial]]  # by order and by HEAP or BLOCKS


def run_trials(
    source: Source, names: Sequence[str], config: Config, runs: int, fetch: int, blocks: int, earlier: float,
    folder: Path, show: Progress,
) -> Trials:  # fmt: skip
    """Every order on every collection; no trial of an order that needs URLs where there are none."""
    trials: dict[tuple[str, str], list[Trial]] = {(name, mode): [] for name in names for mode in (HEAP, BLOCKS)}
    for seed, collection, seeds in source.collections(runs, show):
        levels = levels_of(collection.ranks)
        for name in names:
            contestant = enter(name, collection, config, folder, seed, earlier)
            for mode, count in ((HEAP, 0), (BLOCKS, blocks)):
                if contestant is None or mode == BLOCKS and not blocks:
                    continue
                show(f"seed {seed} of {runs}: {name}, {mode}")
                simulation = Simulation(
                    collection, seeds, share_list(contestant.config, count), count, contestant.files
                )
                rows = np.concatenate(list(simulation.lists(fetch)))
                course = course_of(collection, levels, rows, fetch)
                trials[name, mode].append(Trial(course, tau_of(collection, rows)))
    return trials


def table(trials: Trials, names: Sequence[str]) -> str:
    """By share of PageRank in one heap, the best first; orders that could not run last."""
    rows = []
    for name in names:
        cells, best = [f"`{name}`"], -1.0
        for mode in (HEAP, BLOCKS):
            found = trials[name, mode]
            if not found:
                cells += ["–"] * len(WHAT)
                continue
            pages, level, share = (mean_of(values) for values in zip(*(trial.course.end for trial in found)))
            tau = mean_of([trial.tau for trial in found])
            percent = Mean(share.value * 100, share.half * 100)
            cells += [f"{pages.value:,.0f}", f"{level:.3f}", f"{percent:.1f}", f"{tau:.2f}"]
            best = float(share.value) if mode == HEAP else best
        rows.append((best, cells))
    headings = ["order", *(f"{mode}: {what}" for mode in (HEAP, BLOCKS) for what in WHAT)]
    return markdown(headings, [cells for _, cells in sorted(rows, key=lambda row: -row[0])])


def course_table(trials: Trials, names: Sequence[str]) -> str:
    """The numbers of the figure: the mean level in one heap after some parts of the pages."""
    fetched = next(found[0].course.fetched for found in trials.values() if found)
    points = [point - 1 for point in SHOWN_POINTS if point <= len(fetched)]
    lines = []
    for name in names:
        if found := trials[name, HEAP]:
            mean = mean_of([trial.course.level for trial in found])
            lines.append([f"`{name}`", *(f"{Mean(mean.value[at], mean.half[at]):.2f}" for at in points)])
    return markdown(["order", *(f"{fetched[at]:,} pages" for at in points)], lines)


def figure(trials: Trials, names: Sequence[str], path: Path, title: str) -> None:
    panels = []
    for label, values in (("mean level of fetched pages", "level"), ("share of total PageRank", "share")):
        for mode in (HEAP, BLOCKS):
            lines = []
            for name in names:
                if found := trials[name, mode]:
                    mean = mean_of([getattr(trial.course, values) for trial in found])
                    lines.append(Line(name, found[0].course.fetched, mean.value, mean.half))
            panels.append(Panel(f"{label}, {mode}", "pages fetched", label, lines))
    draw(path, title, panels, columns=2)
