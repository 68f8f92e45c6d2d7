"""Figures from measured numbers, and the goals printed beside them; pure."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Goal(NamedTuple):
    key: str
    text: str
    bound: float
    is_least: bool  # at least the bound, or at most

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.is_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'at least' if self.is_least else 'at most'} {self.bound:,g}"


Rates = Sequence[tuple[float, float]]  # pages per second, microseconds of CPU per page

GOALS = (
    Goal("pages_per_s", "pages per second", 3_000, True),
    Goal("cpu_us_per_page", "us of CPU per page", 330, False),
    Goal("ratio_scrapy", "times Scrapy, lean", 8, True),
    Goal("ratio_scrapy_crawling", "times Scrapy, crawling", 0, True),
    Goal("ratio_wrk", "of wrk's rate", 0, True),
    Goal("idle_sockets_ratio", "of the rate, beside idle sockets", 0.7, True),
    Goal("polite_utilisation", "of the politely possible rate", 0.9, True),
)


def speed_figures(ours: Rates, scrapy: Rates, crawling: Rates, wrk: Sequence[float]) -> dict[str, float]:
    """Medians, and medians of ratios, from the rates of each repeat; all in the same order of repeats."""
    return {
        "pages_per_s": round(median(rate for rate, _ in ours)),
        "cpu_us_per_page": round(median(cpu_us for _, cpu_us in ours)),
        "wrk_pages_per_s": round(median(wrk)),
        "scrapy_pages_per_s": round(median(rate for rate, _ in scrapy)),
        "scrapy_cpu_us_per_page": round(median(cpu_us for _, cpu_us in scrapy)),
        "ratio_wrk": round(median(own / limit for (own, _), limit in zip(ours, wrk, strict=True)), 3),
        "scrapy_crawling_pages_per_s": round(median(rate for rate, _ in crawling)),
        "scrapy_crawling_cpu_us_per_page": round(median(cpu_us for _, cpu_us in crawling)),
        "ratio_scrapy": ratio_of(ours, scrapy),
        "ratio_scrapy_crawling": ratio_of(ours, crawling),
    }


def ratio_of(ours: Rates, theirs: Rates) -> float:
    return round(median(own / other for (own, _), (other, _) in zip(ours, theirs, strict=True)), 1)


def rate_of(pages: int, wall_s: float, cpu_s: float) -> tuple[float, float]:
    """Pages per second and microseconds of CPU per page."""
    return pages / max(wall_s, 1e-6), cpu_s / pages * 1e6


def utilisation(
    answered_at_s: Sequence[float], latencies_s: Sequence[float], delay_s: float, window_s: tuple[float, float]
) -> tuple[float, int, float]:
    """Share, answers in the window, and answers possible in it.

    Possible: window x sum over servers of 1 / (delay + response time).
    """
    begin_s, end_s = window_s
    answered = sum(begin_s <= at_s < end_s for at_s in answered_at_s)
    possible = (end_s - begin_s) * sum(1 / (delay_s + latency_s) for latency_s in latencies_s)
    return answered / possible, answered, possible


def goal_lines(figures: dict, goals: Sequence[Goal] = GOALS) -> list[str]:
    """One line per goal that was measured: figure, goal, whether it is met."""
    lines = []
    for goal in goals:
        if goal.key in figures:
            verdict = (
                "" if not goal.bound else f"   goal: {goal}: {'met' if goal.is_met(figures[goal.key]) else 'missed'}"
            )
            lines.append(f"  {goal.key:20} {figures[goal.key]:>10,g} {goal.text:34}{verdict}")
    return lines
