"""Figures of the contest from its runs, and the goals printed beside them; pure."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from bench.fetcher.figures import Goal

OURS, TUNED, SEQUENTIAL = "ours", "tuned", "sequential"

GOALS = (
    Goal("12.pages_per_s", "pages per second", 0, True),
    Goal("12.cpu_ms_per_page", "ms of CPU per page", 0, False),
    Goal("12.ratio_scrapy", "times Scrapy, 12 names", 10, True),
    Goal("12.ratio_wget", "times wget, 12 names", 1, True),
    Goal("12.ratio_wget_2", "times wget in two processes, 12 names", 1, True),
    Goal("12.cpu_ratio_wget", "of wget's CPU per page", 1, False),
    Goal("12.ratio_spider", "times spider-rs", 0, True),
    Goal("12.ratio_sequential", "times our cold starts, one cycle", 1.25, True),
    Goal("12.fetcher_busy", "of the time a fetcher is at work", 0.95, True),
    Goal("12.fetcher_idle", "of the time none is, and URLs wait", 0, False),
    Goal("60.pages_per_s", "pages per second", 0, True),
    Goal("60.cpu_ms_per_page", "ms of CPU per page", 0, False),
    Goal("60.ratio_scrapy", "times Scrapy, 60 names", 20, True),
    Goal("60.ratio_wget", "times wget, 60 names", 1, True),
    Goal("60.ratio_wget_2", "times wget in two processes, 60 names", 1, True),
    Goal("60.cpu_ratio_wget", "of wget's CPU per page", 1, False),
    Goal("60.ratio_spider", "times spider-rs", 0, True),
    Goal("60.ratio_sequential", "times our cold starts, one cycle", 1.25, True),
    Goal("60.fetcher_busy", "of the time a fetcher is at work", 0.95, True),
    Goal("60.fetcher_idle", "of the time none is, and URLs wait", 0, False),
    Goal("tls.pages_per_s_per_core", "pages of 240 KB per second and core", 57, True),
    Goal("slow.share", "of the politely possible answers", 0, True),
    Goal("slow_fetcher_busy", "of the time a fetcher is at work", 0.95, True),
    Goal("long.pages_per_s", "pages per second, a million pages", 0, True),
    Goal("long.fetcher_busy", "of the time a fetcher is at work", 0.95, True),
    Goal("demo_ratio", "times the demonstration, cold, one cycle", 3, True),
    Goal("start_ms", "ms from request to main()", 60, False),
    Goal("age_ratio", "overhead after 100,000 commits / new", 1.2, False),
    Goal("memory_ratio", "memory, last third / second third", 1.1, False),
)


class Run(NamedTuple):
    """One run of one tool on one web."""

    pages: int  # URLs asked for, robots.txt not counted
    wall_s: float
    cpu_s: float

    @property
    def pages_per_s(self) -> float:
        return self.pages / max(self.wall_s, 1e-6)

    @property
    def cpu_ms_per_page(self) -> float:
        return self.cpu_s * 1000 / max(self.pages, 1)


def rate_of(runs: Sequence[Run]) -> float:
    return median(run.pages_per_s for run in runs)


def cpu_of(runs: Sequence[Run]) -> float:
    return median(run.cpu_ms_per_page for run in runs)


def contest_figures(part: str, runs: dict[str, list[Run]], differing: dict[str, str]) -> dict[str, float]:
    """Keys of one web. A ratio is one of medians; tools that asked for other URLs, or failed, have none."""
    ours = runs[OURS]
    figures = {"pages_per_s": round(rate_of(ours), 1), "cpu_ms_per_page": round(cpu_of(ours), 3)}
    for tool, theirs in runs.items():
        if tool != OURS and theirs and tool not in differing:
            figures[f"ratio_{tool}"] = round(rate_of(ours) / rate_of(theirs), 2)
            figures[f"cpu_ratio_{tool}"] = round(cpu_of(ours) / max(cpu_of(theirs), 1e-9), 2)
    return {f"{part}.{key}": value for key, value in figures.items()}


def table_lines(titles: dict[str, str], runs: dict[str, list[Run]], notes: dict[str, str]) -> list[str]:
    """One line per tool: seconds of each run, pages per second, CPU per page, what it leaves out or why it failed."""
    lines = [f"  {'':24} {'pages/s':>8} {'CPU ms/page':>12}  seconds of each run"]
    for tool, title in titles.items():
        taken = runs.get(tool, [])
        seconds = " ".join(f"{run.wall_s:.1f}" for run in taken)
        figures = f"{rate_of(taken):8,.0f} {cpu_of(taken):12.2f}  {seconds}" if taken else f"{'-':>8} {'-':>12} "
        lines.append(f"  {title:24} {figures}{'   ' + notes[tool] if notes.get(tool) else ''}")
    return lines
