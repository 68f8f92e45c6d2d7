"""Hours and pages per second over a crawl's life (Tables 4.4 and 4.5 of the thesis), from its cycles; pure."""

from collections.abc import Sequence

THESIS_OTHERS_S = 270.0  # per cycle, for the other stages, as the thesis has it
# Ours, by docs/performance.md: one fetcher that never waits, and the extractor on two cores; the scheduler is left out.
FETCHER_PAGES_PER_S, EXTRACTOR_PAGES_PER_S = 4_829, 2_000
DRUM = "drum_s"


def rates(
    cycles: Sequence[Sequence[float]], rows: dict[str, dict], pages: int, stages_s: float | None
) -> dict[str, dict]:
    """For each mark: hours and pages per second up to it, ours and DRUM's, with the thesis's other stages and ours.

    `cycles` has (known after it, seconds) of each cycle; DRUM's seconds are taken between its marks in proportion.
    """
    others_s = pages / FETCHER_PAGES_PER_S + pages / EXTRACTOR_PAGES_PER_S if stages_s is None else stages_s
    drum = [(row["known"], row[DRUM]) for row in rows.values() if row.get(DRUM) is not None]
    table = {}
    for mark, row in rows.items():
        played = [(known, spent_s) for known, spent_s in cycles if known <= row["known"]]
        if not played:
            continue
        line = {"cycles": len(played)}
        verifier_s = {"ours": sum(spent_s for _, spent_s in played)}
        if drum and drum[-1][0] >= row["known"]:
            verifier_s["drum"] = sum(between(drum, known) for known, _ in played)
        for name, spent_s in verifier_s.items():
            for words, other_s in (("thesis_stages", THESIS_OTHERS_S), ("our_stages", others_s)):
                whole_s = spent_s + other_s * len(played)
                line |= {
                    f"{name}_hours_{words}": round(whole_s / 3600, 3),
                    f"{name}_pages_per_s_{words}": round(pages * len(played) / whole_s, 1),
                }
        table[mark] = line
    return table


def between(points: Sequence[tuple[float, float]], at: float) -> float:
    """The value at `at` on the line through the points, sorted; that of the first or last one outside."""
    if at <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in zip(points, points[1:]):
        if at <= right:
            return low + (high - low) * (at - left) / (right - left)
    return points[-1][1]


def rate_lines(table: dict[str, dict]) -> list[str]:
    lines = []
    for words, title in (
        ("thesis_stages", f"with {THESIS_OTHERS_S:.0f} s per cycle for the other stages (Tables 4.4 and 4.5)"),
        ("our_stages", "with our stages' own times"),
    ):
        lines += [
            title,
            f"{'millions':>9}{'cycles':>8}{'ours h':>10}{'ours pages/s':>14}{'DRUM h':>10}{'DRUM pages/s':>14}",
        ]
        for mark, line in table.items():
            cells = [
                (line.get(f"{name}_{what}_{words}"), width)
                for name in ("ours", "drum")
                for what, width in (("hours", 10), ("pages_per_s", 14))
            ]
            lines.append(
                f"{mark:>9}{line['cycles']:>8}"
                + "".join(f"{cell:>{width},.2f}" if cell is not None else f"{'-':>{width}}" for cell, width in cells)
            )
    return lines
