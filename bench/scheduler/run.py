"""The run: makes the block, times every policy and every feature on it, and prints table and goals."""

import signal
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from bench.extractor.ours import resident_mb
from bench.fetcher.figures import goal_lines
from bench.processes import Child
from bench.scheduler.block import NOW_MS, SEED, Size, make_block
from bench.scheduler.figures import GOALS, figures_of, table_lines
from bench.scheduler.turns import time_turns
from bench.verifier.stream import Stream
from contract.command import Parser, at_least
from contract.config import Budget, Config, Priority
from contract.crawl_folder import CrawlFolder
from contract.generation import open_generation
from contract.log import CRAWL
from contract.plan import Plan, write_plan
from contract.policies import FEATURES, POLICIES
from contract.policies.policy import Urls
from contract.policy_files import adopt, files_of
from contract.revisits import conditional_from_ms
from stages.scheduler.listing import choose_urls, describe_visits
from storage.text_segments import take_lines

SCHEDULER = Path(__file__).resolve().parents[2] / "bin" / "scheduler"
REPEATS = 3
FEATURE_URLS = 100_000
LOOK_EVERY_S = 0.01
RANKED = 10_000  # lines of the file of ranks
TERMS = 1_000  # of the file of terms
WITH_FILES = "0.4*pagerank + 0.3*neural + 0.3*focused"  # the policies that read files
PRIORITIES = (
    Priority(surt="br,", weight=3.0),
    Priority(pattern=r"/feed|/rss|sitemap", weight=10.0, interval_s=3_600.0),
    Priority(pattern=r"\.php$", weight=0.5),
    Priority(surt="com,", weight=2.0),
)
BUDGETS = (Budget(surt="org,", urls=1_000_000), Budget(surt="br,gov,", urls=1_000_000))
QUICK = Size(rows=20_000, servers=500, cycles=10)


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "--rows", type=at_least(1_000), default=Size.rows, metavar="N", help="URLs of the block (default: 10,000,000)"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), metavar="DIR", help="where the block is made (2 GB)"
    )
    parser.add_argument(
        "--policy", choices=tuple(POLICIES), action="append", help="measure only this; may be repeated (default: all)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it works; its figures mean nothing"
    )


def measure(arguments) -> dict:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the block is removed
    size = QUICK if arguments.quick else replace(Size(), rows=arguments.rows)
    if arguments.quick:
        print("a quick run: it shows that everything works, and its figures mean nothing", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-scheduler-", dir=arguments.folder) as scratch:
        print(f"making a block of {size.rows:,} URLs of {size.servers:,} servers", flush=True)
        crawl, stream = make_block(Path(scratch) / "crawl", size)
        config = configure(crawl, Path(scratch), stream)
        seconds: dict[str, list[float]] = {name: [] for name in arguments.policy or POLICIES}
        found = {}
        for _ in range(REPEATS):
            for name in seconds:
                spent, found[name] = time_choice(crawl, size, with_policy(config, name))
                seconds[name].append(spent)
        features = time_features(crawl, config, stream, 2_000 if arguments.quick else FEATURE_URLS)
        dearest = max(seconds, key=lambda name: median(seconds[name]))
        command_s, rss_mb = run_command(crawl, size, with_policy(config, dearest), Path(scratch))
        turns = time_turns(crawl, size, with_policy(config, Config().scheduler.policy), stream)
    figures = figures_of(seconds, features, turns, command_s, rss_mb)
    print(*table_lines(figures, found), *goal_lines(figures, GOALS), sep="\n", flush=True)
    return figures


def configure(crawl: CrawlFolder, folder: Path, stream: Stream) -> Config:
    """Revisits, rules and files of ranks and terms, so that nothing is spared."""
    ranks = folder / "ranks.txt"
    servers = stream.texts.servers[:RANKED].to_pylist()
    ranks.write_text("".join(f"{server} {1 / (number + 1)}\n" for number, server in enumerate(servers)))
    terms = folder / "terms.txt"
    terms.write_text("".join(f"{number} word{number}\n" for number in range(TERMS)))
    config = Config()
    config = replace(
        config,
        scheduler=replace(config.scheduler, policy=WITH_FILES, ranks_file=str(ranks), terms_file=str(terms), seed=SEED),
        revisit=replace(config.revisit, policy="optimal"),
        fetcher=replace(config.fetcher, contact="https://example.org/"),
        priority=PRIORITIES,
        budget=BUDGETS,
    )
    return adopt(crawl, config)


def with_policy(config: Config, name: str) -> Config:
    return replace(config, scheduler=replace(config.scheduler, policy=name))


def time_choice(crawl: CrawlFolder, size: Size, config: Config) -> tuple[float, tuple[int, int]]:
    """Seconds from an opened generation to the chosen URLs and their validators; candidates are read anew each time."""
    generation = open_generation(crawl.path, 0, size.cycles)
    plan = Plan(size.cycles + 1, CRAWL, 0, 1, size.cycles, NOW_MS, config)
    began = time.perf_counter()
    pool, _ = choose_urls(plan, generation)
    describe_visits(crawl.path, generation, pool, conditional_from_ms(config.revisit, NOW_MS))
    return time.perf_counter() - began, (len(pool), int(np.count_nonzero(pool.is_revisit)))


def time_features(crawl: CrawlFolder, config: Config, stream: Stream, count: int) -> dict[str, list[float]]:
    """Microseconds per URL of each feature, the first time, in which it may read its file, among them."""
    random = np.random.Generator(np.random.PCG64(SEED))
    server = stream._draw_servers(random, count).astype(np.uint32)  # as links lead to servers
    number = random.integers(0, 1_000, count).astype(np.uint32)
    texts = stream.urls_of(server, number)
    lines = take_lines([texts], np.arange(count, dtype=np.int32))
    spent: dict[str, list[float]] = {name: [] for name in FEATURES}
    for _ in range(REPEATS):
        for name, feature in FEATURES.items():
            keys = stream.keys_of(server, number), stream.domain_key[server], stream.server_key[server]
            urls = Urls(lines, *keys, 1, config, files_of(crawl.path, config))
            began = time.perf_counter()
            feature.compute(urls)
            spent[name].append((time.perf_counter() - began) * 1e6 / count)
    return spent


def run_command(crawl: CrawlFolder, size: Size, config: Config, scratch: Path) -> tuple[float, float]:
    """Seconds and MB of bin/scheduler from its start to its end."""
    plan = Plan(size.cycles + 1, CRAWL, 0, 1, size.cycles, NOW_MS, config)
    write_plan(crawl.path, plan)
    command = [SCHEDULER, "--crawl", crawl.path, "--cycle", plan.cycle, "--out", scratch / "list"]
    child = Child(command, scratch / "scheduler.log")
    largest, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_EVERY_S):
            largest.append(resident_mb(child.pid)[0])

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        return child.wait().wall_s, max(largest)
    finally:
        ended.set()
        watcher.join()
        child.kill()
