"""The run: writes the pages, measures each part, prints the tables."""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from statistics import mean

from bench.extractor import figures as calculation
from bench.extractor.corpus import Corpus, open_corpus, write_decoded, write_pages
from bench.extractor.options import Scale, chosen_scale
from bench.extractor.ours import Ours
from bench.extractor.peers import NAMES, run_peer
from bench.fetcher.figures import goal_lines
from bench.processes import on_cores, run_child
from contract.errors import BadConfiguration

PARTS = ("speed", "memory", "shares")
CORES = 2
NAMES_PREFIXES = ("", "b.", "c.", "d.")  # four times the corpus: more URLs than a worker remembers


def measure(arguments) -> dict:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # processes and scratch folder go too
    scale, parts = chosen_scale(arguments), arguments.only or PARTS
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    if len(cores) < CORES:
        raise BadConfiguration(f"expected {CORES} cores to run on, found {len(cores)}")
    corpus = open_corpus(arguments.pages, scale.pages)
    count = len(corpus.pages)
    figures = {
        "files": count,
        "mean_bytes": round(mean(page.path.stat().st_size for page in corpus.pages)),
        "repeats": scale.repeats,
    }
    print(f"{count} HTML pages, mean {figures['mean_bytes']:,} bytes: {corpus.about}", flush=True)
    if arguments.quick:
        print("a quick run: it shows that everything works, and its figures mean nothing", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-extractor-", dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        write_pages(corpus.pages, folder / "pages")
        if "speed" in parts:
            figures |= measure_speed(scale, corpus, cores, folder)
        if "memory" in parts:
            figures |= measure_memory(corpus, cores, folder)
        if "shares" in parts:
            figures["us_by_part"] = measure_shares(count, cores, folder)
    print(*goal_lines(figures, calculation.GOALS), sep="\n", flush=True)
    return figures


def measure_speed(scale: Scale, corpus: Corpus, cores: list[int], folder: Path) -> dict:
    write_pages(corpus.pages[:1], folder / "one")
    write_decoded(corpus.pages, folder / "decoded")
    count, pages = len(corpus.pages), folder / "pages"
    one, two, unscanned = Ours(folder, 1, cores), Ours(folder, 2, cores), Ours(folder, 1, cores, has_scanner=False)
    for ours in (one, two, unscanned):
        ours.learn_start(folder / "one", scale.starts)
    taken: dict[str, list] = {"one": [], "two": [], "unscanned": [], **{name: [] for name in NAMES}}
    found = {}
    for _ in range(scale.repeats):
        taken["one"].append(one.run(pages, count))
        taken["unscanned"].append(unscanned.run(pages, count))
        for name in NAMES:
            spent, found[name] = run_peer(name, folder / "decoded", count, cores[0])
            taken[name].append(spent)
        taken["two"].append(two.run(pages, count))
    counts, links_bytes = two.counts(), two.links_bytes()
    links = counts["link_occurrences"]
    peers = {name: taken[name] for name in NAMES}
    figures = calculation.speed_figures(count, links, taken["one"], taken["two"], taken["unscanned"], peers)
    figures |= {
        "links_per_page": round(links / count, 1),
        "links_bytes_per_row": round(links_bytes / max(counts["links_rows"], 1), 2),
    }
    print(
        f"{links:,} links, {figures['links_per_page']} per page; {counts['links_rows']:,} rows of Ligacoes, "
        f"{counts['extracted_rows']:,} URLs; medians of {scale.repeats} interleaved repeats; left out, as measured "
        f"with one page: {one.start.wall_s:.2f} s on one core and {two.start.wall_s:.2f} s on two to start and publish"
    )
    rejected = ", ".join(f"{rule} {number:,}" for rule, number in counts["rejected"].items() if number)
    print(f"rejected by rule: {rejected or 'nothing'}")
    print_rate(
        "extractor, 1 worker, one core", figures["pages_per_s"], f"{figures['us_per_page']:,} us of CPU per page"
    )
    print_rate("extractor, 2 workers, two cores", figures["pages_per_s_2"])
    print_rate(
        "without the tag scanner, one core",
        figures["unscanned_pages_per_s"],
        f"with it {figures['ratio_scanner']:.2f} times as many",
    )
    for name in NAMES:
        rate = figures[f"{name}_pages_per_s"]
        print_rate(f"{name}, links only, one core", rate, f"{found[name]:,} links, distinct in a page")
    sys.stdout.flush()
    return figures | {"start_s": round(one.start.wall_s, 3), "start_s_2": round(two.start.wall_s, 3), "runs": taken}


def print_rate(what: str, pages_per_s: float, note: str = "") -> None:
    print(f"  {what:34} {pages_per_s:7,} pages per second  {note}".rstrip())


def measure_memory(corpus: Corpus, cores: list[int], folder: Path) -> dict:
    """The same URLs again show what a page leaves behind; other names, how far the memory of known URLs grows."""
    count, ours = len(corpus.pages), Ours(folder, 2, cores)
    once = ours.watch(folder / "pages", count)
    write_pages(corpus.pages, folder / "again", ("", ""))
    again = ours.watch(folder / "again", count)
    write_pages(corpus.pages, folder / "names", NAMES_PREFIXES)
    other = ours.watch(folder / "names", count * len(NAMES_PREFIXES))
    print(
        f"memory of a worker, the largest seen: {once.worker:.0f} MB on {count} pages, {again.worker:.0f} MB on the "
        f"same twice, {other.worker:.0f} MB on the same under {len(NAMES_PREFIXES)} names each; with the parts of page "
        f"files that are mapped {once.worker_with_files:.0f}, {again.worker_with_files:.0f} and "
        f"{other.worker_with_files:.0f}; of the parent, which has the rows of all, {once.parent:.0f}, "
        f"{again.parent:.0f} and {other.parent:.0f}",
        flush=True,
    )
    return {
        "rss_mb": round(max(once.worker, again.worker, other.worker), 1),
        "rss_ratio": round(again.worker / once.worker, 2),
        **{
            f"rss_mb_{name}": {part: round(value, 1) for part, value in seen._asdict().items()}
            for name, seen in (("once", once), ("again", again), ("other_names", other))
        },
    }


def measure_shares(count: int, cores: list[int], folder: Path) -> dict[str, float]:
    parts_file = folder / "parts.json"
    with on_cores(cores[:1]):
        run_child(
            [sys.executable, "-P", "-m", "bench.extractor.timed", folder / "pages", folder / "timed", parts_file],
            folder / "timed.log",
        )
    parts_s = json.loads(parts_file.read_text())
    whole_us = sum(parts_s.values()) / count * 1e6
    print(f"where the time goes (a run of its own, all in one process on one core): {whole_us:.0f} us per page")
    print(*calculation.share_lines(parts_s, count), sep="\n", flush=True)
    return {part: round(taken_s / count * 1e6, 2) for part, taken_s in parts_s.items()}
