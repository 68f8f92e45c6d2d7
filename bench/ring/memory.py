"""The memory of every process of a crawl over a million pages: does it stay flat?"""

import threading
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from bench.fetcher.polite import slow_web
from bench.processes import Child
from bench.ring.busy import busy_share
from bench.ring.journal import read_journal
from bench.ring.options import Scale
from bench.ring.ours import WITHOUT_PAUSES, Ours
from contract import names
from contract.errors import TryLater

EVERY_S = 2.0
LIMIT_S = 6 * 3_600.0
SUPERVISOR, WARM, WORKERS = "supervisor", "warm", "extractor workers"


class Sample(NamedTuple):
    at_s: float
    bytes: dict[str, int]  # kind of process -> private memory of the largest one


def measure_memory(scale: Scale, folder: Path) -> dict:
    """Keys rss_mb (the largest of each kind), memory_ratios, memory_ratio (the largest of them), long.fetcher_busy."""
    ours = Ours(folder / "long")
    options = ("--latency-min-ms", "1", "--latency-max-ms", "1", "--pages", str(scale.long_pages - 1))
    samples: list[Sample] = []
    with slow_web(scale.long_servers, folder, *options) as web:
        ours.seed([f"{server}/" for server in web.servers], web.hosts, WITHOUT_PAUSES)
        child = Child(ours.command("--until-done"), ours.folder / "crawl.log", limit_s=LIMIT_S)
        try:
            first, turn = psutil.Process(child.pid), 0
            while not child.has_ended():
                samples.append(Sample(turn * EVERY_S, look(first)))
                turn += 1
                threading.Event().wait(EVERY_S)
            spent = child.wait()
        finally:
            child.kill()
    crawled = ours.crawled()
    expected = scale.long_servers * scale.long_pages
    if crawled.answered != expected:
        raise TryLater(f"the crawl has {crawled.answered} pages, expected {expected}")
    ratios = flatness(samples)
    print(
        f"long: {crawled.answered:,} pages in {crawled.cycles} cycles and {spent.wall_s:.0f} s, "
        f"{spent.cpu_s * 1000 / crawled.answered:.2f} ms of CPU per page\n"
        f"  {'':20} {'most, MB':>9} {'last third / second third':>26}"
    )
    most = {kind: max(sample.bytes.get(kind, 0) for sample in samples) / 1e6 for kind in ratios}
    for kind, ratio in ratios.items():
        print(f"  {kind:20} {most[kind]:9.0f} {ratio:26.2f}", flush=True)
    return {
        "rss_mb": {kind: round(megabytes) for kind, megabytes in most.items()},
        "memory_ratios": {kind: round(ratio, 3) for kind, ratio in ratios.items()},
        "memory_ratio": round(max(ratios.values()), 3),
        "long.pages_per_s": round(crawled.answered / spent.wall_s, 1),
        "long.fetcher_busy": round(busy_share(read_journal(ours.crawl)) or 0, 3),
    }


def look(first: psutil.Process) -> dict[str, int]:
    """The largest process of each kind, by private memory; processes that end meanwhile are left out."""
    found: dict[str, int] = defaultdict(int)
    try:
        processes = [first, *first.children(recursive=True)]
    except psutil.Error:
        return {}
    kinds: dict[int, str] = {}
    for process in processes:
        try:
            kinds[process.pid] = kind_of(process.cmdline(), kinds.get(process.ppid(), ""), process.pid == first.pid)
            found[kinds[process.pid]] = max(found[kinds[process.pid]], process.memory_full_info().uss)
        except psutil.Error:
            continue
    return dict(found)


def kind_of(command: list[str], parent: str, is_first: bool) -> str:
    """By its title, which is the command line of the stage. A child of an extractor with the same title is a worker."""
    if is_first:
        return SUPERVISOR
    text = " ".join(command)
    for stage in names.STAGES:
        if f"stages.{stage}" in text or f"bin/{stage}" in text:
            if stage == names.EXTRACTOR and parent in (names.EXTRACTOR, WORKERS):
                return WORKERS
            return stage
    return WARM


def flatness(samples: list[Sample]) -> dict[str, float]:
    """Of each kind: its largest memory in the last third of the time, divided by that in the second third.

    Of the largest tenth of the samples the median is taken: the size of a stage goes up and down with its list.
    """
    if not samples:
        return {}
    length_s = samples[-1].at_s or 1.0
    thirds: list[dict[str, list[int]]] = [defaultdict(list) for _ in range(3)]
    for sample in samples:
        third = thirds[min(2, int(3 * sample.at_s / length_s))]
        for kind, size in sample.bytes.items():
            third[kind].append(size)
    return {
        kind: high(thirds[2][kind]) / max(1.0, high(sizes)) for kind, sizes in thirds[1].items() if thirds[2].get(kind)
    }


def high(sizes: list[int]) -> float:
    return median(sorted(sizes)[-max(1, len(sizes) // 10) :])
