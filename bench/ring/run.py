"""The run: serves the webs, lets every tool crawl them in turn, measures the other parts, prints the tables."""

import os
import signal
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

from bench.fetcher.figures import goal_lines
from bench.fetcher.run import file_system
from bench.nginx import check_programs
from bench.ring.age import measure_age
from bench.ring.contest import Contest, make_tools
from bench.ring.demonstration import measure_demonstration
from bench.ring.figures import GOALS, OURS
from bench.ring.gantt import draw
from bench.ring.journal import read_journal
from bench.ring.memory import measure_memory
from bench.ring.options import PARTS, PEERS_BY_DEFAULT, Scale, chosen_scale
from bench.ring.peers import install_node_packages
from bench.ring.slow import measure_slow
from bench.ring.start import measure_start
from bench.ring.tls import measure_tls
from bench.ring.web import MANUALS, serving_web, unpack_manuals
from contract.errors import BadConfiguration

CORES = 2
DEMO_REPEATS = 2


def measure(arguments: Namespace) -> dict:
    check_programs("nginx", "wget")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # servers and scratch folder go too
    scale = chosen_scale(arguments)
    parts = arguments.only or (() if arguments.long else PARTS)
    began_s = time.monotonic()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # the children's too
    figures: dict = {"repeats": scale.repeats}
    with tempfile.TemporaryDirectory(prefix="bench-ring-", dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        print(f"{CORES} cores for all; output on {file_system(folder)}; {scale.repeats} repeats", flush=True)
        if arguments.quick:
            print("a quick run: it shows that everything works, and its figures mean nothing", flush=True)
        for part in parts:
            figures |= measure_part(part, scale, arguments, folder)
        if arguments.long:
            figures |= measure_memory(scale, folder)
    figures["minutes"] = round((time.monotonic() - began_s) / 60, 1)
    print(*goal_lines(figures, GOALS), sep="\n")
    print(f"{figures['minutes']} minutes", flush=True)
    return figures


def measure_part(part: str, scale: Scale, arguments: Namespace, folder: Path) -> dict:
    if part in ("12", "60"):
        return measure_contest(part, scale, arguments, folder)
    if part == "tls":
        return measure_tls(scale, folder)
    if part == "slow":
        return measure_slow(scale, folder)
    if part == "demo":
        return measure_demonstration(min(scale.repeats, DEMO_REPEATS), folder)
    if part == "start":
        return measure_start(scale.starts)
    return measure_age(scale.commits, folder)


def measure_contest(part: str, scale: Scale, arguments: Namespace, folder: Path) -> dict:
    wanted = tuple(arguments.peer or PEERS_BY_DEFAULT)
    if {"spider", "crawlee"} & set(wanted):
        try:
            install_node_packages()
        except BadConfiguration as error:
            print(f"without spider-rs and Crawlee: {error}", flush=True)
            wanted = tuple(peer for peer in wanted if peer not in ("spider", "crawlee"))
    tools = make_tools(folder / part, wanted)
    crawl = folder / part / OURS / "crawl"
    manuals = unpack_manuals(MANUALS[: scale.manuals])
    with serving_web(scale.names(part), folder / f"web-{part}", manuals, scale.copies) as web:
        figures = Contest(part, web, tools, crawl).run(scale.repeats)
    attempts = read_journal(crawl)
    if arguments.gantt and attempts:
        path = arguments.gantt.with_stem(f"{arguments.gantt.stem}-{part}")
        draw(attempts, f"{part} names, default settings: which stage of which cycle worked when", path)
        print(f"  {path}", flush=True)
    elif arguments.gantt:
        print("  no Gantt chart: this crawl has no journal", flush=True)
    return figures
