"""Figures from measured numbers, and the goals printed beside them; pure."""

from collections.abc import Sequence
from statistics import median

from bench.fetcher.figures import Goal
from bench.processes import Spent

SCANNER_RATIO_MIN = 1.3  # below this the compiled tag scanner is not worth its code (decision 12)
GOALS = (
    Goal("pages_per_s", "pages per second, one core", 1_500, True),
    Goal("pages_per_s_2", "pages per second, two cores", 0, True),
    Goal("ratio_2", "times the rate, on two cores", 1.8, True),
    Goal("ratio_scanner", "times without the tag scanner", SCANNER_RATIO_MIN, True),
    Goal("ratio_scrapy", "times Scrapy's LinkExtractor", 4, True),
    Goal("ratio_lxml", "times lxml", 0, True),
    Goal("us_per_page", "us of CPU per page", 0, False),
    Goal("us_per_link", "us of CPU per link", 0, False),
    Goal("rss_mb", "MB per worker, the largest", 0, False),
    Goal("rss_ratio", "times its memory, the pages twice", 1.1, False),
    Goal("links_bytes_per_row", "bytes per row of Ligacoes", 10, False),
)


def speed_figures(
    count: int,
    links: int,
    one: Sequence[Spent],
    two: Sequence[Spent],
    unscanned: Sequence[Spent],
    peers: dict[str, Sequence[Spent]],
) -> dict[str, float]:
    """Medians, and medians of ratios, from what each repeat took.

    Ours on one core, on two, on one without the tag scanner, and the peers; all in the same order of repeats.
    """
    cpu_us = median(spent.cpu_s for spent in one) / count * 1e6
    figures = {
        "pages_per_s": round(count / median(spent.wall_s for spent in one)),
        "pages_per_s_2": round(count / median(spent.wall_s for spent in two)),
        "ratio_2": ratio_of(two, one),
        "unscanned_pages_per_s": round(count / median(spent.wall_s for spent in unscanned)),
        "ratio_scanner": ratio_of(one, unscanned),
        "us_per_page": round(cpu_us),
        "us_per_link": round(cpu_us * count / max(links, 1), 2),
    }
    for name, spent in peers.items():
        figures[f"{name}_pages_per_s"] = round(count / median(one.wall_s for one in spent))
        figures[f"ratio_{name}"] = ratio_of(one, spent)
    return figures


def ratio_of(faster: Sequence[Spent], slower: Sequence[Spent]) -> float:
    """Rate of the first divided by that of the second: the median over repeats."""
    return round(median(slow.wall_s / fast.wall_s for fast, slow in zip(faster, slower, strict=True)), 2)


def share_lines(parts_s: dict[str, float], count: int) -> list[str]:
    """One line per part: its share and its microseconds per page, the largest first."""
    whole_s = sum(parts_s.values())
    return [
        f"  {taken_s / whole_s:6.1%}  {taken_s / count * 1e6:6.1f} us  {part}"
        for part, taken_s in sorted(parts_s.items(), key=lambda item: -item[1])
    ]
