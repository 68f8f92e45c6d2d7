"""Figures from measured numbers, and the goals printed beside them; pure."""

from statistics import median

from bench.fetcher.figures import Goal

NAMED = ("drum", "rocksdb", "lmdb", "sqlite", "bdb")  # always keys of a row, null where they did not get so far
OTHERS = ("drum_tuned", "lookup", "server_files", "central")
LATE = ("drum", "drum_tuned")  # their answers come some cycles later
VEUNI_S = {1.0: 1.35, 350.0: 9.07}  # seconds per cycle in Table 4.3, the ends that we know
VEUNI_DRUM_S = {1.0: 22.0, 350.0: 285.0}  # DRUM over Berkeley DB, there

GOALS = (
    Goal("ours_s_20", "s per cycle at 20 million known", 3, False),
    Goal("growth_350", "times that at 350 million", 1.5, False),
    Goal("ratio_fastest_20", "times the fastest at 20 million", 1.5, True),
    Goal("ratio_fastest_100", "times the fastest at 100 million", 3, True),
    Goal("ratio_rocksdb_least", "times RocksDB, least of all marks", 3, True),
    Goal("ratio_sqlite_least", "times SQLite, least of all marks", 3, True),
    Goal("bytes_per_url", "bytes per known URL in all of R", 45, False),
    Goal("ratio_limit", "times the physical limit, step, most", 3, False),
    Goal("rss_mb", "MB of memory, the most", 0, False),
)


def mark_row(window: list[dict], shares: dict[str, tuple[float, float]]) -> dict:
    """The figures of a mark: medians over its cycles, ratios as medians of the ratios of each cycle."""

    def middle(name: str) -> float | None:
        values = [cycle["seconds"].get(name) for cycle in window]
        return round(median(values), 4) if values and None not in values else None

    row = {"ours_s": middle("ours"), "step_s": middle("step"), "limit_s": middle("limit")}
    ours = "step" if row["step_s"] is not None else "ours"
    row["ratio_of"] = ours  # ratios are of the step, or of the whole command where its step was not measured
    row |= {
        f"{name}_s": None if name in LATE else middle(name)
        for name in (*NAMED, *OTHERS)
        if name in NAMED or middle(name) is not None
    }
    row |= {f"{name}_step_s": value for name in ("central",) if (value := middle(f"{name}_step")) is not None}
    ratios = {
        name: round(median(cycle["seconds"][name] / cycle["seconds"][ours] for cycle in window), 2)
        for name in (*NAMED, *OTHERS)
        if row.get(f"{name}_s") is not None and name not in (*LATE, "central")
    }
    for name, (shared_s, alone_s) in shares.items():
        row |= {f"{name}_s": round(shared_s, 4), f"{name}_at_once_s": round(alone_s, 4)}
        ratios[name] = round(shared_s / row[f"{ours}_s"], 2)
    row |= {f"ratio_{name}": ratio for name, ratio in ratios.items()}
    answering = {name: ratio for name, ratio in ratios.items() if name not in LATE}
    row |= {
        "ratio_fastest": min(ratios.values(), default=None),
        "fastest": min(ratios, key=ratios.get, default=None),
        "ratio_fastest_answering": min(answering.values(), default=None),
        "fastest_answering": min(answering, key=answering.get, default=None),
    }
    row["ratio_limit"] = round(median(cycle["seconds"][ours] / cycle["seconds"]["limit"] for cycle in window), 2)
    return row | {
        "rss_mb": round(max(cycle["rss_mb"] for cycle in window)),
        "rows": round(median(cycle["rows"] for cycle in window)),
        "rss_with_files_mb": round(max(cycle["rss_with_files_mb"] for cycle in window)),
        "cpu_s": round(median(cycle["cpu_s"] for cycle in window), 3),
        "known_share": round(median(cycle["known_share"] for cycle in window), 3),
        "parts_s": window[-1]["parts_s"],
        "cycles": len(window),
    }


def goal_figures(rows: dict[str, dict]) -> dict[str, float]:
    """The few numbers that the goals are about, those of them that were measured."""

    def of(mark: str, name: str):
        return rows.get(mark, {}).get(name)

    def all_of(name: str) -> list[float]:
        return [row[name] for row in rows.values() if row.get(name) is not None]

    figures = {
        "ours_s_20": of("20", "ours_s"),
        "ratio_fastest_20": of("20", "ratio_fastest"),
        "ratio_fastest_100": of("100", "ratio_fastest"),
    }
    if of("350", "ours_s") and of("20", "ours_s"):
        figures["growth_350"] = round(of("350", "ours_s") / of("20", "ours_s"), 2)
    for name, choose in (("ratio_rocksdb", min), ("ratio_sqlite", min)):
        figures[f"{name}_least"] = choose(all_of(name), default=None)
    last = list(rows.values())[-1] if rows else {}
    figures |= {
        "bytes_per_url": last.get("bytes_per_url"),
        "ratio_limit": max(all_of("ratio_limit"), default=None),
        "rss_mb": max(all_of("rss_mb"), default=None),
    }
    return {name: value for name, value in figures.items() if value is not None}


def table_lines(rows: dict[str, dict]) -> list[str]:
    """One line per mark, in seconds; a dash where a peer did not get so far. Mean and max: since the last mark."""
    columns = [
        "ours",
        "step",
        "limit",
        *NAMED,
        *(name for name in OTHERS if any(f"{name}_s" in row for row in rows.values())),
    ]
    lines = [
        f"{'millions':>9}"
        + "".join(f"{name:>13}" for name in columns)
        + f"{'fastest':>9}{'mean':>8}{'max':>8}{'B/URL':>8}{'MB':>7}{'blocks':>7}"
    ]
    for mark, row in rows.items():
        cells = "".join(
            f"{row[f'{name}_s']:>13.2f}" if row.get(f"{name}_s") is not None else f"{'-':>13}" for name in columns
        )
        ratio = f"{row['ratio_fastest']:>9.2f}" if row["ratio_fastest"] is not None else f"{'-':>9}"
        lines.append(
            f"{mark:>9}{cells}{ratio}{row['ours_mean_s']:>8.2f}{row['ours_max_s']:>8.2f}"
            f"{row['bytes_per_url']:>8.1f}{row['rss_mb']:>7}{row['blocks']:>7}"
        )
    return lines


def thesis_lines(rows: dict[str, dict]) -> list[str]:
    """Ours beside the ends of Table 4.3."""
    lines = [
        f"{'millions':>9}{'ours':>9}{'VEUNI':>9}{'our DRUM':>10}{'DRUM/BDB':>10}"
        "   (VEUNI and DRUM over Berkeley DB: the ends of the thesis's Table 4.3, on its machine)"
    ]
    for mark in sorted({*map(float, rows), *VEUNI_S}):
        row = rows.get(f"{mark:g}", {})
        cells = (row.get("ours_s"), VEUNI_S.get(mark), row.get("drum_s"), VEUNI_DRUM_S.get(mark))
        lines.append(
            f"{mark:>9g}"
            + "".join(
                f"{cell:>{width}.2f}" if cell is not None else f"{'-':>{width}}"
                for cell, width in zip(cells, (9, 9, 10, 10))
            )
        )
    return lines
