"""The goals of bin/bench graph, and its table; pure."""

from bench.fetcher.figures import Goal

GOALS = (
    Goal("edges_per_s", "edges built per second", 2_000_000, True),
    Goal("rss_mb", "MB of memory, without mapped files", 1024.0, False),
    Goal("bits_per_edge", "bits per edge, one direction, as open arrays", 36.0, False),
    Goal("bits_per_link_compressed", "bits per link, compressed", 8.0, False),
)


def table_lines(figures: dict) -> list[str]:
    duckdb_s = figures["duckdb_s"]
    lines = [
        f"build: {figures['build_s']:.1f} s, CPU {figures['cpu_s']:.1f} s, {figures['rss_mb']} MB"
        f" ({figures['rss_with_files_mb']} MB with mapped files)",
        "DuckDB, pages and edges one way: "
        + ("failed" if duckdb_s is None else f"{duckdb_s:.1f} s, {figures['ratio_duckdb']:.2f} times ours"),
        f"build after {figures['growth_links']:,} links more: {figures['growth_s']:.1f} s, CPU"
        f" {figures['growth_cpu_s']:.1f} s",
        f"PageRank, seconds per iteration: {figures['iteration_s']:.3f}",
    ]
    if "compressed_links_per_s" in figures:
        lines.append(f"compressed: {figures['compressed_links_per_s']:,} links per second")
    for name, seconds in figures["iterations"].items():
        lines.append(f"  {name}: {'out of memory or failed' if seconds is None else f'{seconds:.3f} s'}")
    return lines
