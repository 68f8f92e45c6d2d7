"""How many URLs a list gets so that its cycle takes about [scheduler] cycle_target_s; pure, from lines of the journal.

The pages per second of recent fetchers already hold what limits a crawl: pauses, servers, the network. So small crawls
get short cycles, and large ones full lists. The plan records the number: a rerun of the scheduler takes it from there.
"""

from collections.abc import Sequence
from dataclasses import replace

from contract import names
from contract.config import Config

LEAST_URLS = 100  # a list that is shorter is not worth a turn of its block
CYCLES = 5  # the newest ones that rates are taken from
TAIL_BYTES = 256 << 10  # of the journal: about 700 attempts of stages, which take some 10 ms to read


def size_list(config: Config, block: int, stages: Sequence[dict]) -> Config:
    """The configuration for the plan of a block; `stages` are lines of the journal, oldest first."""
    target_s = config.scheduler.cycle_target_s
    per_s = measure_pace(stages, block) if target_s else None
    return config if per_s is None else limit_list(config, max(LEAST_URLS, round(per_s * target_s)))


def measure_pace(stages: Sequence[dict], block: int) -> float | None:
    """Pages per second of the newest cycles of the block, else of all blocks; none where the journal has no cycle."""
    cycles: dict[int, list[dict]] = {}
    for line in stages:
        if line["stage"] == names.FETCHER and line["pages"] is not None:
            cycles.setdefault(line["cycle"], []).append(line)
    own = [attempts for attempts in cycles.values() if attempts[0]["block"] == block]
    newest = (own or list(cycles.values()))[-CYCLES:]
    seconds = sum(line["end_ms"] - line["begin_ms"] for attempts in newest for line in attempts) / 1000
    # A fetcher that resumes counts the pages of earlier attempts too.
    pages = sum(max(line["pages"] for line in attempts) for attempts in newest)
    return pages / seconds if seconds > 0 else None


def limit_list(config: Config, most: int) -> Config:
    """The configuration with lists of at most so many URLs."""
    settings = config.scheduler
    if most >= settings.list_max_urls:
        return config
    server_most = min(most, settings.server_max_urls)
    return replace(config, scheduler=replace(settings, list_max_urls=most, server_max_urls=server_most))
